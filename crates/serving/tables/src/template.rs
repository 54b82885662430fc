//! Sentences by a template: every word of them stands in the template or in the table.

use crate::table::Table;

/// A text with places for cells: `{column}` is the cell of that column, and a part in brackets is
/// left out where a cell in it is empty. `{{`, `}}`, `[[` and `]]` are the characters themselves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Template(Vec<Part>);

#[derive(Debug, Clone, PartialEq, Eq)]
enum Part {
    Text(String),
    Column(String),
    /// What stands in brackets; brackets within them are refused.
    Optional(Vec<Part>),
}

/// A template that is none, or none for a table.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TemplateError {
    /// A brace or bracket that has no counterpart.
    #[error("`{what}` at character {at} of the template {fix}")]
    Syntax {
        /// The character.
        what: char,
        /// Where it stands, from 1.
        at: usize,
        /// What to do.
        fix: &'static str,
    },
    /// It names no column at all.
    #[error("the template names no column; write columns as `{{{example}}}`")]
    NoColumn {
        /// A column of the table.
        example: String,
    },
    /// It names a column that the table does not have.
    #[error("the template names the column `{name}`, which the table does not have; its columns are `{}`", known.join("`, `"))]
    UnknownColumn {
        /// The name.
        name: String,
        /// What there is.
        known: Vec<String>,
    },
}

impl Template {
    /// Reads a template.
    ///
    /// # Errors
    /// A brace or bracket without its counterpart, or within another.
    pub fn parse(text: &str) -> Result<Template, TemplateError> {
        let mut parts = Vec::new();
        let mut optional: Option<(usize, Vec<Part>)> = None;
        let mut chars = text.chars().enumerate().peekable();
        let wrong = |what, at: usize, fix| TemplateError::Syntax { what, at: at + 1, fix };
        while let Some((at, c)) = chars.next() {
            let twice = chars.peek().is_some_and(|(_, next)| *next == c);
            match c {
                '{' | '}' | '[' | ']' if twice => {
                    chars.next();
                    push(optional.as_mut().map_or(&mut parts, |(_, inner)| inner), c);
                }
                '{' => {
                    let mut name = String::new();
                    loop {
                        match chars.next() {
                            Some((_, '}')) => break,
                            Some((_, '{' | '[' | ']')) | None => return Err(wrong('{', at, "is not closed; expected `{column}`")),
                            Some((_, c)) => name.push(c),
                        }
                    }
                    optional.as_mut().map_or(&mut parts, |(_, inner)| inner).push(Part::Column(name.trim().to_owned()));
                }
                '[' if optional.is_some() => return Err(wrong('[', at, "stands within other brackets; close those first")),
                '[' => optional = Some((at, Vec::new())),
                ']' => match optional.take() {
                    Some((_, inner)) => parts.push(Part::Optional(inner)),
                    None => return Err(wrong(']', at, "closes nothing; write it twice to have the character")),
                },
                '}' => return Err(wrong('}', at, "closes nothing; write it twice to have the character")),
                c => push(optional.as_mut().map_or(&mut parts, |(_, inner)| inner), c),
            }
        }
        match optional {
            Some((at, _)) => Err(wrong('[', at, "is not closed; expected a `]` after it")),
            None => Ok(Template(parts)),
        }
    }

    /// Whether it can be filled from a table.
    ///
    /// # Errors
    /// A column that the table does not have, or none.
    pub fn check(&self, table: &Table) -> Result<(), TemplateError> {
        let mut names = Vec::new();
        self.0.iter().for_each(|part| part.columns(&mut names));
        if names.is_empty() {
            return Err(TemplateError::NoColumn { example: table.columns.first().cloned().unwrap_or_default() });
        }
        match names.into_iter().find(|name| position(table, name).is_none()) {
            Some(name) => Err(TemplateError::UnknownColumn { name: name.to_owned(), known: table.columns.clone() }),
            None => Ok(()),
        }
    }

    /// The sentence of a row; `None` if a cell that is not in brackets is empty.
    pub fn fill(&self, table: &Table, row: &[String]) -> Option<String> {
        filled(&self.0, table, row)
    }

    /// The sentence of a row where there is no template: `Loire: length is 1006, mouth is Atlantic
    /// Ocean.` Cells that are empty are left out; `None` if all are.
    pub fn plain(table: &Table, row: &[String]) -> Option<String> {
        let mut cells = table.columns.iter().zip(row).filter(|(_, cell)| !cell.is_empty());
        let (first, subject) = cells.next()?;
        // the first column names the row, unless its cell is empty
        let named = table.columns.first() == Some(first);
        let said: Vec<String> = cells.map(|(column, cell)| format!("{} is {cell}", column.replace('_', " "))).collect();
        Some(match (named, said.is_empty()) {
            (true, true) => format!("{subject}."),
            (true, false) => format!("{subject}: {}.", said.join(", ")),
            (false, true) => format!("{} is {subject}.", first.replace('_', " ")),
            (false, false) => format!("{} is {subject}, {}.", first.replace('_', " "), said.join(", ")),
        })
    }
}

impl Part {
    fn columns<'a>(&'a self, names: &mut Vec<&'a str>) {
        match self {
            Part::Text(_) => {}
            Part::Column(name) => names.push(name),
            Part::Optional(inner) => inner.iter().for_each(|part| part.columns(names)),
        }
    }
}

fn push(parts: &mut Vec<Part>, c: char) {
    match parts.last_mut() {
        Some(Part::Text(text)) => text.push(c),
        _ => parts.push(Part::Text(c.to_string())),
    }
}

fn position(table: &Table, name: &str) -> Option<usize> {
    table.columns.iter().position(|column| column.eq_ignore_ascii_case(name))
}

fn filled(parts: &[Part], table: &Table, row: &[String]) -> Option<String> {
    let mut text = String::new();
    for part in parts {
        match part {
            Part::Text(words) => text.push_str(words),
            Part::Column(name) => text.push_str(position(table, name).and_then(|at| row.get(at)).filter(|cell| !cell.is_empty())?),
            Part::Optional(inner) => text.push_str(&filled(inner, table, row).unwrap_or_default()),
        }
    }
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::records::Format;
    use proptest::prelude::*;

    fn rivers() -> Table {
        Table::parse("river", "name,length,mouth\nLoire,1006,Atlantic Ocean\nNile,,\n,7,\n", Format::Csv).unwrap()
    }

    fn sentences(template: &str) -> Vec<Option<String>> {
        let (table, template) = (rivers(), Template::parse(template).unwrap());
        template.check(&table).unwrap();
        table.rows.iter().map(|row| template.fill(&table, row)).collect()
    }

    #[test]
    fn brackets_are_left_out_where_a_cell_is_empty() {
        let found = sentences("{name} is a river[ of {LENGTH} km][ that flows into the {mouth}]. {{x}} [[y]]");
        let expected = ["Loire is a river of 1006 km that flows into the Atlantic Ocean. {x} [y]", "Nile is a river. {x} [y]"];
        assert_eq!(found, [Some(expected[0].to_owned()), Some(expected[1].to_owned()), None]);
    }

    #[test]
    fn rows_without_a_template() {
        let table = rivers();
        let found: Vec<_> = table.rows.iter().filter_map(|row| Template::plain(&table, row)).collect();
        assert_eq!(found, ["Loire: length is 1006, mouth is Atlantic Ocean.", "Nile.", "length is 7."]);
    }

    #[test]
    fn what_is_no_template_says_where() {
        for (text, at) in [("a {b", 3), ("x}", 2), ("[a [b]]", 4), ("a]", 2), ("[a", 1)] {
            assert!(matches!(Template::parse(text), Err(TemplateError::Syntax { at: found, .. }) if found == at), "{text}");
        }
        assert!(matches!(Template::parse("{km}").unwrap().check(&rivers()), Err(TemplateError::UnknownColumn { .. })));
        assert!(matches!(Template::parse("no").unwrap().check(&rivers()), Err(TemplateError::NoColumn { .. })));
    }

    proptest! {
        #[test]
        fn no_template_panics(text in r"[{}\[\]namelgth é]{0,40}") {
            let table = rivers();
            if let Ok(template) = Template::parse(&text) {
                let _ = template.check(&table);
                for row in &table.rows {
                    let _ = template.fill(&table, row);
                }
            }
        }
    }
}

//! What a column holds, guessed from its cells.

use rusqlite::types::Value;

/// Whole numbers up to this size are the same as a fraction.
const EXACT: u64 = 1 << 53;

/// The type of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ColumnType {
    /// Every cell is a whole number.
    Integer,
    /// Every cell is a number, and some have a fraction.
    Real,
    /// Anything else. So are numbers as people write names: `007`, `1,000`, `12 km`.
    Text,
}

impl ColumnType {
    /// The type of these cells. Empty ones say nothing.
    pub(crate) fn of<'a>(cells: impl Iterator<Item = &'a str>) -> ColumnType {
        let (mut whole, mut fraction, mut large) = (false, false, false);
        for cell in cells.filter(|cell| !cell.is_empty()) {
            match number(cell) {
                None => return ColumnType::Text,
                Some(Number::Whole(number)) => {
                    whole = true;
                    large |= number.unsigned_abs() > EXACT;
                }
                Some(Number::Fraction(_)) => fraction = true,
            }
        }
        match (whole, fraction) {
            // a column of fractions would change a whole number that a fraction cannot hold
            (_, true) if large => ColumnType::Text,
            (_, true) => ColumnType::Real,
            (true, false) => ColumnType::Integer,
            (false, false) => ColumnType::Text,
        }
    }

    /// As a column is declared.
    pub(crate) fn declared(self) -> &'static str {
        match self {
            ColumnType::Integer => "INTEGER",
            ColumnType::Real => "REAL",
            ColumnType::Text => "TEXT",
        }
    }

    /// A cell of such a column.
    pub(crate) fn value(self, cell: &str) -> Value {
        match (self, number(cell)) {
            _ if cell.is_empty() => Value::Null,
            (ColumnType::Integer | ColumnType::Real, Some(Number::Whole(number))) => Value::Integer(number),
            (ColumnType::Real, Some(Number::Fraction(number))) => Value::Real(number),
            _ => Value::Text(cell.to_owned()),
        }
    }
}

enum Number {
    Whole(i64),
    Fraction(f64),
}

/// A number that is written as numbers are: no blanks, no leading zero, no `+`.
fn number(cell: &str) -> Option<Number> {
    let digits = cell.strip_prefix('-').unwrap_or(cell);
    let whole = &digits[..digits.find(['.', 'e', 'E']).unwrap_or(digits.len())];
    let plain = !whole.is_empty() && whole.bytes().all(|byte| byte.is_ascii_digit()) && (whole == "0" || !whole.starts_with('0'));
    if !plain || cell == "-0" {
        return None;
    }
    if whole.len() == digits.len() {
        return cell.parse().ok().map(Number::Whole);
    }
    // `12.` is no number as people write them
    let fraction = digits.ends_with(|c: char| c.is_ascii_digit()) && !digits.contains(".e") && !digits.contains(".E");
    cell.parse().ok().filter(|number: &f64| fraction && number.is_finite()).map(Number::Fraction)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_guessed() {
        for (cells, expected) in [
            (&["1", "", "-20"][..], ColumnType::Integer),
            (&["1", "2.5", "-1e3"], ColumnType::Real),
            (&["007", "1"], ColumnType::Text),
            (&["1", "x"], ColumnType::Text),
            (&["", ""], ColumnType::Text),
            (&["1,000"], ColumnType::Text),
            (&["99999999999999999999"], ColumnType::Text),
            (&["1e999"], ColumnType::Text),
            (&["inf", "nan"], ColumnType::Text),
            (&["-0"], ColumnType::Text),
            (&["0.50"], ColumnType::Real),
            (&["9007199254740993", "0.5"], ColumnType::Text),
        ] {
            assert_eq!(ColumnType::of(cells.iter().copied()), expected, "{cells:?}");
        }
        assert_eq!(ColumnType::Real.value("3"), Value::Integer(3));
        assert_eq!(ColumnType::Integer.value(""), Value::Null);
    }
}

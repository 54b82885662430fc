//! Markdown: CommonMark with tables, footnotes, strikethrough and front matter.

use pulldown_cmark::{Event, HeadingLevel, MetadataBlockKind, Options, Parser, Tag, TagEnd};

use crate::document::{Builder, Extracted};
use crate::error::ReadError;
use crate::html;
use crate::limits::Limits;

/// What stands between the cells of a row.
pub(crate) const CELL_SEPARATOR: &str = " | ";

pub(crate) fn read(text: &str, limits: &Limits) -> Result<Extracted, ReadError> {
    let options = Options::ENABLE_TABLES
        | Options::ENABLE_FOOTNOTES
        | Options::ENABLE_STRIKETHROUGH
        | Options::ENABLE_TASKLISTS
        | Options::ENABLE_YAML_STYLE_METADATA_BLOCKS
        | Options::ENABLE_PLUSES_DELIMITED_METADATA_BLOCKS;
    let mut reader = Reader { builder: Builder::new(limits.text_bytes), text: String::new(), cells: 0, block: Block::Paragraph };
    for event in Parser::new_ext(text, options) {
        reader.event(event)?;
    }
    reader.end_block()?;
    Ok(reader.builder.finish())
}

/// The block that is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Block {
    Paragraph,
    Item,
    Heading(HeadingLevel),
    Code,
    Html,
    Metadata(MetadataBlockKind),
}

struct Reader {
    builder: Builder,
    /// The text of the block so far.
    text: String,
    /// The cells of the table's row so far.
    cells: usize,
    block: Block,
}

impl Reader {
    fn event(&mut self, event: Event<'_>) -> Result<(), ReadError> {
        match event {
            Event::Start(tag) => self.start(&tag)?,
            Event::End(tag) => self.end(tag)?,
            Event::Text(text) | Event::Code(text) | Event::InlineMath(text) | Event::DisplayMath(text) | Event::Html(text) => {
                self.text.push_str(&text);
            }
            Event::SoftBreak | Event::HardBreak => self.text.push(' '),
            Event::Rule => self.end_block()?,
            Event::InlineHtml(tag) if tag.starts_with("<br") => self.text.push(' '),
            Event::InlineHtml(_) | Event::FootnoteReference(_) | Event::TaskListMarker(_) => {}
        }
        Ok(())
    }

    fn start(&mut self, tag: &Tag<'_>) -> Result<(), ReadError> {
        let block = match tag {
            Tag::Heading { level, .. } => Block::Heading(*level),
            Tag::CodeBlock(_) => Block::Code,
            Tag::HtmlBlock => Block::Html,
            Tag::MetadataBlock(kind) => Block::Metadata(*kind),
            Tag::Item | Tag::TableHead | Tag::TableRow | Tag::DefinitionListTitle | Tag::DefinitionListDefinition => Block::Item,
            // the first paragraph of an item is the item
            Tag::Paragraph if self.block == Block::Item && self.text.is_empty() => return Ok(()),
            Tag::Paragraph | Tag::BlockQuote(_) | Tag::List(_) | Tag::FootnoteDefinition(_) | Tag::Table(_) | Tag::DefinitionList => {
                Block::Paragraph
            }
            Tag::TableCell => {
                if self.cells > 0 {
                    self.text.push_str(CELL_SEPARATOR);
                }
                self.cells += 1;
                return Ok(());
            }
            Tag::Emphasis | Tag::Strong | Tag::Strikethrough | Tag::Superscript | Tag::Subscript | Tag::Link { .. } | Tag::Image { .. } => {
                return Ok(());
            }
        };
        self.end_block()?;
        self.block = block;
        Ok(())
    }

    fn end(&mut self, tag: TagEnd) -> Result<(), ReadError> {
        match tag {
            TagEnd::TableCell
            | TagEnd::Emphasis
            | TagEnd::Strong
            | TagEnd::Strikethrough
            | TagEnd::Superscript
            | TagEnd::Subscript
            | TagEnd::Link
            | TagEnd::Image => Ok(()),
            _ => self.end_block(),
        }
    }

    fn end_block(&mut self) -> Result<(), ReadError> {
        let text = std::mem::take(&mut self.text);
        self.cells = 0;
        match std::mem::replace(&mut self.block, Block::Paragraph) {
            Block::Paragraph => self.builder.paragraph(&text),
            Block::Item => self.builder.line(&text),
            Block::Code => self.builder.lines(&text),
            Block::Html => html::fragment(&text, &mut self.builder),
            Block::Heading(level) => {
                if level == HeadingLevel::H1 {
                    self.builder.title(&text);
                }
                self.builder.heading(&text)
            }
            Block::Metadata(kind) => {
                let separator = if kind == MetadataBlockKind::YamlStyle { ':' } else { '=' };
                let title = text.lines().filter_map(|line| line.split_once(separator)).find(|(key, _)| key.trim() == "title");
                if let Some((_, title)) = title {
                    self.builder.title(title.trim().trim_matches(['"', '\'']));
                }
                Ok(())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)] // tests
    use super::*;
    use proptest::prelude::*;

    fn sections(text: &str) -> Vec<(Option<String>, String)> {
        let found = read(text, &Limits::default()).unwrap();
        found.sections.iter().map(|section| (section.heading.clone(), found.text[section.span.clone()].to_owned())).collect()
    }

    fn section(heading: &str, text: &str) -> (Option<String>, String) {
        (Some(heading.to_owned()), text.to_owned())
    }

    #[test]
    fn headings_divide_and_marks_are_dropped() {
        let text = "# The *Loire*\n\nA [river](http://x) of\n**France**.\n\n## Length &amp; source\n\n- 1,006 km\n- `Mont` Gerbier\n\n  More.\n\n```\nlet a = 1;\n  b\n```\n";
        assert_eq!(read(text, &Limits::default()).unwrap().title.as_deref(), Some("The Loire"));
        assert_eq!(
            sections(text),
            [section("The Loire", "A river of France."), section("Length & source", "1,006 km\nMont Gerbier\n\nMore.\n\nlet a = 1;\n  b")]
        );
    }

    #[test]
    fn tables_front_matter_and_html() {
        let text = "---\ntitle: \"Rivers\"\n---\n| name | km |\n|---|---|\n| Loire | 1006 |\n\n<div><p>In a <b>block</b>.</p>\n<script>no()</script></div>\n";
        let found = read(text, &Limits::default()).unwrap();
        assert_eq!(found.title.as_deref(), Some("Rivers"));
        assert_eq!(found.text, "name | km\nLoire | 1006\n\nIn a block.");
    }

    #[test]
    fn deep_nesting_is_only_text() {
        for deep in [">".repeat(5_000) + " a", "- ".repeat(2_000) + "a", "[".repeat(20_000) + "a", "*a ".repeat(20_000)] {
            assert!(read(&deep, &Limits::default()).unwrap().text.contains('a'));
        }
    }

    proptest! {
        #[test]
        fn any_text_is_read_without_panic(text in prop_oneof![any::<String>(), "([a-z]{1,3}|[-#>*_`|<>/\\[\\]()!: \n]){0,80}"]) {
            read(&text, &Limits::default()).unwrap();
        }
    }
}

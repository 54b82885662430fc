//! The index's schema. Change the layout with it.

use autoact_tools::text::analyzer;
use tantivy::schema::{FAST, Field, INDEXED, IndexRecordOption, STORED, STRING, Schema, TextFieldIndexing, TextOptions};
use tantivy::tokenizer::TokenizerManager;

/// The version of a collection's files.
pub(crate) const LAYOUT: u32 = 1;

/// The name our analyzer is registered under.
const ANALYZER: &str = "autoact";

/// A document of the index is a segment, or the entry of a file.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Fields {
    /// The file, of segments and entries: by it they are replaced.
    pub(crate) path: Field,
    /// Of entries: 1.
    pub(crate) entry: Field,
    /// Of segments: the number.
    pub(crate) number: Field,
    /// Of segments: the title, folded.
    pub(crate) name: Field,
    /// Of segments: the aliases, folded.
    pub(crate) alias: Field,
    /// Of segments: the title's words.
    pub(crate) title: Field,
    /// Of segments: the text's words.
    pub(crate) text: Field,
    /// The [`Segment`](crate::Segment) or the [`Entry`](crate::Entry), as JSON.
    pub(crate) payload: Field,
}

impl Fields {
    pub(crate) fn schema() -> (Schema, Fields) {
        let words =
            TextFieldIndexing::default().set_tokenizer(ANALYZER).set_fieldnorms(true).set_index_option(IndexRecordOption::WithFreqs);
        let words = TextOptions::default().set_indexing_options(words);
        let mut schema = Schema::builder();
        let fields = Fields {
            path: schema.add_text_field("path", STRING),
            entry: schema.add_u64_field("entry", INDEXED),
            number: schema.add_u64_field("number", INDEXED | FAST),
            name: schema.add_text_field("name", STRING),
            alias: schema.add_text_field("alias", STRING),
            title: schema.add_text_field("title", words.clone()),
            text: schema.add_text_field("text", words),
            payload: schema.add_bytes_field("payload", STORED),
        };
        (schema.build(), fields)
    }

    pub(crate) fn tokenizers() -> TokenizerManager {
        let tokenizers = TokenizerManager::default();
        tokenizers.register(ANALYZER, analyzer());
        tokenizers
    }
}

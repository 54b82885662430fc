//! Full-text search: BM25 over titles and texts.

use tantivy::collector::TopDocs;
use tantivy::directory::RamDirectory;
use tantivy::query::{BooleanQuery, BoostQuery, Occur, Query, TermQuery};
use tantivy::schema::{Field, IndexRecordOption, Schema, TextFieldIndexing, TextOptions};
use tantivy::{IndexReader, ReloadPolicy, TantivyDocument, Term};

use crate::text;

/// The name our analyzer is registered under.
const ANALYZER: &str = "autoact";

/// A longer query is cut to its first words.
const MOST_QUERY_TERMS: usize = 64;

/// What one segment may use while it is built; it decides the size of a hash table alone, and small
/// worlds are built by the thousand.
const WRITER_BYTES: usize = 1 << 20;

/// The index of a corpus. A document's id is the position of its page, so nothing is stored in it.
pub struct PageIndex {
    reader: IndexReader,
    title: Field,
    text: Field,
}

impl std::fmt::Debug for PageIndex {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PageIndex").finish_non_exhaustive()
    }
}

impl PageIndex {
    /// Indexes (title, text) pairs in RAM, on this thread, as one segment.
    ///
    /// # Errors
    /// The index's own.
    pub fn new<'a>(pages: impl Iterator<Item = (&'a str, &'a str)>) -> tantivy::Result<PageIndex> {
        let indexing =
            TextFieldIndexing::default().set_tokenizer(ANALYZER).set_fieldnorms(true).set_index_option(IndexRecordOption::WithFreqs);
        let options = TextOptions::default().set_indexing_options(indexing);
        let mut schema = Schema::builder();
        let title = schema.add_text_field("title", options.clone());
        let text = schema.add_text_field("text", options);

        let tokenizers = tantivy::tokenizer::TokenizerManager::new();
        tokenizers.register(ANALYZER, text::analyzer());
        // The writer without threads: documents keep the order they were added in, which makes
        // their ids our positions.
        let mut writer = tantivy::Index::builder()
            .schema(schema.build())
            .tokenizers(tokenizers)
            .single_segment_index_writer::<TantivyDocument>(RamDirectory::create(), WRITER_BYTES)?;
        for (page_title, page_text) in pages {
            let mut document = TantivyDocument::default();
            document.add_text(title, page_title);
            document.add_text(text, page_text);
            writer.add_document(document)?;
        }
        let reader = writer.finalize()?.reader_builder().reload_policy(ReloadPolicy::Manual).try_into()?;
        Ok(PageIndex { reader, title, text })
    }

    /// The positions of the best pages for a query of plain stems, best first.
    ///
    /// # Errors
    /// The index's own.
    pub fn search(&self, stems: &[String], limit: usize) -> tantivy::Result<Vec<(usize, f32)>> {
        if stems.is_empty() || limit == 0 {
            return Ok(Vec::new());
        }
        let hits =
            self.reader.searcher().search(&words_query(self.title, self.text, stems), &TopDocs::with_limit(limit).order_by_score())?;
        Ok(hits.into_iter().map(|(score, address)| (address.doc_id as usize, score)).collect())
    }
}

/// What a word of a title counts beside the same word of a text. Titles are short, and few of them
/// have a given word, so BM25 makes much of it as it is. With a weight of 1, a search for what has a
/// value finds the pages that are called like the value (`director Ishirō Honda`: the director, and
/// another Honda) before the one that tells of it.
pub const TITLE_WEIGHT: f32 = 0.5;

/// The query for pages with these stems, in any of an index's title and text: BM25 of both, with
/// [`TITLE_WEIGHT`]. A longer query is cut.
pub fn words_query(title: Field, text: Field, stems: &[String]) -> BooleanQuery {
    let mut clauses: Vec<(Occur, Box<dyn Query>)> = Vec::new();
    for stem in stems.iter().take(MOST_QUERY_TERMS) {
        let term = |field| -> Box<dyn Query> { Box::new(TermQuery::new(Term::from_field_text(field, stem), IndexRecordOption::WithFreqs)) };
        clauses.push((Occur::Should, Box::new(BoostQuery::new(term(title), TITLE_WEIGHT))));
        clauses.push((Occur::Should, term(text)));
    }
    BooleanQuery::new(clauses)
}

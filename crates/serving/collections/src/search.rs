//! Reading one collection: what is committed, at one point in time.

use autoact_tools::names::{self, Names};
use autoact_tools::text::{fold, query_stems};
use autoact_tools::words_query;
use serde::de::DeserializeOwned;
use tantivy::collector::{Count, DocSetCollector, TopDocs};
use tantivy::query::{BooleanQuery, FuzzyTermQuery, Occur, Query, TermQuery};
use tantivy::schema::{Field, IndexRecordOption, Value};
use tantivy::{DocAddress, DocId, DocSet, Searcher, TERMINATED, TantivyDocument, TantivyError, Term};

use crate::fields::Fields;
use crate::model::{Entry, Found, Opened, Segment};
use crate::segment_names::{MAX_NAME_CHARS, MOST_ALSO};

/// Of the segments that share a name so many are looked at.
const MOST_OF_A_NAME: usize = 16;
/// So many segments with words of a name are compared with it.
const CANDIDATES: usize = 64;
/// Words of a name that are looked for among the titles.
const MOST_NAME_WORDS: usize = 16;
/// A shorter name is not misspelt: see the rules in `autoact_tools::names`.
const ONE_SLIP: usize = 5;
/// A name of so many letters may have two slips.
const TWO_SLIPS: usize = 8;

/// A collection at one point in time.
pub(crate) struct Search {
    searcher: Searcher,
    fields: Fields,
}

impl Search {
    pub(crate) fn new(searcher: Searcher, fields: Fields) -> Search {
        Search { searcher, fields }
    }

    /// The segments that match a query best, best first.
    pub(crate) fn words(&self, query: &str, limit: usize) -> tantivy::Result<Vec<Found>> {
        let stems = query_stems(query);
        if stems.is_empty() || limit == 0 {
            return Ok(Vec::new());
        }
        let query = words_query(self.fields.title, self.fields.text, &stems);
        let hits = self.searcher.search(&query, &TopDocs::with_limit(limit).order_by_score())?;
        hits.into_iter().map(|(score, address)| Ok(Found { segment: self.payload(address)?, score })).collect()
    }

    /// What a name means, or up to `similar` titles like it.
    pub(crate) fn open(&self, name: &str, similar: usize) -> tantivy::Result<Opened> {
        if name.chars().count() > MAX_NAME_CHARS {
            return Ok(Opened::Unknown { similar: Vec::new() });
        }
        if let Some(address) = names::find_title(self, name)? {
            let also = self.others(self.fields.alias, name, address)?;
            return Ok(Opened::Segment { segment: Box::new(self.payload(address)?), by_title: true, also });
        }
        let address = match names::find_alias(self, name)? {
            Some(address) => Some(address),
            None => names::meant(self, name)?,
        };
        match address {
            Some(address) => {
                let also = self.others(self.fields.alias, name, address)?;
                Ok(Opened::Segment { segment: Box::new(self.payload(address)?), by_title: false, also })
            }
            None => Ok(Opened::Unknown { similar: self.similar(name, similar)? }),
        }
    }

    /// The entry of a file.
    pub(crate) fn entry(&self, path: &str) -> tantivy::Result<Option<Entry>> {
        let must = |term| -> (Occur, Box<dyn Query>) { (Occur::Must, Box::new(TermQuery::new(term, IndexRecordOption::Basic))) };
        let path = Term::from_field_text(self.fields.path, path);
        let query = BooleanQuery::new(vec![must(path), must(self.is_entry())]);
        let found = self.searcher.search(&query, &DocSetCollector)?;
        found.into_iter().next().map(|address| self.payload(address)).transpose()
    }

    /// All files, sorted by path.
    pub(crate) fn entries(&self) -> tantivy::Result<Vec<Entry>> {
        let found = self.searcher.search(&TermQuery::new(self.is_entry(), IndexRecordOption::Basic), &DocSetCollector)?;
        let mut entries = found.into_iter().map(|address| self.payload(address)).collect::<tantivy::Result<Vec<Entry>>>()?;
        entries.sort_by(|one, other| one.path.cmp(&other.path));
        Ok(entries)
    }

    /// How many files and segments there are.
    pub(crate) fn counts(&self) -> tantivy::Result<(u64, u64)> {
        let entries = self.searcher.search(&TermQuery::new(self.is_entry(), IndexRecordOption::Basic), &Count)? as u64;
        Ok((entries, self.searcher.num_docs() - entries))
    }

    /// The number after the last one that was given.
    pub(crate) fn next_number(&self) -> tantivy::Result<u64> {
        let mut next = 0;
        for segment in self.searcher.segment_readers() {
            if let Some(numbers) = segment.fast_fields().column_opt::<u64>("number")? {
                next = next.max(numbers.max_value().saturating_add(1));
            }
        }
        Ok(next)
    }

    /// The numbers of all segments.
    pub(crate) fn numbers(&self) -> tantivy::Result<Vec<u64>> {
        let mut all = Vec::new();
        for segment in self.searcher.segment_readers() {
            let Some(numbers) = segment.fast_fields().column_opt::<u64>("number")? else { continue };
            all.extend(segment.doc_ids_alive().filter_map(|doc| numbers.first(doc)));
        }
        Ok(all)
    }

    /// The segment with a number, if it is there.
    pub(crate) fn numbered(&self, number: u64) -> tantivy::Result<Option<Segment>> {
        let query = TermQuery::new(Term::from_field_u64(self.fields.number, number), IndexRecordOption::Basic);
        let found = self.searcher.search(&query, &DocSetCollector)?;
        found.into_iter().next().map(|address| self.payload(address)).transpose()
    }

    /// The file whose segment has a title, if it is another than `path`.
    pub(crate) fn is_title_elsewhere(&self, folded: &str, path: &str) -> tantivy::Result<bool> {
        for address in self.named(self.fields.name, folded)? {
            if self.payload::<Segment>(address)?.path != path {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn is_entry(&self) -> Term {
        Term::from_field_u64(self.fields.entry, 1)
    }

    /// The titles most like a name: those that share words with it, compared letter by letter.
    fn similar(&self, name: &str, limit: usize) -> tantivy::Result<Vec<String>> {
        if limit == 0 {
            return Ok(Vec::new());
        }
        let mut clauses: Vec<(Occur, Box<dyn Query>)> = Vec::new();
        for word in query_stems(name).into_iter().take(MOST_NAME_WORDS) {
            let term = Term::from_field_text(self.fields.title, &word);
            clauses.push((Occur::Should, Box::new(TermQuery::new(term.clone(), IndexRecordOption::WithFreqs))));
            if word.chars().count() >= ONE_SLIP {
                clauses.push((Occur::Should, Box::new(FuzzyTermQuery::new(term, 1, true))));
            }
        }
        let hits = self.searcher.search(&BooleanQuery::new(clauses), &TopDocs::with_limit(CANDIDATES).order_by_score())?;
        let titles = hits.into_iter().map(|(_, address)| Ok(self.payload::<Segment>(address)?.title));
        let titles = titles.collect::<tantivy::Result<Vec<String>>>()?;
        let folded: Vec<String> = titles.iter().map(|title| fold(title)).collect();
        Ok(names::similar(name, folded.iter().map(String::as_str), limit).into_iter().map(|at| titles[at].clone()).collect())
    }

    /// Segments that have a name, but for one of them.
    fn others(&self, field: Field, name: &str, but: DocAddress) -> tantivy::Result<Vec<Segment>> {
        let addresses = self.named(field, &fold(name))?;
        addresses.into_iter().filter(|address| *address != but).take(MOST_ALSO).map(|address| self.payload(address)).collect()
    }

    /// Segments that have a name, up to a bound, in the order in which they were stored.
    fn named(&self, field: Field, folded: &str) -> tantivy::Result<Vec<DocAddress>> {
        let term = Term::from_field_text(field, folded);
        let mut addresses: Vec<(u64, DocAddress)> = Vec::new();
        for (ord, segment) in (0..).zip(self.searcher.segment_readers()) {
            let Some(mut postings) = segment.inverted_index(field)?.read_postings(&term, IndexRecordOption::Basic)? else { continue };
            let numbers = segment.fast_fields().column_opt::<u64>("number")?;
            let mut doc: DocId = postings.doc();
            while doc != TERMINATED && addresses.len() < MOST_OF_A_NAME {
                if !segment.is_deleted(doc) {
                    let number = numbers.as_ref().and_then(|numbers| numbers.first(doc)).unwrap_or_default();
                    addresses.push((number, DocAddress::new(ord, doc)));
                }
                doc = postings.advance();
            }
        }
        addresses.sort_unstable_by_key(|(number, _)| *number);
        Ok(addresses.into_iter().map(|(_, address)| address).collect())
    }

    fn payload<T: DeserializeOwned>(&self, address: DocAddress) -> tantivy::Result<T> {
        let document: TantivyDocument = self.searcher.doc(address)?;
        let payload = document.get_first(self.fields.payload).and_then(|value| value.as_bytes()).unwrap_or_default();
        serde_json::from_slice(payload)
            .map_err(|error| TantivyError::DataCorruption(tantivy::error::DataCorruption::comment_only(error.to_string())))
    }
}

impl Names for Search {
    type Page = DocAddress;
    type Error = TantivyError;

    fn titled(&self, folded: &str) -> tantivy::Result<Option<DocAddress>> {
        Ok(self.named(self.fields.name, folded)?.into_iter().next())
    }

    fn aliased(&self, folded: &str) -> tantivy::Result<Option<DocAddress>> {
        Ok(self.named(self.fields.alias, folded)?.into_iter().next())
    }

    fn near(&self, folded: &str, each: &mut dyn FnMut(&str, DocAddress)) -> tantivy::Result<()> {
        let letters = folded.chars().count();
        if letters < ONE_SLIP {
            return Ok(());
        }
        let distance = if letters < TWO_SLIPS { 1 } else { 2 };
        for field in [self.fields.name, self.fields.alias] {
            let query = FuzzyTermQuery::new(Term::from_field_text(field, folded), distance, true);
            let mut found = Vec::new();
            for segment in self.searcher.segment_readers() {
                let index = segment.inverted_index(field)?;
                let mut terms = index.terms().search(query.automaton()?).into_stream()?;
                while terms.advance() {
                    found.push(String::from_utf8_lossy(terms.key()).into_owned());
                }
            }
            found.sort_unstable();
            found.dedup();
            for name in found {
                self.named(field, &name)?.into_iter().for_each(|address| each(&name, address));
            }
        }
        Ok(())
    }
}

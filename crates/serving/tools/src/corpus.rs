//! A corpus: an immutable indexed set of pages.

use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};
use std::fmt;
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::ops::Range;
use std::path::{Path, PathBuf};

use autoact_base::sentences::{sentence_spans, sentences};
use serde::{Deserialize, Serialize};
use tantivy::tokenizer::TextAnalyzer;

use crate::index::PageIndex;
use crate::text::{analyzer, canonical, is_stop_word, one_line, query_stems, stems_with};
use crate::titles::Titles;

/// A page longer than this is not a page: whoever wrote the file forgot the line breaks.
const LONGEST_LINE: usize = 4 * 1024 * 1024;

/// How many pages by BM25 are looked at for the sentence that a search is for. Beyond the first
/// dozens are pages with the query's commonest word alone.
const CANDIDATES: usize = 24;

/// How many bytes of each are looked at: of the longest ones a part, since their words are stemmed.
const LOOKED_AT: usize = 16 << 10;

/// How many mistakes of one file are reported.
const MOST_MISTAKES: usize = 20;

/// One page, as it stands in a corpus file: a line `{"title": "…", "text": "…"}`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Page {
    /// Its title, unique in the corpus.
    pub title: String,
    /// Its text; sentences end as in English, line breaks end paragraphs.
    pub text: String,
}

/// A line of a corpus file: a page, and other names by which people ask for it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct PageLine {
    title: String,
    text: String,
    #[serde(default)]
    aliases: Vec<String>,
}

/// A page and its aliases.
type Aliased = (Page, Vec<String>);

/// A mistake in a corpus file, or in a list of pages (whose first page is line 1).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LineMistake {
    /// The line, from 1.
    pub line: usize,
    /// What is wrong with it.
    pub message: String,
}

/// Why there is no corpus.
#[derive(Debug, thiserror::Error)]
pub enum CorpusError {
    /// The file cannot be read.
    #[error("cannot read the corpus `{}`: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// The pages have mistakes; up to 20 are told.
    #[error("{}", Told { origin, mistakes, more: *more })]
    Mistakes {
        /// The file's name, or `pages`.
        origin: String,
        /// What is wrong where.
        mistakes: Vec<LineMistake>,
        /// How many mistakes are not told.
        more: usize,
    },
    /// There is no page at all.
    #[error("the corpus `{origin}` has no pages; expected lines like {{\"title\": \"Loire\", \"text\": \"The Loire is a river.\"}}")]
    Empty {
        /// The file's name, or `pages`.
        origin: String,
    },
    /// The index could not be built.
    #[error("cannot index the corpus `{origin}`: {source}")]
    Index {
        /// The file's name, or `pages`.
        origin: String,
        /// Why.
        source: Box<tantivy::TantivyError>,
    },
}

struct Told<'a> {
    origin: &'a str,
    mistakes: &'a [LineMistake],
    more: usize,
}

impl fmt::Display for Told<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the corpus `{}` has {} mistake(s):", self.origin, self.mistakes.len() + self.more)?;
        for mistake in self.mistakes {
            write!(f, "\n  {}:{}: {}", self.origin, mistake.line, mistake.message)?;
        }
        if self.more > 0 {
            write!(f, "\n  and {} more", self.more)?;
        }
        Ok(())
    }
}

/// An immutable indexed set of pages. Cheap to build (one thread, in RAM) and safe to share.
pub struct Corpus {
    pages: Vec<Page>,
    titles: Titles,
    index: PageIndex,
}

impl fmt::Debug for Corpus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Corpus").field("pages", &self.pages.len()).finish_non_exhaustive()
    }
}

impl Corpus {
    /// Indexes pages. Empty and duplicate titles and empty texts are mistakes.
    pub fn from_pages(pages: Vec<Page>) -> Result<Corpus, CorpusError> {
        Corpus::with_aliases(pages.into_iter().map(|page| (page, Vec::new())))
    }

    /// Indexes pages with other names by which they are found. A title goes before an alias, and an
    /// alias of two pages is that of the first.
    pub fn with_aliases(pages: impl IntoIterator<Item = (Page, Vec<String>)>) -> Result<Corpus, CorpusError> {
        Corpus::check("pages", pages.into_iter().enumerate().map(|(at, page)| (at + 1, Ok(page))))
    }

    /// Reads JSON lines `{"title": "…", "text": "…"}`, with `"aliases": ["…"]` where a page has
    /// other names; blank lines are skipped. Every mistake names its line.
    pub fn load(path: impl AsRef<Path>) -> Result<Corpus, CorpusError> {
        let path = path.as_ref();
        let read_error = |source| CorpusError::Read { path: path.to_owned(), source };
        let mut reader = BufReader::new(File::open(path).map_err(read_error)?);
        let mut lines = Vec::new();
        for number in 1.. {
            let mut line = Vec::new();
            let bytes = reader.by_ref().take(LONGEST_LINE as u64 + 1).read_until(b'\n', &mut line).map_err(read_error)?;
            if bytes == 0 {
                break;
            }
            if bytes > LONGEST_LINE {
                lines.push((number, Err(format!("longer than {LONGEST_LINE} bytes; expected one page per line"))));
                break;
            }
            let line = line.trim_ascii();
            if !line.is_empty() {
                let page = serde_json::from_slice::<PageLine>(line).map_err(|error| page_error(&error));
                lines.push((number, page.map(|line| (Page { title: line.title, text: line.text }, line.aliases))));
            }
        }
        Corpus::check(&path.display().to_string(), lines.into_iter())
    }

    fn check(origin: &str, lines: impl Iterator<Item = (usize, Result<Aliased, String>)>) -> Result<Corpus, CorpusError> {
        let mut pages: Vec<Page> = Vec::new();
        let mut aliases: Vec<Vec<String>> = Vec::new();
        let mut mistakes = Vec::new();
        let mut seen: HashMap<String, usize> = HashMap::new();
        for (line, page) in lines {
            match page.and_then(|(page, names)| Ok((accept(page, line, &mut seen)?, names))) {
                Ok((page, names)) => {
                    pages.push(page);
                    aliases.push(names);
                }
                Err(message) => mistakes.push(LineMistake { line, message }),
            }
        }
        if !mistakes.is_empty() {
            let more = mistakes.len().saturating_sub(MOST_MISTAKES);
            mistakes.truncate(MOST_MISTAKES);
            return Err(CorpusError::Mistakes { origin: origin.to_owned(), mistakes, more });
        }
        if pages.is_empty() {
            return Err(CorpusError::Empty { origin: origin.to_owned() });
        }
        let index = PageIndex::new(pages.iter().map(|page| (page.title.as_str(), page.text.as_str())))
            .map_err(|source| CorpusError::Index { origin: origin.to_owned(), source: Box::new(source) })?;
        let mut titles = Titles::new(pages.iter().map(|page| page.title.as_str()));
        aliases.iter().enumerate().for_each(|(at, names)| names.iter().for_each(|name| titles.add_alias(name, at)));
        Ok(Corpus { pages, titles, index })
    }

    /// All pages, in the order they were given.
    pub fn pages(&self) -> &[Page] {
        &self.pages
    }

    /// The page that a title names: exactly, else up to case, diacritics, blanks and punctuation,
    /// else up to a leading "the", else by an alias.
    pub fn page(&self, title: &str) -> Option<&Page> {
        self.titles.find(title).map(|at| &self.pages[at])
    }

    /// The page that a name means: [`Corpus::page`], else the only page whose title or alias the name
    /// misspells, else the only one whose name stands in it among words that name nothing.
    pub fn meant(&self, name: &str) -> Option<&Page> {
        self.page(name).or_else(|| self.titles.meant(name).map(|at| &self.pages[at]))
    }

    /// Whether a name is one of the spellings of a title.
    pub(crate) fn is_title(&self, name: &str) -> bool {
        self.titles.find_title(name).is_some()
    }

    /// The pages that a text names, in its order.
    pub fn named(&self, text: &str) -> Vec<&Page> {
        self.titles.named(text).into_iter().map(|at| &self.pages[at]).collect()
    }

    /// The pages whose titles are most like `title`, best first.
    pub fn similar(&self, title: &str, limit: usize) -> Vec<&Page> {
        self.titles.similar(title, limit).into_iter().map(|at| &self.pages[at]).collect()
    }

    /// The pages that match a query best, best first, with their scores by BM25. The query is plain
    /// words: it has no syntax to get wrong. A query that is an alias finds its page first.
    ///
    /// Of the best pages by BM25 the one comes first that is called like words of the query, if there
    /// is one, then those of which one sentence, with the title, has most of the query's words. So
    /// `capital Cairo` shows Cairo and then Egypt, which says so, before what else is called Cairo.
    pub fn search(&self, query: &str, limit: usize) -> Result<Vec<(&Page, f32)>, tantivy::TantivyError> {
        let stems = query_stems(query);
        let mut hits = self.index.search(&stems, if limit > 0 { limit.max(CANDIDATES) } else { 0 })?;
        let wanted: HashSet<String> = stems.into_iter().collect();
        let mut analyzer = analyzer();
        let named = hits.iter().filter_map(|(at, _)| Some((*at, self.pages.get(*at)?.named_by(&mut analyzer, &wanted)?)));
        // the earlier of equals
        let named = named.rev().max_by_key(|(_, words)| *words).map(|(at, _)| at);
        // stable: BM25 decides between equals
        hits.sort_by_cached_key(|(at, _)| {
            let words = self.pages.get(*at).map(|page| page.best_sentence(&mut analyzer, &wanted, LOOKED_AT).1);
            Reverse((Some(*at) == named, words))
        });
        hits.truncate(limit);
        if let Some(at) = self.titles.find_alias(query).filter(|_| limit > 0) {
            let best = hits.first().map_or(1.0, |(_, score)| *score);
            hits.retain(|(other, _)| *other != at);
            hits.insert(0, (at, best));
            hits.truncate(limit);
        }
        Ok(hits.into_iter().filter_map(|(at, score)| Some((self.pages.get(at)?, score))).collect())
    }
}

impl Page {
    /// The page's sentences, in order.
    pub fn sentences(&self) -> Vec<&str> {
        sentences(&self.text)
    }

    /// The number of words of the title, if a query has them all.
    fn named_by(&self, analyzer: &mut TextAnalyzer, wanted: &HashSet<String>) -> Option<usize> {
        let title: HashSet<String> = stems_with(analyzer, &self.title).into_iter().filter(|stem| !is_stop_word(stem)).collect();
        (!title.is_empty() && title.is_subset(wanted)).then_some(title.len())
    }

    /// The sentence with the most distinct words of a query, the earliest of several, and how many
    /// it has together with the title. Words of the title count only between equals: they hold for
    /// the whole page, and the page of France should answer `capital of France` with its capital.
    /// Only sentences that begin in the first `bytes` are looked at.
    pub(crate) fn best_sentence(&self, analyzer: &mut TextAnalyzer, wanted: &HashSet<String>, bytes: usize) -> (Range<usize>, usize) {
        let title: HashSet<String> = stems_with(analyzer, &self.title).into_iter().filter(|stem| wanted.contains(stem)).collect();
        let mut best = (0..0, None);
        for sentence in self.sentence_spans().into_iter().take_while(|sentence| sentence.start < bytes) {
            let found: HashSet<String> =
                stems_with(analyzer, &self.text[sentence.clone()]).into_iter().filter(|stem| wanted.contains(stem)).collect();
            let score = (found.difference(&title).count(), found.len());
            if best.1.is_none_or(|most| score > most) {
                best = (sentence, Some(score));
            }
        }
        (best.0, title.len() + best.1.map_or(0, |(new, _)| new))
    }

    /// Where they stand in its text.
    pub(crate) fn sentence_spans(&self) -> Vec<Range<usize>> {
        sentence_spans(&self.text)
    }
}

/// The page in the form it is kept in, unless something is wrong with it.
fn accept(page: Page, line: usize, seen: &mut HashMap<String, usize>) -> Result<Page, String> {
    let title = one_line(&canonical(&page.title));
    let text = canonical(page.text.trim());
    if title.is_empty() {
        return Err("the title is empty".to_owned());
    }
    if text.is_empty() {
        return Err(format!("the page `{title}` has no text"));
    }
    if let Some(first) = seen.get(&title) {
        return Err(format!("the title `{title}` is already that of line {first}"));
    }
    seen.insert(title.clone(), line);
    Ok(Page { title, text })
}

/// serde_json counts lines within the one line it sees; the column is what helps.
fn page_error(error: &serde_json::Error) -> String {
    let text = error.to_string();
    let text = text.split(" at line ").next().unwrap_or(&text);
    format!("column {}: {text}; expected {{\"title\": \"…\", \"text\": \"…\"}}", error.column())
}

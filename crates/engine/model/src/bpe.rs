//! Byte-pair encoding with small tables.
//!
//! The `tokenizers` crate keeps a vocabulary in two hash maps of strings, its merges in a third, and
//! encoded words in a cache of every thread: 6 MiB for 49,152 tokens before the first word, in every
//! agent of a machine. Here the tokens are one text, and the merges a sorted list. The rest of a
//! `tokenizer.json` stays the library's, and so do models other than plain byte-pair encoding.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Deserializer};
use tokenizers::{
    AddedToken, DecoderWrapper, Model, ModelWrapper, NormalizerWrapper, PaddingParams, PostProcessorWrapper, PreTokenizerWrapper, Result,
    Token, TokenizerBuilder, TokenizerImpl, TruncationParams,
};

/// Ids may exceed the number of tokens by this much; tables are by id.
const GAPS: usize = 4096;
/// Characters below this have a table; GPT-2's byte alphabet ends at U+0143.
const LOW: usize = 0x180;
/// No token.
const NONE: u32 = u32::MAX;

/// The library's tokenizer, with a model of ours.
pub(crate) type WordTokenizer = TokenizerImpl<Words, NormalizerWrapper, PreTokenizerWrapper, PostProcessorWrapper, DecoderWrapper>;

/// Reads a `tokenizer.json`. What is not plain byte-pair encoding, or is wrong, is left to the library.
pub(crate) fn read(text: &str) -> Result<WordTokenizer> {
    plain(text).map_or_else(|| Ok(serde_json::from_str(text)?), Ok)
}

fn plain(text: &str) -> Option<WordTokenizer> {
    let parts: Parts = serde_json::from_str(text).ok().filter(|parts: &Parts| parts.version == VERSION)?;
    let mut tokenizer = TokenizerBuilder::new()
        .with_model(Words::Bpe(Bpe::new(parts.model)?))
        .with_normalizer(parts.normalizer)
        .with_pre_tokenizer(parts.pre_tokenizer)
        .with_post_processor(parts.post_processor)
        .with_decoder(parts.decoder)
        .with_truncation(parts.truncation)
        .with_padding(parts.padding)
        .build()
        .ok()?;
    tokenizer.add_tokens(parts.added_tokens).ok()?;
    Some(tokenizer)
}

/// The version of the format.
const VERSION: &str = "1.0";

/// A `tokenizer.json`.
#[derive(Deserialize)]
struct Parts {
    version: String,
    truncation: Option<TruncationParams>,
    padding: Option<PaddingParams>,
    /// Each has its id, too, which follows from the model.
    #[serde(default)]
    added_tokens: Vec<AddedToken>,
    normalizer: Option<NormalizerWrapper>,
    pre_tokenizer: Option<PreTokenizerWrapper>,
    post_processor: Option<PostProcessorWrapper>,
    decoder: Option<DecoderWrapper>,
    model: File,
}

/// The model of a `tokenizer.json`.
pub(crate) enum Words {
    /// Plain byte-pair encoding.
    Bpe(Bpe),
    /// Anything else.
    Library(Box<ModelWrapper>),
}

impl<'de> Deserialize<'de> for Words {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        ModelWrapper::deserialize(deserializer).map(|model| Words::Library(Box::new(model)))
    }
}

impl Model for Words {
    type Trainer = <ModelWrapper as Model>::Trainer;

    fn tokenize(&self, sequence: &str) -> Result<Vec<Token>> {
        match self {
            Words::Bpe(bpe) => Ok(bpe.tokenize(sequence)),
            Words::Library(model) => model.tokenize(sequence),
        }
    }

    fn token_to_id(&self, token: &str) -> Option<u32> {
        match self {
            Words::Bpe(bpe) => bpe.id(token),
            Words::Library(model) => model.token_to_id(token),
        }
    }

    fn id_to_token(&self, id: u32) -> Option<String> {
        match self {
            Words::Bpe(bpe) => Some(bpe.text(id)).filter(|text| !text.is_empty()).map(str::to_owned),
            Words::Library(model) => model.id_to_token(id),
        }
    }

    fn get_vocab(&self) -> HashMap<String, u32> {
        match self {
            Words::Bpe(bpe) => bpe.sorted.iter().map(|id| (bpe.text(*id).to_owned(), *id)).collect(),
            Words::Library(model) => model.get_vocab(),
        }
    }

    fn get_vocab_size(&self) -> usize {
        match self {
            Words::Bpe(bpe) => bpe.sorted.len(),
            Words::Library(model) => model.get_vocab_size(),
        }
    }

    fn save(&self, folder: &Path, prefix: Option<&str>) -> Result<Vec<PathBuf>> {
        match self {
            Words::Bpe(_) => Err("a tokenizer of the engine is not written".into()),
            Words::Library(model) => model.save(folder, prefix),
        }
    }

    fn get_trainer(&self) -> Self::Trainer {
        match self {
            Words::Bpe(_) => tokenizers::models::bpe::BpeTrainer::default().into(),
            Words::Library(model) => model.get_trainer(),
        }
    }
}

/// `model` in a `tokenizer.json`.
#[derive(Deserialize)]
struct File {
    r#type: String,
    dropout: Option<f32>,
    unk_token: Option<String>,
    continuing_subword_prefix: Option<String>,
    end_of_word_suffix: Option<String>,
    fuse_unk: Option<bool>,
    byte_fallback: Option<bool>,
    ignore_merges: Option<bool>,
    vocab: HashMap<String, u32>,
    merges: Pairs,
}

/// Tokens that become one, two by two: `["a", "b"]`, in older files `"a b"`.
#[derive(Deserialize)]
#[serde(untagged)]
enum Pairs {
    Two(Vec<(String, String)>),
    Lines(Vec<String>),
}

impl Pairs {
    /// `None` if a line has not two tokens.
    fn split(&self) -> Option<Vec<(&str, &str)>> {
        match self {
            Pairs::Two(pairs) => Some(pairs.iter().map(|(left, right)| (left.as_str(), right.as_str())).collect()),
            Pairs::Lines(lines) => {
                let lines = lines.iter().filter(|line| !line.starts_with("#version"));
                lines.map(|line| line.split_once(' ').filter(|(_, right)| !right.contains(' '))).collect()
            }
        }
    }
}

/// What a token becomes with `right` after it.
struct Merge {
    right: u32,
    /// Position in the list of merges; lower ones come first.
    rank: u32,
    id: u32,
}

/// A token in a word that is being merged.
#[derive(Clone, Copy)]
struct Symbol {
    id: u32,
    /// Its bytes in the word. Symbols that were merged into one before them have none.
    start: usize,
    len: usize,
    /// Neighbours; `usize::MAX`: none.
    before: usize,
    after: usize,
}

/// A vocabulary and its merges.
pub(crate) struct Bpe {
    /// The texts of all tokens, in the order of their ids.
    texts: String,
    /// `ends[id]..ends[id + 1]` is the text of a token; ids without a token have none.
    ends: Vec<u32>,
    /// The ids in the order of their texts.
    sorted: Vec<u32>,
    /// The tokens of single characters below `LOW`.
    low: Vec<u32>,
    /// `merges[firsts[id]..firsts[id + 1]]` are those of the left token, in the order of the right.
    firsts: Vec<u32>,
    merges: Vec<Merge>,
    unknown: Option<u32>,
    fuse_unknown: bool,
    /// The tokens of single bytes, for characters without a token.
    bytes: Option<Vec<u32>>,
    ignore_merges: bool,
}

impl Bpe {
    /// `None` if the file has something that is not provided for, or an error: the library decides.
    fn new(file: File) -> Option<Bpe> {
        let none = |affix: Option<&String>| affix.is_none_or(String::is_empty);
        let plain = none(file.continuing_subword_prefix.as_ref()) && none(file.end_of_word_suffix.as_ref());
        if file.r#type != "BPE" || !plain || file.dropout.is_some_and(|share| share != 0.0) {
            return None;
        }
        let size = file.vocab.values().max().map_or(0, |id| *id as usize + 1);
        if size > file.vocab.len() + GAPS || file.vocab.contains_key("") {
            return None;
        }
        let mut by_id = vec![""; size];
        for (text, id) in &file.vocab {
            if !std::mem::replace(&mut by_id[*id as usize], text).is_empty() {
                return None;
            }
        }
        let mut texts = String::with_capacity(by_id.iter().map(|text| text.len()).sum());
        let mut ends = Vec::with_capacity(size + 1);
        ends.push(0);
        for text in &by_id {
            texts.push_str(text);
            ends.push(u32::try_from(texts.len()).ok()?);
        }
        let mut sorted: Vec<u32> = file.vocab.values().copied().collect();
        sorted.sort_unstable_by_key(|id| by_id[*id as usize]);
        let id = |text: &str| file.vocab.get(text).copied();
        let unknown = match &file.unk_token {
            Some(token) => Some(id(token)?),
            None => None,
        };
        // all bytes, or it is not known which characters fall back
        let bytes: Option<Vec<u32>> = (0..=255u8).map(|byte| id(&format!("<{byte:#04X}>"))).collect();
        if file.byte_fallback == Some(true) && bytes.is_none() {
            return None;
        }
        let mut pairs = HashMap::new();
        for (rank, (left, right)) in file.merges.split()?.into_iter().enumerate() {
            pairs.insert((id(left)?, id(right)?), (u32::try_from(rank).ok()?, id(&[left, right].concat())?));
        }
        let mut merges: Vec<_> = pairs.into_iter().collect();
        merges.sort_unstable_by_key(|(pair, _)| *pair);
        let mut firsts = vec![0; size + 1];
        merges.iter().for_each(|((left, _), _)| firsts[*left as usize + 1] += 1);
        for at in 1..firsts.len() {
            firsts[at] += firsts[at - 1];
        }
        let low = (0..LOW as u32).map(|c| char::from_u32(c).and_then(|c| id(c.encode_utf8(&mut [0; 4]))).unwrap_or(NONE)).collect();
        Some(Bpe {
            texts,
            ends,
            sorted,
            low,
            firsts,
            merges: merges.into_iter().map(|((_, right), (rank, id))| Merge { right, rank, id }).collect(),
            unknown,
            fuse_unknown: file.fuse_unk == Some(true),
            bytes: bytes.filter(|_| file.byte_fallback == Some(true)),
            ignore_merges: file.ignore_merges == Some(true),
        })
    }

    /// The text of a token; empty without one.
    fn text(&self, id: u32) -> &str {
        let at = id as usize;
        match (self.ends.get(at), self.ends.get(at + 1)) {
            (Some(start), Some(end)) => &self.texts[*start as usize..*end as usize],
            _ => "",
        }
    }

    fn id(&self, text: &str) -> Option<u32> {
        self.sorted.binary_search_by(|id| self.text(*id).cmp(text)).ok().map(|at| self.sorted[at])
    }

    fn character(&self, text: &str, c: char) -> Option<u32> {
        match self.low.get(c as usize) {
            Some(id) => Some(*id).filter(|id| *id != NONE),
            None => self.id(text),
        }
    }

    fn merge(&self, left: u32, right: u32) -> Option<&Merge> {
        let range = self.firsts[left as usize] as usize..self.firsts[left as usize + 1] as usize;
        let merges = &self.merges[range];
        merges.binary_search_by_key(&right, |merge| merge.right).ok().map(|at| &merges[at])
    }

    /// The tokens of a word, as the library gives them.
    fn tokenize(&self, word: &str) -> Vec<Token> {
        if self.ignore_merges
            && let Some(id) = self.id(word)
        {
            return vec![Token::new(id, word.to_owned(), (0, word.len()))];
        }
        let mut symbols = self.characters(word);
        self.merge_all(&mut symbols);
        let left = symbols.iter().filter(|symbol| symbol.len > 0);
        left.map(|symbol| Token::new(symbol.id, self.text(symbol.id).to_owned(), (symbol.start, symbol.start + symbol.len))).collect()
    }

    /// The tokens of a word's characters.
    fn characters(&self, word: &str) -> Vec<Symbol> {
        let mut symbols: Vec<Symbol> = Vec::with_capacity(word.len());
        let mut add = |id: u32, len: usize| {
            let at = symbols.len();
            let start = symbols.last().map_or(0, |last| last.start + last.len);
            symbols.push(Symbol { id, start, len, before: at.wrapping_sub(1), after: at + 1 });
        };
        // characters without a token that wait for one that has one, by their bytes
        let mut waiting = 0;
        for (at, c) in word.char_indices() {
            let text = &word[at..at + c.len_utf8()];
            if let Some(id) = self.character(text, c) {
                if let Some(unknown) = self.unknown.filter(|_| waiting > 0) {
                    add(unknown, std::mem::take(&mut waiting));
                }
                add(id, text.len());
            } else if let Some(bytes) = &self.bytes {
                text.bytes().for_each(|byte| add(bytes[usize::from(byte)], 1));
            } else if let Some(unknown) = self.unknown {
                if waiting > 0 && !self.fuse_unknown {
                    add(unknown, std::mem::take(&mut waiting));
                }
                waiting += text.len();
            }
        }
        if let Some(unknown) = self.unknown.filter(|_| waiting > 0) {
            add(unknown, waiting);
        }
        if let Some(last) = symbols.last_mut() {
            last.after = usize::MAX;
        }
        symbols
    }

    /// Merges neighbours, of all that can be merged those with the lowest rank first, from the left.
    fn merge_all(&self, symbols: &mut [Symbol]) {
        let mut queue = BinaryHeap::with_capacity(symbols.len());
        let pair = |symbols: &[Symbol], at: usize| {
            let after = symbols.get(symbols.get(at)?.after)?;
            self.merge(symbols[at].id, after.id).map(|merge| Reverse((merge.rank, at, merge.id)))
        };
        queue.extend((0..symbols.len()).filter_map(|at| pair(symbols, at)));
        while let Some(Reverse((rank, at, id))) = queue.pop() {
            // it may have been merged, or its neighbour, since it was queued
            if symbols[at].len == 0 || pair(symbols, at) != Some(Reverse((rank, at, id))) {
                continue;
            }
            let right = symbols[at].after;
            let Symbol { len, after, .. } = symbols[right];
            symbols[right].len = 0;
            symbols[at] = Symbol { id, len: symbols[at].len + len, after, ..symbols[at] };
            if let Some(after) = symbols.get_mut(after) {
                after.before = at;
            }
            queue.extend(pair(symbols, symbols[at].before));
            queue.extend(pair(symbols, at));
        }
    }
}

#[cfg(test)]
#[path = "bpe_tests.rs"]
mod tests;

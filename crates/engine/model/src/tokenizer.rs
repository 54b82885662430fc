//! `tokenizer.json`: text to tokens, tokens to bytes, and the vocabulary for grammars.

use std::path::Path;
use std::sync::Arc;

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use toktrie::{TokEnv, TokRxInfo, TokTrie, TokenId, TokenizerEnv};

use crate::bpe::{self, WordTokenizer};
use crate::control::{PromptEncoder, TextEncoder};
use crate::dir::TokenizerConfig;
use crate::{GenerateError, LoadError, ModelConfig, PromptRef};

/// How a vocabulary represents bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Alphabet {
    /// GPT-2's byte-level alphabet: a printable character for each byte.
    ByteLevel,
    /// SentencePiece: `▁` for a space, `<0xNN>` for bytes without a token.
    SentencePiece,
}

/// A model's tokenizer.
///
/// Generated text is the exact bytes of the tokens. In contrast to SentencePiece's decoder, it
/// keeps the first space, because the text follows the prompt's.
#[derive(Clone)]
pub struct Tokenizer {
    encoder: Arc<PromptEncoder>,
    env: Arc<Vocabulary>,
    eos: Vec<u32>,
    bos: Option<u32>,
    auto_bos: bool,
}

impl std::fmt::Debug for Tokenizer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Tokenizer({} tokens, eos {:?}, bos {:?})", self.env.trie.vocab_size(), self.eos, self.bos)
    }
}

impl Tokenizer {
    pub(crate) fn new(text: &str, path: &Path, config: &TokenizerConfig, model: &ModelConfig, eos: &[u32]) -> Result<Self, LoadError> {
        let fail = |reason: String| LoadError::Tokenizer { path: path.to_owned(), reason };
        let alphabet = alphabet(&parse(text, path)?).map_err(fail)?;
        let hf = bpe::read(text).map_err(|e| fail(e.to_string()))?;
        let id = |token: Option<&str>| token.and_then(|t| hf.token_to_id(t));
        let mut eos: Vec<u32> = eos.to_vec();
        if let Some(named) = id(config.eos_token.as_ref().map(|t| t.text())).filter(|id| !eos.contains(id)) {
            eos.push(named);
        }
        eos.retain(|id| (*id as usize) < model.vocab_size);
        if eos.is_empty() {
            return Err(fail("no end-of-sequence token in `generation_config.json`, `config.json` or `tokenizer_config.json`".to_owned()));
        }
        let bos = id(config.bos_token.as_ref().map(|t| t.text())).or(model.bos);
        // What the tokenizer adds to an empty text decides; `add_bos_token` is used only if it adds
        // nothing.
        let empty = hf.encode_fast("", true).map_err(|e| fail(e.to_string()))?;
        let auto_bos = bos.is_some() && (empty.get_ids().first().copied() == bos || config.add_bos_token == Some(true));
        let words = words(&hf, alphabet, model.vocab_size);
        let info = TokRxInfo::new(model.vocab_size as u32, eos[0]);
        let trie = TokTrie::from(&info, &words).with_eos_tokens(&eos);
        let encoder = PromptEncoder::new(hf).map_err(|e| fail(e.to_string()))?;
        let plain = encoder.continuing().map_err(|e| fail(e.to_string()))?;
        Ok(Self { encoder: Arc::new(encoder), env: Arc::new(Vocabulary { trie, plain }), eos, bos, auto_bos })
    }

    /// The tokens of a prompt; a string is text. `bos`: whether the begin-of-sequence token comes
    /// first; `None`: as the tokenizer's files say. It is not added if the prompt already begins
    /// with it, as chat templates often do.
    ///
    /// Control tokens are recognised in template parts; in text parts their spellings stay text.
    /// The tokens do not depend on how text is divided into parts.
    pub fn encode<'a>(&self, prompt: impl Into<PromptRef<'a>>, bos: Option<bool>) -> Result<Vec<u32>, GenerateError> {
        let mut ids = self.encoder.encode(prompt.into()).map_err(|e| GenerateError::engine(e.to_string()))?;
        if let Some(id) = self.bos.filter(|id| bos.unwrap_or(self.auto_bos) && ids.first() != Some(id)) {
            ids.insert(0, id);
        }
        Ok(ids)
    }

    /// The tokens of text that continues earlier text: no space is put before it.
    pub fn encode_continuing(&self, text: &str) -> Result<Vec<u32>, GenerateError> {
        self.env.plain.encode(text).map_err(|e| GenerateError::engine(e.to_string()))
    }

    /// The bytes of a token; empty for special tokens.
    pub fn bytes(&self, token: u32) -> &[u8] {
        if (token as usize) >= self.env.trie.vocab_size() {
            return &[];
        }
        match self.env.trie.token(token) {
            [TokTrie::SPECIAL_TOKEN_MARKER, _, ..] => &[],
            bytes => bytes,
        }
    }

    /// The text of `tokens` without special ones. Invalid UTF-8 becomes U+FFFD.
    pub fn decode(&self, tokens: &[u32]) -> String {
        let bytes: Vec<u8> = tokens.iter().flat_map(|t| self.bytes(*t)).copied().collect();
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// The tokens that end a sequence.
    pub fn eos(&self) -> &[u32] {
        &self.eos
    }

    /// The token that begins a sequence, if the model has one.
    pub fn bos(&self) -> Option<u32> {
        self.bos
    }

    pub(crate) fn env(&self) -> TokEnv {
        self.env.clone()
    }
}

/// The vocabulary for the grammar engine.
struct Vocabulary {
    trie: TokTrie,
    /// Tokenises text without a space before it.
    plain: TextEncoder,
}

impl TokenizerEnv for Vocabulary {
    fn tok_trie(&self) -> &TokTrie {
        &self.trie
    }

    fn tokenize_bytes(&self, bytes: &[u8]) -> Vec<TokenId> {
        self.trie.tokenize_with_greedy_fallback(bytes, |text| {
            self.plain.encode(text).unwrap_or_else(|_| self.trie.greedy_tokenize(text.as_bytes()))
        })
    }
}

/// The part of `tokenizer.json` that determines the alphabet. The vocabulary, which takes megabytes
/// as JSON values, is skipped.
#[derive(Deserialize)]
struct Spelling {
    #[serde(default)]
    decoder: Value,
    #[serde(default)]
    model: Fallback,
}

#[derive(Default, Deserialize)]
struct Fallback {
    byte_fallback: Option<bool>,
}

fn parse<T: DeserializeOwned>(text: &str, path: &Path) -> Result<T, LoadError> {
    serde_json::from_str(text).map_err(|source| LoadError::Json { path: path.to_owned(), what: "tokenizer", source })
}

/// Determines the alphabet from the decoder.
fn alphabet(spelling: &Spelling) -> Result<Alphabet, String> {
    let mut kinds = Vec::new();
    collect_kinds(&spelling.decoder, &mut kinds);
    if kinds.iter().any(|k| k == "ByteLevel") {
        return Ok(Alphabet::ByteLevel);
    }
    let falls_back = spelling.model.byte_fallback == Some(true);
    if falls_back || kinds.iter().any(|k| k == "ByteFallback" || k == "Metaspace") {
        return Ok(Alphabet::SentencePiece);
    }
    Err(format!("its decoder is `{}`, expected a byte-level one or one with byte fallback", kinds.join("`, `")))
}

fn collect_kinds(decoder: &Value, kinds: &mut Vec<String>) {
    if let Some(kind) = decoder["type"].as_str() {
        kinds.push(kind.to_owned());
    }
    for inner in decoder["decoders"].as_array().into_iter().flatten() {
        collect_kinds(inner, kinds);
    }
}

/// The bytes of every token, by id. Special tokens have the trie's marker. Ids without a token are
/// empty, and so never allowed by a grammar.
fn words(hf: &WordTokenizer, alphabet: Alphabet, vocab_size: usize) -> Vec<Vec<u8>> {
    let added = hf.get_added_tokens_decoder();
    let word = |id: u32| -> Vec<u8> {
        let Some(name) = hf.id_to_token(id) else { return Vec::new() };
        if let Some(token) = added.get(&id) {
            let mut bytes = name.into_bytes();
            if token.special {
                bytes.insert(0, TokTrie::SPECIAL_TOKEN_MARKER);
            }
            return bytes;
        }
        match alphabet {
            Alphabet::ByteLevel => name.chars().map(byte_of).collect::<Option<_>>().unwrap_or_default(),
            Alphabet::SentencePiece => match hex_byte(&name) {
                Some(byte) => vec![byte],
                None => name.replace('▁', " ").into_bytes(),
            },
        }
    };
    (0..vocab_size as u32).map(word).collect()
}

/// The inverse of GPT-2's `bytes_to_unicode`: printable Latin-1 characters are themselves, other
/// bytes are U+0100 and following.
fn byte_of(c: char) -> Option<u8> {
    let printable = |b: u32| (0x21..=0x7e).contains(&b) || (0xa1..=0xac).contains(&b) || (0xae..=0xff).contains(&b);
    let code = c as u32;
    if printable(code) {
        return u8::try_from(code).ok();
    }
    let index = code.checked_sub(0x100)?;
    (0..=255u8).filter(|b| !printable(u32::from(*b))).nth(index as usize)
}

/// Parses `<0xNN>`.
fn hex_byte(name: &str) -> Option<u8> {
    let digits = name.strip_prefix("<0x")?.strip_suffix('>')?;
    if digits.len() == 2 { u8::from_str_radix(digits, 16).ok() } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_byte_alphabet_covers_every_byte_once() {
        let mut seen: Vec<u8> = (0..0x200u32).filter_map(char::from_u32).filter_map(byte_of).collect();
        seen.sort_unstable();
        assert_eq!(seen, (0..=255).collect::<Vec<u8>>());
        assert_eq!((byte_of('Ġ'), byte_of('Ċ'), byte_of('a')), (Some(b' '), Some(b'\n'), Some(b'a')));
    }

    #[test]
    fn byte_tokens_are_read() {
        assert_eq!(hex_byte("<0xE2>"), Some(0xe2));
        assert_eq!((hex_byte("<0xE>"), hex_byte("<s>")), (None, None));
    }
}

//! Control tokens: which added tokens of a vocabulary are control tokens, and the tokenisation of
//! prompts, in which only template parts can contain them.

use std::collections::HashSet;
use std::ops::Range;
use std::sync::Arc;

use serde_json::Value;
use tokenizers::normalizers::NormalizerWrapper;
use tokenizers::pre_tokenizers::PreTokenizerWrapper;
use tokenizers::{AddedToken, AddedVocabulary, Model, OffsetReferential, OffsetType, PreTokenizer, Result, Token};

use crate::bpe::WordTokenizer;
use crate::prompt::PromptRef;

/// Added tokens that delimit thoughts and tool calls (Qwen 2.5 and 3) and are not marked as special
/// in these models' files.
const UNMARKED: [&str; 6] = ["<think>", "</think>", "<tool_call>", "</tool_call>", "<tool_response>", "</tool_response>"];

/// Whether an added token with this spelling is a control token. These are the tokens that the
/// model's files mark as special, all `<|…|>`, and the delimiters of thoughts and tool calls. Other
/// added tokens, such as runs of spaces, are abbreviations of ordinary text.
pub fn is_control_token(spelling: &str, special: bool) -> bool {
    special || UNMARKED.contains(&spelling) || (spelling.starts_with("<|") && spelling.ends_with("|>"))
}

/// A control token in a template part.
struct Control {
    at: Range<usize>,
    id: u32,
}

/// Tokenises prompts.
pub(crate) struct PromptEncoder {
    hf: Arc<WordTokenizer>,
    added: Arc<Added>,
    /// For text at the beginning of the prompt.
    first: TextEncoder,
    /// For text after a control token.
    after: TextEncoder,
}

impl PromptEncoder {
    pub(crate) fn new(hf: WordTokenizer) -> Result<Self> {
        let added = Arc::new(Added::new(&hf)?);
        let hf = Arc::new(hf);
        let first = TextEncoder::new(hf.clone(), added.clone());
        let mut after = TextEncoder::new(hf.clone(), added.clone());
        // Hugging Face's tokenizer decides by the position in the whole text
        after.edit(|_, pre_tokenizer| never_prepend(pre_tokenizer, Some("first")))?;
        Ok(Self { hf, added, first, after })
    }

    /// An encoder for text that continues earlier text: no space is put before it.
    pub(crate) fn continuing(&self) -> Result<TextEncoder> {
        let mut encoder = TextEncoder::new(self.hf.clone(), self.added.clone());
        encoder.edit(|normalizer, pre_tokenizer| {
            drop_prepend(normalizer);
            never_prepend(pre_tokenizer, None);
        })?;
        Ok(encoder)
    }

    /// The prompt's tokens, without those that the tokenizer's post-processor would add.
    ///
    /// Hugging Face's tokenizer splits a text at control tokens and tokenises the pieces
    /// separately. This function does the same for control tokens in template parts. If the text
    /// spells no control token, a single call of that tokenizer is sufficient.
    pub(crate) fn encode(&self, prompt: PromptRef<'_>) -> Result<Vec<u32>> {
        let whole = self.hf.encode_fast(prompt.text, false)?;
        let controls = self.controls(prompt);
        let found = whole.get_ids().iter().filter(|id| self.added.controls.contains(*id));
        if found.eq(controls.iter().map(|control| &control.id)) {
            return Ok(whole.get_ids().to_vec());
        }
        self.encode_apart(prompt, &controls)
    }

    fn encode_apart(&self, prompt: PromptRef<'_>, controls: &[Control]) -> Result<Vec<u32>> {
        let mut ids = Vec::new();
        let mut from = 0;
        let push = |ids: &mut Vec<u32>, range: Range<usize>| {
            if range.is_empty() {
                return Ok(());
            }
            let encoder = if range.start == 0 { &self.first } else { &self.after };
            encoder.encode(&prompt.text[range]).map(|run| ids.extend(run))
        };
        for Control { at, id } in controls {
            push(&mut ids, from..at.start.max(from))?;
            ids.push(*id);
            from = at.end;
        }
        push(&mut ids, from..prompt.text.len())?;
        Ok(ids)
    }

    /// The control tokens in template parts.
    fn controls(&self, prompt: PromptRef<'_>) -> Vec<Control> {
        let mut controls = Vec::new();
        for part in prompt.template {
            let pieces = self.hf.get_added_vocabulary().extract_and_normalize(self.hf.get_normalizer(), &prompt.text[part.clone()]);
            for (_, (start, end), tokens) in pieces.get_splits(OffsetReferential::Original, OffsetType::Byte) {
                let id = tokens.iter().flatten().map(|token| token.id).find(|id| self.added.controls.contains(id));
                controls
                    .extend(id.map(|id| Control { at: self.added.stripped(prompt.text, part.start + start..part.start + end, id), id }));
            }
        }
        controls
    }
}

/// A vocabulary's added tokens.
struct Added {
    /// Recognises all added tokens except control tokens.
    vocabulary: AddedVocabulary,
    controls: HashSet<u32>,
}

impl Added {
    fn new(hf: &WordTokenizer) -> Result<Self> {
        let mut vocabulary = hf.get_added_vocabulary().clone();
        let tokens = vocabulary.get_added_tokens_decoder();
        let controls = tokens.iter().filter(|(_, token)| is_control_token(&token.content, token.special)).map(|(id, _)| *id).collect();
        let unmarked = |token: &&AddedToken| !token.special && is_control_token(&token.content, token.special);
        let unmarked: Vec<AddedToken> = tokens.values().filter(unmarked).map(|token| token.clone().special(true)).collect();
        vocabulary.add_special_tokens(unmarked, hf.get_model(), hf.get_normalizer())?;
        vocabulary.set_encode_special_tokens(true);
        Ok(Self { vocabulary, controls })
    }

    /// The range of a control token with the adjacent white space that belongs to it.
    fn stripped(&self, text: &str, at: Range<usize>, id: u32) -> Range<usize> {
        let Some(token) = self.vocabulary.get_added_tokens_decoder().get(&id) else { return at };
        let start = if token.lstrip { text[..at.start].trim_end().len() } else { at.start };
        let end = if token.rstrip { text.len() - text[at.end..].trim_start().len() } else { at.end };
        start..end
    }
}

/// Tokenises text without control tokens, whatever it spells.
pub(crate) struct TextEncoder {
    hf: Arc<WordTokenizer>,
    added: Arc<Added>,
    /// Normaliser and pre-tokenizer, where they differ from the tokenizer's: a copy would compile its
    /// patterns again.
    edited: Option<(Option<NormalizerWrapper>, Option<PreTokenizerWrapper>)>,
}

impl TextEncoder {
    fn new(hf: Arc<WordTokenizer>, added: Arc<Added>) -> Self {
        Self { hf, added, edited: None }
    }

    /// Changes normaliser and pre-tokenizer, in the format of `tokenizer.json`.
    fn edit(&mut self, change: impl FnOnce(&mut Value, &mut Value)) -> Result<()> {
        let (normalizer, pre_tokenizer) =
            (serde_json::to_value(self.hf.get_normalizer())?, serde_json::to_value(self.hf.get_pre_tokenizer())?);
        let (mut new_normalizer, mut new_pre_tokenizer) = (normalizer.clone(), pre_tokenizer.clone());
        change(&mut new_normalizer, &mut new_pre_tokenizer);
        if new_normalizer != normalizer || new_pre_tokenizer != pre_tokenizer {
            self.edited = Some((serde_json::from_value(new_normalizer)?, serde_json::from_value(new_pre_tokenizer)?));
        }
        Ok(())
    }

    pub(crate) fn encode(&self, text: &str) -> Result<Vec<u32>> {
        let (normalizer, pre_tokenizer) = match &self.edited {
            Some((normalizer, pre_tokenizer)) => (normalizer.as_ref(), pre_tokenizer.as_ref()),
            None => (self.hf.get_normalizer(), self.hf.get_pre_tokenizer()),
        };
        let mut pieces = self.added.vocabulary.extract_and_normalize(normalizer, text);
        if let Some(pre_tokenizer) = pre_tokenizer {
            pre_tokenizer.pre_tokenize(&mut pieces)?;
        }
        pieces.tokenize(|piece| self.tokens(piece.get()))?;
        Ok(pieces.into_encoding(None, 0, OffsetType::None)?.get_ids().to_vec())
    }

    /// The model's tokens for a piece. A model's own vocabulary can contain a control token, and
    /// the model can choose it for a piece with its spelling (`ignore_merges`). Such a piece is
    /// tokenised character by character.
    fn tokens(&self, piece: &str) -> Result<Vec<Token>> {
        let model = self.hf.get_model();
        let tokens = model.tokenize(piece)?;
        let spelled = |token: &Token| self.added.controls.contains(&token.id) && piece[token.offsets.0..token.offsets.1] == token.value;
        if !tokens.iter().any(spelled) {
            return Ok(tokens);
        }
        let mut apart = Vec::with_capacity(tokens.len());
        for token in tokens {
            if spelled(&token) {
                for c in token.value.chars() {
                    apart.extend(model.tokenize(c.encode_utf8(&mut [0; 4]))?);
                }
            } else {
                apart.push(token);
            }
        }
        Ok(apart)
    }
}

/// Removes a normaliser that puts a space before a text (SentencePiece, older files).
fn drop_prepend(normalizer: &mut Value) {
    if normalizer["type"] == "Prepend" {
        *normalizer = Value::Null;
    } else if let Some(inner) = normalizer.get_mut("normalizers").and_then(Value::as_array_mut) {
        inner.iter_mut().for_each(drop_prepend);
        inner.retain(|normalizer| !normalizer.is_null());
    }
}

/// Changes pre-tokenizers that put a space before a text (SentencePiece, newer files) so that they
/// do not: those with the given scheme, or all.
fn never_prepend(pre_tokenizer: &mut Value, scheme: Option<&str>) {
    if pre_tokenizer["type"] == "Metaspace" {
        if scheme.is_none_or(|scheme| pre_tokenizer["prepend_scheme"] == scheme) {
            pre_tokenizer["prepend_scheme"] = "never".into();
        }
    } else if let Some(inner) = pre_tokenizer.get_mut("pretokenizers").and_then(Value::as_array_mut) {
        inner.iter_mut().for_each(|inner| never_prepend(inner, scheme));
    }
}

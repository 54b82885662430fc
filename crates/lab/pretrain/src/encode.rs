//! Encoding of trajectories as token documents with a loss mask.

use autoact_prompt::{Role, Segment, cue, segments};
use autoact_synthetic_kb::DrillPiece;
use autoact_train::Document;
use autoact_trajectory::Trajectory;
use tokenizers::Tokenizer;

use crate::tokenizer::END;

/// The tokenizer failed on a text or lacks the end token.
#[derive(Debug, thiserror::Error)]
pub enum EncodeError {
    /// `<|end|>` is not in the vocabulary.
    #[error("the tokenizer has no `{END}` token; make it with `autoact model train tokenizer`")]
    NoEndToken,
    /// The tokenizer failed on a text.
    #[error("cannot tokenise: {0}")]
    Tokenizer(String),
}

/// Encodes documents with one tokenizer.
#[derive(Clone)]
pub struct Encoder {
    tokenizer: Tokenizer,
    end: u32,
}

impl Encoder {
    /// Takes a tokenizer that has the end token. Spellings of special tokens in documents are
    /// encoded as text, as in prompts.
    pub fn new(mut tokenizer: Tokenizer) -> Result<Encoder, EncodeError> {
        let end = tokenizer.token_to_id(END).ok_or(EncodeError::NoEndToken)?;
        tokenizer.set_encode_special_tokens(true);
        Ok(Encoder { tokenizer, end })
    }

    /// The end token's id.
    pub fn end(&self) -> u32 {
        self.end
    }

    /// Number of tokens in the vocabulary.
    pub fn vocab_size(&self) -> usize {
        self.tokenizer.get_vocab_size(true)
    }

    /// A text in which every token is a target.
    pub fn text(&self, text: &str) -> Result<Document, EncodeError> {
        let mut document = Document { tokens: Vec::new(), loss: Vec::new(), ..Document::default() };
        self.push(&mut document, text, true)?;
        self.finish(&mut document, true);
        Ok(document)
    }

    /// A reading exercise. Its targets are the pieces with `counts`.
    pub fn drill(&self, pieces: &[DrillPiece]) -> Result<Document, EncodeError> {
        let mut document = Document { tokens: Vec::new(), loss: Vec::new(), ..Document::default() };
        for piece in pieces {
            self.push(&mut document, &piece.text, piece.counts)?;
        }
        Ok(document)
    }

    /// A trajectory in which the tokens of the segments selected by `counts` are targets. Segments
    /// are encoded one by one. Their boundaries are also boundaries of the pre-tokenizer, so the
    /// tokens are those of the whole text.
    pub fn trajectory(&self, trajectory: &Trajectory, counts: impl Fn(&Segment) -> bool) -> Result<Document, EncodeError> {
        let mut document = Document { tokens: Vec::new(), loss: Vec::new(), ..Document::default() };
        for segment in segments(trajectory) {
            let counted = counts(&segment);
            self.push(&mut document, &segment.text, counted)?;
        }
        Ok(document)
    }

    /// For activated LoRA: one document for each segment selected by `counts`, with that segment's
    /// tokens as targets. The adapter acts from the segment's cue on, and everything before it is
    /// context. In a single document, an adapter's own earlier text would be read through the
    /// adapter.
    pub fn activated(&self, trajectory: &Trajectory, counts: impl Fn(&Segment) -> bool) -> Result<Vec<Document>, EncodeError> {
        let (mut history, mut found) = (Document::default(), Vec::new());
        let mut cue = 0;
        for segment in segments(trajectory) {
            let from = history.tokens.len();
            if counts(&segment) {
                let mut document = Document { adapter_from: cue, ..history.clone() };
                self.push(&mut document, &segment.text, true)?;
                found.push(document);
            }
            self.push(&mut history, &segment.text, false)?;
            cue = from;
        }
        Ok(found)
    }

    /// The tokens of an agent's cue, with which its prompts end.
    pub fn cue(&self, role: Role) -> Result<Vec<u32>, EncodeError> {
        let mut document = Document::default();
        self.push(&mut document, cue(role), false)?;
        Ok(document.tokens)
    }

    /// A trajectory in which one role's tokens are the targets.
    pub fn role(&self, trajectory: &Trajectory, role: Role) -> Result<Document, EncodeError> {
        self.trajectory(trajectory, |segment| segment.role == Some(role))
    }

    fn push(&self, document: &mut Document, text: &str, counted: bool) -> Result<(), EncodeError> {
        let encoding = self.tokenizer.encode_fast(text, false).map_err(|error| EncodeError::Tokenizer(error.to_string()))?;
        document.tokens.extend_from_slice(encoding.get_ids());
        document.loss.resize(document.tokens.len(), counted);
        Ok(())
    }

    fn finish(&self, document: &mut Document, counted: bool) {
        document.tokens.push(self.end);
        document.loss.push(counted);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use autoact_trajectory::{Step, Turn};

    #[test]
    fn a_spelt_end_token_stays_text() {
        let encoder = Encoder::new(crate::tokenizer::fit(&["a river ".repeat(8)], 300).unwrap()).unwrap();
        let document = encoder.text(&format!("a {END} river")).unwrap();
        assert_eq!(document.tokens.iter().filter(|token| **token == encoder.end()).count(), 1);
        assert_eq!(encoder.tokenizer.decode(&document.tokens, true).unwrap(), format!("a {END} river"));
    }

    #[test]
    fn segments_tokenise_as_the_whole_text_does() {
        let step = Step {
            thought: "I need the mouth of the Río Negro.".into(),
            tool: "Retrieve".into(),
            params: Some("Río Negro".into()),
            observation: Some("Río Negro is 2,230 km long (about). \"Its\" mouth: -5 m.".into()),
            ..Step::default()
        };
        let trajectory = Trajectory { question: "Where does it end?".into(), turns: vec![Turn::Step(step)], ..Trajectory::default() };
        let text = autoact_prompt::transcript(&trajectory);
        let tokenizer = crate::tokenizer::fit(&vec![text.clone(); 8], 400).unwrap();
        let encoder = Encoder::new(tokenizer.clone()).unwrap();
        let document = encoder.role(&trajectory, Role::Tool).unwrap();
        assert_eq!(document.tokens, tokenizer.encode(text, false).unwrap().get_ids());
        let spoken: Vec<u32> = document.tokens.iter().zip(&document.loss).filter(|(_, loss)| **loss).map(|(token, _)| *token).collect();
        assert_eq!(tokenizer.decode(&spoken, false).unwrap(), " Río Negro\n");
        let activated = encoder.activated(&trajectory, |segment| segment.role == Some(Role::Tool)).unwrap();
        let [only] = activated.as_slice() else { panic!("{} documents", activated.len()) };
        let end = only.tokens.len();
        assert_eq!((&only.tokens[..], &only.loss[..]), (&document.tokens[..end], &document.loss[..end]));
        let input = encoder.cue(Role::Tool).unwrap();
        assert_eq!(only.tokens[only.adapter_from..][..input.len()], input);
        assert!(only.loss[only.adapter_from + input.len()] && !only.loss[only.adapter_from + input.len() - 1]);
    }
}

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
        document(trajectory, counts, false, |text| self.tokens(text))
    }

    /// For activated LoRA: the same document, of which each segment selected by `counts` is an
    /// invocation of the adapter, from its cue on. The tokens before it are then computed by the
    /// base alone, an adapter's own earlier text too, as when they are served.
    pub fn activated(&self, trajectory: &Trajectory, counts: impl Fn(&Segment) -> bool) -> Result<Document, EncodeError> {
        document(trajectory, counts, true, |text| self.tokens(text))
    }

    /// For activated LoRA: a reading exercise in which each line that begins with the cue of `role`
    /// is an invocation of the adapter.
    pub fn activated_drill(&self, pieces: &[DrillPiece], role: Role) -> Result<Document, EncodeError> {
        let mut document = Document::default();
        let mut cues = Vec::new();
        for piece in pieces {
            if piece.text.starts_with(cue(role)) {
                cues.push(document.tokens.len());
            }
            self.push(&mut document, &piece.text, piece.counts)?;
        }
        let ends = cues.iter().skip(1).copied().chain([document.tokens.len()]);
        document.invocations = cues.iter().zip(ends).map(|(cue, end)| *cue..end).collect();
        Ok(document)
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
        append(document, self.tokens(text)?, counted);
        Ok(())
    }

    fn tokens(&self, text: &str) -> Result<Vec<u32>, EncodeError> {
        let encoding = self.tokenizer.encode_fast(text, false).map_err(|error| EncodeError::Tokenizer(error.to_string()))?;
        Ok(encoding.get_ids().to_vec())
    }

    fn finish(&self, document: &mut Document, counted: bool) {
        document.tokens.push(self.end);
        document.loss.push(counted);
    }
}

/// A trajectory in which the tokens of the segments selected by `counts` are targets. `activated`:
/// each of them is also an invocation of an activated LoRA adapter, from its cue on. `encode` gives
/// the tokens of a segment's text.
///
/// # Errors
/// `encode` fails.
pub fn document<E>(
    trajectory: &Trajectory,
    counts: impl Fn(&Segment) -> bool,
    activated: bool,
    mut encode: impl FnMut(&str) -> Result<Vec<u32>, E>,
) -> Result<Document, E> {
    let mut document = Document::default();
    let mut cue = 0;
    for segment in segments(trajectory) {
        let (from, counted) = (document.tokens.len(), counts(&segment));
        append(&mut document, encode(&segment.text)?, counted);
        if activated && counted {
            document.invocations.push(cue..document.tokens.len());
        }
        cue = from;
    }
    Ok(document)
}

fn append(document: &mut Document, tokens: Vec<u32>, counted: bool) {
    document.tokens.extend(tokens);
    document.loss.resize(document.tokens.len(), counted);
}

#[cfg(test)]
mod tests {
    use super::*;
    use autoact_trajectory::{Step, Turn};

    #[test]
    fn every_line_of_an_activated_drill_begins_with_the_cue() {
        let lines = ["Thought: ", "The mouth is", " Lima", ".\n", "Thought: ", "None", "\n"];
        let texts = lines.map(str::to_owned).join("").repeat(8);
        let encoder = Encoder::new(crate::tokenizer::fit(&[texts], 300).unwrap()).unwrap();
        let mut pieces = vec![DrillPiece { text: "Observation: a mouth\n".into(), counts: false }];
        pieces.extend(lines.map(|text| DrillPiece { text: text.into(), counts: text.contains("Lima") || text == "None" }));
        let document = encoder.activated_drill(&pieces, Role::Plan).unwrap();
        let whole = encoder.drill(&pieces).unwrap();
        assert_eq!((&document.tokens, &document.loss), (&whole.tokens, &whole.loss));
        let [first, second] = document.invocations.as_slice() else { panic!("{:?}", document.invocations) };
        let cue = encoder.cue(Role::Plan).unwrap();
        for range in [first, second] {
            assert_eq!(document.tokens[range.clone()][..cue.len()], cue);
        }
        assert_eq!((first.end, second.end), (second.start, document.tokens.len()));
    }

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
        assert_eq!((&activated.tokens, &activated.loss), (&document.tokens, &document.loss));
        let [invocation] = activated.invocations.as_slice() else { panic!("{:?}", activated.invocations) };
        let input = encoder.cue(Role::Tool).unwrap();
        let spoken = invocation.start + input.len()..invocation.end;
        assert_eq!(activated.tokens[invocation.start..spoken.start], input);
        assert!((0..activated.loss.len()).all(|at| activated.loss[at] == spoken.contains(&at)), "{:?}", activated.loss);
    }
}

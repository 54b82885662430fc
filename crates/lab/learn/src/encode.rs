//! Trajectories as tokens for training: what the agents are asked with, and what they reply, exactly
//! as the engine reads both when they are served.
//!
//! A model without a chat template reads one growing transcript, so a trajectory is one document. A
//! chat template puts the transcript into the user's message and the reply into the assistant's, so
//! a prompt is no prefix of the next one, and each reply is a document of its own.

use std::cell::Cell;
use std::path::Path;

use autoact_model::{ChatTemplate, GenerateError, LoadError, ModelDir, Tokenizer};
use autoact_pretrain::{EncodeError, document};
use autoact_prompt::{Reply, Role, Segment, cue, replies, segments};
use autoact_speaker::prompt;
use autoact_train::Document;
use autoact_trajectory::Trajectory;

use crate::error::LearnError;

/// A model's tokenizer and chat template.
pub(crate) struct Encoder {
    tokenizer: Tokenizer,
    template: Option<ChatTemplate>,
}

impl Encoder {
    /// Reads those of the model in a Hugging Face directory.
    ///
    /// # Errors
    /// Its files cannot be used.
    pub(crate) fn open(model: &Path) -> Result<Encoder, LearnError> {
        let failed = |source: LoadError| LearnError::Model { path: model.to_owned(), source: Box::new(source) };
        let dir = ModelDir::open(model).map_err(failed)?;
        Ok(Encoder { tokenizer: dir.tokenizer().map_err(failed)?, template: dir.chat_template().map_err(failed)? })
    }

    /// Composes a prompt for each agent.
    ///
    /// # Errors
    /// The chat template fails: some have no system message.
    pub(crate) fn try_prompts(&self) -> Result<(), LearnError> {
        Role::ALL.into_iter().try_for_each(|role| Ok(prompt(self.template.as_ref(), role, &Trajectory::default()).map(drop)?))
    }

    /// The number of tokens in a training row: at least `sequence`, and enough for every reply of
    /// a model with a chat template. Its prompts are long, and a reply stands at the end.
    pub(crate) fn row<'a>(&self, sequence: usize, documents: impl IntoIterator<Item = &'a Document>) -> usize {
        let longest = documents.into_iter().map(|one| one.tokens.len().saturating_sub(1)).max().unwrap_or_default();
        if self.template.is_some() { sequence.max(longest) } else { sequence }
    }

    /// The tokens of an agent's cue, with which its prompts end.
    ///
    /// # Errors
    /// The tokenizer fails.
    pub(crate) fn cue(&self, role: Role) -> Result<Vec<u32>, LearnError> {
        Ok(self.continuing(cue(role))?)
    }

    /// The documents of a trajectory whose targets are the segments with `counted`, in the order of
    /// [`segments`]. `activated`: the adapter acts from an agent's cue on.
    ///
    /// # Errors
    /// The tokenizer or the chat template fails, or a prompt does not end with the cue's tokens.
    pub(crate) fn documents(&self, trajectory: &Trajectory, counted: &[bool], activated: bool) -> Result<Vec<Document>, LearnError> {
        if let Some(template) = &self.template {
            let spoken = segments(trajectory).into_iter().zip(counted).filter(|(segment, _)| segment.role.is_some());
            let told = replies(trajectory).into_iter().zip(spoken).filter(|(_, (_, counted))| **counted);
            return told.map(|(reply, _)| self.reply(template, &reply, activated)).collect();
        }
        let at = Cell::new(0);
        let counts = |_: &Segment| counted.get(at.replace(at.get() + 1)).copied().unwrap_or_default();
        let mut first = true;
        let encode = |text: &str| {
            if std::mem::take(&mut first) { self.tokenizer.encode(text, None).map_err(cannot) } else { self.continuing(text) }
        };
        Ok(vec![document(trajectory, counts, activated, encode)?])
    }

    fn reply(&self, template: &ChatTemplate, reply: &Reply, activated: bool) -> Result<Document, LearnError> {
        // a chat template writes the token that begins a sequence itself
        let mut tokens = self.tokenizer.encode(&prompt(Some(template), reply.role, &reply.history)?, Some(false)).map_err(cannot)?;
        let asked = tokens.len();
        let cue = self.cue(reply.role)?;
        if activated && !tokens.ends_with(&cue) {
            return Err(LearnError::Cue { role: reply.role });
        }
        tokens.extend(self.continuing(&reply.text)?);
        let loss = (0..tokens.len()).map(|at| at >= asked).collect();
        let invocations = activated.then(|| asked - cue.len()..tokens.len()).into_iter().collect();
        Ok(Document { tokens, loss, invocations })
    }

    fn continuing(&self, text: &str) -> Result<Vec<u32>, EncodeError> {
        self.tokenizer.encode_continuing(text).map_err(cannot)
    }
}

fn cannot(error: GenerateError) -> EncodeError {
    EncodeError::Tokenizer(error.to_string())
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;
    use autoact_trajectory::{Reflection, Step, ToolSpec, Turn, Verdict};

    fn stem() -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../models/stem")
    }

    /// The bundled model's, with another chat template or without one.
    fn encoder(template: Option<&str>) -> Encoder {
        let template = template.map(|text| ChatTemplate::new(text.to_owned(), String::new(), String::new()).unwrap());
        Encoder { template, ..Encoder::open(&stem()).unwrap() }
    }

    fn trajectory() -> Trajectory {
        let step = |tool: &str, params: &str, observation: Option<&str>| {
            Turn::Step(Step {
                thought: "I need the mouth of the Río Negro.".into(),
                tool: tool.into(),
                params: Some(params.into()),
                observation: observation.map(str::to_owned),
                ..Step::default()
            })
        };
        let rejected = Turn::Reflection(Reflection::new("It is not.", Verdict::Wrong));
        let turns = vec![step("Retrieve", "Río Negro", Some("It is 2,230 km long.")), step("Finish", "2230 km", None), rejected];
        Trajectory { question: "Where does it end?".into(), tools: vec![ToolSpec::new("Retrieve")], turns, ..Trajectory::default() }
    }

    /// Which segments are those of `role`.
    fn of(role: Role) -> Vec<bool> {
        segments(&trajectory()).iter().map(|segment| segment.role == Some(role)).collect()
    }

    #[test]
    fn a_transcript_has_the_tokens_that_the_bundled_model_was_trained_on() {
        let tokenizer = tokenizers::Tokenizer::from_file(stem().join("tokenizer.json")).unwrap();
        let pretrained = autoact_pretrain::Encoder::new(tokenizer).unwrap();
        let counts = |segment: &Segment| segment.role == Some(Role::Plan);
        let documents = |activated| encoder(None).documents(&trajectory(), &of(Role::Plan), activated).unwrap();
        assert_eq!(documents(false), [pretrained.trajectory(&trajectory(), counts).unwrap()]);
        assert_eq!(documents(true), [pretrained.activated(&trajectory(), counts).unwrap()]);
    }

    #[test]
    fn a_transcript_is_one_document_and_a_chat_one_for_each_reply() {
        // what the template adds stands before the transcript, so both have the same tokens there
        let (plain, chat) = (encoder(None), encoder(Some("{{ messages[0].content }}\n{{ messages[1].content }}")));
        for (role, replies) in [(Role::Plan, 2), (Role::Tool, 2), (Role::Reflect, 1)] {
            for activated in [false, true] {
                let whole = plain.documents(&trajectory(), &of(role), activated).unwrap();
                let [whole] = whole.as_slice() else { panic!("{whole:?}") };
                let apart = chat.documents(&trajectory(), &of(role), activated).unwrap();
                assert_eq!(apart.len(), replies);
                let mut targets = vec![false; whole.loss.len()];
                for document in &apart {
                    let from = document.tokens.len() - document.loss.iter().filter(|counts| **counts).count();
                    assert!(document.loss[from..].iter().all(|counts| *counts));
                    let ends = (1..=whole.tokens.len()).filter(|end| {
                        let said = &document.tokens[from..];
                        whole.tokens[..*end].ends_with(said) && whole.loss[end - said.len()..*end].iter().all(|counts| *counts)
                    });
                    ends.for_each(|end| targets[end - (document.tokens.len() - from)..end].fill(true));
                    let acts = activated.then(|| from - chat.cue(role).unwrap().len()..document.tokens.len());
                    assert_eq!(document.invocations, Vec::from_iter(acts));
                }
                assert_eq!(targets, whole.loss, "{role:?}");
            }
        }
    }

    #[test]
    fn a_row_holds_the_longest_reply_of_a_chat_whole() {
        let (plain, chat) = (encoder(None), encoder(Some("{{ messages[1].content }}")));
        let documents = chat.documents(&trajectory(), &of(Role::Plan), false).unwrap();
        let longest = documents.iter().map(|one| one.tokens.len()).max().unwrap();
        assert_eq!(chat.row(8, &documents), longest - 1);
        assert_eq!((chat.row(4096, &documents), plain.row(8, &documents)), (4096, 8));
    }
}

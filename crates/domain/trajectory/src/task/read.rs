//! What a task's events said, for those who read it.

use std::collections::BTreeMap;
use std::time::SystemTime;

use super::{Phase, Task};
use crate::context::TaskContext;
use crate::digest::Digest;
use crate::event::Finished;
use crate::history::Trajectory;
use crate::id::TaskId;
use crate::limits::{Limits, Sampling};
use crate::shortening::Shortening;
use crate::tenant::TaskKey;
use crate::tool::Effect;
use crate::tool_choice::ToolChoice;

impl Task {
    /// The task's id.
    pub fn id(&self) -> &TaskId {
        &self.key.id
    }

    /// The task's name: whose it is, and its id.
    pub fn key(&self) -> &TaskKey {
        &self.key
    }

    /// SHA-256 of the request that began it. `None` before schema version 2.
    pub fn request(&self) -> Option<Digest> {
        self.request
    }

    /// The name of who submitted it; empty: it is not known.
    pub fn submitted_by(&self) -> &str {
        &self.by
    }

    /// The trace that its request came in: 32 hexadecimal digits, or empty.
    pub fn trace_id(&self) -> &str {
        &self.trace_id
    }

    /// The client's own notes.
    pub fn labels(&self) -> &BTreeMap<String, String> {
        &self.labels
    }

    /// What the client said beside the question.
    pub fn context(&self) -> &TaskContext {
        &self.trajectory.context
    }

    /// How its tools were chosen. `None`: there was nothing to choose.
    pub fn tool_choice(&self) -> Option<&ToolChoice> {
        self.tool_choice.as_ref()
    }

    /// Its bounds.
    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    /// How the models decode.
    pub fn sampling(&self) -> &Sampling {
        &self.sampling
    }

    /// The conversation it belongs to; empty: none.
    pub fn conversation(&self) -> &str {
        &self.conversation
    }

    /// Whether what is remembered of its conversation is to be looked up now: before the first plan,
    /// once. A task without a conversation recalls nothing, ever.
    pub fn recalls(&self) -> bool {
        let begun = self.started_at.is_some() && self.finished.is_none();
        begun && !self.conversation.is_empty() && !self.recalled && self.trajectory.turns.is_empty()
    }

    /// Question, tools and the whole history.
    pub fn trajectory(&self) -> &Trajectory {
        &self.trajectory
    }

    /// What the agents are not given.
    pub fn shortening(&self) -> &Shortening {
        &self.shortening
    }

    /// Planning loops begun.
    pub fn steps(&self) -> u32 {
        self.steps
    }

    /// Verdicts "wrong" so far.
    pub fn wrong_verdicts(&self) -> u32 {
        self.wrong
    }

    /// Prompt tokens over all agents.
    pub fn prompt_tokens(&self) -> u64 {
        self.prompt_tokens
    }

    /// Completion tokens over all agents.
    pub fn completion_tokens(&self) -> u64 {
        self.completion_tokens
    }

    /// The step that waits for the outcome of a side effect.
    pub fn side_effect(&self) -> Option<u32> {
        if self.phase() != Phase::Acting {
            return None;
        }
        let tool = &self.trajectory.open_step()?.tool;
        let effect = self.trajectory.tool(tool).map_or(Effect::SideEffect, |tool| tool.effect);
        (effect == Effect::SideEffect).then_some(self.steps)
    }

    /// Whether any of its tools changes the world.
    pub fn has_effects(&self) -> bool {
        self.trajectory.tools.iter().any(|tool| tool.effect != Effect::ReadOnly)
    }

    /// When it was accepted.
    pub fn submitted_at(&self) -> SystemTime {
        self.submitted_at
    }

    /// When a gateway first took it up.
    pub fn started_at(&self) -> Option<SystemTime> {
        self.started_at
    }

    /// How it ended, once it has.
    pub fn finished(&self) -> Option<&Finished> {
        self.finished.as_ref().map(|(finished, _)| finished)
    }

    /// When it ended.
    pub fn finished_at(&self) -> Option<SystemTime> {
        self.finished.as_ref().map(|(_, at)| *at)
    }

    /// The bus sequence of the last event; 0 if it is not on the bus yet.
    pub fn last_sequence(&self) -> u64 {
        self.last_sequence
    }

    /// SHA-256 of the stored bytes of the last event: what the next one names as `previous`. `None`
    /// while it is not stored.
    pub fn last_digest(&self) -> Option<Digest> {
        self.last_digest
    }
}

//! What persons do to a task while it runs, and what it waits for from them.

use std::collections::BTreeSet;
use std::time::{Duration, SystemTime};

use super::Task;
use crate::control::{ApprovalPolicy, InputGiven, InputRequested, Origin};
use crate::history::Action;
use crate::tool::{Effect, ToolSpec};

/// What holds a task back, for how long it has, and what persons allowed.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Control {
    approval: ApprovalPolicy,
    /// Tools whose calls a person has approved for the whole task.
    approved_tools: BTreeSet<String>,
    /// The group has read what a tool returned.
    untrusted: bool,
    paused: bool,
    asked: Option<InputRequested>,
    /// What a person said of the open step.
    given: Option<InputGiven>,
    /// When the task began to be held.
    since: Option<SystemTime>,
    /// How long it was held before.
    waited: Duration,
}

impl Control {
    pub(super) fn new(approval: ApprovalPolicy) -> Control {
        Control {
            approval,
            approved_tools: BTreeSet::new(),
            untrusted: false,
            paused: false,
            asked: None,
            given: None,
            since: None,
            waited: Duration::ZERO,
        }
    }

    fn is_held(&self) -> bool {
        self.paused || self.asked.is_some()
    }

    /// The task was first taken up: its time begins.
    pub(super) fn begin(&mut self) {
        self.waited = Duration::ZERO;
    }

    /// A client stops the task for a while.
    pub(super) fn pause(&mut self, now: SystemTime) {
        self.paused = true;
        self.changed(now);
    }

    /// A client lets it go on.
    pub(super) fn resume(&mut self, now: SystemTime) {
        self.paused = false;
        self.changed(now);
    }

    /// The task asks a person.
    pub(super) fn ask(&mut self, asked: &InputRequested, now: SystemTime) {
        self.asked = Some(asked.clone());
        self.changed(now);
    }

    /// The person says something.
    pub(super) fn give(&mut self, given: &InputGiven, now: SystemTime) {
        let asked = self.asked.take();
        self.changed(now);
        if given.approved && given.for_task {
            self.approved_tools.extend(asked.map(|asked| asked.tool));
        }
        self.given = Some(given.clone());
    }

    /// The step that a person may have said something of has its observation.
    pub(super) fn end_step(&mut self) {
        self.given = None;
    }

    /// The group reads something that, if `untrusted`, anybody may have written.
    pub(super) fn read(&mut self, untrusted: bool) {
        self.untrusted |= untrusted;
    }

    /// What holds the task back changed at `now`.
    fn changed(&mut self, now: SystemTime) {
        match (self.is_held(), self.since) {
            (true, None) => self.since = Some(now),
            (false, Some(since)) => {
                self.waited = self.waited.saturating_add(now.duration_since(since).unwrap_or_default());
                self.since = None;
            }
            _ => {}
        }
    }

    fn waited(&self, now: SystemTime) -> Duration {
        let held = self.since.and_then(|since| now.duration_since(since).ok()).unwrap_or_default();
        self.waited.saturating_add(held)
    }

    /// Whether a call of the tool `name` waits for approval; one that the task does not have may do
    /// anything.
    fn needs_approval(&self, name: &str, tool: Option<&ToolSpec>) -> bool {
        let effect = tool.map_or(Effect::SideEffect, |tool| tool.effect);
        let policy = match self.approval {
            ApprovalPolicy::Tools => false,
            ApprovalPolicy::Untrusted => self.untrusted,
            ApprovalPolicy::Effects => true,
        };
        let needed = tool.is_some_and(ToolSpec::needs_approval) || (policy && effect != Effect::ReadOnly);
        needed && !self.approved_tools.contains(name)
    }
}

impl Task {
    /// Whether nothing is begun until a person says something.
    pub fn is_held(&self) -> bool {
        self.control.is_held()
    }

    /// Whether a client has stopped it for a while.
    pub fn is_paused(&self) -> bool {
        self.control.paused
    }

    /// What a person is asked for.
    pub fn input_required(&self) -> Option<&InputRequested> {
        self.control.asked.as_ref()
    }

    /// What a person said of the open step.
    pub fn input_given(&self) -> Option<&InputGiven> {
        self.control.given.as_ref()
    }

    /// How long it was held back since it was first taken up, by `now`. Its bound on time does not
    /// count that.
    pub fn waited(&self, now: SystemTime) -> Duration {
        self.control.waited(now)
    }

    /// Which actions wait for a person's approval.
    pub fn approval(&self) -> ApprovalPolicy {
        self.control.approval
    }

    /// Whether an action waits for a person's approval, unless it has one.
    pub fn needs_approval(&self, action: &Action) -> bool {
        self.control.needs_approval(&action.tool, self.trajectory.tool(&action.tool))
    }

    /// The task whose history it goes on with.
    pub fn origin(&self) -> Option<&Origin> {
        self.origin.as_deref()
    }

    /// How many copies of the origin's events have yet to come. Nobody takes the task up before.
    pub fn to_copy(&self) -> u32 {
        self.to_copy
    }

    pub(super) fn copies_recalled(&self) -> bool {
        self.to_copy > 0 && !self.recalled && self.trajectory.turns.is_empty()
    }
}

//! A task's events as people see them: one line each, as it arrives, and where the time went.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::Duration;

use autoact_trajectory::{CallId, CallKind, Role};
use autoact_wire::v1::{self, trajectory_event::Body};

use crate::artifacts;
use crate::citations;
use crate::control;
use crate::names::{is_named, reason_name, verdict_name};
use crate::out;
use crate::recall;
use crate::text::{plain, plain_line};
use crate::tool_choice;

/// Turns events into lines and adds up their usage.
pub(crate) struct View {
    colour: bool,
    step: u32,
    /// The tool that the last thought chose.
    tool: String,
    rows: BTreeMap<usize, Row>,
    submitted: Option<Duration>,
    finished: Option<Duration>,
}

#[derive(Default)]
struct Row {
    calls: u32,
    queue: Duration,
    prefill: Duration,
    decode: Duration,
    tool: Duration,
    total: Duration,
    prompt_tokens: u64,
    cached_tokens: u64,
    completion_tokens: u64,
}

/// Columns of a label.
const LABEL: usize = 14;
/// The rows of the table, in the order they speak.
const ROWS: [&str; 4] = ["plan", "tool", "execute", "reflect"];

impl View {
    pub(crate) fn new() -> View {
        View { colour: out::colours(), step: 0, tool: String::new(), rows: BTreeMap::new(), submitted: None, finished: None }
    }

    /// The line of one event; `None` where there is nothing to show.
    pub(crate) fn line(&mut self, event: &v1::TrajectoryEvent) -> Option<String> {
        self.count(event);
        let mut line = match event.body.as_ref()? {
            Body::Submitted(submitted) => format!("{} {}", self.label("question", "1"), plain(&submitted.question)),
            Body::Started(_) => return None,
            Body::Thought(thought) => {
                self.step += 1;
                self.tool.clone_from(&thought.tool);
                format!("{} {}", self.label(&format!("thought {}", self.step), "36"), plain(&thought.thought))
            }
            Body::Action(action) => {
                let label = self.label(&format!("action {}", self.step), "33");
                format!("{label} {}[{}]", plain(&action.tool), plain(&action.params))
            }
            Body::Observation(observation) => {
                let colour = if observation.is_error { "31" } else { "32" };
                format!("{} {}", self.label(&format!("observation {}", self.step), colour), plain(&observation.text))
            }
            Body::Reflection(reflection) => {
                format!("{} {} → {}", self.label("reflection", "35"), plain(&reflection.thought), verdict(reflection))
            }
            Body::Finished(finished) => self.finish(finished),
            Body::Released(released) if released.reason() == v1::ReleaseReason::Waiting => {
                format!("{} {}", self.label("waiting", "33"), plain(&released.detail))
            }
            Body::Shortened(shortened) => format!("{} {}", self.label("shortened", "33"), shortening(shortened)),
            Body::Recalled(recalled) => format!("{} {}", self.label("recalled", "34"), recall::shown(recalled)?),
            Body::Paused(paused) => {
                let why = if paused.reason.is_empty() { String::new() } else { format!(": {}", plain(&paused.reason)) };
                format!("{} by {}{why}", self.label("paused", "33"), plain(&paused.by))
            }
            Body::Resumed(resumed) => format!("{} by {}", self.label("resumed", "33"), plain(&resumed.by)),
            Body::InputRequested(asked) => format!("{} {}", self.label(&format!("asks {}", self.step), "33"), control::asked_line(asked)),
            Body::InputGiven(given) => format!("{} {}", self.label(&format!("said {}", self.step), "33"), control::given_line(given)),
            // another gateway goes on
            Body::Released(_) => return None,
        };
        line = out::hanging(&line, LABEL + 1);
        for artifact in &event.artifacts {
            let _ = write!(line, "\n{} {}", self.label(&format!("artifact {}", self.step), "34"), artifacts::shown(artifact));
        }
        if let Some(Body::Submitted(v1::Submitted { by, .. })) = &event.body
            && is_named(by)
        {
            let _ = write!(line, "\n{} {}", self.label("asked by", "34"), plain(by));
        }
        if let Some(Body::Submitted(v1::Submitted { origin: Some(origin), .. })) = &event.body {
            let _ = write!(line, "\n{} {}, from step {}", self.label("retry of", "34"), plain(&origin.task_id), origin.steps + 1);
        }
        if let Some(Body::Submitted(v1::Submitted { tool_choice: Some(choice), .. })) = &event.body {
            let chosen = format!("{} {}", self.label("tools", "34"), tool_choice::line(choice));
            let _ = write!(line, "\n{}", out::hanging(&chosen, LABEL + 1));
        }
        if let Some(Body::Finished(finished)) = &event.body {
            for (number, citation) in citations::lines(&finished.citations).enumerate() {
                let _ = write!(line, "{}\n  {citation}", if number == 0 { "\nsources:" } else { "" });
            }
        }
        Some(line)
    }

    /// What stands before the words of a call while they are written.
    pub(crate) fn beginning(&self, call: &str) -> String {
        match call.parse().map(|CallId { kind, step, .. }| (kind, step)) {
            Ok((CallKind::Speak(Role::Plan), step)) => format!("{} ", self.label(&format!("thought {step}"), "36")),
            Ok((CallKind::Speak(Role::Tool), step)) => {
                format!("{} {}[", self.label(&format!("action {step}"), "33"), plain_line(&self.tool))
            }
            Ok((CallKind::Speak(Role::Reflect), _)) => format!("{} ", self.label("reflection", "35")),
            // of a kind that this version does not know
            Ok((CallKind::Execute, _)) | Err(_) => format!("{} ", self.label("", "0")),
        }
    }

    fn finish(&self, finished: &v1::Finished) -> String {
        if finished.reason() == v1::FinishReason::NoAnswer {
            return format!("{} {}  (approved by reflect-agent)", self.label("not found", "1"), plain(&finished.detail));
        }
        let answer = if finished.answer.is_empty() { "(none)".to_owned() } else { plain(&finished.answer) };
        let mut line = format!("{} {answer}", self.label("answer", "1"));
        if finished.approved {
            line.push_str("  (approved by reflect-agent)");
        } else {
            let _ = write!(line, "  (not approved: {}", reason_name(finished.reason()));
            if !finished.detail.is_empty() {
                let _ = write!(line, "; {}", plain(&finished.detail));
            }
            if is_named(&finished.by) {
                let _ = write!(line, ": {}", plain(&finished.by));
            }
            line.push(')');
        }
        if let Some(step) = finished.open_effect {
            let tool = if step == self.step { self.tool.as_str() } else { "" };
            let _ = write!(line, "\n{}", control::open_effect_line(step, tool));
        }
        line
    }

    fn label(&self, text: &str, colour: &str) -> String {
        if self.colour { format!("\u{1b}[{colour}m{text:<LABEL$}\u{1b}[0m") } else { format!("{text:<LABEL$}") }
    }

    fn count(&mut self, event: &v1::TrajectoryEvent) {
        let time = event.time.and_then(|time| Duration::try_from(prost_types::Duration { seconds: time.seconds, nanos: time.nanos }).ok());
        let row = match event.body.as_ref() {
            Some(Body::Submitted(_)) => {
                self.submitted = time;
                return;
            }
            Some(Body::Finished(_)) => {
                self.finished = time;
                return;
            }
            Some(Body::Thought(_)) => 0,
            Some(Body::Action(_)) => 1,
            Some(Body::Observation(_)) => 2,
            Some(Body::Reflection(_)) => 3,
            _ => return,
        };
        let Some(usage) = &event.usage else { return };
        let row = self.rows.entry(row).or_default();
        row.calls += 1;
        row.queue += duration(usage.queue);
        row.prefill += duration(usage.prefill);
        row.decode += duration(usage.decode);
        row.tool += duration(usage.tool);
        row.total += duration(usage.total);
        row.prompt_tokens += u64::from(usage.prompt_tokens);
        row.cached_tokens += u64::from(usage.cached_prompt_tokens);
        row.completion_tokens += u64::from(usage.completion_tokens);
    }

    /// Where the time went, per agent. Times in milliseconds; `other` is the gateway, the bus and
    /// the network.
    pub(crate) fn table(&self) -> String {
        let mut out = String::from("where the time went (ms)\n");
        let _ = writeln!(
            out,
            "  {:<10}{:>6}{:>9}{:>9}{:>9}{:>9}{:>9} {:>19}{:>9}",
            "agent", "calls", "queue", "prefill", "decode", "tool", "total", "tokens in", "out"
        );
        let mut spent = Duration::ZERO;
        for (index, row) in &self.rows {
            spent += row.total;
            let tokens = if row.cached_tokens > 0 {
                format!("{} ({} hit)", row.prompt_tokens, row.cached_tokens)
            } else {
                row.prompt_tokens.to_string()
            };
            let _ = writeln!(
                out,
                "  {:<10}{:>6}{:>9.1}{:>9.1}{:>9.1}{:>9.1}{:>9.1} {:>19}{:>9}",
                ROWS[*index],
                row.calls,
                ms(row.queue),
                ms(row.prefill),
                ms(row.decode),
                ms(row.tool),
                ms(row.total),
                tokens,
                row.completion_tokens
            );
        }
        if let (Some(from), Some(to)) = (self.submitted, self.finished) {
            let whole = to.saturating_sub(from);
            let _ = writeln!(out, "  {:<10}{:>51.1}", "other", ms(whole.saturating_sub(spent)));
            let _ = writeln!(out, "  {:<10}{:>51.1}", "whole", ms(whole));
        }
        out
    }
}

/// What the agents are not given any more, and why.
fn shortening(shortened: &v1::Shortened) -> String {
    let counted = |count: usize, name: &str| match count {
        0 => None,
        1 => Some(format!("1 {name}")),
        count => Some(format!("{count} {name}s")),
    };
    let left_out = counted(shortened.left_out as usize, "step").map(|steps| format!("{steps} left out"));
    let cut = counted(shortened.observations.len(), "observation").map(|cut| format!("{cut} cut"));
    let thoughts = counted(shortened.thoughts.len(), "thought").map(|cut| format!("{cut} cut"));
    let what: Vec<String> = [left_out, cut, thoughts].into_iter().flatten().collect();
    let (tokens, limit) = (shortened.tokens, shortened.limit);
    format!("{} for the agents: the prompt had {tokens} tokens, at most {limit} fit", what.join(", "))
}

fn duration(value: Option<prost_types::Duration>) -> Duration {
    value.and_then(|value| Duration::try_from(value).ok()).unwrap_or_default()
}

fn ms(value: Duration) -> f64 {
    value.as_secs_f64() * 1e3
}
/// A verdict with its confidence: `right (0.98)`, or `wrong (0.71, below 0.95)`.
pub(crate) fn verdict(reflection: &v1::Reflection) -> String {
    let verdict = verdict_name(reflection.verdict());
    let below = reflection.threshold.filter(|least| reflection.confidence.unwrap_or(0.0) < *least);
    match (reflection.confidence, below) {
        (Some(confidence), Some(least)) => format!("{verdict} ({confidence:.2}, below {least:.2})"),
        (Some(confidence), None) => format!("{verdict} ({confidence:.2})"),
        (None, Some(least)) => format!("{verdict} (uncalibrated, below {least:.2})"),
        (None, None) => verdict,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_end_names_the_step_whose_effect_is_not_known() {
        let event = |body| v1::TrajectoryEvent { body: Some(body), ..v1::TrajectoryEvent::default() };
        let mut view = View::new();
        view.line(&event(Body::Thought(v1::Thought { tool: "Send".into(), ..v1::Thought::default() })));
        let mut end = |open_effect| view.line(&event(Body::Finished(v1::Finished { open_effect, ..v1::Finished::default() }))).unwrap();
        assert!(end(Some(1)).contains("step 1 (Send): it is not known whether its effect took place"), "{}", end(Some(1)));
        // of a step that was not seen, the tool is not known
        assert!(end(Some(7)).contains("step 7: it is not known"), "{}", end(Some(7)));
        assert!(!end(None).contains("step"), "{}", end(None));
    }
}

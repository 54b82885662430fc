//! The calls a task makes: which agent, which planning loop, which reflection round. They name the
//! seed of what the model draws and the idempotency key of what a tool does, so they follow from
//! the history alone and never from who runs the task or how often.

use std::fmt;
use std::str::FromStr;

/// The agent that speaks: one LoRA adapter each.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Role {
    /// π_plan: thought and tool name.
    Plan,
    /// π_tool: the tool's parameters.
    Tool,
    /// π_reflect: thought and verdict.
    Reflect,
}

impl Role {
    /// All three, in the order they speak.
    pub const ALL: [Role; 3] = [Role::Plan, Role::Tool, Role::Reflect];

    /// `plan`, `tool` or `reflect`: the adapter's and the metrics' name.
    pub fn as_str(self) -> &'static str {
        match self {
            Role::Plan => "plan",
            Role::Tool => "tool",
            Role::Reflect => "reflect",
        }
    }
}

/// What a call asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum CallKind {
    /// An agent's words.
    Speak(Role),
    /// A tool's run.
    Execute,
}

impl CallKind {
    fn as_str(self) -> &'static str {
        match self {
            CallKind::Speak(role) => role.as_str(),
            CallKind::Execute => "execute",
        }
    }
}

/// One call within a task. The same history has the same next call, whoever makes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CallId {
    /// What is asked for.
    pub kind: CallKind,
    /// The planning loop, from 1.
    pub step: u32,
    /// Verdicts "wrong" so far.
    pub round: u32,
}

impl CallId {
    /// The seed of this call, drawn from the task's: calls of one task draw unrelated numbers, and
    /// a repeated call draws the same ones.
    pub fn seed(self, task: u64) -> u64 {
        let kind = match self.kind {
            CallKind::Speak(Role::Plan) => 1,
            CallKind::Speak(Role::Tool) => 2,
            CallKind::Speak(Role::Reflect) => 3,
            CallKind::Execute => 4,
        };
        [kind, u64::from(self.step), u64::from(self.round)].into_iter().fold(task, |seed, part| mix(seed ^ part.wrapping_mul(GOLDEN)))
    }
}

/// The increment of splitmix64.
const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

/// One step of splitmix64 (Steele, Lea and Flood 2014): every bit of the result depends on every
/// bit of `seed`.
fn mix(seed: u64) -> u64 {
    let z = seed.wrapping_add(GOLDEN);
    let z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

impl fmt::Display for CallId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}-{}", self.kind.as_str(), self.step, self.round)
    }
}

/// A text that is no call id.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a call id; expected something like `plan-3-0`")]
pub struct InvalidCallId(String);

impl FromStr for CallId {
    type Err = InvalidCallId;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let parse = || {
            let mut parts = text.split('-');
            let kind = match parts.next()? {
                "plan" => CallKind::Speak(Role::Plan),
                "tool" => CallKind::Speak(Role::Tool),
                "reflect" => CallKind::Speak(Role::Reflect),
                "execute" => CallKind::Execute,
                _ => return None,
            };
            let (step, round) = (parts.next()?.parse().ok()?, parts.next()?.parse().ok()?);
            parts.next().is_none().then_some(CallId { kind, step, round })
        };
        parse().ok_or_else(|| InvalidCallId(text.chars().take(64).collect()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_read_as_they_are_written() {
        let kinds = Role::ALL.into_iter().map(CallKind::Speak).chain([CallKind::Execute]);
        for kind in kinds {
            let call = CallId { kind, step: 3, round: 1 };
            assert_eq!(call.to_string().parse(), Ok(call));
        }
        for bad in ["", "plan", "plan-1", "plan-1-0-0", "fly-1-0", "plan-x-0"] {
            assert!(bad.parse::<CallId>().is_err(), "{bad}");
        }
    }

    #[test]
    fn neighbouring_calls_draw_unrelated_numbers() {
        let mut seeds = std::collections::BTreeSet::new();
        for task in [0, 1, u64::MAX] {
            for kind in Role::ALL.into_iter().map(CallKind::Speak) {
                for (step, round) in (1..20).flat_map(|step| (0..4).map(move |round| (step, round))) {
                    seeds.insert(CallId { kind, step, round }.seed(task));
                }
            }
        }
        assert_eq!(seeds.len(), 3 * 3 * 19 * 4);
        let bits = (CallId { kind: CallKind::Execute, step: 1, round: 0 }.seed(7)
            ^ CallId { kind: CallKind::Execute, step: 2, round: 0 }.seed(7))
        .count_ones();
        assert!((16..48).contains(&bits), "{bits}");
    }
}

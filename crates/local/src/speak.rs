//! One agent's words.

use std::collections::BTreeMap;

use autoact_model::{Backend, GenerateError, GenerateRequest, Generated, Grammar, Sampling, WordBias};
use autoact_prompt::{Expect, Role, cue, transcript};
use autoact_trajectory::Trajectory;

/// Which adapter speaks for each role; `None`: the base.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Voices {
    /// Plan-Agent's.
    pub plan: Option<String>,
    /// Tool-Agent's.
    pub tool: Option<String>,
    /// Reflect-Agent's.
    pub reflect: Option<String>,
    /// Tool-Agents that know one tool only, by the tool's name; where there are any, `tool` speaks for the other tools.
    pub specialists: BTreeMap<String, String>,
}

impl Voices {
    /// The base alone, in every role: AutoAct's Meta-Agent.
    pub fn base() -> Voices {
        Voices::default()
    }

    /// One adapter in every role.
    pub fn one(adapter: &str) -> Voices {
        Voices::named(|_| adapter.to_owned())
    }

    /// An adapter per role, under the roles' names.
    pub fn by_role() -> Voices {
        Voices::named(|role| role.as_str().to_owned())
    }

    /// An adapter per role, under these names.
    pub fn named(name: impl Fn(Role) -> String) -> Voices {
        let name = |role| Some(name(role));
        Voices { plan: name(Role::Plan), tool: name(Role::Tool), reflect: name(Role::Reflect), specialists: BTreeMap::new() }
    }

    /// The adapter of a role.
    pub fn of(&self, role: Role) -> Option<&str> {
        match role {
            Role::Plan => self.plan.as_deref(),
            Role::Tool => self.tool.as_deref(),
            Role::Reflect => self.reflect.as_deref(),
        }
    }

    /// The adapter that fills in a tool's parameters.
    pub fn of_tool(&self, tool: &str) -> Option<&str> {
        self.specialists.get(tool).or(self.tool.as_ref()).map(String::as_str)
    }
}

/// `role`'s reply to the history, held to its form. It leans towards the words of `word_bias`. Blocks until the model is done.
///
/// # Errors
/// What the model cannot do: the prompt is too long, the adapter is not there.
pub fn say(
    backend: &dyn Backend,
    adapter: Option<&str>,
    role: Role,
    trajectory: &Trajectory,
    sampling: Sampling,
    word_bias: Option<&WordBias>,
) -> Result<Generated, GenerateError> {
    let expect = Expect::new(role, &trajectory.tools);
    let request = GenerateRequest {
        adapter: adapter.map(str::to_owned),
        grammar: Some(Grammar::Regex(expect.regex)),
        max_tokens: expect.max_tokens,
        sampling,
        word_bias: word_bias.cloned(),
        ..GenerateRequest::new(format!("{}{}", transcript(trajectory), cue(role)))
    };
    backend.generate(request)?.blocking_finish()
}

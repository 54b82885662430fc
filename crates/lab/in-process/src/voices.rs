//! Which adapter speaks in which role.

use std::collections::BTreeMap;

use autoact_trajectory::Role;

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

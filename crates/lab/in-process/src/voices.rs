//! The adapters of the three roles.

use std::collections::BTreeMap;

use autoact_trajectory::Role;

/// The name of each role's adapter; `None` is the base model without an adapter.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Voices {
    /// The adapter of Plan-Agent.
    pub plan: Option<String>,
    /// The adapter of Tool-Agent.
    pub tool: Option<String>,
    /// The adapter of Reflect-Agent.
    pub reflect: Option<String>,
    /// Adapters for one tool's parameters, by the tool's name. `tool` is for all other tools.
    pub specialists: BTreeMap<String, String>,
}

impl Voices {
    /// The base model in every role: AutoAct's Meta-Agent.
    pub fn base() -> Voices {
        Voices::default()
    }

    /// The same adapter in every role.
    pub fn one(adapter: &str) -> Voices {
        Voices::named(|_| adapter.to_owned())
    }

    /// One adapter per role, named like the role.
    pub fn by_role() -> Voices {
        Voices::named(|role| role.as_str().to_owned())
    }

    /// One adapter per role, with the names that `name` returns.
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

//! Callers: users with a tenant and roles, and services of the group.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

use autoact_trajectory::{InvalidTenant, Tenant};
use serde::{Deserialize, Serialize};

use crate::error::AccessError;

/// The metadata by which an admin names the tenant to act for.
pub const TENANT_HEADER: &str = "autoact-tenant";

/// What a caller may do. Each role may do what those before it may.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Submit, watch, get, list and cancel tasks of its tenant; read its memories and documents.
    Ask,
    /// Everything of its tenant: store and forget memories, change documents.
    Operate,
    /// Everything of every tenant.
    Admin,
}

impl Role {
    /// The role's name, as files and claims have it.
    pub fn as_str(self) -> &'static str {
        match self {
            Role::Ask => "ask",
            Role::Operate => "operate",
            Role::Admin => "admin",
        }
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A word that is no role.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no role; expected `ask`, `operate` or `admin`")]
pub struct UnknownRole(String);

impl FromStr for Role {
    type Err = UnknownRole;

    fn from_str(text: &str) -> Result<Role, UnknownRole> {
        [Role::Ask, Role::Operate, Role::Admin]
            .into_iter()
            .find(|role| role.as_str() == text)
            .ok_or_else(|| UnknownRole(text.chars().take(32).collect()))
    }
}

/// A user: a name for logs, a tenant and roles.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Principal {
    /// Who it is: the name of a token, or the subject of a JWT.
    pub name: String,
    /// Whose tasks, memories and documents it sees.
    pub tenant: Tenant,
    /// What it may do.
    pub roles: BTreeSet<Role>,
}

impl Principal {
    /// Whoever calls a door that asks for no token: everything of one tenant.
    pub fn anonymous(tenant: Tenant) -> Principal {
        Principal { name: "anonymous".to_owned(), tenant, roles: [Role::Operate].into() }
    }

    /// Whether it has this role or one above it.
    pub fn has(&self, role: Role) -> bool {
        self.roles.last().is_some_and(|highest| *highest >= role)
    }

    /// # Errors
    /// It has neither this role nor one above it.
    pub fn require(&self, role: Role) -> Result<(), AccessError> {
        if self.has(role) { Ok(()) } else { Err(AccessError::Role { needed: role, name: self.name.clone() }) }
    }

    /// The tenant of a request that names `asked`; its own if the request names none.
    ///
    /// # Errors
    /// Another tenant than its own, and it is no admin.
    pub fn tenant_of(&self, asked: &str) -> Result<Tenant, AccessError> {
        match asked {
            "" => Ok(self.tenant.clone()),
            own if own == self.tenant.as_str() => Ok(self.tenant.clone()),
            other if self.has(Role::Admin) => other.parse().map_err(|source: InvalidTenant| AccessError::BadTenant { source }),
            other => Err(AccessError::Tenant { asked: other.chars().take(32).collect(), name: self.name.clone() }),
        }
    }

    /// The same user, acting for the tenant that it names.
    ///
    /// # Errors
    /// Another tenant than its own, and it is no admin.
    pub fn acting_for(mut self, asked: &str) -> Result<Principal, AccessError> {
        self.tenant = self.tenant_of(asked)?;
        Ok(self)
    }
}

/// Who calls.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Caller {
    /// A service of the group: the tenant that its requests name is believed.
    Service,
    /// A user: bound to its tenant.
    User(Principal),
}

impl Caller {
    /// # Errors
    /// A user who has neither this role nor one above it.
    pub fn require(&self, role: Role) -> Result<(), AccessError> {
        match self {
            Caller::Service => Ok(()),
            Caller::User(principal) => principal.require(role),
        }
    }

    /// The tenant that a request's `tenant` stands for: what a service says, and a user's own. In
    /// the form that requests have it.
    ///
    /// # Errors
    /// A user names another tenant than its own, and is no admin.
    pub fn tenant_of(&self, asked: &str) -> Result<String, AccessError> {
        match self {
            Caller::Service => Ok(asked.to_owned()),
            Caller::User(principal) => principal.tenant_of(asked).map(|tenant| tenant.to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn user(roles: &[Role]) -> Principal {
        Principal { name: "ann".into(), tenant: "ops".parse().unwrap(), roles: roles.iter().copied().collect() }
    }

    #[test]
    fn a_role_has_those_below_it() {
        let roles = [Role::Ask, Role::Operate, Role::Admin];
        for (at, held) in roles.iter().enumerate() {
            for (needed, role) in roles.iter().enumerate() {
                assert_eq!(user(&[*held]).require(*role).is_ok(), needed <= at, "{held} {role}");
            }
            assert_eq!(held.as_str().parse::<Role>().unwrap(), *held);
        }
        assert!(user(&[]).require(Role::Ask).is_err());
        assert!("root".parse::<Role>().is_err());
    }

    #[test]
    fn only_admins_name_another_tenant() {
        let tenant = |principal: &Principal, asked: &str| principal.tenant_of(asked).map(|tenant| tenant.to_string());
        let (ask, admin) = (user(&[Role::Operate]), user(&[Role::Admin]));
        assert_eq!(tenant(&ask, "").unwrap(), "ops");
        assert_eq!(tenant(&ask, "ops").unwrap(), "ops");
        assert!(matches!(tenant(&ask, "default"), Err(AccessError::Tenant { .. })));
        assert!(matches!(tenant(&ask, "no.tenant"), Err(AccessError::Tenant { .. })));
        assert_eq!(tenant(&admin, "default").unwrap(), "default");
        assert!(matches!(tenant(&admin, "no.tenant"), Err(AccessError::BadTenant { .. })));
        assert_eq!(Caller::Service.tenant_of("x").unwrap(), "x");
        assert_eq!(Caller::User(ask).tenant_of("").unwrap(), "ops");
    }
}

//! The door of both services: services of the group name the tenant, users are bound to theirs.

use std::sync::Arc;

use autoact_access::{AccessMode, Anonymous, Authority, Caller, Guard, Role, caller};
use autoact_service::{Setup, StartError};
use autoact_wire::status::to_status;
use tonic::{Request, Status};

use crate::config::MemoryConfig;

/// What both services of this process have before them.
#[derive(Clone)]
pub(crate) struct Door {
    authority: Option<Arc<Authority>>,
    anonymous: Anonymous,
}

impl Door {
    /// Reads the tokens and keys that the settings name.
    pub(crate) async fn open(config: &MemoryConfig, setup: &Setup) -> Result<Door, StartError> {
        let authority = match config.access.is_set_up() {
            true => Some(Arc::new(Authority::open(&config.access).await.map_err(StartError::new)?)),
            false => None,
        };
        if let Some(kept) = authority.clone() {
            setup.tasks().spawn("access", async move { kept.keep().await });
        }
        let anonymous = match config.access.mode {
            AccessMode::Required => Anonymous::Refused,
            // gateways and tool-agents come without a token
            AccessMode::Auto | AccessMode::Open => Anonymous::As(Caller::Service),
        };
        Ok(Door { authority, anonymous })
    }

    /// Puts a service behind the door.
    pub(crate) fn before<S>(&self, service: S) -> Guard<S> {
        Guard::new(service, self.authority.clone(), self.anonymous.clone())
    }
}

/// The request of a caller who has the role, with the tenant that it acts for in place of the one
/// that it names.
pub(crate) fn admit<T>(request: Request<T>, role: Role, tenant: impl FnOnce(&mut T) -> Option<&mut String>) -> Result<T, Status> {
    let caller = caller(&request)?;
    let mut request = request.into_inner();
    caller.require(role).map_err(|error| to_status(&error))?;
    if let Some(tenant) = tenant(&mut request) {
        bind(&caller, tenant)?;
    }
    Ok(request)
}

/// Puts the tenant that a caller acts for in the place of the one that it names.
pub(crate) fn bind(caller: &Caller, tenant: &mut String) -> Result<(), Status> {
    *tenant = caller.tenant_of(tenant).map_err(|error| to_status(&error))?;
    Ok(())
}

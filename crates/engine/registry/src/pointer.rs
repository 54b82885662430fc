//! `current.json`: the version in service and those before it.

use std::fs;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::disk::{self, io};
use crate::registry::now;
use crate::{Registry, RegistryError, Version, VersionId};

const POINTER: &str = "current.json";

/// Maximum number of promotions that are kept for rollbacks.
pub const MAX_PROMOTIONS: usize = 100;

/// The content of `current.json`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pointer {
    /// Number of changes; each promotion and each rollback is one.
    pub revision: u64,
    /// A stack of promotions, oldest first. The last one is in service; a rollback removes it.
    pub promotions: Vec<Promotion>,
}

/// A version put into service.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Promotion {
    /// The version.
    pub version: VersionId,
    /// Time of the promotion, RFC 3339 in UTC.
    pub at: String,
}

impl Pointer {
    /// The version in service; `None`: the adapters with which the agents were started.
    pub fn current(&self) -> Option<&VersionId> {
        self.promotions.last().map(|promotion| &promotion.version)
    }

    fn promote(&mut self, version: VersionId) -> bool {
        if self.current() == Some(&version) {
            return false;
        }
        self.revision += 1;
        self.promotions.push(Promotion { version, at: now() });
        let beyond = self.promotions.len().saturating_sub(MAX_PROMOTIONS);
        self.promotions.drain(..beyond);
        true
    }

    fn forget(&mut self, version: &VersionId) -> bool {
        let before = self.promotions.len();
        self.promotions.retain(|promotion| promotion.version != *version);
        self.promotions.dedup_by(|later, earlier| later.version == earlier.version);
        let changed = self.promotions.len() < before;
        self.revision += u64::from(changed);
        changed
    }

    fn rollback(&mut self) -> Option<VersionId> {
        let taken = self.promotions.pop()?;
        self.revision += 1;
        Some(taken.version)
    }
}

impl Registry {
    /// The content of `current.json`; without the file, no version at revision 0.
    pub fn pointer(&self) -> Result<Pointer, RegistryError> {
        let path = self.pointer_path();
        match fs::read(&path) {
            Ok(text) => serde_json::from_slice(&text).map_err(|source| RegistryError::Pointer { path, source }),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Pointer::default()),
            Err(error) => Err(io("read", &path)(error)),
        }
    }

    /// The version in service.
    pub fn current(&self) -> Result<Option<Version>, RegistryError> {
        self.pointer()?.current().map(|id| self.get(id)).transpose()
    }

    /// Puts a version into service, if its adapters are those that were published. Promoting the
    /// version in service changes nothing.
    pub fn promote(&self, id: &VersionId) -> Result<Pointer, RegistryError> {
        // before taking the lock, whose file a missing registry does not have
        self.verify_files(&self.get(id)?)?;
        let _lock = self.lock()?;
        let mut pointer = self.pointer()?;
        if pointer.promote(id.clone()) {
            self.write(&pointer)?;
        }
        Ok(pointer)
    }

    /// Undoes the last promotion. The previous version is in service again, or, without one, the
    /// adapters with which the agents were started. Refused if the previous version's files have
    /// changed.
    pub fn rollback(&self) -> Result<Pointer, RegistryError> {
        let nothing = || RegistryError::NothingToRollBack { root: self.root().to_owned() };
        if self.pointer()?.current().is_none() {
            return Err(nothing());
        }
        let _lock = self.lock()?;
        let mut pointer = self.pointer()?;
        pointer.rollback().ok_or_else(nothing)?;
        if let Some(id) = pointer.current() {
            self.verify_files(&self.get(id)?)?;
        }
        self.write(&pointer)?;
        Ok(pointer)
    }

    /// Deletes a version, valid or damaged, and removes its promotions, so that no rollback leads
    /// to it. Refused while it is in service.
    pub fn remove(&self, id: &VersionId) -> Result<Pointer, RegistryError> {
        let dir = self.versions_dir().join(id.as_str());
        if !dir.is_dir() {
            self.get(id)?;
        }
        let _lock = self.lock()?;
        let mut pointer = self.pointer()?;
        if pointer.current() == Some(id) {
            return Err(RegistryError::InService { id: id.clone() });
        }
        if pointer.forget(id) {
            self.write(&pointer)?;
        }
        // renamed to a name that is no version's, so that an interrupted removal leaves no
        // incomplete version
        let gone = self.versions_dir().join(format!(".removed-{id}"));
        fs::rename(&dir, &gone).map_err(io("remove", &dir))?;
        fs::remove_dir_all(&gone).map_err(io("remove", &gone))?;
        Ok(pointer)
    }

    fn write(&self, pointer: &Pointer) -> Result<(), RegistryError> {
        let path = self.pointer_path();
        let mut text = serde_json::to_vec_pretty(pointer).map_err(|source| RegistryError::Pointer { path: path.clone(), source })?;
        text.push(b'\n');
        disk::replace(&path, &text)
    }

    fn pointer_path(&self) -> PathBuf {
        self.root().join(POINTER)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[derive(Debug, Clone)]
    enum Change {
        Promote(u8),
        Rollback,
    }

    fn change() -> impl Strategy<Value = Change> {
        prop_oneof![(0u8..4).prop_map(Change::Promote), Just(Change::Rollback)]
    }

    proptest! {
        /// Compares the pointer with a stack: the current version, rollbacks, and the number of
        /// changes.
        #[test]
        fn it_is_a_stack(changes in prop::collection::vec(change(), 0..60)) {
            let (mut pointer, mut stack, mut count) = (Pointer::default(), Vec::new(), 0);
            for change in changes {
                match change {
                    Change::Promote(n) => {
                        let id: VersionId = format!("v{n}").parse().unwrap();
                        let changed = stack.last() != Some(&id);
                        prop_assert_eq!(pointer.promote(id.clone()), changed);
                        if changed {
                            stack.push(id);
                            count += 1;
                        }
                    }
                    Change::Rollback => {
                        let expected = stack.pop();
                        count += u64::from(expected.is_some());
                        prop_assert_eq!(pointer.rollback(), expected);
                    }
                }
                prop_assert_eq!(pointer.current(), stack.last());
                prop_assert_eq!(pointer.revision, count);
            }
            let text = serde_json::to_string(&pointer).unwrap();
            prop_assert_eq!(serde_json::from_str::<Pointer>(&text).unwrap(), pointer);
        }
    }

    #[test]
    fn a_removed_version_is_never_gone_back_to() {
        let mut pointer = Pointer::default();
        let id = |name: &str| name.parse::<VersionId>().unwrap();
        for name in ["a", "b", "a", "b", "c"] {
            pointer.promote(id(name));
        }
        assert!(pointer.forget(&id("b")) && !pointer.forget(&id("b")));
        let left: Vec<&str> = pointer.promotions.iter().map(|promotion| promotion.version.as_str()).collect();
        assert_eq!((left, pointer.revision), (vec!["a", "c"], 6));
    }

    #[test]
    fn old_promotions_are_forgotten() {
        let mut pointer = Pointer::default();
        for n in 0..MAX_PROMOTIONS + 5 {
            assert!(pointer.promote(format!("v{n}").parse().unwrap()));
        }
        assert_eq!(pointer.promotions.len(), MAX_PROMOTIONS);
        assert_eq!(pointer.promotions[0].version.as_str(), "v5");
    }
}

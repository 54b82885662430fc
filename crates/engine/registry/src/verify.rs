//! Verification of a version: unchanged since it was published, and of the expected base.

use crate::disk::sha256;
use crate::publish::{calibration, digest};
use crate::{AdapterRecord, CALIBRATION_FILE, ROLES, Registry, RegistryError, Version};

impl Registry {
    /// Refuses a version of another base than the one with sha256 `base_sha256`, and a version
    /// whose adapters have changed since it was published.
    pub fn verify(&self, version: &Version, base_sha256: &str) -> Result<(), RegistryError> {
        version.check_base(base_sha256)?;
        self.verify_files(version)
    }

    /// Refuses a version whose adapters have changed since it was published, for a caller without a
    /// base.
    pub fn verify_files(&self, version: &Version) -> Result<(), RegistryError> {
        for role in ROLES {
            let found = digest(role, &version.adapter(role), &version.manifest.base.sha256)?;
            version.check_adapter(role, &found)?;
            version.check_calibration(role, calibration(&version.adapter(role))?.as_deref().map(sha256).as_deref())?;
        }
        Ok(())
    }
}

impl Version {
    /// Refuses another base than the one it was trained on.
    pub fn check_base(&self, base_sha256: &str) -> Result<(), RegistryError> {
        let base = &self.manifest.base;
        if base.sha256 == base_sha256 {
            return Ok(());
        }
        Err(RegistryError::BaseMismatch {
            version: self.id().clone(),
            base: base.name.clone(),
            expected: base.sha256.clone(),
            found: base_sha256.to_owned(),
        })
    }

    /// Refuses an agent's adapter whose digest, as it was read, is not the published one.
    pub fn check_adapter(&self, role: &str, found: &str) -> Result<(), RegistryError> {
        let expected = &self.record(role)?.sha256;
        if expected == found {
            return Ok(());
        }
        Err(RegistryError::Changed {
            version: self.id().clone(),
            role: role.to_owned(),
            path: self.adapter(role),
            expected: expected.clone(),
            found: found.to_owned(),
        })
    }

    /// Refuses an agent's calibration whose digest, as it was read, is not the published one;
    /// `None`: there is no such file.
    pub fn check_calibration(&self, role: &str, found: Option<&str>) -> Result<(), RegistryError> {
        let expected = self.record(role)?.calibration_sha256.as_deref();
        if expected == found {
            return Ok(());
        }
        let told = |digest: Option<&str>| digest.unwrap_or("none").to_owned();
        Err(RegistryError::Changed {
            version: self.id().clone(),
            role: role.to_owned(),
            path: self.adapter(role).join(CALIBRATION_FILE),
            expected: told(expected),
            found: told(found),
        })
    }

    /// What the manifest says of an agent's adapter.
    pub fn record(&self, role: &str) -> Result<&AdapterRecord, RegistryError> {
        let missing = || RegistryError::MissingRole { version: self.id().clone(), role: role.to_owned() };
        self.manifest.adapters.get(role).ok_or_else(missing)
    }
}

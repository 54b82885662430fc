//! All collections of all tenants, in one directory.
//!
//! ```text
//! root/lock                       held by the process that uses it
//! root/TENANT/COLLECTION/         collection.json, index/
//! root/.deleted-…                 a collection on its way out
//! ```

use std::collections::HashMap;
use std::fs::{self, File, TryLockError};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use autoact_trajectory::Tenant;

use crate::collection::{Collection, MANIFEST};
use crate::error::CollectionsError;
use crate::name::CollectionName;

const LOCK: &str = "lock";
const DELETED: &str = ".deleted-";
/// Names what is being removed. Only one process is in the directory.
static DELETIONS: AtomicU64 = AtomicU64::new(0);

/// The open collections, by tenant and name.
type Open = HashMap<(Tenant, CollectionName), Arc<Collection>>;

/// The collections in a directory, which one process holds at a time.
pub struct Collections {
    root: PathBuf,
    open: Mutex<Open>,
    /// Closing the file unlocks it, even when the process is killed.
    _lock: File,
}

impl std::fmt::Debug for Collections {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Collections").field("root", &self.root).finish_non_exhaustive()
    }
}

impl Collections {
    /// Takes a directory, or makes it.
    ///
    /// # Errors
    /// It cannot be used, or another process uses it.
    pub fn open(root: &Path) -> Result<Collections, CollectionsError> {
        let failed = |source| CollectionsError::Directory { path: root.to_owned(), source };
        fs::create_dir_all(root).map_err(failed)?;
        let lock = File::options().create(true).truncate(false).write(true).open(root.join(LOCK)).map_err(failed)?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(CollectionsError::Locked { path: root.to_owned() }),
            Err(TryLockError::Error(error)) => return Err(failed(error)),
        }
        for entry in fs::read_dir(root).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            if entry.file_name().to_string_lossy().starts_with(DELETED) {
                // a process ended while it deleted
                fs::remove_dir_all(entry.path()).map_err(failed)?;
            }
        }
        Ok(Collections { root: root.to_owned(), open: Mutex::default(), _lock: lock })
    }

    /// A tenant's collections, sorted by name.
    ///
    /// # Errors
    /// The directory cannot be read.
    pub fn names(&self, tenant: &Tenant) -> Result<Vec<CollectionName>, CollectionsError> {
        let path = self.root.join(tenant.as_str());
        let failed = |source| CollectionsError::Directory { path: path.clone(), source };
        let entries = match fs::read_dir(&path) {
            Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => return Ok(Vec::new()),
            entries => entries.map_err(failed)?,
        };
        let mut names = Vec::new();
        for entry in entries {
            let entry = entry.map_err(failed)?;
            let name = entry.file_name().to_str().and_then(|name| name.parse().ok());
            names.extend(name.filter(|_| entry.path().join(MANIFEST).is_file()));
        }
        names.sort();
        Ok(names)
    }

    /// All collections of all tenants.
    ///
    /// # Errors
    /// The directory cannot be read.
    pub fn all(&self) -> Result<Vec<(Tenant, CollectionName)>, CollectionsError> {
        let failed = |source| CollectionsError::Directory { path: self.root.clone(), source };
        let mut all = Vec::new();
        for entry in fs::read_dir(&self.root).map_err(failed)? {
            let name = entry.map_err(failed)?.file_name();
            if let Some(tenant) = name.to_str().and_then(|name| name.parse::<Tenant>().ok()) {
                all.extend(self.names(&tenant)?.into_iter().map(|name| (tenant.clone(), name)));
            }
        }
        Ok(all)
    }

    /// A collection that is there.
    ///
    /// # Errors
    /// It is not there, or cannot be opened.
    pub fn get(&self, tenant: &Tenant, name: &CollectionName) -> Result<Arc<Collection>, CollectionsError> {
        let mut open = self.open_ones();
        if let Some(collection) = open.get(&(tenant.clone(), name.clone())) {
            return Ok(collection.clone());
        }
        let path = self.path(tenant, name);
        if !path.join(MANIFEST).is_file() {
            return Err(CollectionsError::Unknown { name: name.clone(), known: self.names(tenant)? });
        }
        Collections::hold(&mut open, tenant, name, &path)
    }

    /// A collection; made if it is not there.
    ///
    /// # Errors
    /// It cannot be opened or made.
    pub fn get_or_make(&self, tenant: &Tenant, name: &CollectionName) -> Result<Arc<Collection>, CollectionsError> {
        let mut open = self.open_ones();
        match open.get(&(tenant.clone(), name.clone())) {
            Some(collection) => Ok(collection.clone()),
            None => Collections::hold(&mut open, tenant, name, &self.path(tenant, name)),
        }
    }

    /// Deletes a collection with its files; whether there was one.
    ///
    /// # Errors
    /// The files cannot be removed.
    pub fn delete(&self, tenant: &Tenant, name: &CollectionName) -> Result<bool, CollectionsError> {
        let mut open = self.open_ones();
        let path = self.path(tenant, name);
        let failed = |source| CollectionsError::Directory { path: path.clone(), source };
        if !path.exists() {
            return Ok(false);
        }
        if let Some(held) = open.remove(&(tenant.clone(), name.clone())) {
            // a merge writes into its files
            held.rest(Duration::ZERO)?;
        }
        // renamed first: what is half removed is no collection
        let away = self.root.join(format!("{DELETED}{}", DELETIONS.fetch_add(1, Ordering::Relaxed)));
        fs::rename(&path, &away).map_err(failed)?;
        drop(open);
        fs::remove_dir_all(&away).map_err(failed)?;
        Ok(true)
    }

    /// Gives back what changing collections needs, for those that nobody has changed for so long.
    ///
    /// # Errors
    /// The first collection's that failed.
    pub fn rest(&self, idle: Duration) -> Result<(), CollectionsError> {
        let open: Vec<Arc<Collection>> = self.open_ones().values().cloned().collect();
        open.into_iter().map(|collection| collection.rest(idle)).fold(Ok(()), Result::and)
    }

    fn hold(open: &mut Open, tenant: &Tenant, name: &CollectionName, path: &Path) -> Result<Arc<Collection>, CollectionsError> {
        let collection = Arc::new(Collection::open(name, path)?);
        open.insert((tenant.clone(), name.clone()), collection.clone());
        Ok(collection)
    }

    fn path(&self, tenant: &Tenant, name: &CollectionName) -> PathBuf {
        self.root.join(tenant.as_str()).join(name.as_str())
    }

    fn open_ones(&self) -> MutexGuard<'_, Open> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

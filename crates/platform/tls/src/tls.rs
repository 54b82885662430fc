//! The certificates of this process: read once at its start, and again when their files change.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;

use autoact_base::FileWatch;
use autoact_config::{TlsConfig, TlsFiles};
use rustls::{ClientConfig, ServerConfig};
use tokio::time::{Instant, MissedTickBehavior};

use crate::error::TlsError;
use crate::files::{Files, Material};

/// How often the log says that a certificate ends soon.
const REMIND: Duration = Duration::from_secs(60 * 60);

/// The certificates of this process; cheap to clone. New connections use what was read last; those
/// that are open go on.
#[derive(Debug, Clone)]
pub struct Tls {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    files: Files,
    demand: bool,
    current: RwLock<Arc<Material>>,
    /// The files as they were when they were last read.
    watch: Mutex<FileWatch>,
}

/// What a look at the files led to.
#[derive(Debug)]
pub enum Looked {
    /// They are as they were.
    Same,
    /// They have changed and were read: new connections use them.
    Reloaded,
    /// They have changed and cannot be used: what was read before stays.
    Refused(TlsError),
}

impl Tls {
    /// Reads the files that the settings name; `None` when they name none.
    ///
    /// # Errors
    /// Some of the files are not named, cannot be read, or cannot be used.
    pub fn open(config: &TlsConfig) -> Result<Option<Tls>, TlsError> {
        let Some(files) = config.files().map_err(TlsError::Settings)? else { return Ok(None) };
        Tls::read(files, config.client_certificates).map(Some)
    }

    /// Reads an authority alone: for clients that show no certificate. Others cannot connect to what
    /// has none.
    ///
    /// # Errors
    /// The file cannot be read, or cannot be used.
    pub fn authority(ca: PathBuf) -> Result<Tls, TlsError> {
        Tls::of(Files { ca, own: None }, true)
    }

    /// Reads these files. `demand`: callers must show a certificate.
    ///
    /// # Errors
    /// A file cannot be read, or cannot be used.
    pub fn read(files: TlsFiles, demand: bool) -> Result<Tls, TlsError> {
        let TlsFiles { ca, cert, key } = files;
        Tls::of(Files { ca, own: Some((cert, key)) }, demand)
    }

    fn of(files: Files, demand: bool) -> Result<Tls, TlsError> {
        // before they are read: a change in between is seen as one
        let watch = Mutex::new(FileWatch::new(files.paths()));
        let current = RwLock::new(Arc::new(Material::read(&files, demand)?));
        Ok(Tls { shared: Arc::new(Shared { files, demand, current, watch }) })
    }

    /// Reads the files again if they have changed.
    pub fn look(&self) -> Looked {
        let Shared { files, demand, current, watch } = &*self.shared;
        let mut watch = watch.lock().unwrap_or_else(PoisonError::into_inner);
        if !watch.look() {
            return Looked::Same;
        }
        match Material::read(files, *demand) {
            Ok(material) => {
                *current.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(material);
                Looked::Reloaded
            }
            Err(error) => Looked::Refused(error),
        }
    }

    /// Looks at the files every second, for as long as it runs. Files that cannot be used change
    /// nothing, and the log says why.
    pub async fn watch(self) {
        let cert = self.shared.files.shown().display();
        let mut reminded: Option<Instant> = None;
        let mut interval = tokio::time::interval(FileWatch::PERIOD);
        interval.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            interval.tick().await;
            match self.look() {
                Looked::Same => {}
                Looked::Reloaded => {
                    tracing::info!(%cert, "certificates read again; new connections use them");
                    metrics::counter!("autoact_tls_reloads_total", "outcome" => "reloaded").increment(1);
                    reminded = None;
                }
                Looked::Refused(error) => {
                    tracing::warn!(%error, "the changed certificates cannot be used; those read before stay");
                    metrics::counter!("autoact_tls_reloads_total", "outcome" => "refused").increment(1);
                }
            }
            if reminded.is_none_or(|reminded| reminded.elapsed() >= REMIND) {
                reminded = Some(Instant::now());
                if self.current().ends_soon() {
                    tracing::warn!(%cert, "the certificate ends within 7 days; fix: `autoact certs renew`, or what made it");
                }
            }
        }
    }

    /// For connections that others make.
    pub(crate) fn server(&self) -> Option<Arc<ServerConfig>> {
        self.current().server.clone()
    }

    /// For connections that we make.
    pub(crate) fn client(&self) -> Arc<ClientConfig> {
        Arc::clone(&self.current().client)
    }

    fn current(&self) -> Arc<Material> {
        Arc::clone(&self.shared.current.read().unwrap_or_else(PoisonError::into_inner))
    }
}

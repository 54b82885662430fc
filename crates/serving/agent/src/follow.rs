//! Follows the registry: loads what is promoted beside what speaks, lets new calls speak with it,
//! and unloads the old one after its last reply.

use std::sync::Arc;
use std::time::Duration;

use autoact_model::AdapterVersion;
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::agent::Agent;
use crate::registry::{Refusal, Source, Wanted};
use crate::voice::Voice;

/// How often the registry's pointer, a file of a few lines, is read.
const PERIOD: Duration = Duration::from_secs(1);
/// A refused version is tried again after this long: its files may still have been on their way.
const RETRY: Duration = Duration::from_secs(10);
/// How long one token with a new adapter may take: there may be a queue before it.
const TRIAL_LIMIT: Duration = Duration::from_secs(20);

/// What was refused last.
struct Refused {
    /// `None`: the pointer itself.
    wanted: Option<Wanted>,
    at: Instant,
}

/// An agent and where its voice comes from.
pub(crate) struct Follower {
    agent: Arc<Agent>,
    source: Arc<Source>,
    /// What speaks now.
    speaks: Wanted,
    adapter: Option<AdapterVersion>,
    refused: Option<Refused>,
}

impl Follower {
    pub(crate) fn new(agent: Arc<Agent>, source: Arc<Source>, speaks: Wanted, adapter: Option<AdapterVersion>) -> Follower {
        gauge(&agent, adapter.as_ref(), 1.0);
        Follower { agent, source, speaks, adapter, refused: None }
    }

    /// Looks once a period, and whenever there is `news`. A task without end: run it with
    /// `Tasks::spawn`.
    pub(crate) async fn run(mut self, news: Arc<Notify>) {
        loop {
            tokio::select! {
                () = tokio::time::sleep(PERIOD) => {}
                () = news.notified() => {}
            }
            self.look().await;
        }
    }

    async fn look(&mut self) {
        let source = Arc::clone(&self.source);
        let wanted = match blocking(move || source.wanted()).await {
            Ok(wanted) => wanted,
            Err(refusal) => return self.refuse(None, &refusal),
        };
        if wanted == self.speaks {
            self.refused = None;
            return;
        }
        if self.refused.as_ref().is_some_and(|refused| refused.wanted.as_ref() == Some(&wanted) && refused.at.elapsed() < RETRY) {
            return;
        }
        match self.take(&wanted).await {
            Ok(()) => self.refused = None,
            Err(refusal) => self.refuse(Some(wanted), &refusal),
        }
    }

    async fn take(&mut self, wanted: &Wanted) -> Result<(), Refusal> {
        // a volume that is unmounted looks like a registry where nothing was promoted
        if wanted.revision == 0 && self.speaks.revision > 0 {
            return Err(Refusal::Lost { root: self.source.registry.root().to_owned() });
        }
        let (source, asked) = (Arc::clone(&self.source), wanted.clone());
        let (voice, adapter) = blocking(move || source.voice(&asked)).await?;
        self.agent.trial(&voice, TRIAL_LIMIT).await?;
        self.switch(voice, adapter, wanted);
        Ok(())
    }

    fn switch(&mut self, voice: Voice, adapter: Option<AdapterVersion>, wanted: &Wanted) {
        let agent = self.agent.role().as_str();
        let name = |adapter: &Option<AdapterVersion>| adapter.as_ref().map_or("none", |adapter| adapter.name.as_str()).to_owned();
        let (from, to) = (name(&self.adapter), name(&adapter));
        self.agent.switch(voice);
        gauge(&self.agent, self.adapter.as_ref(), 0.0);
        gauge(&self.agent, adapter.as_ref(), 1.0);
        self.adapter = adapter;
        self.speaks = wanted.clone();
        metrics::counter!("autoact_adapter_switches_total", "agent" => agent, "outcome" => "switched").increment(1);
        tracing::info!(agent, from, to, revision = wanted.revision, "switched the adapter; replies that have begun end with the old one");
    }

    /// Once for each thing that is refused; the same thing again is no news.
    fn refuse(&mut self, wanted: Option<Wanted>, refusal: &Refusal) {
        let known = self.refused.as_ref().is_some_and(|refused| refused.wanted == wanted);
        self.refused = Some(Refused { wanted, at: Instant::now() });
        if known {
            return;
        }
        refused(self.agent.role().as_str(), refusal);
    }
}

/// Counts and logs what is not taken into service.
pub(crate) fn refused(agent: &'static str, refusal: &Refusal) {
    metrics::counter!("autoact_adapter_switches_total", "agent" => agent, "outcome" => "refused").increment(1);
    let cause = autoact_service::StartError::because("refused", refusal);
    tracing::error!(agent, error = %cause, "an adapter version is refused; what speaks now goes on");
}

/// Which adapter speaks: 1; one that spoke before: 0.
fn gauge(agent: &Agent, adapter: Option<&AdapterVersion>, value: f64) {
    let (name, digest) = adapter.map(|adapter| (adapter.name.clone(), adapter.digest.clone())).unwrap_or_default();
    metrics::gauge!("autoact_adapter_info", "agent" => agent.role().as_str(), "adapter" => name, "digest" => digest).set(value);
}

/// Work with files, off the runtime's threads.
async fn blocking<T: Send + 'static>(work: impl FnOnce() -> Result<T, Refusal> + Send + 'static) -> Result<T, Refusal> {
    tokio::task::spawn_blocking(work).await.unwrap_or_else(|error| Err(Refusal::Broke(error.to_string())))
}

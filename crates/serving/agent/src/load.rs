//! Opens a model and the adapter it is to speak with.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use autoact_base::progress::Progress;
use autoact_model::{AdapterVersion, Backend, Engine, LoadError, ModelDir};
use autoact_registry::Registry;
use autoact_service::{Setup, StartError};
use autoact_trajectory::Role;
use tokio::sync::Notify;

use crate::agent::{Agent, AgentOptions};
use crate::config::{EngineConfig, without_adapter};
use crate::follow::{self, Follower};
use crate::news;
use crate::registry::{Refusal, Source, Wanted, configured};
use crate::remote::{self, BackendConfig};
use crate::voice::{Adapters, Voice};

/// Where an agent's model comes from.
#[derive(Debug, Clone, Copy)]
pub struct Sources<'a> {
    /// The base: a Hugging Face directory.
    pub model: &'a Path,
    /// A PEFT adapter; empty: the base speaks.
    pub adapter: &'a Path,
    /// A registry whose current version speaks instead of `adapter`; empty: none.
    pub registry: &'a Path,
    /// Listen on the bus for promotions, beside looking at the registry.
    pub announcements: bool,
    /// A server that has the model and the adapter instead of all this.
    pub backend: &'a BackendConfig,
}

/// Opens the base in `model` with the adapter in `adapter` (an empty path: none) and starts its
/// engine.
pub async fn load(role: Role, model: &Path, adapter: &Path, config: &EngineConfig, capture_content: bool) -> Result<Agent, StartError> {
    let backend = &BackendConfig::default();
    let sources = Sources { model, adapter, registry: Path::new(""), announcements: false, backend };
    let opened = open_model(role, sources, config, Progress::default()).await?;
    Ok(opened.agent(role, capture_content))
}

/// Opens a service's model and, with a registry, follows it from then on.
pub async fn open(role: Role, sources: Sources<'_>, config: &EngineConfig, setup: &Setup) -> Result<Arc<Agent>, StartError> {
    if sources.backend.is_remote() {
        let agent = remote::agent(role, sources.backend, config, setup.common().telemetry.capture_content).await?;
        return Ok(Arc::new(agent));
    }
    let progress = Progress::default();
    let opened = open_model(role, sources, config, progress.clone());
    let mut opened = setup.while_it_goes_on("model", &progress, opened).await??;
    let (followed, adapter) = (opened.followed.take(), opened.adapter.clone());
    let agent = Arc::new(opened.agent(role, setup.common().telemetry.capture_content));
    if let Some((source, speaks)) = followed {
        let hint = Arc::new(Notify::new());
        let follower = Follower::new(Arc::clone(&agent), source, speaks, adapter);
        setup.tasks().spawn("adapter registry", follower.run(Arc::clone(&hint)));
        if sources.announcements {
            let name = format!("autoact-{}-agent", role.as_str());
            setup.tasks().spawn("adapter announcements", news::listen(setup.common().nats.url.clone(), name, hint));
        }
    }
    Ok(agent)
}

/// A base with its voice.
struct Opened {
    engine: Arc<Engine>,
    voice: Voice,
    adapter: Option<AdapterVersion>,
    followed: Option<Followed>,
}

/// A registry, and what of it speaks.
type Followed = (Arc<Source>, Wanted);

impl Opened {
    fn agent(self, role: Role, capture_content: bool) -> Agent {
        let Opened { engine, voice, adapter, .. } = self;
        tracing::info!(
            agent = role.as_str(),
            model = engine.info().name,
            adapter = adapter.as_ref().map_or("none", |adapter| adapter.name.as_str()),
            context = engine.info().context_length,
            chat_template = engine.info().chat_template,
            "model opened"
        );
        Agent::with_voice(role, engine, voice, AgentOptions { adapter: None, template: None, capture_content })
    }
}

async fn open_model(role: Role, sources: Sources<'_>, config: &EngineConfig, progress: Progress) -> Result<Opened, StartError> {
    let (model, adapter, registry) = (sources.model.to_owned(), sources.adapter.to_owned(), sources.registry.to_owned());
    let (options, digests) = (config.options(), config.digests());
    let opened = tokio::task::spawn_blocking(move || {
        let dir = ModelDir::open(&model).map_err(|error| no_model(&model, &error))?.with_digests(digests, progress);
        let engine = Arc::new(Engine::start(&dir, options).map_err(|error| no_model(&model, &error))?);
        let adapters = Arc::new(Adapters::new(Arc::clone(&engine)));
        let source = if without_adapter(&registry) { None } else { Some(open_registry(role, registry, &adapter, &adapters)?) };
        if let Some((source, wanted)) = &source
            && wanted.version.is_some()
        {
            match source.voice(wanted) {
                Ok((voice, version)) => {
                    return Ok(Opened { engine, voice, adapter: version, followed: Some((Arc::clone(source), wanted.clone())) });
                }
                // better the adapter that came with the agent than no agent; the follower tries
                // again
                Err(refusal) => follow::refused(role.as_str(), &refusal),
            }
        }
        let (voice, version) = configured(&adapters, role, &adapter).map_err(|error| no_adapter(&adapter, &engine.info().name, &error))?;
        let nothing = Wanted { revision: 0, version: None };
        let followed = source.map(|(source, wanted)| if wanted.version.is_some() { (source, nothing) } else { (source, wanted) });
        Ok::<_, StartError>(Opened { engine, voice, adapter: version, followed })
    });
    opened.await.map_err(StartError::new)?
}

fn open_registry(role: Role, root: PathBuf, configured: &Path, adapters: &Arc<Adapters>) -> Result<(Arc<Source>, Wanted), StartError> {
    let fix =
        "set `--adapter-registry DIR` (or AUTOACT_ADAPTER_REGISTRY) to the directory that `autoact adapters` and `autoact learn` write";
    let what = format!("cannot open the adapter registry `{}`", root.display());
    let registry = Registry::open(root).map_err(|error| StartError::because(&what, &error).fix(fix))?;
    let source = Source { role, registry, adapters: Arc::clone(adapters), configured: configured.to_owned() };
    let wanted = source.wanted().map_err(|error| StartError::because(&what, &error).fix(fix))?;
    if wanted.version.is_none() {
        tracing::info!(agent = role.as_str(), registry = %source.registry.root().display(), "no adapter version is promoted yet");
    }
    Ok((Arc::new(source), wanted))
}

fn no_model(model: &Path, error: &LoadError) -> StartError {
    StartError::because(format!("cannot open model `{}`", model.display()), error)
        .fix(format!("set `--model DIR` (or AUTOACT_MODEL) to a Hugging Face directory{}", from_here(model)))
}

fn no_adapter(adapter: &Path, base: &str, error: &Refusal) -> StartError {
    let cause: &(dyn std::error::Error + 'static) = match error {
        Refusal::Load { source, .. } => source.as_ref(),
        other => other,
    };
    StartError::because(format!("cannot open adapter `{}`", adapter.display()), cause).fix(format!(
        "set `--adapter DIR` (or AUTOACT_ADAPTER) to a PEFT adapter that was trained for `{base}`, or to nothing for the base alone{}",
        from_here(adapter)
    ))
}

/// A relative path means little without the directory it starts from.
fn from_here(path: &Path) -> String {
    if path.is_absolute() {
        return String::new();
    }
    let here: PathBuf = std::env::current_dir().unwrap_or_default();
    format!("; relative paths start from `{}`", here.display())
}

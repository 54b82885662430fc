//! Opens a model and the adapter it is to speak with.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use autoact_base::progress::Progress;
use autoact_model::{AdapterVersion, Backend, ChatTemplate, Engine, LoadError, ModelDir};
use autoact_registry::Registry;
use autoact_service::{Setup, StartError};
use autoact_trajectory::Role;
use tokio::sync::Notify;

use crate::agent::{Agent, AgentOptions};
use crate::config::{EngineConfig, without_adapter};
use crate::follow::{self, Follower};
use crate::host::Host;
use crate::news;
use crate::registry::{Configured, Refusal, Source, Wanted, configured};
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
    Ok(opened.agent(role, capture_content, config.reply_tokens))
}

/// Opens a service's model and, with a registry, follows it from then on.
pub async fn open(role: Role, sources: Sources<'_>, config: &EngineConfig, setup: &Setup) -> Result<Arc<Agent>, StartError> {
    let opened = if sources.backend.is_remote() {
        remote::open(role, sources, config).await?
    } else {
        let progress = Progress::default();
        let opened = open_model(role, sources, config, progress.clone());
        setup.while_it_goes_on("model", &progress, opened).await??
    };
    let (followed, adapter) = (opened.followed.clone(), opened.adapter.clone());
    let agent = Arc::new(opened.agent(role, setup.common().telemetry.capture_content, config.reply_tokens));
    if let Some((source, speaks)) = followed {
        let hint = Arc::new(Notify::new());
        let follower = Follower::new(Arc::clone(&agent), source, speaks, adapter);
        setup.tasks().spawn("adapter registry", follower.run(Arc::clone(&hint)));
        // tool-agents look at the registry only: their NATS user may create and read receipts, and
        // nothing else
        if sources.announcements && role != Role::Tool {
            let name = format!("autoact-{}-agent", role.as_str());
            setup.tasks().spawn("adapter announcements", news::listen(setup.common().nats.clone(), name, hint));
        }
    }
    Ok(agent)
}

/// A base with its voice.
pub(crate) struct Opened {
    pub(crate) backend: Arc<dyn Backend>,
    /// A chat template in place of the backend's own.
    pub(crate) template: Option<ChatTemplate>,
    pub(crate) voice: Voice,
    pub(crate) adapter: Option<AdapterVersion>,
    pub(crate) followed: Option<Followed>,
}

/// A registry, and what of it speaks.
pub(crate) type Followed = (Arc<Source>, Wanted);

impl Opened {
    fn agent(self, role: Role, capture_content: bool, reply_tokens: usize) -> Agent {
        let Opened { backend, template, voice, adapter, .. } = self;
        let info = backend.info();
        tracing::info!(
            agent = role.as_str(),
            model = info.name,
            adapter = adapter.as_ref().map_or("none", |adapter| adapter.name.as_str()),
            context = info.context_length,
            chat_template = info.chat_template || template.is_some(),
            "model opened"
        );
        Agent::with_voice(role, backend, voice, AgentOptions { adapter: None, template, capture_content, reply_tokens })
    }
}

async fn open_model(role: Role, sources: Sources<'_>, config: &EngineConfig, progress: Progress) -> Result<Opened, StartError> {
    let (model, adapter, registry) = (sources.model.to_owned(), sources.adapter.to_owned(), sources.registry.to_owned());
    let (options, digests) = (config.options(), config.digests());
    let opened = tokio::task::spawn_blocking(move || {
        let dir = ModelDir::open(&model).map_err(|error| no_model(&model, &error))?.with_digests(digests, progress);
        let engine = Arc::new(Engine::start(&dir, options).map_err(|error| no_model(&model, &error))?);
        let adapters = Arc::new(Adapters::new(Arc::clone(&engine) as Arc<dyn Host>));
        let configured = Configured::Dir(adapter.clone());
        let source = if without_adapter(&registry) { None } else { Some(open_registry(role, registry, &configured, &adapters)?) };
        let refused = |error: Refusal| no_adapter(&adapter, &engine.info().name, &error);
        let (voice, version, followed) = first_voice(role, source, &adapters, &configured).map_err(refused)?;
        Ok::<_, StartError>(Opened { backend: engine, template: None, voice, adapter: version, followed })
    });
    opened.await.map_err(StartError::new)?
}

/// What an agent speaks with at its start: the registry's version, or what is configured. Blocks
/// while files are read.
pub(crate) fn first_voice(
    role: Role,
    source: Option<Followed>,
    adapters: &Arc<Adapters>,
    fallback: &Configured,
) -> Result<(Voice, Option<AdapterVersion>, Option<Followed>), Refusal> {
    if let Some((source, wanted)) = &source
        && wanted.version.is_some()
    {
        match source.voice(wanted) {
            Ok((voice, version)) => return Ok((voice, version, Some((Arc::clone(source), wanted.clone())))),
            // better the adapter that came with the agent than no agent; the follower tries again
            Err(refusal) => follow::refused(role.as_str(), &refusal),
        }
    }
    let (voice, version) = configured(adapters, role, fallback)?;
    let nothing = Wanted { revision: 0, version: None };
    let followed = source.map(|(source, wanted)| if wanted.version.is_some() { (source, nothing) } else { (source, wanted) });
    Ok((voice, version, followed))
}

pub(crate) fn open_registry(role: Role, root: PathBuf, configured: &Configured, adapters: &Arc<Adapters>) -> Result<Followed, StartError> {
    let fix =
        "set `--adapter-registry DIR` (or AUTOACT_ADAPTER_REGISTRY) to the directory that `autoact adapters` and `autoact learn` write";
    let what = format!("cannot open the adapter registry `{}`", root.display());
    let registry = Registry::open(root).map_err(|error| StartError::because(&what, &error).fix(fix))?;
    let source = Source { role, registry, adapters: Arc::clone(adapters), configured: configured.clone() };
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

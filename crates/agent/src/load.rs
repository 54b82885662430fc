//! Opens a model and its adapter from disk.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use autoact_model::{Backend, Engine, LoadError, ModelDir};
use autoact_prompt::Role;
use autoact_service::StartError;

use crate::agent::{Agent, AgentOptions};
use crate::config::{EngineConfig, without_adapter};

/// Opens the base in `model` with the adapter in `adapter` (an empty path: none) and starts its engine.
pub async fn load(role: Role, model: &Path, adapter: &Path, config: &EngineConfig, capture_content: bool) -> Result<Agent, StartError> {
    let (model, adapter, options) = (model.to_owned(), adapter.to_owned(), config.options());
    let opened = tokio::task::spawn_blocking(move || {
        let dir = ModelDir::open(&model).map_err(|error| no_model(&model, &error))?;
        let engine = Engine::start(&dir, options).map_err(|error| no_model(&model, &error))?;
        let adapter = if without_adapter(&adapter) { None } else { Some(bind(&engine, role, &adapter)?) };
        Ok::<_, StartError>((engine, adapter))
    });
    let (engine, adapter) = opened.await.map_err(StartError::new)??;
    tracing::info!(
        agent = role.as_str(),
        model = engine.info().name,
        adapter = adapter.as_deref().unwrap_or("none"),
        context = engine.info().context_length,
        chat_template = engine.info().chat_template,
        "model opened"
    );
    let template = engine.chat_template().cloned();
    Ok(Agent::new(role, Arc::new(engine), AgentOptions { adapter, template, capture_content }))
}

fn bind(engine: &Engine, role: Role, adapter: &Path) -> Result<String, StartError> {
    // `models/stem/adapters/plan` is known as `plan`
    let name = adapter.file_name().map_or_else(|| role.as_str().to_owned(), |name| name.to_string_lossy().into_owned());
    let version = engine.load_adapter(name, adapter).map_err(|error| no_adapter(adapter, &engine.info().name, &error))?;
    Ok(version.name)
}

fn no_model(model: &Path, error: &LoadError) -> StartError {
    StartError::because(format!("cannot open model `{}`", model.display()), error)
        .fix(format!("set `--model DIR` (or AUTOACT_MODEL) to a Hugging Face directory{}", from_here(model)))
}

fn no_adapter(adapter: &Path, base: &str, error: &LoadError) -> StartError {
    StartError::because(format!("cannot open adapter `{}`", adapter.display()), error).fix(format!(
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

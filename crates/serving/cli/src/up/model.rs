//! Which model a group speaks with: a directory with adapters, or served names of a server.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::ensure;
use autoact_model::ModelDir;
use autoact_trajectory::Role;
use clap::Args as ClapArgs;

/// The word for no adapters.
const NONE: &str = "none";

/// `--model`, `--backend` and what goes with them.
#[derive(Debug, Clone, ClapArgs)]
pub(crate) struct ModelOptions {
    /// The base model, a Hugging Face directory.
    #[arg(long, value_name = "DIR", default_value = "models/stem", conflicts_with = "backend")]
    pub(crate) model: PathBuf,
    /// Directory with the adapters `plan`, `tool` and `reflect`, or `none` for the base alone;
    /// default: `adapters` in the model's directory, where there is one. With `--backend`, served
    /// names: `plan=NAME,tool=NAME,reflect=NAME`.
    #[arg(long, value_name = "ADAPTERS")]
    adapters: Option<Adapters>,
    /// Let an OpenAI-compatible server run the model: http://gpu:8000/v1. A key is read from
    /// AUTOACT_BACKEND__API_KEY or `--backend-key-file`.
    #[arg(long, value_name = "URL")]
    pub(crate) backend: Option<String>,
    /// The server's name of the base, which speaks for every role without an adapter; default: the
    /// served names `plan`, `tool` and `reflect`.
    #[arg(long, value_name = "NAME", requires = "backend")]
    pub(crate) base: Option<String>,
    /// The file with the server's key.
    #[arg(long, value_name = "FILE", requires = "backend")]
    pub(crate) backend_key_file: Option<PathBuf>,
}

/// Adapters as they are named on the command line.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Adapters {
    None,
    Dir(PathBuf),
    /// Served names by role.
    Served(Vec<(Role, String)>),
}

impl std::str::FromStr for Adapters {
    type Err = String;

    fn from_str(text: &str) -> Result<Adapters, String> {
        match text {
            NONE => return Ok(Adapters::None),
            _ if text.contains('=') => {}
            _ => return Ok(Adapters::Dir(text.into())),
        }
        let mut served = Vec::new();
        for part in text.split(',') {
            let (role, name) = part.split_once('=').unwrap_or((part, ""));
            let known = Role::ALL.into_iter().find(|known| known.as_str() == role.trim());
            let role = known.ok_or_else(|| format!("`{role}` is no role; expected `plan=NAME,tool=NAME,reflect=NAME`"))?;
            if name.trim().is_empty() || served.iter().any(|(other, _)| *other == role) {
                return Err(format!("expected one name for `{}`: `{0}=NAME`", role.as_str()));
            }
            served.push((role, name.trim().to_owned()));
        }
        Ok(Adapters::Served(served))
    }
}

impl ModelOptions {
    /// The directory of the adapters; `none` for the base alone, and where the model is a server's.
    pub(crate) fn adapters_dir(&self) -> PathBuf {
        let own = self.model.join("adapters");
        match &self.adapters {
            Some(Adapters::Dir(dir)) => dir.clone(),
            None if self.backend.is_none() && own.is_dir() => own,
            _ => NONE.into(),
        }
    }

    /// Whether the model follows instructions in a chat format: one of a server, or with a template.
    /// The bundled one does not.
    pub(crate) fn has_chat_format(&self) -> bool {
        let template = || ModelDir::open(&self.model).and_then(|dir| dir.chat_template());
        self.backend.is_some() || template().is_ok_and(|template| template.is_some())
    }

    /// Says early, and in the user's words, what is missing.
    pub(crate) fn check(&self) -> anyhow::Result<()> {
        if self.backend.is_some() {
            let served = !matches!(self.adapters, Some(Adapters::Dir(_)));
            ensure!(served, "a server has its adapters by name; fix: `--adapters plan=NAME,tool=NAME,reflect=NAME`, or none of it");
            return Ok(());
        }
        let local = !matches!(self.adapters, Some(Adapters::Served(_)));
        ensure!(local, "`--adapters ROLE=NAME` names what a server serves; fix: add `--backend URL`, or name a directory");
        ensure!(
            self.model.exists(),
            "the base model `{}` is missing; fix: run in the project's root directory, or name another with `--model`",
            self.model.display()
        );
        let dir = self.adapters_dir();
        if dir == Path::new(NONE) {
            return Ok(());
        }
        for role in Role::ALL {
            let path = dir.join(role.as_str());
            ensure!(
                path.is_dir(),
                "the adapter `{}` is missing; fix: name another directory with `--adapters`, or `--adapters none` for the base alone",
                path.display()
            );
        }
        Ok(())
    }

    /// The settings of an agent's section. An agent waits for its server up to `patience`.
    pub(crate) fn section(&self, role: Role, patience: Duration) -> anyhow::Result<String> {
        let mut text = String::new();
        let Some(url) = &self.backend else {
            let dir = self.adapters_dir();
            let adapter = if dir == Path::new(NONE) { String::new() } else { absolute(&dir.join(role.as_str())) };
            let _ = writeln!(text, "model = {}\nadapter = {}", toml_string(&absolute(&self.model)), toml_string(&adapter));
            return Ok(text);
        };
        let named = match &self.adapters {
            Some(Adapters::Served(names)) => names.iter().find(|(of, _)| *of == role).map(|(_, name)| name),
            _ => None,
        };
        let name = match (named.or(self.base.as_ref()), &self.adapters) {
            (Some(name), _) => name,
            (None, None) => role.as_str(),
            (None, Some(_)) => anyhow::bail!("nobody speaks for `{}`; fix: `--base NAME`, or one more name in `--adapters`", role.as_str()),
        };
        let _ = writeln!(text, "adapter = \"\"\nbackend.url = {}\nbackend.model = {}", toml_string(url), toml_string(name));
        let _ = writeln!(text, "backend.start_timeout = \"{}\"", autoact_config::duration::format(patience));
        if let Some(file) = &self.backend_key_file {
            ensure!(file.is_file(), "the key file `{}` is missing", file.display());
            let _ = writeln!(text, "backend.api_key_file = {}", toml_string(&absolute(file)));
        }
        Ok(text)
    }

    /// What the start says of it; nothing of the bundled model.
    pub(crate) fn said(&self) -> Option<String> {
        match (&self.backend, &self.adapters) {
            (Some(url), _) => Some(format!("the model is run by {url}")),
            (None, None) if self.adapters_dir() == Path::new(NONE) => {
                Some(format!("`{}` has no adapters: the base speaks for all three agents", self.model.display()))
            }
            _ => None,
        }
    }
}

fn absolute(path: &Path) -> String {
    std::path::absolute(path).unwrap_or_else(|_| path.to_path_buf()).display().to_string()
}

/// A quoted string, in TOML's and NATS's common subset.
pub(crate) fn toml_string(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        model: ModelOptions,
    }

    fn line(words: &[&str]) -> Result<ModelOptions, clap::Error> {
        Ok(Line::try_parse_from(std::iter::once(&"up").chain(words))?.model)
    }

    fn section(words: &[&str], role: Role) -> String {
        line(words).unwrap().section(role, Duration::from_secs(60)).unwrap()
    }

    #[test]
    fn a_servers_names_are_the_base_or_the_adapters() {
        let base = ["--backend", "http://gpu:8000/v1", "--base", "Qwen"];
        assert!(section(&base, Role::Plan).contains("backend.model = \"Qwen\""));
        let some: Vec<&str> = base.into_iter().chain(["--adapters", "plan=p1, reflect=r1"]).collect();
        for (role, name) in [(Role::Plan, "p1"), (Role::Tool, "Qwen"), (Role::Reflect, "r1")] {
            let section = section(&some, role);
            assert!(section.contains(&format!("backend.model = \"{name}\"")) && section.contains("adapter = \"\""), "{section}");
        }
        // the names that the adapters have without a word
        assert!(section(&base[..2], Role::Tool).contains("backend.model = \"tool\""));
        let lacking = line(&["--backend", "http://gpu:8000/v1", "--adapters", "plan=p"]).unwrap();
        assert!(lacking.section(Role::Tool, Duration::ZERO).unwrap_err().to_string().contains("nobody speaks for `tool`"));
    }

    #[test]
    fn what_does_not_go_together_is_refused() {
        for words in [
            &["--base", "Qwen"][..],
            &["--backend", "http://x/v1", "--model", "m"],
            &["--adapters", "plan=a,plan=b"],
            &["--adapters", "walk=a"],
            &["--adapters", "plan="],
        ] {
            assert!(line(words).is_err(), "{words:?}");
        }
        let dir = line(&["--backend", "http://x/v1", "--base", "b", "--adapters", "models/stem/adapters"]).unwrap();
        assert!(dir.check().unwrap_err().to_string().contains("plan=NAME"));
        assert!(line(&["--adapters", "plan=a"]).unwrap().check().unwrap_err().to_string().contains("--backend"));
        assert!(line(&["--model", "no/such"]).unwrap().check().is_err());
    }

    #[test]
    fn a_model_brings_its_adapters_or_speaks_alone() {
        let dir = tempfile::tempdir().unwrap();
        let model = dir.path().display().to_string();
        let alone = line(&["--model", &model]).unwrap();
        assert!(alone.adapters_dir() == Path::new(NONE) && alone.check().is_ok());
        assert!(alone.said().unwrap().contains("no adapters"));
        assert!(alone.section(Role::Plan, Duration::ZERO).unwrap().contains("adapter = \"\""));
        std::fs::create_dir_all(dir.path().join("adapters/plan")).unwrap();
        let lacking = line(&["--model", &model]).unwrap();
        assert!(lacking.check().unwrap_err().to_string().contains("adapters/tool"));
        assert_eq!(line(&["--model", &model, "--adapters", "none"]).unwrap().said(), None);
    }
}

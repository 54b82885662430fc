//! Merges the layers into one checked configuration.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::Serialize;
use serde::de::DeserializeOwned;
use toml::Table;

use crate::error::{ConfigErrors, Mistake, Source};
use crate::setting::{Given, Setting, Target};
use crate::variables::Named;
use crate::{CONFIG_VARIABLE, Common, file, variables};

/// The standard variables of OpenTelemetry that name where traces go; the later one wins.
const OTLP_VARIABLES: [&str; 2] = ["OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"];

/// A service's own settings. Derive serde with `#[serde(default, deny_unknown_fields)]`, so that
/// every field has a default.
pub trait Section: Serialize + DeserializeOwned + Default {
    /// The section's name in a file, which is the service's name: `plan-agent`.
    const NAME: &'static str;

    /// The service's defaults of the shared settings: its ports.
    fn common() -> Common;

    /// Says what is wrong beyond types: ranges, things that exclude each other.
    fn validate(&self, common: &Common, check: &mut Check<'_>) {
        let _ = (common, check);
    }
}

/// Where [`Section::validate`] puts what it finds.
pub struct Check<'a> {
    sources: &'a BTreeMap<String, Source>,
    mistakes: &'a mut Vec<Mistake>,
}

impl Check<'_> {
    /// Whether somebody gave a value for `key`, so that it is not just the default.
    pub fn given(&self, key: &str) -> bool {
        self.sources.contains_key(key)
    }

    /// Adds a mistake unless `holds`:
    /// `check.require(self.queue > 0, "queue", "at least 1", self.queue)`.
    pub fn require(&mut self, holds: bool, key: &str, expected: &str, found: impl std::fmt::Display) {
        if holds {
            return;
        }
        let source_of = source_of(self.sources, key).unwrap_or(Source::Default);
        self.mistakes.push(Mistake { source_of, message: format!("`{key}` must be {expected}, found `{found}`") });
    }
}

/// The source of the longest known prefix of `key`.
pub(crate) fn source_of(sources: &BTreeMap<String, Source>, key: &str) -> Option<Source> {
    let mut key = key;
    loop {
        if let Some(source) = sources.get(key) {
            return Some(source.clone());
        }
        key = key.rsplit_once('.')?.0;
    }
}

/// The source of a key, or of the first key within it that somebody gave a value for.
fn first_within(sources: &BTreeMap<String, Source>, key: &str) -> Option<Source> {
    let within = |given: &str| given.strip_prefix(key).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'));
    sources.iter().find(|(given, _)| within(given)).map(|(_, source)| source.clone())
}

/// The layers above the defaults.
#[derive(Debug, Clone, Default)]
pub struct Sources {
    /// `--config`; without it, `AUTOACT_CONFIG` of `env`, if any.
    pub file: Option<PathBuf>,
    /// The environment; variables without our prefix are ignored.
    pub env: BTreeMap<String, String>,
    /// (flag name without dashes, dotted key, value), in the order given.
    pub flags: Vec<(String, String, String)>,
}

/// A checked configuration and where its values come from.
#[derive(Debug, Clone)]
pub struct Loaded<S> {
    /// What every service has.
    pub common: Common,
    /// The service's own.
    pub service: S,
    pub(crate) sources: BTreeMap<String, Source>,
}

impl<S: Section> Loaded<S> {
    /// A configuration made in code: for tests, and for programs that hold a service in themselves.
    pub fn new(common: Common, service: S) -> Loaded<S> {
        Loaded { common, service, sources: BTreeMap::new() }
    }

    /// An error about the value of a dotted key that was found after loading.
    pub fn mistake(&self, key: &str, message: impl Into<String>) -> ConfigErrors {
        ConfigErrors { mistakes: vec![Mistake { source_of: self.source(key), message: message.into() }] }
    }

    /// Where the value of a dotted key comes from.
    pub fn source(&self, key: &str) -> Source {
        source_of(&self.sources, key).unwrap_or(Source::Default)
    }
}

/// Merges defaults, file, environment and flags; all mistakes come back together.
pub fn load<S: Section>(sources: &Sources) -> Result<Loaded<S>, ConfigErrors> {
    let mut mistakes = Vec::new();
    let defaults = S::common();
    let table = Table::try_from(&defaults).unwrap_or_default();
    let mut common = Target::new(table, defaults);
    let mut service = Target::new(Table::new(), S::default());

    for setting in settings::<S>(sources, &mut mistakes) {
        let shared = setting.path.first().is_some_and(|first| Common::KEYS.contains(&first.as_str()));
        let outcome = if shared { common.apply(&setting) } else { service.apply(&setting) };
        if let Err(mut mistake) = outcome {
            if is_for_others(&setting, &mistake) {
                continue;
            }
            if !shared && mistake.message.starts_with("unknown field") && setting.path.len() == 1 {
                mistake.message = format!("{}, or of what all services share: `{}`", mistake.message, Common::KEYS.join("`, `"));
            }
            mistakes.push(mistake);
        }
    }

    let mut all = common.sources;
    all.extend(service.sources);
    if let Err(message) = common.value.tls.door(common.value.listen) {
        let source_of = ["tls", "listen"].iter().find_map(|key| first_within(&all, key)).unwrap_or(Source::Default);
        mistakes.push(Mistake { source_of, message });
    }
    for checked in [common.value.nats.login().map(drop), common.value.nats.tls().map(drop)] {
        if let Err(message) = checked {
            let source_of = first_within(&all, "nats").unwrap_or(Source::Default);
            mistakes.push(Mistake { source_of, message });
        }
    }
    if let Some(key) = common.value.door.shut() {
        let source_of = source_of(&all, key).unwrap_or(Source::Default);
        mistakes.push(Mistake { source_of, message: format!("`{key}` must be above 0: it would let nobody in") });
    }
    service.value.validate(&common.value, &mut Check { sources: &all, mistakes: &mut mistakes });
    if mistakes.is_empty() {
        Ok(Loaded { common: common.value, service: service.value, sources: all })
    } else {
        Err(ConfigErrors { mistakes })
    }
}

/// A variable that names no service, for a setting that this service does not have and another
/// does.
fn is_for_others(setting: &Setting, mistake: &Mistake) -> bool {
    let Some(first) = setting.path.first().filter(|_| setting.for_all) else { return false };
    mistake.message.starts_with(&format!("unknown field `{first}`")) && variables::some_service_has(first)
}

fn settings<S: Section>(sources: &Sources, mistakes: &mut Vec<Mistake>) -> Vec<Setting> {
    let named = sources.env.get(CONFIG_VARIABLE).filter(|name| !name.is_empty()).map(PathBuf::from);
    let mut settings: Vec<Setting> = OTLP_VARIABLES.iter().filter_map(|name| otlp_endpoint(name, sources)).collect();
    settings.extend(match sources.file.clone().or(named) {
        Some(path) => file::read(&path, S::NAME, mistakes),
        None => Vec::new(),
    });
    for (name, value) in &sources.env {
        if let Some(Named { path, for_all }) = variables::named(name, value, S::NAME) {
            settings.push(Setting { path, value: Given::Text(value.clone()), source: Source::Variable(name.clone()), for_all });
        }
    }
    for (flag, key, value) in &sources.flags {
        let path = key.split('.').map(str::to_owned).collect();
        settings.push(Setting { path, value: Given::Text(value.clone()), source: Source::Flag(flag.clone()), for_all: false });
    }
    settings
}

/// The standard variables count as defaults: whoever sets them for every process of a machine does
/// not mean to overrule our own.
fn otlp_endpoint(name: &str, sources: &Sources) -> Option<Setting> {
    let value = sources.env.get(name).filter(|value| !value.is_empty())?;
    let path = vec!["telemetry".to_owned(), "otlp_endpoint".to_owned()];
    Some(Setting { path, value: Given::Text(value.clone()), source: Source::Variable(name.to_owned()), for_all: false })
}

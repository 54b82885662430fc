//! What the entry of a kind need not say.

use std::time::Duration;

use autoact_trajectory::Effect;

/// A kind whose entries need a name and their `run` alone: the rest stands here. An entry may say
/// otherwise in all but the schema, which its tool relies on.
#[derive(Debug, Clone, Copy)]
pub struct Preset {
    /// What `kind` of its entries is.
    pub kind: &'static str,
    /// What its tool is called where nobody names it.
    pub name: &'static str,
    /// What it does, one sentence for the model.
    pub definition: &'static str,
    /// The JSON schema of its arguments; `None`: it takes one line.
    pub schema: Option<&'static str>,
    /// How it is called; only for one that takes a line, as `Name[what]` with [`name`](Self::name).
    pub usage: Option<&'static str>,
    /// Inputs as a model writes them.
    pub examples: &'static [&'static str],
    /// What it does to the world.
    pub effect: Effect,
    /// How long a call may take.
    pub timeout: Duration,
    /// Longer observations are cut.
    pub max_observation_bytes: u16,
    /// Whether its observations keep their line breaks.
    pub multiline: bool,
    /// The keys of its `run` beside `kind`.
    pub keys: &'static [Key],
    /// Those of its keys that name files, or directories of tables, whose content is read with the
    /// library: when it changes, the library is read again.
    pub data: &'static [&'static str],
}

/// A key of an entry's `run`.
#[derive(Debug, Clone, Copy)]
pub struct Key {
    /// The key.
    pub name: &'static str,
    /// What it says, for people.
    pub meaning: &'static str,
    /// Whether every entry has to have it.
    pub required: bool,
}

impl Preset {
    /// The usage for an entry of another name.
    pub(crate) fn usage_as(&self, name: &str) -> Option<String> {
        self.usage.map(|usage| match usage.strip_prefix(self.name) {
            Some(rest) => format!("{name}{rest}"),
            None => usage.to_owned(),
        })
    }

    /// The mistakes in the keys of a `run`: one that is unknown, one that is missing.
    pub(crate) fn check(&self, run: &toml::Table) -> Vec<String> {
        let known = |key: &String| self.keys.iter().any(|known| known.name == key);
        let unknown = run.keys().filter(|key| !known(key));
        let unknown = unknown.map(|key| format!("the key `{}` is unknown for the kind `{}`", crate::text::quoted(key), self.kind));
        let missing = self.keys.iter().filter(|key| key.required && !run.contains_key(key.name));
        unknown.chain(missing.map(|key| format!("the key `{}` is missing: {}", key.name, key.meaning))).collect()
    }
}

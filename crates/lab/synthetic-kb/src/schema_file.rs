//! Reading schemas from files: parsing, defaults and checks.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;

use serde::Deserialize;

use crate::schema::{EntityType, Generic, Schema, SchemaError, TypeId, Wordings};
use crate::schema_check;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawSchema {
    #[serde(default)]
    generic: Generic,
    types: Vec<EntityType>,
}

/// The file beside a schema with the wordings of its relations, by type and relation.
const WORDINGS: &str = "wordings.toml";

type AllWordings = BTreeMap<String, BTreeMap<String, Wordings>>;

impl Schema {
    /// Reads and checks a schema file, and `wordings.toml` beside it if it is there.
    pub fn load(path: &Path) -> Result<Schema, SchemaError> {
        let beside = path.with_file_name(WORDINGS);
        let wordings = match beside.exists() {
            true => toml::from_str(&read(&beside)?).map_err(invalid(&beside.display().to_string()))?,
            false => AllWordings::new(),
        };
        Schema::build(&read(path)?, wordings, &path.display().to_string())
    }

    /// Parses and checks a schema without further wordings; `path` is used in error messages only.
    pub fn parse(text: &str, path: &str) -> Result<Schema, SchemaError> {
        Schema::build(text, AllWordings::new(), path)
    }

    fn build(text: &str, mut wordings: AllWordings, path: &str) -> Result<Schema, SchemaError> {
        let raw: RawSchema = toml::from_str(text).map_err(invalid(path))?;
        let mut types = raw.types;
        let names: HashMap<String, TypeId> = types.iter().enumerate().map(|(id, kind)| (kind.name.clone(), id)).collect();
        for kind in &mut types {
            default_to(&mut kind.noun, &kind.name);
            if kind.plural.is_empty() {
                kind.plural = format!("{}s", kind.noun);
            }
            if kind.spelling.is_empty() {
                kind.spelling.push(kind.name.clone());
            }
            for relation in &mut kind.relations {
                default_to(&mut relation.noun, &relation.name);
                relation.target = names.get(&relation.range).copied();
                relation.asked = wordings.get_mut(&kind.name).and_then(|own| own.remove(&relation.name)).unwrap_or_default();
                if let Some(compare) = &mut relation.compare {
                    compare.also = std::mem::take(&mut relation.asked.also);
                }
            }
        }
        let mut problems = schema_check::problems(&raw.generic, &types, names.len());
        let strangers = wordings.into_iter().flat_map(|(kind, own)| own.into_keys().map(move |relation| format!("{kind}.{relation}")));
        problems.extend(strangers.map(|place| format!("{WORDINGS}: `{place}` is no relation of the schema")));
        if !problems.is_empty() {
            return Err(SchemaError::Invalid { path: path.to_owned(), problems });
        }
        Ok(Schema::new(raw.generic, types))
    }
}

fn read(path: &Path) -> Result<String, SchemaError> {
    std::fs::read_to_string(path).map_err(|source| SchemaError::Read { path: path.display().to_string(), source })
}

fn invalid(path: &str) -> impl FnOnce(toml::de::Error) -> SchemaError + '_ {
    move |source| SchemaError::Parse { path: path.to_owned(), source: Box::new(source) }
}

fn default_to(noun: &mut String, name: &str) {
    if noun.is_empty() {
        *noun = name.replace('_', " ");
    }
}

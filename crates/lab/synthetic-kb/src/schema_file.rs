//! Reading schemas from files: parsing, defaults and checks.

use std::collections::HashMap;
use std::path::Path;

use serde::Deserialize;

use crate::schema::{EntityType, Generic, Schema, SchemaError, TypeId};
use crate::schema_check;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawSchema {
    #[serde(default)]
    generic: Generic,
    types: Vec<EntityType>,
}

impl Schema {
    /// Reads and checks a schema file.
    pub fn load(path: &Path) -> Result<Schema, SchemaError> {
        let name = path.display().to_string();
        let text = std::fs::read_to_string(path).map_err(|source| SchemaError::Read { path: name.clone(), source })?;
        Schema::parse(&text, &name)
    }

    /// Parses and checks a schema; `path` is used in error messages only.
    pub fn parse(text: &str, path: &str) -> Result<Schema, SchemaError> {
        let raw: RawSchema =
            toml::from_str(text).map_err(|source| SchemaError::Parse { path: path.to_owned(), source: Box::new(source) })?;
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
            }
        }
        let problems = schema_check::problems(&raw.generic, &types, names.len());
        if !problems.is_empty() {
            return Err(SchemaError::Invalid { path: path.to_owned(), problems });
        }
        Ok(Schema::new(raw.generic, types))
    }
}

fn default_to(noun: &mut String, name: &str) {
    if noun.is_empty() {
        *noun = name.replace('_', " ");
    }
}

//! Whether a schema compiles in the validator that the tool library uses, and whether a value
//! satisfies it.

use autoact_base::lines::one_line;
use autoact_trajectory::cut;
use boon::{Compiler, SchemaIndex, Schemas, UrlLoader};
use regex::RegexBuilder;
use serde_json::{Value, json};

const SCHEMA: &str = "autoact:parameters";
/// The memory of a compiled pattern. The bound of the validator is 10 MiB; beyond it, builds with
/// debug assertions panic.
const PATTERN_BYTES: usize = 8 << 20;

/// A compiled schema.
pub(crate) struct Compiled {
    schemas: Schemas,
    root: SchemaIndex,
}

struct Nowhere;

impl UrlLoader for Nowhere {
    fn load(&self, _: &str) -> Result<Value, Box<dyn std::error::Error>> {
        Err("a schema refers to itself alone".into())
    }
}

impl Compiled {
    /// Compiles it with the options of the tool library.
    pub(crate) fn new(schema: &Value) -> Result<Compiled, String> {
        let told = |error: boon::CompileError| cut(one_line(&format!("{error:#}")), 300).0;
        let mut schemas = Schemas::new();
        let mut compiler = Compiler::new();
        compiler.use_loader(Box::new(Nowhere));
        compiler.enable_format_assertions();
        compiler.add_resource(SCHEMA, schema.clone()).map_err(told)?;
        let root = compiler.compile(SCHEMA, &mut schemas).map_err(told)?;
        Ok(Compiled { schemas, root })
    }

    pub(crate) fn takes(&self, value: &Value) -> bool {
        self.schemas.validate(value, self.root).is_ok()
    }
}

/// Whether the validator and the grammar know all that a pattern says. Looking around is nothing
/// for either; the grammar knows no edges of words.
pub(crate) fn pattern_compiles(pattern: &str) -> bool {
    let looks_around = ["(?=", "(?!", "(?<", "(?P", "\\b", "\\B", "\\A", "\\Z", "\\z", "\\k", "\\p", "\\P", "\\G"];
    let small = || RegexBuilder::new(pattern).size_limit(PATTERN_BYTES).build().is_ok();
    !looks_around.iter().any(|part| pattern.contains(part)) && small() && Compiled::new(&json!({ "pattern": pattern })).is_ok()
}

//! Reading schemas from files: parsing, defaults and checks.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;

use serde::Deserialize;

use crate::schema::{AgeAt, EntityType, Generic, RelationRef, Schema, SchemaError, Together, TypeId, Wordings};
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

/// The file beside it with more of them, which only training uses: the question sets stay as they
/// are.
const TRAINING_WORDINGS: &str = "training-wordings.toml";

/// The file: wordings by type and relation, and those of several relations.
#[derive(Debug, Default, Deserialize)]
struct AllWordings {
    #[serde(default)]
    together: Vec<RawTogether>,
    #[serde(default)]
    age_at: Vec<RawAgeAt>,
    #[serde(flatten)]
    relations: BTreeMap<String, BTreeMap<String, Wordings>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawTogether {
    chain: [String; 2],
    questions: Vec<String>,
    #[serde(default)]
    phrases: Vec<String>,
    #[serde(default)]
    checks: Vec<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawAgeAt {
    year: String,
    who: String,
    born: String,
    questions: Vec<String>,
    #[serde(default)]
    unnamed: Vec<String>,
}

impl AllWordings {
    /// Those of the file `name` beside the schema; none if it is not there.
    fn beside(schema: &Path, name: &str) -> Result<AllWordings, SchemaError> {
        let path = schema.with_file_name(name);
        match path.exists() {
            true => toml::from_str(&read(&path)?).map_err(invalid(&path.display().to_string())),
            false => Ok(AllWordings::default()),
        }
    }

    fn add(&mut self, more: AllWordings) {
        for raw in more.together {
            match self.together.iter_mut().find(|known| known.chain == raw.chain) {
                Some(known) => {
                    known.questions.extend(raw.questions);
                    known.phrases.extend(raw.phrases);
                    known.checks.extend(raw.checks);
                }
                None => self.together.push(raw),
            }
        }
        self.age_at.extend(more.age_at);
        for (kind, relations) in more.relations {
            let known = self.relations.entry(kind).or_default();
            for (relation, wordings) in relations {
                known.entry(relation).or_default().add(wordings);
            }
        }
    }
}

impl Schema {
    /// Reads and checks a schema file, and `wordings.toml` beside it if it is there.
    pub fn load(path: &Path) -> Result<Schema, SchemaError> {
        Schema::build(&read(path)?, AllWordings::beside(path, WORDINGS)?, &path.display().to_string())
    }

    /// The same with the wordings of `training-wordings.toml` too.
    pub fn load_for_training(path: &Path) -> Result<Schema, SchemaError> {
        let mut wordings = AllWordings::beside(path, WORDINGS)?;
        wordings.add(AllWordings::beside(path, TRAINING_WORDINGS)?);
        Schema::build(&read(path)?, wordings, &path.display().to_string())
    }

    /// Parses and checks a schema without further wordings; `path` is used in error messages only.
    pub fn parse(text: &str, path: &str) -> Result<Schema, SchemaError> {
        Schema::build(text, AllWordings::default(), path)
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
                relation.asked = wordings.relations.get_mut(&kind.name).and_then(|own| own.remove(&relation.name)).unwrap_or_default();
                if let Some(compare) = &mut relation.compare {
                    compare.also = std::mem::take(&mut relation.asked.also);
                }
            }
        }
        let mut problems = schema_check::problems(&raw.generic, &types, names.len());
        let strangers =
            wordings.relations.into_iter().flat_map(|(kind, own)| own.into_keys().map(move |relation| format!("{kind}.{relation}")));
        problems.extend(strangers.map(|place| format!("{WORDINGS}: `{place}` is no relation of the schema")));
        let mut schema = Schema::new(raw.generic, types);
        problems.extend(schema.add_joint(wordings.together, wordings.age_at));
        if !problems.is_empty() {
            return Err(SchemaError::Invalid { path: path.to_owned(), problems });
        }
        Ok(schema)
    }

    /// Adds the wordings of several relations, and returns what is wrong with them.
    fn add_joint(&mut self, together: Vec<RawTogether>, ages: Vec<RawAgeAt>) -> Vec<String> {
        let mut problems = Vec::new();
        for raw in together {
            let place = format!("{WORDINGS}: together {}", raw.chain.join(" > "));
            let chain = raw.chain.each_ref().map(|path| self.relation_at(path));
            let [Some(first), Some(second)] = chain else {
                problems.push(format!("{place}: no relations of the schema"));
                continue;
            };
            if self.relation(first).target != Some(second.kind) {
                problems.push(format!("{place}: the first does not lead to the second"));
            }
            problems.extend(schema_check::joint(&place, &raw.questions, &["x"]));
            problems.extend(schema_check::joint(&place, &raw.phrases, &["x"]));
            problems.extend(schema_check::joint(&place, &raw.checks, &["v", "x"]));
            let RawTogether { questions, phrases, checks, .. } = raw;
            self.together.push(Together { chain: [first, second], questions, phrases, checks });
        }
        for raw in ages {
            let place = format!("{WORDINGS}: age_at {}", raw.year);
            let relations: [Option<RelationRef>; 3] = [&raw.year, &raw.who, &raw.born].map(|path| self.relation_at(path));
            let [Some(year), Some(who), Some(born)] = relations else {
                problems.push(format!("{place}: no relations of the schema"));
                continue;
            };
            let years = [year, born].into_iter().all(|at| self.relation(at).range == "year");
            if who.kind != year.kind || self.relation(who).target != Some(born.kind) || !years {
                problems.push(format!("{place}: `who` does not lead from the thing of `year` to the person of `born`"));
            }
            problems.extend(schema_check::joint(&place, &raw.questions, &["x", "y"]));
            problems.extend(schema_check::joint(&place, &raw.unnamed, &["x"]));
            let RawAgeAt { questions, unnamed, .. } = raw;
            self.ages_at.push(AgeAt { year, who, born, questions, unnamed });
        }
        problems
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

#[cfg(test)]
mod tests {
    use super::*;

    const SCHEMA: &str = r#"
        types = [
            { name = "city", leads = ["{e} is a city."], relations = [{ name = "river", range = "word", generic = true }] },
            { name = "person", leads = ["{e} is a person."], relations = [
                { name = "home", range = "city" }, { name = "born", range = "year" }, { name = "trade", range = "word" },
            ] },
            { name = "book", leads = ["{e} is a book."], relations = [{ name = "author", range = "person" }, { name = "year", range = "year" }] },
        ]
        [generic]
        sentences = ["The {r} of {e} is {v}."]
        phrases = ["the {r} of {x}"]
        questions = ["What is the {r} of {x}?"]
    "#;

    fn load(wordings: &str) -> Result<Schema, SchemaError> {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("schema.toml"), SCHEMA).unwrap();
        std::fs::write(dir.path().join(WORDINGS), wordings).unwrap();
        Schema::load(&dir.path().join("schema.toml"))
    }

    #[test]
    fn wordings_of_several_relations_are_read() {
        let schema = load(
            "[[together]]\nchain = [\"person.home\", \"city.river\"]\nquestions = [\"Near which river does {x} live?\"]\n\
             [[age_at]]\nyear = \"book.year\"\nwho = \"book.author\"\nborn = \"person.born\"\nquestions = [\"How old was {y} at {x}?\"]\n",
        )
        .unwrap();
        let chain = ["person.home", "city.river"].map(|path| schema.relation_at(path).unwrap());
        assert_eq!(schema.together(&chain).unwrap().questions, ["Near which river does {x} live?"]);
        assert_eq!(schema.ages_at.len(), 1);
    }

    #[test]
    fn training_has_more_wordings() {
        let dir = tempfile::tempdir().unwrap();
        let schema = dir.path().join("schema.toml");
        std::fs::write(&schema, SCHEMA).unwrap();
        let joint = |text: &str| format!("[[together]]\nchain = [\"person.home\", \"city.river\"]\nquestions = [\"{text}\"]\n");
        std::fs::write(dir.path().join(WORDINGS), joint("Near what does {x} live?") + "[city.river]\nquestions = [\"{x}?\"]\n").unwrap();
        let more = joint("Where does {x} fish?") + "[city.river]\nquestions = [\"Which water in {x}?\"]\n";
        std::fs::write(dir.path().join(TRAINING_WORDINGS), more).unwrap();
        let asked = |schema: &Schema| {
            let chain = ["person.home", "city.river"].map(|path| schema.relation_at(path).unwrap());
            (schema.relation(chain[1]).asked.questions.len(), schema.together(&chain).unwrap().questions.len())
        };
        assert_eq!(asked(&Schema::load(&schema).unwrap()), (1, 1));
        assert_eq!(asked(&Schema::load_for_training(&schema).unwrap()), (2, 2));
    }

    #[test]
    fn mistakes_in_them_are_told() {
        for (wordings, expected) in [
            ("[[together]]\nchain = [\"person.home\", \"city.lake\"]\nquestions = []", "no relations of the schema"),
            ("[[together]]\nchain = [\"person.trade\", \"city.river\"]\nquestions = []", "does not lead to the second"),
            ("[[together]]\nchain = [\"person.home\", \"city.river\"]\nquestions = [\"Where?\"]", "lacks the slot `{x}`"),
            ("[[together]]\nchain = [\"person.home\", \"city.river\"]\nquestions = [\"{x} {z}?\"]", "unknown slot `{z}`"),
            ("[[age_at]]\nyear = \"book.year\"\nwho = \"book.author\"\nborn = \"person.trade\"\nquestions = []", "does not lead"),
            ("[person.trade]\ngaps = [\"{a} {b}?\"]", "needs a `number` or a `year`"),
            ("[person.size]\nquestions = [\"{x}?\"]", "is no relation"),
        ] {
            let Err(SchemaError::Invalid { problems, .. }) = load(wordings) else { panic!("{wordings}") };
            assert!(problems.iter().any(|problem| problem.contains(expected)), "{problems:?}");
        }
    }
}

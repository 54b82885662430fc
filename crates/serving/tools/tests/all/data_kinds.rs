//! Kinds over tables, through a library as a user writes it.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use autoact_tools::{Corpus, LibraryError, Observation, Page, ToolLibrary};
use autoact_trajectory::{Action, Effect, Trajectory, check_artifacts};
use proptest::prelude::*;
use serde_json::json;

const ATLAS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../corpora/atlas/data");

fn read(run: &str, base: Option<&Path>) -> Result<ToolLibrary, LibraryError> {
    let text = format!(
        "[[tool]]\nname = \"Tool\"\nrun = {run}\n\n[[tool]]\nname = \"Finish\"\ndefinition = \"Ends.\"\nusage = \"Finish[answer]\"\n\
         run = {{ kind = \"finish\" }}\n"
    );
    let corpus = Arc::new(Corpus::from_pages(vec![Page { title: "A".into(), text: "A.".into() }]).unwrap());
    match base {
        None => ToolLibrary::parse(&text, "test", corpus),
        Some(base) => {
            std::fs::write(base.join("tools.toml"), text).unwrap();
            ToolLibrary::load(base.join("tools.toml"), corpus)
        }
    }
}

fn atlas(kind: &str) -> ToolLibrary {
    read(&format!("{{ kind = \"{kind}\", tables = {ATLAS:?} }}"), None).unwrap()
}

fn ask(library: &ToolLibrary, params: &str) -> Observation {
    let found = library.execute(&Action { tool: "Tool".into(), params: params.into() }, &Trajectory::default());
    check_artifacts(&found.artifacts).unwrap();
    found
}

fn right(library: &ToolLibrary, params: &str) -> String {
    let found = ask(library, params);
    assert!(!found.is_error, "{params}: {found:?}");
    found.text
}

fn wrong(library: &ToolLibrary, params: &str) -> String {
    let found = ask(library, params);
    assert!(found.is_error, "{params}: {found:?}");
    found.text
}

/// A directory with a table of rivers.
fn rivers() -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("river.csv"), "name,length,mouth\nLoire,1006,Atlantic Ocean\nNile,6650,\n").unwrap();
    directory
}

#[test]
fn sql_over_the_atlas() {
    let library = atlas("database");
    let spec = library.spec("Tool").unwrap();
    assert_eq!((spec.effect, spec.usage.as_str(), spec.multiline), (Effect::ReadOnly, "Tool[query]", true));
    assert!(spec.definition.len() <= 500 && spec.definition.contains("book(name, author, year, language, genre)"), "{}", spec.definition);
    assert!(spec.definition.ends_with("river, university."), "{}", spec.definition);
    assert_eq!(right(&library, "SELECT capital FROM country WHERE name = 'France'"), "capital\nParis");
    assert_eq!(
        right(&library, "SELECT name, length FROM river ORDER BY length DESC LIMIT 2"),
        "name | length\nNile | 6650\nAmazon River | 6400"
    );
    assert_eq!(right(&library, "SELECT name FROM river WHERE name = 'Styx'"), "no rows");
    assert_eq!(right(&library, "SELECT river FROM city WHERE name = 'Tirana'"), "river\nNULL");
    let all = ask(&library, "SELECT * FROM person");
    assert!(all.text.contains("rows; use WHERE, LIMIT or an aggregate)") && !all.truncated, "{}", all.text);
    let csv = String::from_utf8(all.artifacts[0].data.clone()).unwrap();
    assert_eq!((all.artifacts[0].name.as_str(), all.artifacts[0].kind.as_str()), ("result.csv", "table"));
    assert!(
        csv.starts_with("name,birthplace,birth_year,death_year,country,field,aliases\r\nA. A. Milne,London,1882,1956,"),
        "{}",
        &csv[..200]
    );
}

#[test]
fn a_wrong_query_is_told_what_was_meant() {
    let library = atlas("database");
    for (query, expected) in [
        ("SELECT * FROM citys", "there is no table `citys`; did you mean city(name, country, river, landmark, aliases)?"),
        ("SELECT capitl FROM country", "there is no column `capitl` here; did you mean `capital` of `country`?"),
        ("SELECT c.capital FROM city c", "there is no column `c.capital` here; it is in `country`"),
        ("SELECT name FROM city WHERE", "incomplete input; expected one SELECT statement over city(name"),
        ("What is the capital of France?", "syntax error; expected one SELECT statement of SQLite"),
        ("SELECT name FROM city WHERE name = \"Paris\"", "should this be a string literal in single-quotes?"),
        ("DELETE FROM city", "`DELETE` is not allowed: the database is read-only; expected one SELECT statement"),
    ] {
        let found = wrong(&library, query);
        assert!(found.contains(expected), "{query}: {found}");
    }
}

#[test]
fn a_query_that_does_not_end_is_a_timeout() {
    let library = read(&format!("{{ kind = \"database\", tables = {ATLAS:?} }}\ntimeout = \"200ms\""), None).unwrap();
    let endless = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT count(*) FROM n";
    assert_eq!(wrong(&library, endless), "Tool failed: no answer within 200ms");
}

#[test]
fn entries_that_cannot_work_are_mistakes() {
    let directory = rivers();
    let base = directory.path();
    std::fs::write(base.join("broken.csv"), "name,km\nLoire\n\"Nile,1\n").unwrap();
    std::fs::write(base.join("latin.csv"), b"name\nRh\xf4ne\n").unwrap();
    std::fs::write(base.join("titles.csv"), "title\nx\n").unwrap();
    std::fs::write(base.join("facts.tsv"), "Loire\tmouth\n").unwrap();
    for (run, expected) in [
        ("{ kind = \"database\" }", "expected one of `file`"),
        ("{ kind = \"database\", file = \"river.csv\" }", "cannot be read as an SQLite database"),
        ("{ kind = \"database\", tables = \"absent.csv\" }", "cannot read"),
        ("{ kind = \"database\", tables = \"tools.toml\" }", "ends in `.csv` or `.tsv`"),
        ("{ kind = \"database\", tables = \"broken.csv\" }", "broken.csv`, line 3: a quoted cell is not closed"),
        ("{ kind = \"database\", tables = \"latin.csv\" }", "latin.csv`, line 2: it is not UTF-8"),
        ("{ kind = \"database\", tables = [\"river.csv\", \"river.csv\"] }", "another table `river`"),
        ("{ kind = \"database\", tables = \"river.csv\", max_rows = 0 }", "expected 1 to"),
        ("{ kind = \"database\", tables = 3 }", "data did not match"),
        ("{ kind = \"knowledge_graph\" }", "expected `tables`"),
        ("{ kind = \"knowledge_graph\", tables = \"titles.csv\" }", "has no column `name`"),
        ("{ kind = \"knowledge_graph\", triples = \"facts.tsv\" }", "facts.tsv`, line 1: expected three cells"),
        ("{ kind = \"knowledge_graph\", tables = \"river.csv\", several = [\"km\"] }", "`several` names `km`"),
        ("{ kind = \"table_verbalizer\", template = \"{name\" }", "is not closed"),
    ] {
        let found = read(run, Some(base)).unwrap_err();
        assert!(found.mistakes().join("\n").contains(expected), "{run}: {found}");
    }
}

/// The rows of a table of the atlas, read here in the simplest way.
fn table(path: &Path) -> (Vec<String>, Vec<Vec<String>>) {
    let text = std::fs::read_to_string(path).unwrap();
    let mut lines = text.lines().map(|line| line.split('\t').map(str::to_owned).collect::<Vec<_>>());
    let header = lines.next().unwrap();
    let rows = lines.map(|mut row| {
        row.resize(header.len(), String::new());
        row
    });
    (header.clone(), rows.collect())
}

fn atlas_tables() -> Vec<PathBuf> {
    let mut all: Vec<PathBuf> = Path::new(ATLAS).read_dir().unwrap().map(|entry| entry.unwrap().path()).collect();
    all.sort();
    all
}

#[test]
fn every_cell_of_the_atlas_is_what_the_graph_says() {
    let library = atlas("knowledge_graph");
    let mut checked = 0;
    for path in atlas_tables() {
        let kind = path.file_stem().unwrap().to_str().unwrap();
        let (header, rows) = table(&path);
        for row in rows {
            for (column, cell) in header.iter().zip(&row).skip(1) {
                let entity = format!("{} ({kind})", row[0]);
                let found = right(&library, &json!({"entity": entity, "relation": column}).to_string());
                let expected = match (cell.is_empty(), column == "aliases") {
                    (true, _) => format!("the {column} of {entity} is not known here"),
                    (false, true) => cell.split(';').map(str::trim).collect::<Vec<_>>().join("; "),
                    (false, false) => cell.clone(),
                };
                assert_eq!(found, expected, "{entity}, {column}");
                checked += 1;
            }
        }
    }
    assert!(checked > 15_000, "{checked}");
}

#[test]
fn every_value_of_the_atlas_leads_back() {
    let library = atlas("knowledge_graph");
    for path in atlas_tables() {
        let (header, rows) = table(&path);
        for row in rows.iter().step_by(7) {
            for (column, cell) in header.iter().zip(row).skip(1).filter(|(column, cell)| !cell.is_empty() && *column != "aliases") {
                let found = ask(&library, &json!({"relation": column, "object": cell}).to_string());
                // a long list is cut for the model, and whole for people
                let all = found.artifacts.first().map_or(found.text.clone(), |all| String::from_utf8(all.data.clone()).unwrap());
                assert!(!found.is_error && all.contains(&*row[0]), "{}, {column} {cell}: {all}", row[0]);
            }
        }
    }
}

#[test]
fn the_graph_is_asked_in_five_ways() {
    let library = atlas("knowledge_graph");
    assert_eq!(right(&library, r#"{"entity":"France","relation":"capital"}"#), "Paris");
    assert_eq!(right(&library, r#"{"relation":"capital","object":"Paris"}"#), "France");
    let all = right(&library, r#"{"entity":"Loire"}"#);
    assert!(all.starts_with("Loire (river)\ncontinent: Europe\ncountry: France\nlength: 1006\n"), "{all}");
    assert_eq!(
        right(&library, r#"{"entity":"France","relation":"capital","object":"Lyon"}"#),
        "no: the capital of France (country) is Paris"
    );
    assert_eq!(right(&library, r#"{"entity":"France","object":"Paris"}"#), "yes: the capital of France (country) is Paris");
    assert!(right(&library, r#"{"object":"Loire"}"#).contains("is the longest_river of: France"));
}

#[test]
fn names_are_found_as_people_write_them() {
    let library = atlas("knowledge_graph");
    assert_eq!(right(&library, r#"{"entity":"frnace","relation":"Capitall"}"#), "`frnace` was read as France\nParis");
    assert!(
        wrong(&library, r#"{"entity":"France","relation":"motto"}"#)
            .starts_with("France (country) has no relation `motto`; its relations are capital, ")
    );
    assert!(wrong(&library, r#"{"entity":"Qwertyuiop"}"#).starts_with("there is no entity `Qwertyuiop`"));
    assert!(wrong(&library, r#"{"relation":"capital","object":"Qwertyuiop"}"#).starts_with("no entity here has the value `Qwertyuiop`"));
    assert!(wrong(&library, r#"{"relation":"capital"}"#).starts_with("expected an `entity`"));
    assert!(wrong(&library, "{}").contains("was not run"));
    // the country is called Georgia and so is a film of no atlas: two tables of one name
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("country.csv"), "name,capital,year\nGeorgia,Tbilisi,1991\nPeru,Lima,\n").unwrap();
    std::fs::write(directory.path().join("film.csv"), "name,director,year\nGeorgia,Ulu Grosbard,1995\n").unwrap();
    std::fs::write(directory.path().join("facts.tsv"), "Peru\tmotto\tFirme\nPeru\tmotto\tFeliz\n").unwrap();
    let run = "{ kind = \"knowledge_graph\", tables = [\"country.csv\", \"film.csv\"], triples = \"facts.tsv\" }";
    let library = read(run, Some(directory.path())).unwrap();
    assert_eq!(right(&library, r#"{"entity":"Georgia","relation":"capital"}"#), "Tbilisi");
    assert_eq!(right(&library, r#"{"entity":"Georgia","relation":"year"}"#), "Georgia (country): 1991\nGeorgia (film): 1995");
    assert_eq!(right(&library, r#"{"entity":"georgia (FILM)","relation":"year"}"#), "1995");
    assert_eq!(right(&library, r#"{"relation":"year","object":"1995"}"#), "Georgia (film)");
    assert_eq!(right(&library, r#"{"entity":"Peru","relation":"motto"}"#), "Firme; Feliz");
}

#[test]
fn tables_become_sentences() {
    let directory = rivers();
    let library = read("{ kind = \"table_verbalizer\", tables = \"river.csv\" }", Some(directory.path())).unwrap();
    assert_eq!(right(&library, r#"{"table":"River"}"#), "Loire: length is 1006, mouth is Atlantic Ocean.\nNile: length is 6650.");
    assert_eq!(
        right(&library, r#"{"table":"river","row":"nile","template":"The {name} is {length} km long[ and ends in the {mouth}]."}"#),
        "The Nile is 6650 km long."
    );
    assert_eq!(
        right(&library, r#"{"table":"day | low\nMonday | 3\nTuesday | 5","template":"On {day} it was {low} degrees."}"#),
        "On Monday it was 3 degrees.\nOn Tuesday it was 5 degrees."
    );
    for (params, expected) in [
        (r#"{"table":"rivr"}"#, "did you mean `river`?"),
        (r#"{"table":"a,b\n1"}"#, "line 2: it has 1 cells; expected 2"),
        (r#"{"table":"a,b"}"#, "no rows"),
        (r#"{"table":"river","template":"{nam}"}"#, "its columns are `name`, `length`, `mouth`"),
        (r#"{"table":"river","template":"x {"}"#, "is not closed"),
        (r#"{"table":"river","row":"Loir"}"#, "did you mean `Loire`?"),
    ] {
        let found = wrong(&library, params);
        assert!(found.contains(expected), "{params}: {found}");
    }
    let long: String = (0..3000).map(|number| format!("Row number {number},{number}\n")).collect();
    std::fs::write(directory.path().join("river.csv"), format!("name,n\n{long}")).unwrap();
    let library = read("{ kind = \"table_verbalizer\", tables = \"river.csv\" }", Some(directory.path())).unwrap();
    let found = ask(&library, r#"{"table":"river"}"#);
    assert!(found.text.ends_with(" of 3000 rows)") && !found.truncated, "{}", found.text);
    assert_eq!(String::from_utf8(found.artifacts[0].data.clone()).unwrap().lines().count(), 1000);
}

#[test]
fn captions_are_found_by_name_and_by_contents() {
    let directory = tempfile::tempdir().unwrap();
    let base = directory.path();
    std::fs::create_dir(base.join("pictures")).unwrap();
    let gif = b"GIF89a\x0a\0\x14\0";
    std::fs::write(base.join("pictures/a.gif"), gif).unwrap();
    std::fs::write(base.join("pictures/b.gif"), gif).unwrap();
    std::fs::write(base.join("pictures/huge.gif"), b"GIF89a\xff\xff\xff\xff").unwrap();
    std::fs::write(base.join("pictures/note.gif"), b"no picture").unwrap();
    std::fs::write(base.join("secret.gif"), gif).unwrap();
    // sha256sum of the two pictures
    let sha = "c92aa2f5af1a5a26fdfbd3e25fdb8719102f35855481dd542aeceb31cacf0c6f";
    std::fs::write(
        base.join("captions.jsonl"),
        format!("{{\"picture\":\"a\",\"caption\":\"A map.\"}}\n{{\"picture\":\"{sha}\",\"caption\":\"Twin.\"}}\n"),
    )
    .unwrap();
    let run = "{ kind = \"image_to_text\", captions = \"captions.jsonl\", pictures = \"pictures\", max_pixels = 1000000 }";
    let library = read(run, Some(base)).unwrap();
    assert_eq!(right(&library, "a.gif"), "caption (recorded): A map.");
    assert_eq!(right(&library, "b.gif"), "caption (recorded): Twin.");
    for (picture, expected) in [
        ("../secret.gif", "is no picture's name"),
        ("/etc/passwd", "is no picture's name"),
        ("c.gif", "there is no picture `c.gif`; did you mean `a.gif`"),
        ("huge.gif", "65535 × 65535 pixels"),
        ("note.gif", "is no picture that is known"),
    ] {
        let found = wrong(&library, picture);
        assert!(found.contains(expected), "{picture}: {found}");
    }
    std::fs::write(base.join("captions.tsv"), "312\tA bar chart.\n").unwrap();
    let library = read("{ kind = \"image_to_text\", captions = \"captions.tsv\" }", Some(base)).unwrap();
    assert_eq!(right(&library, "312"), "caption (recorded): A bar chart.");
    assert!(wrong(&library, "313").starts_with("there is no caption of `313`"));
    std::fs::write(base.join("captions.tsv"), "312\tA.\n312\tB.\nx\n").unwrap();
    let found = read("{ kind = \"image_to_text\", captions = \"captions.tsv\" }", Some(base)).unwrap_err();
    assert_eq!(found.mistakes().len(), 2, "{found}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]

    #[test]
    fn no_input_panics(text in ".{0,80}", entity in ".{0,20}", relation in "[a-z ]{0,8}", object in ".{0,8}") {
        thread_local!(static TOOLS: Vec<ToolLibrary> = ["database", "knowledge_graph", "table_verbalizer"].map(atlas).into());
        let calls = [
            text.clone(),
            json!({"table": text, "template": entity}).to_string(),
            json!({"table": "city", "template": entity, "row": object}).to_string(),
            json!({"entity": entity, "relation": relation}).to_string(),
            json!({"entity": entity, "object": object}).to_string(),
            json!({"relation": relation, "object": object}).to_string(),
            json!({"entity": entity}).to_string(),
        ];
        TOOLS.with(|tools| {
            for (tool, call) in tools.iter().flat_map(|tool| calls.iter().map(move |call| (tool, call))) {
                let found = ask(tool, call);
                assert!(found.text.len() <= tool.spec("Tool").unwrap().max_observation_bytes);
            }
        });
    }
}

//! The tools file: what it may say, and what happens when it says something else.

use std::sync::Arc;
use std::time::Duration;

use autoact_tools::{AddToolError, BUNDLED_TOOLS, Calculate, Corpus, Page, ToolLibrary};
use autoact_trajectory::{Action, Effect, Terminal, ToolSpec, Trajectory};

fn corpus() -> Arc<Corpus> {
    Arc::new(Corpus::from_pages(vec![Page { title: "A".into(), text: "A.".into() }]).unwrap())
}

fn mistakes(text: &str) -> Vec<String> {
    ToolLibrary::parse(text, "tools.toml", corpus()).unwrap_err().mistakes().to_vec()
}

const FINISH: &str = r#"
[[tool]]
name = "Finish"
definition = "Ends."
usage = "Finish[answer]"
run = { kind = "finish" }
"#;

#[test]
fn the_bundled_library_is_valid() {
    let library = ToolLibrary::bundled(corpus()).unwrap();
    assert_eq!(library.names(), ["Search", "Retrieve", "Lookup", "Calculate", "Finish", "NotFound"]);
    let search = library.spec("Search").unwrap();
    assert_eq!((search.usage.as_str(), search.effect, search.timeout), ("Search[query]", Effect::ReadOnly, Duration::from_secs(2)));
    let terminal: Vec<&str> = library.specs().iter().filter(|spec| spec.is_terminal()).map(|spec| spec.name.as_str()).collect();
    assert_eq!(terminal, ["Finish", "NotFound"]);
}

#[test]
fn retrieve_may_say_how_many_sentences_it_shows() {
    let entry = |sentences: &str| {
        format!(
            "{FINISH}[[tool]]\nname = \"Retrieve\"\ndefinition = \"d\"\nusage = \"Retrieve[title]\"\n\
             run = {{ kind = \"retrieve\", sentences = {sentences} }}\n"
        )
    };
    assert!(ToolLibrary::parse(&entry("20"), "tools.toml", corpus()).is_ok());
    for wrong in ["0", "21", "-1", "\"one\"", "1.5"] {
        let told = mistakes(&entry(wrong));
        assert!(matches!(told.as_slice(), [only] if only.contains("`sentences` of `run`") && only.contains("1 to 20")), "{told:?}");
    }
}

#[test]
fn tools_are_selected_in_the_order_of_the_file() {
    let library = ToolLibrary::bundled(corpus()).unwrap();
    let names = |specs: Vec<ToolSpec>| specs.into_iter().map(|spec| spec.name).collect::<Vec<_>>();
    assert_eq!(names(library.select(&["Retrieve", "Search", "Retrieve"]).unwrap()), ["Search", "Retrieve", "Finish", "NotFound"]);
    assert_eq!(names(library.select::<&str>(&[]).unwrap()).len(), 6);
    let error = library.select(&["Search", "serch"]).unwrap_err();
    assert_eq!((error.name.as_str(), error.similar.as_slice()), ("serch", &["Search".to_owned()][..]));
    assert!(error.to_string().contains("did you mean `Search`; the library has `Search`, `Retrieve`"), "{error}");
}

#[test]
fn all_mistakes_are_reported_together() {
    let text = r#"
version = 1

[[tool]]
name = "2nd"
usage = "Second[x]"
timeout = "soon"
effect = "harmless"
max_observation_bytes = 3
run = { kind = "telepathy" }

[[tool]]
name = "Copy"
definition = "Copies."
usage = "Copy[x]"
run = { kind = "command", sandbox = false, program = "./missing", argv = [] }

[[tool]]
name = "Copy"
definition = "Two\nlines."
usage = "Copy[x]"
run = { kind = "search", program = "cat" }

[[tool]]
name = 3
"#;
    let found = mistakes(text);
    for expected in [
        "unknown key `version`",
        "tool 1 (`2nd`): the name `2nd` is not a name",
        "tool 1 (`2nd`): `definition` is missing",
        "tool 1 (`2nd`): the usage `Second[x]` does not show a call",
        "tool 1 (`2nd`): timeout: `soon` is not a duration",
        "tool 1 (`2nd`): max_observation_bytes is 3",
        "tool 1 (`2nd`): the kind `telepathy` is unknown",
        "tool 1 (`2nd`): the effect `harmless` is unknown",
        "tool 2 (`Copy`): run: unknown field `argv`",
        "tool 3 (`Copy`): its name is already that of tool 2",
        "tool 3 (`Copy`): `definition` must be one line",
        "tool 3 (`Copy`): `run` has the unknown key `program`",
        "tool 4: invalid type: integer `3`",
        "there is no tool `Finish`",
    ] {
        assert!(found.iter().any(|mistake| mistake.starts_with(expected)), "{expected} is not in {found:#?}");
    }
    let error = ToolLibrary::parse(text, "my/tools.toml", corpus()).unwrap_err();
    assert!(error.to_string().starts_with("the tool library `my/tools.toml` has 14 mistake(s):\n  unknown key"), "{error}");
}

#[test]
fn a_program_must_exist_and_say_what_it_does() {
    let tool = r#"
[[tool]]
name = "Units"
definition = "Converts."
usage = "Units[from to]"
run = { kind = "command", sandbox = false, program = "./units.sh" }
"#;
    let found = mistakes(&format!("{tool}{FINISH}"));
    assert!(found.iter().any(|mistake| mistake.contains("`effect` is missing")), "{found:?}");
    assert!(found.iter().any(|mistake| mistake.contains("units.sh` is not a file")), "{found:?}");

    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("units.sh"), "").unwrap();
    let path = directory.path().join("tools.toml");
    std::fs::write(&path, format!("{tool}effect = \"idempotent\"\n{FINISH}")).unwrap();
    let library = ToolLibrary::load(&path, corpus()).unwrap();
    assert_eq!(library.spec("Units").unwrap().effect, Effect::Idempotent);
}

#[test]
fn broken_files_are_one_mistake() {
    assert!(mistakes("[[tool")[0].starts_with("not TOML"));
    assert!(mistakes("tool = 3")[0].contains("not a list"));
    assert_eq!(mistakes("").len(), 1);
    assert!(ToolLibrary::load("/does/not/exist.toml", corpus()).unwrap_err().to_string().contains("cannot read it"));
    // the name and the kind go together
    assert_eq!(mistakes(&FINISH.replace("\"finish\"", "\"search\"")).len(), 1);
    assert_eq!(mistakes(&format!("{FINISH}{}", FINISH.replace("Finish", "End"))).len(), 1);
}

#[test]
fn a_library_may_say_that_there_is_no_answer() {
    let not_found = FINISH.replace("Finish", "NotFound").replace("finish", "not_found");
    let library = ToolLibrary::parse(&format!("{FINISH}{not_found}"), "tools.toml", corpus()).unwrap();
    let terminal: Vec<_> = library.specs().iter().map(|spec| (spec.name.as_str(), spec.terminal)).collect();
    assert_eq!(terminal, [("Finish", Some(Terminal::Answer)), ("NotFound", Some(Terminal::NoAnswer))]);
    // it ends tasks, so every selection has it, and it is never run
    assert_eq!(library.select(&["Finish"]).unwrap().len(), 2);
    let action = Action { tool: "NotFound".into(), params: "it".into() };
    assert!(library.execute(&action, &Trajectory::default()).is_error);
    // it does not stand for the answer
    assert_eq!(mistakes(&not_found).len(), 1);
    assert_eq!(mistakes(&format!("{FINISH}{}", not_found.replace("NotFound", "Missing"))).len(), 1);
}

#[test]
fn tools_can_be_added_from_code() {
    let spec = ToolSpec {
        definition: "Adds.".into(),
        usage: "Sum[a + b]".into(),
        timeout: Duration::from_secs(1),
        max_observation_bytes: 100,
        ..ToolSpec::new("Sum")
    };
    let library = ToolLibrary::parse(BUNDLED_TOOLS, "bundled", corpus()).unwrap();
    let library = library.with_tool(Arc::new(Calculate::new(spec.clone()))).unwrap().with_corpus(&corpus());
    assert_eq!(library.names().last(), Some(&"Sum"));
    assert_eq!(library.with_tool(Arc::new(Calculate::new(spec))).unwrap_err(), AddToolError::Duplicate { name: "Sum".into() });
}

#[test]
fn tasks_can_do_without_tools_that_are_not_built_in() {
    let entry = |name: &str, rest: &str| format!("[[tool]]\nname = \"{name}\"\ndefinition = \"Does.\"\nusage = \"{name}[x]\"\n{rest}\n");
    let command = r#"effect = "read_only"
run = { kind = "command", sandbox = false, program = "true" }"#;
    let text = [
        entry("Own", command),
        entry("Needed", &format!("always = true\n{command}")),
        entry("Sum", r#"run = { kind = "calculate" }"#),
        entry("Rarely", "always = false\nrun = { kind = \"calculate\" }"),
        entry("Finish", "always = false\nrun = { kind = \"finish\" }"),
    ];
    let library = ToolLibrary::parse(&text.concat(), "test", corpus()).unwrap();
    assert_eq!(library.optional().map(|(name, _)| name).collect::<Vec<_>>(), ["Own", "Rarely"]);
}

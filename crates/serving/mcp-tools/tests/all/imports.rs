//! Lists of tools as specs.

use std::collections::BTreeMap;
use std::sync::Arc;

use autoact_mcp_tools::{McpFailure, McpOptionsError, McpServer, McpSkip};
use autoact_tools::{Corpus, Page, ToolLibrary};
use autoact_trajectory::{Action, Effect, Trajectory};

use crate::world::World;

#[test]
fn a_list_becomes_specs() {
    let world = World::new();
    let mut options = world.options("all");
    options.prefix = "test_".to_owned();
    let import = world.import(&world.server(options)).unwrap();
    assert_eq!((import.server.as_str(), import.protocol.as_str()), ("test server 1", "2025-11-25"));
    assert!(import.skipped.is_empty(), "{:?}", import.skipped);
    let add = import.tools.iter().find(|tool| tool.remote == "add").unwrap();
    assert_eq!(add.spec.name, "test_add");
    assert_eq!(add.spec.definition, "The tool add.");
    assert_eq!(add.spec.usage, "test_add{\"b\": integer, \"a\"?: integer}");
    assert_eq!(add.spec.examples, ["{\"b\":1}"]);
    assert_eq!((add.digest.len(), import.digest.len()), (64, 64));
    let order: Vec<&str> = import.tools.iter().map(|tool| tool.remote.as_str()).collect();
    assert!(order.is_sorted(), "{order:?}");
}

#[test]
fn hints_count_only_where_the_entry_trusts_them() {
    let world = World::new();
    for (trusted, echo, numbers) in [(false, Effect::SideEffect, Effect::SideEffect), (true, Effect::ReadOnly, Effect::Idempotent)] {
        let mut options = world.options("all");
        options.trusted = trusted;
        let import = world.import(&world.server(options)).unwrap();
        let effect = |name: &str| import.tools.iter().find(|tool| tool.remote == name).unwrap().spec.effect;
        assert_eq!((effect("echo"), effect("numbers"), effect("die")), (echo, numbers, Effect::SideEffect));
    }
}

#[test]
fn tools_that_cannot_be_imported_are_named() {
    let world = World::new();
    let import = world.import(&world.server(world.options("broken"))).unwrap();
    let names: Vec<&str> = import.tools.iter().map(|tool| tool.remote.as_str()).collect();
    assert_eq!(names, ["echo"]);
    let skipped: BTreeMap<&str, &McpSkip> = import.skipped.iter().map(|one| (one.name.as_str(), &one.reason)).collect();
    assert!(matches!(skipped["away"], McpSkip::Schema(_)) && matches!(skipped["text"], McpSkip::Schema(_)), "{skipped:?}");
    assert_eq!((skipped["twice"], skipped["no schema"], skipped[""]), (&McpSkip::Again, &McpSkip::Malformed, &McpSkip::Malformed));
}

#[test]
fn only_the_wanted_tools_are_imported() {
    let world = World::new();
    let mut options = world.options("paged");
    options.only = vec!["add".to_owned(), "gone".to_owned()];
    let import = world.import(&world.server(options)).unwrap();
    assert_eq!(import.tools.len(), 1);
    assert_eq!((import.skipped.len(), &import.skipped[0].reason), (1, &McpSkip::Missing));
    let all = world.import(&world.server(world.options("paged"))).unwrap();
    assert_eq!(all.tools.len(), 4);
    assert_ne!(all.digest, import.digest);
}

#[test]
fn lists_are_bounded() {
    let world = World::new();
    let failure = |list: &str| world.import(&world.server(world.options(list))).unwrap_err();
    assert_eq!(failure("many"), McpFailure::TooMany { limit: 1000, what: "tools" });
    assert_eq!(failure("pages"), McpFailure::TooMany { limit: 100, what: "pages of tools" });
    for list in ["loop", "nothing"] {
        assert!(matches!(failure(list), McpFailure::Protocol { .. }), "{list}");
    }
}

#[test]
fn tools_run_in_a_library() {
    let world = World::new();
    let (_server, tools) = world.tools(world.options("all"));
    let page = Page { title: "Loire".to_owned(), text: "A river.".to_owned() };
    let corpus = Arc::new(Corpus::from_pages(vec![page]).unwrap());
    let library = ToolLibrary::bundled(corpus).unwrap().with_tool(Arc::new(tools["add"].clone())).unwrap();
    let run = |params: &str| {
        let action = Action { tool: "add".to_owned(), params: params.to_owned() };
        library.execute(&action, &Trajectory::default())
    };
    assert_eq!(run("{\"b\": 41}").text, "42");
    let refused = run("{\"b\": \"x\"}");
    assert!(refused.is_error && refused.text.contains("add was not run"), "{}", refused.text);
}

#[test]
fn options_that_make_no_sense_are_refused() {
    let world = World::new();
    let refused = |change: &dyn Fn(&mut autoact_mcp_tools::McpServerOptions)| {
        let mut options = world.options("all");
        change(&mut options);
        McpServer::new(options, &world.client).unwrap_err()
    };
    assert!(matches!(refused(&|options| options.name = "a b".to_owned()), McpOptionsError::Name(_)));
    assert!(matches!(refused(&|options| options.prefix = "1_".to_owned()), McpOptionsError::Prefix(_)));
    assert_eq!(refused(&|options| options.limits.concurrency = 0), McpOptionsError::Limit("concurrency"));
}

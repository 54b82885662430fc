//! Hostile programs: each is run in every tier that is available, and must change nothing outside
//! its working directory, reach nothing, learn nothing, and leave nothing alive.

// helpers of tests are tests as well
#![allow(clippy::unwrap_used)]

mod cases;
mod runs;
mod world;

use autoact_sandbox::{Tier, Tiers};
use cases::{Case, Lesser};
use world::World;

/// Runs all cases of a group; every failure is told, not only the first.
fn all(tier: Tier, cases: &[Case]) {
    let tiers = Tiers::of(&world::launcher());
    let available = match tier {
        Tier::Namespaces => tiers.namespaces,
        Tier::Landlock => tiers.landlock,
    };
    if let Err(reason) = available {
        println!("skipped: {reason}");
        return;
    }
    let mut world = World::new();
    let mut failures = Vec::new();
    for case in cases {
        if tier == Tier::Landlock && case.lesser != Lesser::Contains {
            println!("skipped: {}: `{tier}` does not contain it", case.name);
            continue;
        }
        match world.survives(tier, case) {
            Ok(()) => println!("contained: {}", case.name),
            Err(error) => failures.push(format!("{}: {error}", case.name)),
        }
    }
    assert!(failures.is_empty(), "in `{tier}`:\n{}", failures.join("\n"));
}

macro_rules! groups {
    ($($group:ident),*) => {
        mod namespaces { $( #[test] fn $group() { super::all(super::Tier::Namespaces, &super::cases::$group()) } )* }
        mod landlock { $( #[test] fn $group() { super::all(super::Tier::Landlock, &super::cases::$group()) } )* }
    };
}

groups!(processes, memory, disk, files, devices, secrets, network, calls, streams);

#[test]
fn there_are_at_least_sixty_and_the_documentation_names_those_that_landlock_does_not_contain() {
    let groups = [cases::processes(), cases::memory(), cases::disk(), cases::files(), cases::devices(), cases::secrets()];
    let cases: Vec<Case> = groups.into_iter().chain([cases::network(), cases::calls(), cases::streams()]).flatten().collect();
    assert!(cases.len() >= 60, "{}", cases.len());
    let docs = include_str!("../../../../../docs/sandbox.md");
    let missing = |case: &&Case| case.lesser != Lesser::Contains && !docs.contains(&format!("`{}`", case.name));
    assert_eq!(cases.iter().filter(missing).map(|case| case.name.as_str()).collect::<Vec<_>>(), [""; 0]);
}

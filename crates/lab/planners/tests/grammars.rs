//! Every planner with the real engine and random weights. Only the grammars give the replies their
//! format, and that must be sufficient.
#![allow(clippy::unwrap_used)]

mod support;

use std::sync::Arc;

use autoact_model::{Backend, Engine, EngineOptions, ModelDir};
use autoact_planners::{Cast, Ended, Kind, PlannerOptions, build};
use autoact_speaker::testing::tiny_model;
use autoact_trajectory::{Limits, Sampling};

#[test]
fn random_weights_keep_the_forms() {
    let dir = tiny_model("llama3").unwrap();
    let engine = Engine::start(&ModelDir::open(dir.path()).unwrap(), EngineOptions::default()).unwrap();
    let backend: Arc<dyn Backend> = Arc::new(engine);
    let options = PlannerOptions {
        limits: Limits { max_steps: 3, ..Limits::default() },
        sampling: Sampling { temperature: 1.0, ..Sampling::default() },
        next_attempt: None,
        judgements: None,
        shots: 0,
        instructions: false,
    };
    let mut whole = 0;
    for kind in Kind::ALL {
        let Ok(planner) = build(kind, &backend, &Cast::default(), &options) else { continue };
        for seed in 0..2 {
            let outcome = planner.solve(support::QUESTION, &support::tools(), seed);
            let again = planner.solve(support::QUESTION, &support::tools(), seed);
            assert_eq!((&outcome.answer, &outcome.transcript), (&again.answer, &again.transcript), "{kind}");
            // random replies are long: they may be cut or exceed the context, but never have
            // another format
            match &outcome.ended {
                Ended::Failed(why) => {
                    let cut = ["the reply ends before", "has no `", "chooses the tool", "tokens"];
                    assert!(cut.iter().any(|cut| why.contains(cut)), "{kind}: {why}");
                }
                _ => whole += 1,
            }
            assert!(outcome.steps <= options.limits.max_steps, "{kind}");
        }
    }
    assert!(whole > 0, "every reply was cut");
}

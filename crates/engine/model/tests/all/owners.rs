//! Fair queueing: an owner that takes all places of the batch and of the queue keeps nobody out.

use crate::common::engine_with;
use autoact_model::{Backend, EngineOptions, GenerateError, GenerateEvent, GenerateRequest, Grammar, Owner, Prompt};
use futures::FutureExt;

/// A request that takes as many tokens, whatever the model would say.
fn request(owner: &str, tokens: usize) -> GenerateRequest {
    GenerateRequest {
        owner: Some(Owner { name: owner.to_owned(), head: Prompt::default() }),
        grammar: Some(Grammar::Regex("[a-z ]{400}".to_owned())),
        max_tokens: tokens,
        ..GenerateRequest::new("Thought:")
    }
}

#[test]
fn a_second_owner_is_served_beside_a_flood() {
    let engine = engine_with("llama2", EngineOptions { batch: 4, queue: 12, draft: 0, ..EngineOptions::default() });
    let flood: Vec<_> = (0..16).map(|_| engine.generate(request("flood", 120)).unwrap()).collect();
    let refused = engine.generate(request("flood", 1)).unwrap_err();
    assert!(matches!(refused, GenerateError::Overloaded { .. }), "{refused}");

    let seldom = engine.generate(request("seldom", 20)).unwrap().blocking_finish().unwrap();
    assert_eq!(seldom.completion_tokens, 20);
    // All of them in turn would be done 600 passes before the second owner begins.
    let mut done = 0;
    for mut stream in flood {
        while let Some(Some(event)) = stream.next().now_or_never() {
            done += usize::from(matches!(event.unwrap(), GenerateEvent::Done(_)));
        }
    }
    assert!(done < 4, "{done} of the flood were done first");
}

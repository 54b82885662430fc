//! What is scored of a reply: by the engine, on a tiny random model.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::sync::Arc;

use autoact_model::{Backend, Engine, EngineOptions, FinishReason, GenerateRequest, Generated, ModelDir, Scored};
use autoact_speaker::testing::{tiny_model, tools};
use autoact_speaker::{SpeakRequest, Speaker, reflection, usage};
use autoact_trajectory::{Role, Step, Trajectory, Turn};
use futures::executor::block_on;

fn speaker() -> Speaker {
    let dir = tiny_model("llama3").unwrap();
    let engine = Engine::start(&ModelDir::open(dir.path()).unwrap(), EngineOptions::default()).unwrap();
    Speaker::new(Arc::new(engine) as Arc<dyn Backend>)
}

fn history(role: Role) -> Trajectory {
    let (tool, params) = if role == Role::Reflect { ("Finish", Some("x".to_owned())) } else { ("Retrieve", None) };
    let step = Step { thought: "So.".into(), tool: tool.into(), params, ..Step::default() };
    let turns = if role == Role::Plan { Vec::new() } else { vec![Turn::Step(step)] };
    Trajectory { question: "Where is it?".into(), tools: tools(), turns, ..Trajectory::default() }
}

fn reply(speaker: &Speaker, role: Role, change: impl FnOnce(&mut GenerateRequest)) -> Generated {
    let history = history(role);
    let mut request = speaker.compose(&SpeakRequest::new(role, &history)).unwrap();
    change(&mut request);
    block_on(speaker.begin(role, request).unwrap().finish()).unwrap()
}

fn scored(reply: &Generated) -> &Scored {
    reply.scores.as_deref().expect("scores")
}

#[test]
fn a_thought_an_input_and_a_verdict_are_scored() {
    let speaker = speaker();
    for (role, label) in [(Role::Plan, "\nAction:"), (Role::Tool, ""), (Role::Reflect, "\nVerdict:")] {
        let reply = reply(&speaker, role, |_| {});
        let scores = scored(&reply);
        let end = if label.is_empty() { reply.text.len() } else { reply.text.find(label).unwrap() };
        assert_eq!(scores.tokens.first().map(|token| token.at), Some(0), "{role:?}");
        assert!(scores.tokens.iter().all(|token| token.at < end) && scores.tokens.len() <= reply.completion_tokens, "{role:?}");
        assert_eq!(scores.log_odds.is_some(), role == Role::Reflect, "{role:?}");
        let usage = usage(&reply);
        assert_eq!((usage.log_prob, usage.scored_tokens as usize), (Some(scores.log_prob()), scores.tokens.len()));
        assert!(usage.mean_log_prob().unwrap() < 0.0);
        if role == Role::Reflect {
            assert_eq!(reflection(&reply).unwrap().log_odds, scores.log_odds);
        }
    }
}

#[test]
fn a_thought_that_was_cut_keeps_its_scores() {
    let speaker = speaker();
    for role in [Role::Plan, Role::Reflect] {
        let whole = reply(&speaker, role, |request| request.max_tokens = 40);
        for most in [3, 7, 20] {
            let cut = reply(&speaker, role, |request| request.max_tokens = most);
            let thought = cut.text.find('\n').unwrap();
            let scores = scored(&cut);
            // random weights repeat themselves
            assert!(matches!(cut.finish, FinishReason::Repetition | FinishReason::Grammar), "{:?}", cut.finish);
            assert!(scores.tokens.iter().all(|token| token.at < thought), "{:?}", cut.text);
            // the tokens that were written before the cut, and none of the closing
            assert_eq!(scores.tokens, scored(&whole).tokens[..scores.tokens.len()], "{:?}", cut.text);
            assert!(scores.tokens.len() <= most && scores.tokens.len() + 1 >= most.min(scored(&whole).tokens.len()), "{:?}", cut.text);
            assert_eq!(scores.log_odds.is_some(), role == Role::Reflect);
        }
    }
}

#[test]
fn what_is_unknown_of_a_part_is_unknown_of_the_whole() {
    let speaker = speaker();
    // asking for no scores stands in for a server that reports none
    let silent = reply(&speaker, Role::Reflect, |request| request.scores = None);
    assert_eq!((reflection(&silent).unwrap().log_odds, usage(&silent).log_prob, usage(&silent).scored_tokens), (None, None, 0));
    let cut = reply(&speaker, Role::Reflect, |request| (request.scores, request.max_tokens) = (None, 5));
    assert_eq!(cut.scores, None);
}

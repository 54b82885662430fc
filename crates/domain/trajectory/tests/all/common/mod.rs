//! Events for the tests of this crate.
#![allow(dead_code, unreachable_pub, clippy::unwrap_used)] // every test file uses its own part

use std::time::{Duration, SystemTime};

use autoact_trajectory::*;

pub fn at(seconds: u64) -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_secs(1_700_000_000 + seconds)
}

pub fn tool(name: &str, effect: Effect) -> ToolSpec {
    ToolSpec { definition: format!("{name} does something."), effect, max_observation_bytes: 2048, ..ToolSpec::new(name) }
}

pub fn submitted(limits: Limits) -> EventBody {
    EventBody::Submitted(Submitted {
        question: "What is the capital of the country where the Loire flows?".into(),
        tools: vec![tool("Retrieve", Effect::ReadOnly), tool("Send", Effect::SideEffect), tool(FINISH, Effect::ReadOnly)],
        limits,
        sampling: Sampling { temperature: 0.5, top_k: 40, top_p: 0.75, seed: 7 },
        labels: [("team".to_owned(), "atlas".to_owned())].into(),
        ..Submitted::default()
    })
}

/// The same with the tool that says that there is no answer.
pub fn submitted_with_not_found(limits: Limits) -> EventBody {
    let EventBody::Submitted(mut submitted) = submitted(limits) else { unreachable!() };
    submitted.tools.push(tool(NOT_FOUND, Effect::ReadOnly));
    EventBody::Submitted(submitted)
}

pub fn started(attempt: u32) -> EventBody {
    EventBody::Started(Started { gateway: "gateway-a".into(), attempt })
}

/// What was recalled of a conversation with these tasks.
pub fn recalled(tasks: &[&str]) -> EventBody {
    let item = |(place, id): (usize, &&str)| RecalledItem {
        kind: if place == 0 { RecalledKind::Turn } else { RecalledKind::Task },
        task_id: (*id).into(),
        question: "Which river flows through Nantes?".into(),
        answer: "the Loire".into(),
        approved: place == 0,
        finished_at: Some(at(place as u64)),
        score: 1.5,
    };
    EventBody::Recalled(Recalled { items: tasks.iter().enumerate().map(item).collect(), left_out: 2, failure: String::new() })
}

pub fn thought(tool: &str) -> EventBody {
    EventBody::Thought(Thought { thought: "I need the country of the Loire.".into(), tool: tool.into() })
}

pub fn action(tool: &str, params: &str) -> EventBody {
    EventBody::Action(Action { tool: tool.into(), params: params.into() })
}

pub fn observation(text: &str) -> EventBody {
    EventBody::Observation(Observation { text: text.into(), ..Observation::default() })
}

pub fn reflection(verdict: Verdict) -> EventBody {
    EventBody::Reflection(Reflection::new("The page says so.", verdict))
}

pub fn usage(completion_tokens: u32) -> Usage {
    Usage {
        queue: Duration::from_millis(1),
        prefill: Duration::from_millis(20),
        decode: Duration::from_millis(300),
        tool: Duration::ZERO,
        total: Duration::from_millis(322),
        prompt_tokens: 120,
        cached_prompt_tokens: 100,
        completion_tokens,
        model: "stem".into(),
        adapter: "plan".into(),
        adapter_digest: "00ff".into(),
        ..Usage::default()
    }
}

pub fn key() -> TaskKey {
    TaskKey::new(Tenant::default(), "task-1".parse().unwrap())
}

pub fn event(index: u64, body: EventBody) -> Event {
    Event { sequence: index * 10, ..Event::new(&key(), index, at(index), "gateway-a", body) }
}

/// The events of `bodies`, in order from index 1.
pub fn events(bodies: impl IntoIterator<Item = EventBody>) -> Vec<Event> {
    bodies.into_iter().zip(1..).map(|(body, index)| event(index, body)).collect()
}

//! The control flow of every planner, with a scripted model.
#![allow(clippy::unwrap_used)]

mod support;

use autoact_model::{Backend, GenerateError};
use autoact_planners::{Cast, Ended, Kind, PlannerOptions, Toolbox, build};
use autoact_speaker::testing::ScriptedBackend;
use autoact_trajectory::NextAttempt;
use std::sync::Arc;
use support::{QUESTION, bare, cast, input, last_line, runtime, seen, solve, step, tools, try_solve};

#[test]
fn react_goes_round_until_it_answers() {
    let (outcome, requests) = solve(Kind::React, &bare(), |prompt| step(prompt, "Paris"));
    assert_eq!((outcome.answer.as_str(), outcome.steps, outcome.approved), ("Paris", 3, None));
    assert_eq!((outcome.ended, outcome.cost.calls), (Ended::Answered, 3));
    assert!(outcome.transcript.contains("Observation: The Loire is a river in France."), "{}", outcome.transcript);
    assert!(requests.iter().all(|request| request.adapter.is_none() && last_line(&request.prompt) == "Thought:"));
    // each prompt is a prefix of the next one, and every call has its own seed
    assert!(requests.windows(2).all(|pair| pair[1].prompt.starts_with(pair[0].prompt.as_str())));
    assert!(requests.windows(2).all(|pair| pair[0].sampling.seed != pair[1].sampling.seed));
}

#[test]
fn fireact_is_react_by_a_trained_model_on_the_bare_transcript() {
    let options = PlannerOptions { shots: 2, instructions: true, ..bare() };
    let (outcome, requests) = solve(Kind::FireAct, &options, |prompt| step(prompt, "Paris"));
    assert_eq!((outcome.answer.as_str(), outcome.steps), ("Paris", 3));
    assert!(requests.iter().all(|request| request.adapter.as_deref() == Some("one") && request.prompt.starts_with("Tools: ")));
}

#[test]
fn cot_has_no_tools() {
    let (outcome, requests) =
        solve(Kind::Cot, &bare(), |_| " The Loire is in France, whose capital is Paris.\nAction: Finish\nInput: Paris\n".into());
    assert_eq!((outcome.answer.as_str(), outcome.steps, requests.len()), ("Paris", 1, 1));
    assert!(requests[0].prompt.starts_with("Tools: Finish[answer]\n"), "{}", requests[0].prompt);
    assert!(outcome.transcript.contains("whose capital is Paris"));
}

#[test]
fn chameleon_plans_before_it_acts() {
    let (outcome, requests) = solve(Kind::Chameleon, &bare(), |prompt| match last_line(prompt) {
        "Plan:" => " Retrieve, Retrieve, Finish\n".into(),
        _ => input(prompt),
    });
    assert_eq!((outcome.answer.as_str(), outcome.steps, outcome.cost.calls), ("Paris", 3, 4));
    let cues: Vec<&str> = requests.iter().map(|request| last_line(&request.prompt)).collect();
    assert_eq!(cues, ["Plan:", "Input:", "Input:", "Input:"]);
    assert!(outcome.transcript.starts_with("Plan: Retrieve, Retrieve, Finish\n"));
}

#[test]
fn rewoo_plans_without_observing_and_fills_in_what_refers_to_evidence() {
    let (outcome, requests) = solve(Kind::Rewoo, &bare(), |prompt| match last_line(prompt) {
        "Plan:" => " the country\n#E1 = Retrieve[Loire]\nPlan: the capital\n#E2 = Retrieve[country of #E1]\nSolve\n".into(),
        _ => input(prompt),
    });
    assert_eq!((outcome.answer.as_str(), outcome.steps), ("Paris", 3));
    // calls: the planner, the worker for the second step only, the solver
    assert_eq!(requests.iter().map(|request| seen(&request.prompt)).collect::<Vec<_>>(), [0, 1, 2]);
    assert!(requests[1].prompt.contains("#E2: the capital (country of #E1)\nAction: Retrieve\nInput:"), "{}", requests[1].prompt);
    assert!(requests[2].prompt.ends_with("Action: Finish\nInput:"));
}

#[test]
fn bolaas_labour_agents_know_one_tool_each() {
    let (outcome, requests) = solve(Kind::Bolaa, &bare(), |prompt| match (last_line(prompt), seen(prompt)) {
        ("Thought:", 2) => " Answer now.\nAction: Finish\n".into(),
        ("Thought:", _) => " Look it up.\nAction: Retrieve\n".into(),
        _ => input(prompt),
    });
    assert_eq!((outcome.answer.as_str(), outcome.steps, requests.len()), ("Paris", 3, 6));
    for (at, request) in requests.iter().enumerate() {
        let header = request.prompt.lines().next().unwrap();
        match at {
            0 | 2 | 4 => assert!(header.contains("Search[query]") && header.contains("Finish[answer]"), "{header}"),
            1 | 3 => assert_eq!(header, "Tools: Retrieve[title]"),
            _ => assert_eq!(header, "Tools: Finish[answer]"),
        }
    }
}

#[test]
fn reflexion_tries_again_with_what_it_learnt() {
    let (outcome, requests) = solve(Kind::Reflexion, &bare(), |prompt| match last_line(prompt) {
        "Reflection:" if prompt.contains("Input: Paris\n") => " So it is.\nVerdict: right\n".into(),
        "Reflection:" => " Lyon is not the capital.\nVerdict: wrong\n".into(),
        _ if prompt.contains("Lyon is not the capital.") => step(prompt, "Paris"),
        _ => step(prompt, "Lyon"),
    });
    assert_eq!((outcome.answer.as_str(), outcome.approved, outcome.ended), ("Paris", Some(true), Ended::Approved));
    // two attempts of three rounds, with one reflection each
    assert_eq!((outcome.steps, requests.len()), (6, 8));
    assert!(requests[4].prompt.ends_with("\nReflection: Lyon is not the capital.\nVerdict: wrong\nThought:"), "{}", requests[4].prompt);
    assert!(outcome.transcript.contains("Input: Lyon") && outcome.transcript.contains("Input: Paris"));
}

#[test]
fn reflexions_attempts_are_bounded() {
    let (outcome, requests) = solve(Kind::Reflexion, &bare(), |prompt| match last_line(prompt) {
        "Reflection:" => " No.\nVerdict: wrong\n".into(),
        _ => " I guess.\nAction: Finish\nInput: Lyon\n".into(),
    });
    assert_eq!((outcome.answer.as_str(), outcome.approved, outcome.ended), ("Lyon", Some(false), Ended::MaxReflections));
    assert_eq!(requests.len(), 2 * bare().limits.max_reflections as usize);
}

#[test]
fn reflexion_may_be_told_what_is_right() {
    let runtime = runtime();
    let _entered = runtime.enter();
    // it would approve its first answer, and reject its second one
    let scripted = Arc::new(ScriptedBackend::new(|request| {
        let prompt = &request.prompt;
        Ok(match last_line(prompt) {
            "Reflection:" if prompt.contains("Input: Paris\n") => " No.\nVerdict: wrong\n".into(),
            "Reflection:" => " So it is.\nVerdict: right\n".into(),
            _ if prompt.contains("Verdict: wrong") => step(prompt, "Paris"),
            _ => step(prompt, "Lyon"),
        })
    }));
    let backend: Arc<dyn Backend> = scripted.clone();
    let told = |kind, right: &'static str| {
        let before = scripted.requests().len();
        let planner = build(kind, &backend, &cast(), &bare()).unwrap();
        let outcome = planner.solve_told(QUESTION, &tools(), 7, &|answer| answer == right);
        (outcome.answer, outcome.approved, outcome.ended, scripted.requests().len() - before)
    };
    assert_eq!(told(Kind::Reflexion, "Lyon"), ("Lyon".into(), None, Ended::Answered, 3));
    assert_eq!(told(Kind::Reflexion, "Paris"), ("Paris".into(), None, Ended::Answered, 7));
    let attempts = bare().limits.max_reflections as usize;
    assert_eq!(told(Kind::Reflexion, "Nantes"), ("Paris".into(), None, Ended::Answered, 4 * attempts));
    // the others do not ask
    assert_eq!(told(Kind::React, "Nantes"), ("Lyon".into(), None, Ended::Answered, 3));
}

#[test]
fn the_papers_group_judges_one_answer_and_the_next_one_stands() {
    let (outcome, requests) = solve(Kind::AutoAct, &bare().paper(), |prompt| match last_line(prompt) {
        "Reflection:" => " No.\nVerdict: wrong\n".into(),
        "Input:" if prompt.contains("Verdict: wrong") => " Paris\n".into(),
        "Input:" => " Lyon\n".into(),
        _ => " I guess.\nAction: Finish\n".into(),
    });
    assert_eq!((outcome.answer.as_str(), outcome.approved, outcome.ended), ("Paris", Some(false), Ended::Answered));
    assert_eq!(requests.len(), 5);
    let judged: Vec<_> = outcome.judgements.iter().map(|one| (one.answer.as_deref(), one.approved)).collect();
    assert_eq!(judged, [(Some("Lyon"), false)]);
    // without a judge at all, the first one
    let (outcome, _) = solve(Kind::NoReflection, &bare().paper(), |prompt| match last_line(prompt) {
        "Input:" => " Lyon\n".into(),
        _ => " I guess.\nAction: Finish\n".into(),
    });
    assert_eq!((outcome.answer.as_str(), outcome.approved, outcome.judgements.as_slice()), ("Lyon", None, [].as_slice()));
    assert_eq!((bare().paper().limits.max_steps, bare().paper().limits.max_reflections), (10, 2));
}

#[test]
fn the_group_begins_anew_or_continues() {
    let attempts = |next_attempt| {
        let options = PlannerOptions { next_attempt: Some(next_attempt), ..bare() };
        solve(Kind::AutoAct, &options, |prompt| match last_line(prompt) {
            "Reflection:" => " No.\nVerdict: wrong\n".into(),
            "Input:" => " Lyon\n".into(),
            _ => " I guess.\nAction: Finish\n".into(),
        })
    };
    let (outcome, requests) = attempts(NextAttempt::Anew);
    assert_eq!((outcome.answer.as_str(), outcome.approved, outcome.ended), ("Lyon", Some(false), Ended::MaxReflections));
    assert_eq!(requests.len(), 3 * bare().limits.max_reflections as usize);
    assert_eq!(requests[3].prompt, requests[0].prompt);
    assert_eq!(requests.iter().map(|request| request.sampling.temperature).collect::<Vec<_>>()[..6], [0.0, 0.0, 0.0, 1.0, 1.0, 0.0]);
    let (_, requests) = attempts(NextAttempt::Continues);
    assert!(requests[3].prompt.ends_with("Verdict: wrong\nThought:"), "{}", requests[3].prompt);
}

/// The reply of a role of the group, by the cue at the end of the prompt.
fn spoken(prompt: &str) -> String {
    match (last_line(prompt), seen(prompt)) {
        ("Reflection:", _) => " So it is.\nVerdict: right\n".into(),
        ("Thought:", 2) => " It is there.\nAction: Finish\n".into(),
        ("Thought:", _) => " Look it up.\nAction: Retrieve\n".into(),
        _ => input(prompt),
    }
}

#[test]
fn the_groups_rows_differ_in_their_voices() {
    let voices = |kind| {
        let (outcome, requests) = solve(kind, &bare(), spoken);
        assert_eq!((outcome.answer.as_str(), outcome.steps), ("Paris", 3), "{kind}");
        assert_eq!(outcome.cost.calls as usize, requests.len(), "{kind}");
        let mut voices: Vec<String> = requests.iter().map(|request| request.adapter.clone().unwrap_or_default()).collect();
        voices.dedup();
        (voices.join(" "), outcome.approved, outcome.ended)
    };
    assert_eq!(voices(Kind::AutoAct), ("plan tool plan tool plan tool reflect".into(), Some(true), Ended::Approved));
    assert_eq!(voices(Kind::NoReflection), ("plan tool plan tool plan tool".into(), None, Ended::Answered));
    assert_eq!(voices(Kind::OneAgent), ("one".into(), Some(true), Ended::Approved));
    assert_eq!(voices(Kind::ZeroShot), (String::new(), Some(true), Ended::Approved));
    assert_eq!(voices(Kind::Unfiltered).0, "u-plan u-tool u-plan u-tool u-plan u-tool u-reflect");
}

#[test]
fn rounds_are_bounded_and_repetitions_are_told() {
    for kind in [Kind::React, Kind::Bolaa, Kind::Reflexion] {
        let (outcome, _) = solve(kind, &bare(), move |prompt| match last_line(prompt) {
            "Input:" => " Loire\n".into(),
            _ if prompt.contains("Tools: Search") && kind == Kind::Bolaa => " Again.\nAction: Retrieve\n".into(),
            _ => " Again.\nAction: Retrieve\nInput: Loire\n".into(),
        });
        assert_eq!((outcome.ended, outcome.answer.as_str()), (Ended::MaxSteps, ""), "{kind}");
        assert_eq!(outcome.steps, bare().limits.max_steps, "{kind}");
        assert_eq!(
            outcome.transcript.matches("(Same action as before; try another.)").count() as u32,
            bare().limits.max_steps - 1,
            "{kind}"
        );
    }
}

#[test]
fn tokens_and_time_are_bounded() {
    let mut options = bare();
    options.limits.max_tokens = 10;
    let (outcome, _) = solve(Kind::React, &options, |_| " Again and again.\nAction: Retrieve\nInput: Loire\n".into());
    assert_eq!(outcome.ended, Ended::MaxTokens);
    options.limits.max_time = std::time::Duration::ZERO;
    for kind in Kind::ALL {
        let (outcome, requests) = solve(kind, &options, |_| String::new());
        assert_eq!((outcome.ended, requests.len()), (Ended::MaxTime, 0), "{kind}");
    }
}

#[test]
fn a_model_that_cannot_speak_fails_the_question_and_says_why() {
    for kind in Kind::ALL {
        let (outcome, _) = try_solve(kind, &bare(), |_| Err(GenerateError::PromptTooLong { tokens: 9, limit: 5 }));
        let Ended::Failed(why) = &outcome.ended else { panic!("{kind}: {:?}", outcome.ended) };
        assert!(why.contains("`9` tokens"), "{kind}: {why}");
        assert_eq!(outcome.answer, "", "{kind}");
        let (outcome, _) = solve(kind, &bare(), |_| " cut sh".into());
        assert!(matches!(outcome.ended, Ended::Failed(_)), "{kind}: {:?}", outcome.ended);
    }
}

#[test]
fn a_full_model_is_asked_again() {
    let refused = std::sync::atomic::AtomicBool::new(false);
    let (outcome, requests) = try_solve(Kind::React, &bare(), move |prompt| {
        if refused.swap(true, std::sync::atomic::Ordering::SeqCst) {
            return Ok(step(prompt, "Paris"));
        }
        Err(GenerateError::Overloaded { retry_after: std::time::Duration::from_millis(1) })
    });
    assert_eq!((outcome.answer.as_str(), requests.len()), ("Paris", 4));
}

#[test]
fn instructions_and_examples_stand_before_the_transcript() {
    let options = PlannerOptions { shots: 2, instructions: true, ..bare() };
    let prompted = [Kind::Cot, Kind::React, Kind::Chameleon, Kind::Reflexion, Kind::Rewoo, Kind::Bolaa];
    for kind in prompted {
        let (_, requests) = try_solve(kind, &options, |_| Err(GenerateError::Cancelled));
        let prompt = &requests[0].prompt;
        assert!(prompt.contains("The tools are:\n- Search[query]: Finds the pages"), "{kind}: {prompt}");
        assert_eq!(prompt.matches("Question: ").count(), 3, "{kind}: {prompt}");
        assert!(prompt.contains("Aldra") && prompt.contains("Lake Brey"), "{kind}: {prompt}");
    }
    let (_, requests) = try_solve(Kind::Rewoo, &options, |_| Err(GenerateError::Cancelled));
    assert!(
        requests[0].prompt.contains("#E1 = Retrieve[Aldra]\n") && requests[0].prompt.contains("#E2 = Retrieve[#E1]\n"),
        "{}",
        requests[0].prompt
    );
    assert!(requests[0].prompt.contains("#E2 = Search[depth of Lake Brey]\nSolve\n"), "{}", requests[0].prompt);
}

#[test]
fn examples_need_their_tools() {
    let runtime = support::runtime();
    let _entered = runtime.enter();
    let few = Toolbox::select(tools().library().clone(), &["Search"]).unwrap();
    let scripted = Arc::new(ScriptedBackend::saying("x"));
    let backend: Arc<dyn Backend> = scripted.clone();
    let options = PlannerOptions { shots: 2, ..bare() };
    build(Kind::React, &backend, &Cast::default(), &options).unwrap().solve("Why?", &few, 0);
    let prompt = &scripted.requests()[0].prompt;
    assert!(!prompt.contains("Ostrel") && prompt.contains("Lake Brey"), "{prompt}");
}

#[test]
fn planners_have_names_and_need_their_adapters() {
    let backend: Arc<dyn Backend> = Arc::new(ScriptedBackend::saying("x"));
    for kind in Kind::ALL {
        assert_eq!(kind.as_str().parse(), Ok(kind));
        assert_eq!(build(kind, &backend, &cast(), &bare()).unwrap().name(), kind.as_str());
    }
    let alone: Vec<Kind> = Kind::ALL.into_iter().filter(|kind| build(*kind, &backend, &Cast::default(), &bare()).is_ok()).collect();
    assert_eq!(alone, [Kind::ZeroShot, Kind::Cot, Kind::React, Kind::Chameleon, Kind::Reflexion, Kind::Bolaa, Kind::Rewoo]);
    assert!("tree".parse::<Kind>().unwrap_err().to_string().contains("`autoact`"));
}

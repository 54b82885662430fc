//! The judged answers of a task, from the events that the gateway streams, and their form in files.

use autoact_trajectory::{Event, Evidence, JudgedAnswers};
use autoact_wire::v1;
use serde_json::{Map, Value, json};

pub(super) use autoact_trajectory::JudgedAnswer as Judgement;

/// Takes in the task's next event.
pub(super) fn take(judgements: &mut JudgedAnswers, event: &v1::TrajectoryEvent) {
    match Event::try_from(event.clone()) {
        Ok(event) => judgements.take(&event),
        Err(_) => judgements.lose(),
    }
}

/// The judgement of the answer that a task ended with: the last one if it was approved, else the
/// surest one of this answer. `None`: the answer was never judged.
pub(super) fn of_answer<'a>(judgements: &'a [Judgement], finished: &v1::Finished) -> Option<&'a Judgement> {
    if finished.approved || finished.reason() == v1::FinishReason::NoAnswer {
        return judgements.last();
    }
    let sure = |judgement: &Judgement| judgement.confidence.unwrap_or(f64::NEG_INFINITY);
    let same = judgements.iter().filter(|judgement| judgement.answer.as_deref() == Some(finished.answer.as_str()));
    // the last of equals
    same.max_by(|left, right| sure(left).total_cmp(&sure(right)))
}

/// A judged answer as `--output` has it. `right`: whether it is.
pub(super) fn judgement_json(judgement: &Judgement, right: bool) -> Value {
    json!({
        "answer": judgement.answer, "right": right, "approved": judgement.approved,
        "confidence": judgement.confidence, "threshold": judgement.threshold,
        "evidence": judgement.evidence.as_ref().map(evidence_json),
    })
}

/// Evidence as JSON, by the names of its parts.
pub(super) fn evidence_json(evidence: &Evidence) -> Value {
    let parts: Map<String, Value> =
        Evidence::PARTS.iter().zip(evidence.values()).map(|(name, value)| ((*name).to_owned(), json!(value))).collect();
    Value::Object(parts)
}

/// The evidence that [`evidence_json`] wrote. `None`: a part is missing.
pub(super) fn evidence_from(value: &Value) -> Option<Evidence> {
    let mut values = [0.0; Evidence::PARTS.len()];
    for (value_of, name) in values.iter_mut().zip(Evidence::PARTS) {
        *value_of = value.get(name)?.as_f64()?;
    }
    Some(Evidence::from_values(values))
}

#[cfg(test)]
mod tests {
    use std::time::SystemTime;

    use autoact_trajectory::{
        Action, EventBody, FINISH, FinishReason, Finished, Reflection, Submitted, TaskKey, Tenant, Thought, ToolSpec, Usage, Verdict,
    };

    use super::*;

    fn submitted() -> EventBody {
        let finish = ToolSpec { definition: "Ends.".into(), usage: "Finish[answer]".into(), ..ToolSpec::new(FINISH) };
        EventBody::Submitted(Submitted { question: "What is it?".into(), tools: vec![finish], ..Submitted::default() })
    }

    fn words(log_prob: f64) -> Usage {
        Usage { log_prob: Some(log_prob), scored_tokens: 2, ..Usage::default() }
    }

    /// Two answers; the first is judged wrong.
    fn events() -> Vec<v1::TrajectoryEvent> {
        let key = TaskKey { tenant: Tenant::default(), id: "a".parse().unwrap() };
        let thought = |thought: &str| EventBody::Thought(Thought { thought: thought.into(), tool: "Finish".into() });
        let action = |params: &str| EventBody::Action(Action { tool: "Finish".into(), params: params.into() });
        let reflection = |verdict, log_odds, confidence| {
            EventBody::Reflection(Reflection { log_odds, confidence, threshold: Some(0.0), ..Reflection::new("So it is.", verdict) })
        };
        let finished = Finished {
            answer: "lake".into(),
            approved: true,
            reason: FinishReason::Approved,
            detail: String::new(),
            citations: Vec::new(),
            open_effect: None,
            by: String::new(),
        };
        let bodies = [
            (submitted(), None),
            (thought("It is a river."), Some(words(-2.0))),
            (action("river"), Some(words(-1.0))),
            (reflection(Verdict::Wrong, Some(-3.0), Some(0.25)), Some(words(-4.0))),
            (thought("It is a lake."), Some(words(-1.0))),
            (action("lake"), Some(words(-0.5))),
            (reflection(Verdict::Right, Some(2.0), None), Some(words(-0.25))),
            (EventBody::Finished(finished), None),
        ];
        let event = |(at, (body, usage)): (usize, (EventBody, Option<Usage>))| {
            let event = Event::new(&key, at as u64 + 1, SystemTime::UNIX_EPOCH, "test", body);
            v1::TrajectoryEvent::from(&Event { usage, ..event })
        };
        bodies.into_iter().enumerate().map(event).collect()
    }

    fn judgements(events: &[v1::TrajectoryEvent]) -> Vec<Judgement> {
        let mut judgements = JudgedAnswers::default();
        events.iter().for_each(|event| take(&mut judgements, event));
        judgements.into_all()
    }

    #[test]
    fn judged_answers_have_the_evidence_of_the_fold() {
        let judged = judgements(&events());
        let values: Vec<_> = judged.iter().map(|one| one.evidence.unwrap().values()).collect();
        // verdict, thoughts, lowest thought, inputs, lowest input, reflection, all thoughts; the means of
        // the second attempt, -0.75 and -0.375, count no more than those of the first
        let said = [[-3.0, -1.0, -1.0, -0.5, -0.5, -2.0, -2.0], [2.0, -1.0, -1.0, -0.5, -0.5, -0.125, -3.0]];
        assert_eq!(values.iter().map(|values| &values[..7]).collect::<Vec<_>>(), said);
        // any answer fits; nothing was read
        assert!(values.iter().all(|values| values[7..] == [0.0, 0.5, 0.0, 1.0, 0.0]), "{values:?}");
        let rest: Vec<(&str, bool, Option<f64>)> =
            judged.iter().map(|one| (one.answer.as_deref().unwrap(), one.approved, one.confidence)).collect();
        assert_eq!(rest, [("river", false, Some(0.25)), ("lake", true, None)]);
        assert_eq!(evidence_from(&evidence_json(&judged[0].evidence.unwrap())), judged[0].evidence);
        assert_eq!(evidence_from(&json!({ "verdict": 1.0 })), None);
    }

    #[test]
    fn without_log_probabilities_there_is_no_evidence() {
        let mut events = events();
        // the server of one call reported none
        events[1].usage = Some(v1::Usage::default());
        assert!(judgements(&events).iter().all(|one| one.evidence.is_none()));
        // an event that is missing: what follows is not understood, and still counted
        let gap = [events[..4].to_vec(), events[5..].to_vec()].concat();
        assert_eq!(judgements(&gap).len(), 2);
        assert_eq!(
            judgements(&gap)[1],
            Judgement { answer: Some(String::new()), approved: true, confidence: None, threshold: Some(0.0), evidence: None }
        );
    }

    #[test]
    fn an_answer_is_known_by_its_surest_judgement() {
        let one = |answer: &str, confidence| Judgement {
            answer: Some(answer.into()),
            approved: false,
            confidence,
            threshold: None,
            evidence: None,
        };
        let judged = [one("river", Some(0.75)), one("lake", Some(0.5)), one("river", Some(0.25))];
        let finished = |answer: &str, approved| v1::Finished { answer: answer.into(), approved, ..v1::Finished::default() };
        assert_eq!(of_answer(&judged, &finished("river", false)), Some(&judged[0]));
        assert_eq!(of_answer(&judged, &finished("river", true)), Some(&judged[2]));
        assert_eq!(of_answer(&judged, &finished("sea", false)), None);
    }
}

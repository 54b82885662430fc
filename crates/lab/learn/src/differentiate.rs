//! Self-differentiation: the training data of the three agents. A document is a whole trajectory in
//! which only one role's text is a target. So it contains every input of appendix I of the paper
//! once, before its output.

use std::collections::BTreeMap;
use std::path::Path;

use autoact_base::random::{Rng, stable_hash};
use autoact_prompt::{Role, segments};
use autoact_trajectory::Trajectory;

use crate::error::LearnError;
use crate::records::{DocumentRecord, Judgement, ReflectionRecord, TrajectoryRecord, TurnRecord, history};
use crate::round::Round;
use crate::run::Run;
use crate::stage::Stage;
use crate::store::{read, write_atomic};
use crate::synthesize::part;
use crate::workplace::Workplace;

/// Minimum number of documents for a training.
pub(crate) const FEWEST: usize = 4;

/// Writes `datasets/plan.jsonl` and `datasets/tool.jsonl`.
///
/// # Errors
/// There are too few documents, or a file cannot be read or written.
pub(crate) fn differentiate(work: &Workplace, round: &Round) -> Result<(), LearnError> {
    let kept: Vec<TrajectoryRecord> = read(&round.path("kept.jsonl"))?;
    let settings = &work.task.settings.differentiate;
    let mut right: Vec<(TrajectoryRecord, usize)> = kept.into_iter().map(|one| (one, 0)).collect();
    if settings.retried {
        let all: Vec<TrajectoryRecord> = read(&round.path("trajectories.jsonl"))?;
        right.extend(retried(&all, &read::<ReflectionRecord>(&round.path("reflections.jsonl"))?, right_one));
    }
    thin(&mut right, settings.trajectories, work.task.seed);
    let of =
        |role: Role| -> Vec<DocumentRecord> { right.iter().map(|(one, rejected)| document(work, one, *rejected, role, None)).collect() };
    let (plan, tool) = (of(Role::Plan), of(Role::Tool));
    if plan.len() < FEWEST {
        return Err(LearnError::TooFew {
            what: "there is too little to learn from",
            found: format!("{} right trajectories", plan.len()),
            fix: format!("at least {FEWEST} are needed; raise `instruct.questions` or `synthesize.samples`"),
        });
    }
    work.view.begin(Stage::Differentiate, &part(round, "documents"), 0, (plan.len() + tool.len()) as u64);
    write(&round.path("datasets/plan.jsonl"), &plan)?;
    write(&round.path("datasets/tool.jsonl"), &tool)?;
    let after = plan.iter().filter(|document| document.rejected > 0).count();
    work.view.end(&format!("plan {} and tool {} (after a rejection {after})", plan.len(), tool.len()));
    Ok(())
}

/// Writes `datasets/reflect.jsonl`. In a later round few trajectories are wrong, and a judge that has
/// seen none rejects none. So wrong ones of the first round are added, at most until there are as many
/// of them as right ones.
///
/// # Errors
/// There are too few judgements, or a file cannot be read or written.
pub(crate) fn differentiate_judgements(work: &Workplace, run: &Run, round: &Round) -> Result<(), LearnError> {
    let of = |round: &Round| -> Result<Vec<DocumentRecord>, LearnError> {
        let all: Vec<TrajectoryRecord> = read(&round.path("trajectories.jsonl"))?;
        let reflections: Vec<ReflectionRecord> = read(&round.path("reflections.jsonl"))?;
        Ok(judgements(work, &all, &reflections, |record| record.agreed().cloned()))
    };
    let mut reflect = of(round)?;
    let verdicts = |documents: &[DocumentRecord], wanted: bool| documents.iter().filter(|document| verdict(document) == wanted).count();
    if round.number > 1 {
        let missing = verdicts(&reflect, true).saturating_sub(verdicts(&reflect, false));
        let first = of(&Round::new(run, 1))?;
        let mut wrong: Vec<DocumentRecord> = first.iter().filter(|document| !verdict(document)).cloned().collect();
        thin_to(&mut wrong, missing, work.task.seed);
        reflect.extend(wrong);
        reflect.sort_by_key(|document| (document.id, document.sample));
        // there is no round that is installed without a judge
        if reflect.len() < FEWEST {
            reflect = first;
        }
    }
    if reflect.len() < FEWEST {
        return Err(LearnError::TooFew {
            what: "there is too little for a judge to learn from",
            found: format!("{} judgements that agree with the reward", reflect.len()),
            fix: format!("at least {FEWEST} are needed; raise `instruct.questions`, `synthesize.samples` or `reflect.draws`"),
        });
    }
    work.view.begin(Stage::Differentiate, &part(round, "judgements"), 0, reflect.len() as u64);
    write(&round.path("datasets/reflect.jsonl"), &reflect)?;
    work.view.end(&format!("reflect {} ({} right, {} wrong)", reflect.len(), verdicts(&reflect, true), verdicts(&reflect, false)));
    Ok(())
}

/// What follows rejections, with the number of turns up to each. Trajectories have no judgement in
/// them, so a group that learns from them alone says the same again after one.
///
/// `next` selects what comes after a rejected trajectory, among the judged ones of its question.
pub(crate) fn retried<'a>(
    all: &[TrajectoryRecord],
    reflections: &'a [ReflectionRecord],
    next: impl Fn(&'a ReflectionRecord, &[&'a ReflectionRecord]) -> Option<&'a ReflectionRecord>,
) -> Vec<(TrajectoryRecord, usize)> {
    let tries = tries(all);
    let of = |record: &ReflectionRecord| tries.get(&(record.id, record.sample)).copied();
    let sorted = sorted(reflections);
    let questions = sorted.chunk_by(|one, other| one.id == other.id);
    let after = |record, judged: &[&'a ReflectionRecord]| Some(of(record)?.rejected(record.rejection()?, of(next(record, judged)?)?));
    questions.flat_map(|judged| judged.iter().filter_map(|record| after(*record, judged))).collect()
}

/// A right trajectory of the question. Where a right answer was rejected, that is what should be
/// said again.
fn right_one<'a>(rejected: &'a ReflectionRecord, judged: &[&'a ReflectionRecord]) -> Option<&'a ReflectionRecord> {
    if rejected.right { Some(rejected) } else { judged.iter().copied().find(|other| other.right) }
}

fn tries(all: &[TrajectoryRecord]) -> BTreeMap<(usize, usize), &TrajectoryRecord> {
    all.iter().map(|one| ((one.id, one.sample), one)).collect()
}

/// In order of questions.
fn sorted(reflections: &[ReflectionRecord]) -> Vec<&ReflectionRecord> {
    let mut sorted: Vec<&ReflectionRecord> = reflections.iter().collect();
    sorted.sort_by_key(|record| (record.id, record.sample));
    sorted
}

/// The documents of reflections with the judgement that `choose` selects, in order of questions.
pub(crate) fn judgements(
    work: &Workplace,
    all: &[TrajectoryRecord],
    reflections: &[ReflectionRecord],
    choose: impl Fn(&ReflectionRecord) -> Option<Judgement>,
) -> Vec<DocumentRecord> {
    let tries = tries(all);
    let of =
        |record: &ReflectionRecord| Some(document(work, tries.get(&(record.id, record.sample))?, 0, Role::Reflect, Some(choose(record)?)));
    sorted(reflections).into_iter().filter_map(of).collect()
}

fn verdict(document: &DocumentRecord) -> bool {
    matches!(document.turns.last(), Some(TurnRecord::Reflection { verdict, .. }) if verdict == "right")
}

/// Keeps `count` random elements in their order; 0 keeps all.
pub(crate) fn thin<T>(records: &mut Vec<T>, count: usize, seed: u64) {
    if count > 0 {
        thin_to(records, count, seed);
    }
}

/// Keeps `count` random elements in their order.
fn thin_to<T>(records: &mut Vec<T>, count: usize, seed: u64) {
    if records.len() <= count {
        return;
    }
    let mut rng = Rng::labelled(seed, "thin");
    let mut order: Vec<usize> = (0..records.len()).collect();
    rng.shuffle(&mut order);
    let mut chosen = vec![false; records.len()];
    order.into_iter().take(count).for_each(|at| chosen[at] = true);
    let mut at = 0;
    records.retain(|_| {
        at += 1;
        chosen[at - 1]
    });
}

/// Whether a question is a validation question. The split is by question, so that no other
/// trajectory of a validation question is in the training data.
pub(crate) fn held_back(id: usize, seed: u64, part: f64) -> bool {
    Rng::new(stable_hash(&format!("validation {id}")) ^ seed).chance(part)
}

/// The validation questions among the first `count` of the database.
pub(crate) fn validation_questions(work: &Workplace, count: usize) -> Vec<usize> {
    let part = work.task.settings.differentiate.validation;
    (0..count).filter(|id| held_back(*id, work.task.seed, part)).collect()
}

/// A trajectory in which the text of `role` is the target, but for that of the `rejected` first turns.
pub(crate) fn document(
    work: &Workplace,
    one: &TrajectoryRecord,
    rejected: usize,
    role: Role,
    judgement: Option<Judgement>,
) -> DocumentRecord {
    let mut turns = one.turns.clone();
    turns.extend(judgement.map(|judgement| TurnRecord::Reflection { reflection: judgement.thought, verdict: judgement.verdict }));
    let trajectory = history(&one.question, &one.tools, &turns, &work.library);
    let said = segments(&trajectory).into_iter().skip(segments_before(&trajectory, rejected));
    let outputs = said.filter(|segment| segment.role == Some(role)).map(|segment| segment.text).collect();
    DocumentRecord {
        id: one.id,
        sample: one.sample,
        validation: held_back(one.id, work.task.seed, work.task.settings.differentiate.validation),
        role: role.as_str().to_owned(),
        tool: String::new(),
        question: one.question.clone(),
        tools: one.tools.clone(),
        turns,
        rejected,
        outputs,
    }
}

/// How many segments a trajectory's first turns make, with what stands before them; 0 without turns.
pub(crate) fn segments_before(trajectory: &Trajectory, turns: usize) -> usize {
    let first = Trajectory { turns: trajectory.turns[..turns].to_vec(), ..trajectory.clone() };
    if turns == 0 { 0 } else { segments(&first).len() }
}

pub(crate) fn write(path: &Path, documents: &[DocumentRecord]) -> Result<(), LearnError> {
    let mut bytes = Vec::new();
    for document in documents {
        bytes.extend(serde_json::to_vec(document).map_err(|error| LearnError::io("write", path)(error.into()))?);
        bytes.push(b'\n');
    }
    write_atomic(path, &bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    type Next = for<'a> fn(&'a ReflectionRecord, &[&'a ReflectionRecord]) -> Option<&'a ReflectionRecord>;

    fn try_of(sample: usize, actions: &[(&str, &str)]) -> TrajectoryRecord {
        let step = |(tool, input): &(&str, &str)| TurnRecord::Step {
            thought: format!("{sample}: {input}"),
            tool: (*tool).to_owned(),
            input: Some((*input).to_owned()),
            observation: None,
        };
        TrajectoryRecord {
            id: 3,
            sample,
            question: "q".into(),
            gold: Some("a".into()),
            answer: "a".into(),
            reward: 1.0,
            turns: actions.iter().map(step).collect(),
            ..TrajectoryRecord::default()
        }
    }

    fn judged(sample: usize, right: bool, verdicts: &[&str]) -> ReflectionRecord {
        let draws = verdicts.iter().map(|verdict| Judgement { thought: format!("{sample} is {verdict}"), verdict: (*verdict).to_owned() });
        ReflectionRecord { id: 3, sample, right, draws: draws.collect(), off_topic: false }
    }

    #[test]
    fn a_right_trajectory_follows_a_rejection() {
        let all = [
            try_of(0, &[("Retrieve", "Rhine"), ("Retrieve", "Basel"), ("Finish", "b")]),
            try_of(1, &[("Retrieve", "Rhine"), ("Finish", "a")]),
            try_of(2, &[("Finish", "c")]),
        ];
        let reflections = [judged(2, false, &["right", "wrong"]), judged(0, false, &["wrong"]), judged(1, true, &["wrong", "right"])];
        let texts = |next: Next| {
            let of = |(one, rejected): (TrajectoryRecord, usize)| {
                let text = |turn: &TurnRecord| match turn {
                    TurnRecord::Step { thought, .. } => thought.clone(),
                    TurnRecord::Reflection { reflection, .. } => reflection.clone(),
                };
                (one.sample, rejected, one.turns.iter().map(text).collect::<Vec<_>>().join(", "))
            };
            retried(&all, &reflections, next).into_iter().map(of).collect::<Vec<_>>()
        };
        assert_eq!(
            texts(right_one),
            [
                (1, 4, "0: Rhine, 0: Basel, 0: b, 0 is wrong, 1: a".to_owned()),
                (1, 3, "1: Rhine, 1: a, 1 is wrong, 1: a".to_owned()),
                (1, 2, "2: c, 2 is wrong, 1: Rhine, 1: a".to_owned()),
            ]
        );
        assert!(texts(|_, _| None).is_empty());
        let approved = [judged(1, true, &["right"])];
        assert!(retried(&all, &approved, right_one).is_empty());
    }

    #[test]
    fn what_was_rejected_comes_before_the_segments_that_count() {
        let judgement = Judgement { thought: "no".into(), verdict: "wrong".into() };
        let (one, rejected) = try_of(0, &[("Finish", "b")]).rejected(&judgement, &try_of(1, &[("Retrieve", "Rhine"), ("Finish", "a")]));
        let turns: Vec<_> = one.turns.iter().map(Into::into).collect();
        let trajectory = Trajectory { question: "q".into(), turns, ..Trajectory::default() };
        let counted = segments(&trajectory).split_off(segments_before(&trajectory, rejected));
        let thoughts = counted.iter().filter(|segment| segment.role == Some(Role::Plan)).map(|segment| segment.text.as_str());
        let thoughts = thoughts.collect::<String>();
        assert!(thoughts.contains("1: Rhine") && thoughts.contains("1: a") && !thoughts.contains("0: b"), "{thoughts}");
        assert_eq!(segments_before(&trajectory, 0), 0);
    }

    #[test]
    fn about_the_asked_part_of_the_questions_is_held_back() {
        let count = (0..1000).filter(|id| held_back(*id, 7, 0.1)).count();
        assert!((60..150).contains(&count), "{count}");
        assert_eq!((0..100).filter(|id| held_back(*id, 7, 0.0)).count(), 0);
    }
}

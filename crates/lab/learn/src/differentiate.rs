//! Self-differentiation: the training data of the three agents. A document is a whole trajectory in
//! which only one role's text is a target. So it contains every input of appendix I of the paper
//! once, before its output.

use std::collections::BTreeMap;
use std::path::Path;

use autoact_base::random::{Rng, stable_hash};
use autoact_prompt::{Role, segments};

use crate::error::LearnError;
use crate::records::{DocumentRecord, Judgement, ReflectionRecord, TrajectoryRecord, TurnRecord, history};
use crate::round::Round;
use crate::stage::Stage;
use crate::store::{read, write_atomic};
use crate::workplace::Workplace;

/// Minimum number of documents for a training.
pub(crate) const FEWEST: usize = 4;

/// Writes `datasets/*.jsonl`.
///
/// # Errors
/// There are too few documents, or a file cannot be read or written.
pub(crate) fn differentiate(work: &Workplace, round: &Round) -> Result<(), LearnError> {
    let mut kept: Vec<TrajectoryRecord> = read(&round.path("kept.jsonl"))?;
    let all: Vec<TrajectoryRecord> = read(&round.path("trajectories.jsonl"))?;
    let reflections: Vec<ReflectionRecord> = read(&round.path("reflections.jsonl"))?;
    let settings = &work.task.settings.differentiate;
    thin(&mut kept, settings.trajectories, work.task.seed);
    let plan: Vec<_> = kept.iter().map(|one| document(work, one, Role::Plan, None)).collect();
    let tool: Vec<_> = kept.iter().map(|one| document(work, one, Role::Tool, None)).collect();
    let reflect = judgements(work, &all, &reflections, |record| record.agreed().cloned());
    let verdicts = |wanted: bool| reflect.iter().filter(|document| verdict(document) == wanted).count();
    if plan.len() < FEWEST || reflect.len() < FEWEST {
        return Err(LearnError::TooFew {
            what: "there is too little to learn from",
            found: format!("{} right trajectories, {} judgements that agree with the reward", plan.len(), reflect.len()),
            fix: format!("at least {FEWEST} of each are needed; raise `instruct.questions`, `synthesize.samples` or `reflect.draws`"),
        });
    }
    work.view.begin(Stage::Differentiate, "documents", 0, (plan.len() + tool.len() + reflect.len()) as u64);
    write(&round.path("datasets/plan.jsonl"), &plan)?;
    write(&round.path("datasets/tool.jsonl"), &tool)?;
    write(&round.path("datasets/reflect.jsonl"), &reflect)?;
    let told = format!(
        "plan {}, tool {}, reflect {} ({} right, {} wrong)",
        plan.len(),
        tool.len(),
        reflect.len(),
        verdicts(true),
        verdicts(false)
    );
    work.view.end(&told);
    Ok(())
}

/// The documents of reflections with the judgement that `choose` selects, in order of questions.
pub(crate) fn judgements(
    work: &Workplace,
    all: &[TrajectoryRecord],
    reflections: &[ReflectionRecord],
    choose: impl Fn(&ReflectionRecord) -> Option<Judgement>,
) -> Vec<DocumentRecord> {
    let by_key: BTreeMap<(usize, usize), &TrajectoryRecord> = all.iter().map(|one| ((one.id, one.sample), one)).collect();
    let mut sorted: Vec<&ReflectionRecord> = reflections.iter().collect();
    sorted.sort_by_key(|record| (record.id, record.sample));
    let of =
        |record: &ReflectionRecord| Some(document(work, by_key.get(&(record.id, record.sample))?, Role::Reflect, Some(choose(record)?)));
    sorted.into_iter().filter_map(of).collect()
}

fn verdict(document: &DocumentRecord) -> bool {
    matches!(document.turns.last(), Some(TurnRecord::Reflection { verdict, .. }) if verdict == "right")
}

/// Keeps `count` random elements in their order; 0 keeps all.
pub(crate) fn thin<T>(records: &mut Vec<T>, count: usize, seed: u64) {
    if count == 0 || records.len() <= count {
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

pub(crate) fn document(work: &Workplace, one: &TrajectoryRecord, role: Role, judgement: Option<Judgement>) -> DocumentRecord {
    let mut turns = one.turns.clone();
    turns.extend(judgement.map(|judgement| TurnRecord::Reflection { reflection: judgement.thought, verdict: judgement.verdict }));
    let trajectory = history(&one.question, &one.tools, &turns, &work.library);
    let outputs = segments(&trajectory).into_iter().filter(|segment| segment.role == Some(role)).map(|segment| segment.text).collect();
    DocumentRecord {
        id: one.id,
        sample: one.sample,
        validation: held_back(one.id, work.task.seed, work.task.settings.differentiate.validation),
        role: role.as_str().to_owned(),
        tool: String::new(),
        question: one.question.clone(),
        tools: one.tools.clone(),
        turns,
        outputs,
    }
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

    #[test]
    fn about_the_asked_part_of_the_questions_is_held_back() {
        let count = (0..1000).filter(|id| held_back(*id, 7, 0.1)).count();
        assert!((60..150).contains(&count), "{count}");
        assert_eq!((0..100).filter(|id| held_back(*id, 7, 0.0)).count(), 0);
    }
}

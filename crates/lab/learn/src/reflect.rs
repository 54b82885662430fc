//! Reflect-Agent's training data. The meta-agent judges right and wrong trajectories; judgements
//! that agree with the reward become training data.
//!
//! A trajectory counts as wrong only if another trajectory of its question reached the database's
//! answer. Otherwise the database's answer itself may be wrong, because nobody has checked it.

use std::collections::{BTreeMap, HashSet};
use std::iter;
use std::sync::Arc;

use autoact_base::random::Rng;
use autoact_model::{Backend, GenerateError, WordBias};
use autoact_score::normalize;
use autoact_speaker::{SpeakError, SpeakRequest, Speaker, reflection};
use autoact_trajectory::{Reflection, Role, Sampling, Verdict};
use futures::executor::block_on;

use crate::coverage::Weights;
use crate::differentiate::thin;
use crate::error::LearnError;
use crate::keep::guessable;
use crate::records::{Judgement, ReflectionRecord, TrajectoryRecord, history};
use crate::round::Round;
use crate::run::Run;
use crate::stage::Stage;
use crate::store::{Store, read};
use crate::synthesize::{part, question_bias};
use crate::workplace::Workplace;

/// Generates judgements of each trajectory until one agrees with the reward. Like a trajectory's
/// thoughts, those that are sampled lean towards the question's words, and have to cover them: a judge
/// that takes the department asked for to be a workshop finds every answer to be right. And where the
/// answer is right, they have to say it of what was asked for.
///
/// # Errors
/// The model or a file fails, or a stop was requested.
pub(crate) fn reflect(work: &Workplace, run: &Run, round: &Round) -> Result<(), LearnError> {
    let kept: Vec<TrajectoryRecord> = read(&round.path("kept.jsonl"))?;
    let all: Vec<TrajectoryRecord> = read(&round.path("trajectories.jsonl"))?;
    let judged = &work.task.settings.reflect;
    let histories = thinned(histories(&kept, &all, judged.wrong_per_question), judged.histories, work.task.seed);
    let (mut store, there) = Store::<ReflectionRecord>::open(&round.path("reflections.jsonl"))?;
    let done: HashSet<(usize, usize)> = there.iter().map(|record| (record.id, record.sample)).collect();
    let todo: Vec<&TrajectoryRecord> = histories.into_iter().filter(|one| !done.contains(&(one.id, one.sample))).collect();
    let (mut count, total) = (there.len(), there.len() + todo.len());
    let mut agreed = there.iter().filter(|record| record.agreed().is_some()).count();
    let mut records = there;
    let pool = work.pool()?;
    let adapter = round.judge(run);
    let weights = work.vocabulary.weigh(all.iter());
    work.view.begin(Stage::Reflect, &part(round, "histories"), count as u64, total as u64);
    pool.each(
        &todo,
        &work.stop,
        |one, backend| judge_until_right(work, round, one, &weights, adapter.as_deref(), backend),
        |_, record| {
            store.push(&record)?;
            count += 1;
            agreed += usize::from(record.agreed().is_some());
            records.push(record);
            work.view.advance(count as u64, &format!("{agreed} judgements agree with the reward"));
            Ok::<(), LearnError>(())
        },
    )?;
    store.sync()?;
    work.go_on(Stage::Reflect)?;
    let of = |right: bool| {
        let chosen: Vec<_> = records.iter().filter(|record| record.right == right).collect();
        let agreed = chosen.iter().filter(|record| record.agreed().is_some()).count();
        format!("{agreed} of {} {}", chosen.len(), if right { "right" } else { "wrong" })
    };
    work.view.end(&format!("judged as the reward does: {} and {} histories", of(true), of(false)));
    Ok(())
}

/// One right trajectory for each question, and wrong ones with different answers if there is a
/// right one.
pub(crate) fn histories<'a>(
    kept: &'a [TrajectoryRecord],
    all: &'a [TrajectoryRecord],
    wrong_per_question: usize,
) -> Vec<&'a TrajectoryRecord> {
    let mut right: BTreeMap<usize, &TrajectoryRecord> = BTreeMap::new();
    kept.iter().for_each(|record| {
        right.entry(record.id).or_insert(record);
    });
    let mut wrong: BTreeMap<usize, Vec<&TrajectoryRecord>> = BTreeMap::new();
    let mut tries: Vec<&TrajectoryRecord> = all.iter().filter(|record| record.has_answer() && record.reward <= 0.0).collect();
    tries.sort_by_key(|record| (record.id, record.sample));
    for record in tries.into_iter().filter(|record| right.contains_key(&record.id)) {
        let chosen = wrong.entry(record.id).or_default();
        let new = chosen.iter().all(|other| normalize(&other.answer) != normalize(&record.answer));
        if new && chosen.len() < wrong_per_question {
            chosen.push(record);
        }
    }
    right.into_values().chain(wrong.into_values().flatten()).collect()
}

/// At most `count` histories, half of them right, in their order; 0: all.
fn thinned(histories: Vec<&TrajectoryRecord>, count: usize, seed: u64) -> Vec<&TrajectoryRecord> {
    let (mut right, mut wrong): (Vec<_>, Vec<_>) = histories.into_iter().partition(|one| one.is_right());
    for part in [&mut right, &mut wrong] {
        thin(part, count.div_ceil(2), seed);
    }
    right.append(&mut wrong);
    right
}

fn judge_until_right(
    work: &Workplace,
    round: &Round,
    one: &TrajectoryRecord,
    weights: &Weights<'_>,
    adapter: Option<&str>,
    backend: &Arc<dyn Backend>,
) -> Result<ReflectionRecord, LearnError> {
    let settings = &work.task.settings.reflect;
    let mut rng = Rng::labelled(work.task.seed ^ ((one.id as u64) << 16 | one.sample as u64), "reflect");
    let mut record = ReflectionRecord { id: one.id, sample: one.sample, right: one.is_right(), draws: Vec::new(), off_topic: false };
    let least = work.task.settings.filter.coverage.unwrap_or_default();
    for draw in 0..settings.draws {
        // the first judgement is greedy: it measures the model as a judge
        let temperature = if draw == 0 { 0.0 } else { settings.temperature };
        let sampling = Sampling { temperature, seed: rng.next_u64(), ..Sampling::default() };
        let bias = question_bias(work, &one.question, draw, round);
        let Some(judgement) = judge(work, one, adapter, sampling, &bias, backend)? else { continue };
        let covered = weights.covered(one, iter::once(judgement.thought.as_str()));
        record.off_topic = covered < least || (least > 0.0 && one.is_right() && !names_twice(&judgement.thought, one));
        record.draws.push(judgement);
        if record.agreed().is_some() {
            break;
        }
    }
    Ok(record)
}

/// Whether a reason why an answer is right has it twice: as what the question asks for, and as what
/// was answered. `The number is 2009. The answer is QT-8998, which is right.` compares nothing.
fn names_twice(thought: &str, one: &TrajectoryRecord) -> bool {
    let (thought, answer) = (normalize(thought), normalize(&one.answer));
    let (words, answer): (Vec<&str>, Vec<&str>) = (thought.split(' ').collect(), answer.split(' ').collect());
    guessable(&one.question, one.gold.as_deref()) || words.windows(answer.len()).filter(|said| *said == answer).count() >= 2
}

/// A judgement of a finished trajectory by the base or an adapter. `None` if the model cannot give
/// one, because the trajectory is too long.
pub(crate) fn judge(
    work: &Workplace,
    one: &TrajectoryRecord,
    adapter: Option<&str>,
    sampling: Sampling,
    word_bias: &[WordBias],
    backend: &Arc<dyn Backend>,
) -> Result<Option<Judgement>, LearnError> {
    let history = history(&one.question, &one.tools, &one.turns, &work.library);
    let request = SpeakRequest { sampling, adapter, word_bias, ..SpeakRequest::new(Role::Reflect, &history) };
    let reply = match block_on(Speaker::new(Arc::clone(backend)).reply(&request)) {
        Ok(reply) => reply,
        Err(SpeakError::Generate(GenerateError::PromptTooLong { .. })) => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    let parsed = reflection(&reply).ok();
    Ok(parsed.map(|Reflection { thought, verdict, .. }| Judgement { thought, verdict: verdict.as_str().to_owned() }))
}

/// Whether a judgement approves the answer.
pub(crate) fn approves(judgement: &Judgement) -> bool {
    crate::records::verdict_of(&judgement.verdict) == Verdict::Right
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_of_the_judged_histories_are_right() {
        let one = |id: usize| TrajectoryRecord { id, reward: if id < 30 { 1.0 } else { 0.0 }, ..TrajectoryRecord::default() };
        let all: Vec<TrajectoryRecord> = (0..100).map(one).collect();
        let counts = |count: usize| {
            let thinned = thinned(all.iter().collect(), count, 1);
            assert!(thinned.is_sorted_by_key(|one| one.id));
            (thinned.iter().filter(|one| one.is_right()).count(), thinned.len())
        };
        assert_eq!([counts(0), counts(20), counts(80), counts(1000)], [(30, 100), (10, 20), (30, 70), (30, 100)]);
    }

    #[test]
    fn a_reason_compares_what_was_read_with_the_answer() {
        let one = |question: &str, answer: &str| TrajectoryRecord {
            question: question.into(),
            gold: Some(answer.into()),
            answer: answer.into(),
            reward: 1.0,
            ..TrajectoryRecord::default()
        };
        let badge = one("What is the badge of Ek?", "QT-8998");
        assert!(names_twice("Asked: badge of Ek. badge of Ek: QT-8998. Answer: QT-8998. Same.", &badge));
        assert!(names_twice("QT-8998. QT-8998 was answered, so it is correct.", &badge));
        assert!(!names_twice("The badge of Ek is 2009. The answer is QT-8998, which is right.", &badge));
        // what the question itself has is said in any case
        assert!(names_twice("Same.", &one("Is Ek at home?", "yes")));
    }
}

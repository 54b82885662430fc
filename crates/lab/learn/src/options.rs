//! Options for generated multiple-choice questions. A small model generates the question and its
//! answer. The wrong options are drawn from titles and answers similar to the answer, without a
//! model.

use autoact_base::random::Rng;
use autoact_score::normalize;

use crate::records::QuestionRecord;
use crate::workplace::Workplace;

/// Number of first words of a question that show what it asks for.
const OPENING: usize = 3;

/// As many options as the examples have, including the answer, in random order. `None` if too few
/// were found.
pub(crate) fn draw(work: &Workplace, database: &[QuestionRecord], question: &str, answer: &str, attempt: u64) -> Option<Vec<String>> {
    let count = work.task.examples.iter().map(|example| example.options.len()).max()?;
    let mut rng = Rng::numbered(work.task.seed, attempt, "options");
    // `yes` and `no` are answers to a question about two things, and have no further wrong options
    if matches!(normalize(answer).as_str(), "yes" | "no") {
        return None;
    }
    let mut found = vec![answer.to_owned()];
    let mut add = |mut candidates: Vec<String>, rng: &mut Rng| {
        rng.shuffle(&mut candidates);
        for candidate in candidates {
            let plain = normalize(&candidate);
            if found.len() < count && !plain.is_empty() && !found.iter().any(|there| normalize(there) == plain) {
                found.push(candidate);
            }
        }
    };
    add(work.pages.alike(answer), &mut rng);
    let opening = |text: &str| text.split_whitespace().take(OPENING).map(str::to_lowercase).collect::<Vec<_>>();
    let asked = opening(question);
    let numeric = |text: &str| text.chars().any(|c| c.is_ascii_digit());
    let like = |other: &str| numeric(other) == numeric(answer) && !matches!(normalize(other).as_str(), "yes" | "no");
    let answers = |close: bool| -> Vec<String> {
        let chosen = database.iter().filter(|entry| entry.answer.as_deref().is_some_and(like));
        chosen.filter(|entry| !close || opening(&entry.question) == asked).filter_map(bare).collect()
    };
    add(answers(true), &mut rng);
    add(answers(false), &mut rng);
    if found.len() < count {
        return None;
    }
    rng.shuffle(&mut found);
    Some(found)
}

/// The text of an entry's answer; examples may give it as an option's letter.
fn bare(entry: &QuestionRecord) -> Option<String> {
    let answer = entry.answer.as_ref()?;
    Some(autoact_score::named(answer, &entry.options).map_or_else(|| answer.clone(), |at| entry.options[at].clone()))
}

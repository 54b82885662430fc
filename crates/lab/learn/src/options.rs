//! Options for generated multiple-choice questions. A small model writes a question and its answer; the wrong options are drawn from what
//! is like the answer, and no model is asked for them.

use autoact_base::random::Rng;
use autoact_score::normalize;

use crate::records::QuestionRecord;
use crate::workplace::Workplace;

/// Words at the beginning of a question that tell what is asked for.
const OPENING: usize = 3;

/// As many options as the examples have, the answer among them, in a random order; `None` if there are not enough.
pub(crate) fn draw(work: &Workplace, database: &[QuestionRecord], question: &str, answer: &str, attempt: u64) -> Option<Vec<String>> {
    let count = work.task.examples.iter().map(|example| example.options.len()).max()?;
    let mut rng = Rng::numbered(work.task.seed, attempt, "options");
    // a choice between two that the question names is no choice among many
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
    let like =
        |entry: &&QuestionRecord| numeric(&entry.answer) == numeric(answer) && !matches!(normalize(&entry.answer).as_str(), "yes" | "no");
    let answers = |close: bool| -> Vec<String> {
        let chosen = database.iter().filter(like).filter(|entry| !close || opening(&entry.question) == asked);
        chosen.map(bare).collect()
    };
    add(answers(true), &mut rng);
    add(answers(false), &mut rng);
    if found.len() < count {
        return None;
    }
    rng.shuffle(&mut found);
    Some(found)
}

/// The text of an entry's answer, which an example may give by its letter.
fn bare(entry: &QuestionRecord) -> String {
    autoact_score::named(&entry.answer, &entry.options).map_or_else(|| entry.answer.clone(), |at| entry.options[at].clone())
}

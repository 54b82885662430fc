//! Questions misread: a name with words around it, or without some of its own. A model that meets an
//! unknown wording does so; from such a step it must recover.

use autoact_base::random::Rng;
use autoact_trajectory::{Step, Trajectory};

use crate::question::{Question, QuestionPlan, Spelling};
use crate::solve::{Environment, NO_PAGE, Solver, as_written, misspelt};

/// What the first steps of a trajectory get wrong about its question. The steps after them do not
/// depend on it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Misread {
    /// A name is read like this.
    Name(String),
    /// Something else is asked for: the steps' thoughts end in one of these sentences.
    Asked(Vec<String>),
}

impl Misread {
    /// Whether a step comes of it.
    pub fn is_in(&self, step: &Step) -> bool {
        match self {
            Misread::Name(read) => {
                step.params.as_ref() == Some(read) && step.observation.as_deref().is_some_and(|found| found.starts_with(NO_PAGE))
            }
            Misread::Asked(ends) => ends.iter().any(|end| step.thought.ends_with(end.as_str())),
        }
    }
}

/// Most words beside a name that are taken for part of it.
const BESIDE: usize = 2;
/// Ways tried to misread a name, because the tools do not always suggest the title that is meant.
const READINGS: usize = 8;
/// Probability that words before a name are taken for part of it, where there are any; of words
/// after it; and that some of its own words are missing, where it has several.
const KINDS: [f64; 3] = [0.45, 0.25, 0.3];

impl Question {
    /// The same question, in which one name is read as the returned text. Its gold trajectory
    /// first looks for that text, and then for the title that the tools suggest. `None` if it has
    /// no name that a page is titled by, or if there is nothing beside it.
    fn with_misread_name(&self, rng: &mut Rng) -> Option<(Question, String)> {
        let titles: Vec<&String> = match &self.plan {
            QuestionPlan::Follow { start } | QuestionPlan::IsValue { start, .. } => vec![start],
            QuestionPlan::Compare { a, b, .. }
            | QuestionPlan::IsMore { a, b, .. }
            | QuestionPlan::IsSame { a, b }
            | QuestionPlan::Difference { a, b, .. } => vec![a, b],
            QuestionPlan::Inverse { .. }
            | QuestionPlan::Calculate { .. }
            | QuestionPlan::Missing { .. }
            | QuestionPlan::NoQuestion { .. } => return None,
        };
        let title = (*rng.pick(&titles)?).clone();
        let known = misspelt(self);
        let name = as_written(&known, &title);
        let at = self.text.find(name)?;
        let (before, after) = (&self.text[..at], &self.text[at + name.len()..]);
        let read = match rng.weighted(&KINDS)? {
            0 => {
                let starts: Vec<usize> = word_starts(before).rev().take(BESIDE).collect();
                self.text[*rng.pick(&starts)?..at + name.len()].to_owned()
            }
            1 => {
                let ends: Vec<usize> = word_ends(after).take(BESIDE).collect();
                self.text[at..at + name.len() + rng.pick(&ends)?].to_owned()
            }
            _ => {
                let words: Vec<&str> = name.split(' ').collect();
                let kept = 1 + rng.below(words.len().checked_sub(1).filter(|fewer| *fewer > 0)?);
                if rng.chance(0.7) { words[..kept].join(" ") } else { words[words.len() - kept..].join(" ") }
            }
        };
        // transcripts have one blank between words, questions with noise may have two
        let read = read.split_whitespace().collect::<Vec<_>>().join(" ");
        if read == name || read == title {
            return None;
        }
        let mut question = self.clone();
        question.spelt.retain(|spelling| spelling.title != title);
        question.spelt.push(Spelling { title, written: read.clone() });
        question.written = None;
        Some((question, read))
    }
}

impl Solver<'_> {
    /// A right trajectory that first misreads a name. The tools must suggest the title that is
    /// meant.
    pub fn misread_name(&self, question: &Question, env: &mut dyn Environment, rng: &mut Rng) -> Option<(Trajectory, Misread)> {
        (0..READINGS).find_map(|_| {
            let (misread, read) = question.with_misread_name(rng)?;
            let trajectory = self.solve(&misread, env, rng).ok()?;
            let misread = Misread::Name(read);
            let found = trajectory.steps().any(|step| misread.is_in(step));
            found.then_some((trajectory, misread))
        })
    }
}

/// Where the words of a text begin.
fn word_starts(text: &str) -> impl DoubleEndedIterator<Item = usize> {
    text.char_indices().map(|(at, _)| at).filter(|at| !text[*at..].starts_with(' ') && (*at == 0 || text[..*at].ends_with(' ')))
}

/// Where the words of a text end, without the marks behind them.
fn word_ends(text: &str) -> impl Iterator<Item = usize> {
    word_starts(text).map(move |start| {
        let word = text[start..].split(' ').next().unwrap_or_default();
        start + word.trim_end_matches(['?', '.', '!']).len()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::question::Kind;

    #[test]
    fn words_beside_a_name_are_taken_for_part_of_it() {
        let text = "Well, how long is the Rio Negro in kilometres?";
        let question = Question {
            id: "1".into(),
            text: text.into(),
            answer: "2230 km".into(),
            kind: Kind::Hop,
            hops: 1,
            chain: vec!["river.length".into()],
            entities: vec!["Rio Negro".into()],
            plan: QuestionPlan::Follow { start: "Rio Negro".into() },
            written: None,
            spelt: Vec::new(),
            family: None,
        };
        let mut rng = Rng::new(1);
        let mut read: Vec<String> = (0..60).filter_map(|_| question.with_misread_name(&mut rng)).map(|(_, read)| read).collect();
        read.sort();
        read.dedup();
        assert_eq!(read, ["Negro", "Rio", "Rio Negro in", "Rio Negro in kilometres", "is the Rio Negro", "the Rio Negro"]);
        let noisy = Question { text: text.replace(" in", "  in"), ..question.clone() };
        assert!((0..60).filter_map(|_| noisy.with_misread_name(&mut rng)).all(|(_, read)| !read.contains("  ")));
        let (misread, read) = (0..60).find_map(|_| question.with_misread_name(&mut rng)).unwrap();
        assert_eq!((misread.text.as_str(), misread.spelt.len(), &misread.spelt[0].written), (text, 1, &read));
    }
}

//! How well an answer fits its question, by their words alone: whether it is of the kind that the
//! question asks for, and whether the passages that it rests on say what the question asks about.
//! A model that is sure of a wrong reading is as sure as of a right one; its words are not.
//!
//! Neither decides anything. They are parts of the [`Evidence`](crate::Evidence), and count what they
//! counted on the answers that a calibration was fitted on. What is not understood, such as a
//! question in another language than English, counts 0 or nothing.

use crate::citation::words::{NAME, once, words};
use crate::citation::{Citation, citations};
use crate::history::{Step, Turn};

/// How an answer fits its question.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Fit {
    /// 1: the answer is of the kind that the question asks for; -1: it is of another; 0: unknown.
    pub kind: f64,
    /// The share of the question's words, names apart, that the passages have which the answer
    /// rests on; a half where the question has no such words.
    pub covered: f64,
}

/// What a question asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    YesNo,
    Time,
    Number,
    /// Who, or where: something with a name.
    Name,
    /// What, or which: anything but yes and no.
    Thing,
}

/// Words that begin a question for yes or no.
const ASKING_YES_NO: [&str; 18] = [
    "am", "are", "can", "could", "did", "do", "does", "had", "has", "have", "is", "may", "should", "was", "were", "whether", "will",
    "would",
];
/// Words that may stand before a question.
const OPENING: [&str; 14] = ["and", "hello", "hey", "hi", "if", "listen", "me", "now", "ok", "okay", "please", "so", "tell", "well"];
/// What follows `how` in a question for a number.
const MEASURED: [&str; 14] = ["big", "deep", "far", "few", "heavy", "high", "hot", "large", "long", "many", "much", "old", "tall", "wide"];
/// Words that are numbers, or begin one.
const NUMBERS: [&str; 29] = [
    "zero",
    "no",
    "none",
    "one",
    "two",
    "three",
    "four",
    "five",
    "six",
    "seven",
    "eight",
    "nine",
    "ten",
    "eleven",
    "twelve",
    "thirteen",
    "fourteen",
    "fifteen",
    "sixteen",
    "seventeen",
    "eighteen",
    "nineteen",
    "twenty",
    "thirty",
    "forty",
    "fifty",
    "half",
    "hundred",
    "several",
];
/// Words for times without digits: months and days by their first letters.
const TIMES: [&str; 19] =
    ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec", "mon", "tue", "wed", "thu", "fri", "sat", "sun"];
const TIME_LETTERS: usize = 3;

/// How `answer` fits. The last of `turns` is the step that gave it.
pub fn fit(question: &str, turns: &[Turn], answer: &str) -> Fit {
    Fit { kind: fits(asked(question), question, answer), covered: covered(question, turns, &citations(question, turns, answer)) }
}

fn asked(question: &str) -> Option<Kind> {
    let lower = question.to_lowercase();
    let said: Vec<&str> = lower.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).collect();
    let begin = said.iter().position(|word| !OPENING.contains(word))?;
    if ASKING_YES_NO.contains(&said[begin]) {
        return Some(Kind::YesNo);
    }
    (begin..said.len()).find_map(|at| {
        let next = said.get(at + 1).copied().unwrap_or_default();
        match said[at] {
            "how" if MEASURED.contains(&next) => Some(Kind::Number),
            "when" => Some(Kind::Time),
            "what" | "which" if next == "year" => Some(Kind::Time),
            "what" | "which" => Some(Kind::Thing),
            "who" | "whom" | "whose" | "where" => Some(Kind::Name),
            _ => None,
        }
    })
}

fn fits(asked: Option<Kind>, question: &str, answer: &str) -> f64 {
    let lower = answer.trim().to_lowercase();
    let first = lower.split(|c: char| !c.is_alphanumeric()).find(|word| !word.is_empty()).unwrap_or_default();
    let yes_no = matches!(lower.trim_end_matches(['.', '!']), "yes" | "no");
    let digit = answer.contains(|c: char| c.is_ascii_digit());
    let sign = |fits: bool| if fits { 1.0 } else { -1.0 };
    match asked {
        // `Is the Orangery or the Desert House the older building?`
        Some(Kind::YesNo) if question.contains(" or ") => 0.0,
        Some(Kind::YesNo) => sign(yes_no),
        None => 0.0,
        Some(_) if yes_no => -1.0,
        Some(Kind::Time) => sign(digit || TIMES.iter().any(|time| first.len() >= TIME_LETTERS && first.starts_with(time))),
        Some(Kind::Number) => sign(digit || NUMBERS.contains(&first)),
        // `12 High Street` is a place, `99 metres` is none
        Some(Kind::Name) if first.starts_with(|c: char| c.is_ascii_digit()) => sign(answer.contains(char::is_uppercase)),
        Some(Kind::Name) => sign(true),
        Some(Kind::Thing) => 0.0,
    }
}

fn covered(question: &str, turns: &[Turn], rests_on: &[Citation]) -> f64 {
    let steps = turns.iter().filter_map(|turn| match turn {
        Turn::Step(step) => Some(step),
        Turn::Reflection(_) => None,
    });
    // a name that was typed in small letters is still one
    let titles = |step: &Step| step.sources.iter().flat_map(|source| words(&source.title).into_keys()).collect::<Vec<_>>();
    let names: Vec<String> = steps.flat_map(titles).collect();
    let asked = words(question).into_iter().filter(|(word, weight)| *weight < NAME && !names.contains(word));
    let asked: Vec<String> = asked.map(|(word, _)| once(&word).to_owned()).collect();
    if asked.is_empty() {
        return 0.5;
    }
    let said: Vec<String> = rests_on.iter().flat_map(|citation| words(&citation.quote).into_keys()).collect();
    let covered = asked.iter().filter(|word| said.contains(word)).count();
    covered as f64 / asked.len() as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::Source;

    #[test]
    fn an_answer_is_of_the_kind_that_is_asked_for_or_not() {
        for (question, answer, expected) in [
            ("When was Ada Lind hired?", "2011", 1.0),
            ("When was Ada Lind hired?", "Faculty of Arts", -1.0),
            ("when does it meet", "Mondays", 1.0),
            ("In which year was it built?", "1912", 1.0),
            ("In which town was it built?", "Bergen", 0.0),
            ("How many floors does it have?", "seven", 1.0),
            ("How many floors does it have?", "Ada Lind", -1.0),
            ("How many floors does it have?", "a river", -1.0),
            ("How does it work?", "by steam", 0.0),
            ("how old was Goethe when Schiller was born?", "10", 1.0),
            ("Who designed it?", "2", -1.0),
            ("Who designed it?", "Ines Varrick", 1.0),
            ("Where is it?", "1987", -1.0),
            ("Where is it?", "99 metres", -1.0),
            ("Where is it?", "12 High Street", 1.0),
            ("Is it on a Monday?", "yes", 1.0),
            ("so, is it on a Monday", "Monday", -1.0),
            ("Is A or B the older one?", "A", 0.0),
            ("What is the capital of Peru?", "yes", -1.0),
            ("What is the capital of Peru?", "Lima", 0.0),
            ("Tell me who designed it.", "no", -1.0),
            ("Wann wurde es gebaut?", "1912", 0.0),
            ("", "1912", 0.0),
        ] {
            let found = fit(question, &[], answer).kind;
            assert!((found - expected).abs() < f64::EPSILON, "`{question}` with `{answer}` gives {found}");
        }
    }

    fn read(title: &str, text: &str) -> Turn {
        let source = Source { title: title.into(), text: text.into(), end: text.len() as u64, ..Source::default() };
        Turn::Step(Step {
            thought: "First read the page.".into(),
            observation: Some(text.into()),
            sources: vec![source],
            ..Step::default()
        })
    }

    #[test]
    fn the_passages_of_the_answer_say_what_is_asked_or_do_not() {
        let page = read("Ada Lind", "She was hired in 2011. Her office is Tansley Court.");
        let covered = |question: &str, answer: &str| {
            let finish = Turn::Step(Step { thought: format!("It is {answer}."), params: Some(answer.into()), ..Step::default() });
            fit(question, &[page.clone(), finish], answer).covered
        };
        assert_eq!([covered("When was ada lind hired?", "2011"), covered("When was Ada Lind hired?", "Tansley Court")], [1.0, 0.0]);
        assert_eq!(covered("In which year was Ada Lind hired?", "2011"), 0.5);
        assert_eq!([covered("Who is Ada Lind?", "2011"), covered("", "2011")], [0.5, 0.5]);
        assert_eq!(fit("When was Ada Lind hired?", &[], "2011").covered, 0.0);
    }
}

//! How well an answer fits its question and what was read, by their words alone: whether it is of the
//! kind that the question asks for, whether the passages that it rests on say what the question asks
//! about, whether it was read at all, and whether the attempt found what it looked for. A model that
//! is sure of a wrong reading is as sure as of a right one; its words are not.
//!
//! None decides anything. They are parts of the [`Evidence`](crate::Evidence), and count what they
//! counted on the answers that a calibration was fitted on. What is not understood, such as a
//! question in another language than English, counts 0 or nothing.

use std::collections::HashSet;

use crate::citation::words::{NAME, Words, once, words};
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
    /// 1: the words of the answer stand in an observation, or it has none of its own, as `yes`; 0: they
    /// stand in no single one.
    pub shown: f64,
    /// The share of the attempt's tool calls that found what they asked for; 1 if there was none.
    pub found: f64,
    /// The share of a thought's words that stand in the question or in what was read before it: the mean
    /// over the attempt's thoughts; 1 if there was none.
    pub grounded: f64,
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

/// How `answer` fits. `turns` are those that its attempt knows; the last one is the step that gave it.
pub fn fit(question: &str, turns: &[Turn], answer: &str) -> Fit {
    Fit {
        kind: fits(asked(question), question, answer),
        covered: covered(question, turns, &citations(question, turns, answer)),
        shown: f64::from(u8::from(is_shown(turns, answer))),
        found: share(steps(turns).filter_map(found).map(|found| f64::from(u8::from(found)))),
        grounded: share(grounded(question, turns).into_iter()),
    }
}

fn steps(turns: &[Turn]) -> impl Iterator<Item = &Step> {
    turns.iter().filter_map(|turn| match turn {
        Turn::Step(step) => Some(step),
        Turn::Reflection(_) => None,
    })
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
    // a name that was typed in small letters is still one
    let titles = |step: &Step| step.sources.iter().flat_map(|source| words(&source.title).into_keys()).collect::<Vec<_>>();
    let names: Vec<String> = steps(turns).flat_map(titles).collect();
    let asked = words(question).into_iter().filter(|(word, weight)| *weight < NAME && !names.contains(word));
    let asked: Vec<String> = asked.map(|(word, _)| once(&word).to_owned()).collect();
    if asked.is_empty() {
        return 0.5;
    }
    let said: Vec<String> = rests_on.iter().flat_map(|citation| words(&citation.quote).into_keys()).collect();
    let covered = asked.iter().filter(|word| said.contains(word)).count();
    covered as f64 / asked.len() as f64
}

/// Whether all words of the answer stand in one observation.
fn is_shown(turns: &[Turn], answer: &str) -> bool {
    let answered = distinct(&words(answer));
    answered.is_empty()
        || steps(turns).filter_map(|step| step.observation.as_deref()).any(|seen| answered.is_subset(&distinct(&words(seen))))
}

/// Whether a step's observation shows what it asked for; `None`: there is none. One that shows no
/// document and repeats what was asked says that it was not found: `No sentence of Loire contains depth.`
fn found(step: &Step) -> Option<bool> {
    let (asked, seen) = step.params.as_deref().zip(step.observation.as_deref())?;
    let asked = distinct(&words(asked));
    let says_it_again = !asked.is_empty() && asked.is_subset(&distinct(&words(seen)));
    Some(!(step.sources.is_empty() && says_it_again))
}

/// For each thought with words, the share of them that was known.
fn grounded(question: &str, turns: &[Turn]) -> Vec<f64> {
    let mut known = distinct(&words(question));
    let mut shares = Vec::new();
    for step in steps(turns) {
        let thought = distinct(&words(&step.thought));
        if !thought.is_empty() {
            shares.push(thought.intersection(&known).count() as f64 / thought.len() as f64);
        }
        step.observation.iter().for_each(|seen| known.extend(distinct(&words(seen))));
    }
    shares
}

fn distinct(words: &Words) -> HashSet<String> {
    words.keys().map(|word| once(word).to_owned()).collect()
}

/// The mean; 1 of nothing.
fn share(of: impl Iterator<Item = f64>) -> f64 {
    let (sum, count) = of.fold((0.0, 0_u32), |(sum, count), one| (sum + one, count + 1));
    if count == 0 { 1.0 } else { sum / f64::from(count) }
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

    #[test]
    fn an_answer_was_read_or_not() {
        let page = read("Ada Lind", "She was hired in 2011. Her office is Tansley Court, of 1,200 square feet.");
        let shown = |answer: &str| fit("What?", std::slice::from_ref(&page), answer).shown;
        assert_eq!(["2011", "tansley court", "1200", "yes", ""].map(shown), [1.0; 5]);
        assert_eq!(["2012", "Tansley Hall"].map(shown), [0.0; 2]);
        let split = [read("Ada Lind", "Her office is Tansley Court."), read("Jo Hall", "He was hired in 2011.")];
        assert_eq!(fit("What?", &split, "Tansley Hall").shown, 0.0, "in no single observation");
    }

    #[test]
    fn a_search_in_vain_is_told_by_its_words() {
        let asked = |params: &str, turn: Turn| match turn {
            Turn::Step(step) => Turn::Step(Step { params: Some(params.into()), ..step }),
            Turn::Reflection(_) => turn,
        };
        let said = |params: &str, observation: &str| {
            Turn::Step(Step { params: Some(params.into()), observation: Some(observation.into()), ..Step::default() })
        };
        let opened = asked("Ada Lind", read("Ada Lind", "Ada Lind was hired in 2011."));
        let vain = said("depth", "No sentence of Ada Lind contains depth.");
        let computed = said("2011 < 2012", "true");
        let open = Turn::Step(Step { params: Some("2011".into()), ..Step::default() });
        let found = |turns: &[Turn]| fit("When?", turns, "2011").found;
        assert_eq!(found(&[opened.clone(), computed.clone(), open.clone()]), 1.0);
        assert_eq!(found(&[vain.clone(), opened, computed, vain, open.clone()]), 0.5);
        assert_eq!([found(&[]), found(&[open])], [1.0, 1.0]);
    }

    #[test]
    fn the_words_of_thoughts_are_known_or_not() {
        let thought = |thought: &str, observation: &str| {
            Turn::Step(Step { thought: thought.into(), observation: Some(observation.into()), ..Step::default() })
        };
        let turns = [
            thought("I need the depth of the Loire.", "The Loire is 1006 km long."),
            thought("Loire: 1006, long. That is it.", ""),
            thought("Guilds, barns.", ""),
        ];
        let grounded = |turns: &[Turn]| fit("How deep is the Loire?", turns, "").grounded;
        assert_eq!([grounded(&turns[..1]), grounded(&turns[..2]), grounded(&turns), grounded(&[])], [0.5, 0.75, 0.5, 1.0]);
    }
}

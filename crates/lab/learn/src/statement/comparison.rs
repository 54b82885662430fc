//! What two pages can be compared by, and the words for it: `How many floors does X have?` gives
//! `Which has more floors, X or Y?`.

use super::verbs::{base_of_past, past_of_base, third_of};
use super::wording::Asked;
use crate::form::answers::is_year;

/// Words for a measure, and those for more and less of it.
const MEASURES: [(&str, &str, &str); 8] = [
    ("long", "longer", "shorter"),
    ("high", "higher", "lower"),
    ("tall", "taller", "shorter"),
    ("wide", "wider", "narrower"),
    ("deep", "deeper", "shallower"),
    ("heavy", "heavier", "lighter"),
    ("large", "larger", "smaller"),
    ("expensive", "more expensive", "cheaper"),
];
/// Nouns for a measure.
const NOUNS: [(&str, &str); 12] = [
    ("length", "long"),
    ("height", "high"),
    ("elevation", "high"),
    ("width", "wide"),
    ("depth", "deep"),
    ("weight", "heavy"),
    ("mass", "heavy"),
    ("area", "large"),
    ("size", "large"),
    ("diameter", "large"),
    ("price", "expensive"),
    ("cost", "expensive"),
];
/// Nouns before or after `year`, and what was done in it.
const YEARS: [(&str, &str, &str); 10] = [
    ("birth", "was", "born"),
    ("death", "did", "die"),
    ("release", "was", "released"),
    ("launch", "was", "launched"),
    ("discovery", "was", "discovered"),
    ("completion", "was", "completed"),
    ("invention", "was", "invented"),
    ("publication", "was", "published"),
    ("foundation", "was", "founded"),
    ("construction", "was", "built"),
];
/// What makes a thing as old as it is.
const MADE: [&str; 9] = ["born", "built", "founded", "established", "launched", "set up", "opened", "completed", "laid out"];
/// What happens to people alone.
const PERSONAL: [&str; 9] = ["born", "hired", "appointed", "employed", "elected", "join", "die", "retire", "arrive"];

/// A way to compare two pages.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Wording {
    /// What stands before the first name, between the names, and after the second.
    pub(crate) around: [String; 3],
    /// Whether the greater of the two values is asked for.
    pub(crate) greater: bool,
    /// Whether it is a claim, which holds where the first one's value is the one asked for. Else
    /// the answer is the name of the one with that value.
    pub(crate) claims: bool,
}

impl Wording {
    fn which(who: &str, rest: &str, greater: bool) -> Wording {
        Wording { around: [format!("{who} {rest}, "), " or ".to_owned(), "?".to_owned()], greater, claims: false }
    }

    fn claim(before: &str, between: &str, greater: bool) -> Wording {
        Wording { around: [format!("{before} "), format!(" {between} "), "?".to_owned()], greater, claims: true }
    }
}

/// What a question about one page asks for, if two pages can be compared by it: the same text for
/// all questions for the same, and the ways to compare. `answer`: the answer.
pub(crate) fn compared(asked: &Asked, answer: &str) -> Option<(String, Vec<Wording>)> {
    let [opening, rest] = &asked.around;
    let (opening, rest) = (opening.trim_end(), rest.trim_end_matches('?').trim());
    answer.starts_with(|c: char| c.is_ascii_digit()).then_some(())?;
    let (start, auxiliary) = opening.rsplit_once(' ')?;
    if let Some(counted) = start.strip_prefix("How many ") {
        return Some((format!("number of {counted}"), counts(counted, auxiliary, rest)?));
    }
    if let Some(measure) = start.strip_prefix("How ").filter(|_| rest.is_empty()) {
        return Some((measure.to_owned(), measured(measure)?));
    }
    if ["When", "In which year"].contains(&start) && is_year(answer) {
        return Some((format!("year {rest}"), timed(auxiliary, rest)?));
    }
    let noun = opening.strip_prefix("What is the ")?.strip_suffix(" of").filter(|_| rest.is_empty())?;
    if is_year(answer) {
        let of = noun.strip_suffix(" year").or_else(|| noun.strip_prefix("year of "))?;
        let known = YEARS.iter().find(|(noun, ..)| *noun == of).map(|(_, auxiliary, verb)| (*auxiliary, (*verb).to_owned()));
        // `founding year`
        let (auxiliary, verb) = known.or_else(|| Some(("was", format!("{}ed", of.strip_suffix("ing")?))))?;
        return Some((format!("year {verb}"), timed(auxiliary, &verb)?));
    }
    let (_, measure) = NOUNS.iter().find(|(other, _)| *other == noun)?;
    Some(((*measure).to_owned(), measured(measure)?))
}

fn counts(counted: &str, auxiliary: &str, rest: &str) -> Option<Vec<Wording>> {
    let (which, begins) = match auxiliary {
        "does" => (third_of(rest), format!("Does|{rest}")),
        "is" => (format!("is {rest}"), format!("Is|{rest}")),
        _ => return None,
    };
    let (begins, verb) = begins.split_once('|')?;
    let both = [("more", true), ("fewer", false)];
    let of = |(more, greater): (&str, bool)| {
        let claim = Wording::claim(begins, &format!("{verb} {more} {counted} than"), greater);
        [Wording::which("Which", &format!("{which} {more} {counted}"), greater), claim]
    };
    Some(both.into_iter().flat_map(of).collect())
}

fn measured(measure: &str) -> Option<Vec<Wording>> {
    let (_, more, less) = MEASURES.iter().find(|(word, ..)| *word == measure)?;
    let of = |(word, greater): (&str, bool)| {
        [Wording::which("Which", &format!("is {word}"), greater), Wording::claim("Is", &format!("{word} than"), greater)]
    };
    Some([(*more, true), (*less, false)].into_iter().flat_map(of).collect())
}

/// `was` and `built`, `did` and `join the college`.
fn timed(auxiliary: &str, done: &str) -> Option<Vec<Wording>> {
    let verb = done.split(' ').next()?;
    let who = if PERSONAL.contains(&verb) { "Who" } else { "Which" };
    let (was, begins) = match auxiliary {
        "was" => (format!("was {done}"), "Was"),
        "did" => (done.replacen(verb, &past_of_base(verb), 1), "Did"),
        _ => return None,
    };
    let mut all = Vec::new();
    for (word, greater) in [("first", false), ("earlier", false), ("later", true)] {
        all.push(Wording::which(who, &format!("{was} {word}"), greater));
    }
    for (word, greater) in [("before", false), ("earlier than", false), ("after", true), ("later than", true)] {
        all.push(Wording::claim(begins, &format!("{done} {word}"), greater));
    }
    if MADE.contains(&done) {
        let newer = if done == "born" { "younger" } else { "newer" };
        for (word, greater) in [("older", false), (newer, true)] {
            all.push(Wording::which(who, &format!("is {word}"), greater));
            all.push(Wording::claim("Is", &format!("{word} than"), greater));
        }
    }
    (base_of_past(verb).is_some() || auxiliary == "did").then_some(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(before: &str, after: &str, answer: &str) -> Option<(String, Vec<String>)> {
        let asked = Asked { around: [before.to_owned(), after.to_owned()], named: None, answer: String::new() };
        let told = |one: Wording| {
            let [before, between, after] = &one.around;
            format!("{before}X{between}Y{after} {}", if one.greater { '>' } else { '<' })
        };
        compared(&asked, answer).map(|(by, all)| (by, all.into_iter().map(told).collect()))
    }

    #[test]
    fn what_has_a_number_is_compared() {
        let (by, all) = of("How many floors does ", " have?", "12").unwrap();
        assert_eq!(by, "number of floors");
        assert!(all.contains(&"Which has more floors, X or Y? >".to_owned()), "{all:#?}");
        assert!(all.contains(&"Does X have fewer floors than Y? <".to_owned()), "{all:#?}");
        let (by, all) = of("How many credits is ", " worth?", "6").unwrap();
        assert_eq!(
            (by.as_str(), all[0].as_str(), all[1].as_str()),
            ("number of credits", "Which is worth more credits, X or Y? >", "Is X worth more credits than Y? >")
        );
        let (by, all) = of("How long is ", "?", "97 km").unwrap();
        assert_eq!((by.as_str(), all.len(), all[2].as_str()), ("long", 4, "Which is shorter, X or Y? <"));
        assert_eq!(of("What is the length of ", "?", "97 km"), Some((by, all)));
        assert_eq!(of("What is the phone extension of ", "?", "4519"), None);
        assert_eq!(of("Who teaches ", "?", "Bo Ek"), None);
    }

    #[test]
    fn what_has_a_year_is_compared() {
        let (by, all) = of("When was ", " built?", "1912").unwrap();
        assert_eq!(by, "year built");
        for expected in ["Which was built first, X or Y? <", "Was X built before Y? <", "Which is newer, X or Y? >"] {
            assert!(all.iter().any(|one| one == expected), "{all:#?}");
        }
        let (_, all) = of("When did ", " join the college?", "2004").unwrap();
        for expected in ["Who joined the college later, X or Y? >", "Did X join the college after Y? >"] {
            assert!(all.iter().any(|one| one == expected), "{all:#?}");
        }
        let born = of("When was ", " born?", "1912");
        assert!(born.as_ref().is_some_and(|(_, all)| all.contains(&"Who is younger, X or Y? >".to_owned())), "{born:?}");
        assert_eq!(of("What is the birth year of ", "?", "1912"), born);
        assert_eq!(of("What is the opening year of ", "?", "1912"), of("When was ", " opened?", "1912"));
        assert_eq!(of("When was ", " built?", "April 2004"), None);
    }
}

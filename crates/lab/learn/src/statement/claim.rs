//! A question with its answer, as a claim that is true or false: `When was X built?` with 1912 is
//! `Was X built in 1912?`.

use super::verbs::{base_of_past, base_of_third};
use super::wording::Asked;
use super::words::{Sort, words};

const AUXILIARIES: [&str; 6] = ["is", "was", "are", "were", "does", "did"];

/// The claim about `subject` that the answer to a question is `value`. `None`: there is no plain one.
pub(crate) fn claim(asked: &Asked, subject: &str, value: &str) -> Option<String> {
    let [opening, rest] = &asked.around;
    let (opening, rest) = (opening.trim_end(), rest.trim_end_matches('?'));
    let (start, auxiliary) = opening.rsplit_once(' ').unwrap_or(("", opening));
    // `What is the head of X?`, `What is X's head?`
    for asks in ["What is", "Who is"] {
        if let Some(noun) = opening.strip_prefix(asks).filter(|noun| noun.starts_with(" the ")) {
            // `Is 527 the students of X?`
            let several = noun.trim_end_matches(" of").ends_with('s') && Sort::of_word(value) == Some(Sort::Number);
            return (!several).then(|| format!("Is {value}{noun} {subject}{rest}?"));
        }
        if opening == asks && rest.starts_with('\'') {
            return Some(format!("Is {value} {subject}{rest}?"));
        }
    }
    if let Some(verb) = opening.strip_prefix("Who ").filter(|verb| !AUXILIARIES.contains(verb)) {
        let (first, particle) = verb.split_once(' ').map_or((verb, String::new()), |(verb, particle)| (verb, format!(" {particle}")));
        let third = base_of_third(first).map(|base| ("Does", base));
        let (does, base) = third.or_else(|| Some(("Did", base_of_past(first)?)))?;
        return rest.is_empty().then(|| format!("{does} {value} {base}{particle} {subject}?"));
    }
    AUXILIARIES.contains(&auxiliary).then_some(())?;
    let begins = format!("{}{}", auxiliary[..1].to_uppercase(), &auxiliary[1..]);
    if let Some(counted) = start.strip_prefix("How many ") {
        return (!rest.is_empty()).then(|| format!("{begins} {subject}{rest} {value} {counted}?"));
    }
    if let Some(measure) = start.strip_prefix("How ") {
        return rest.is_empty().then(|| format!("{begins} {subject} {value} {measure}?"));
    }
    let preposition = match start {
        "When" | "On which day" | "In which year" | "In what year" | "What year" => {
            let dated = words(value).len() > 1 && words(value).first()?.is_number();
            if dated || Sort::of_word(value) == Some(Sort::Weekday) { "on " } else { "in " }
        }
        "Where" if rest.ends_with(" from") => "",
        "Where" => "in ",
        "What" | "Who" if !rest.is_empty() && !rest.starts_with('\'') => "",
        _ => return None,
    };
    Some(format!("{begins} {subject}{rest} {preposition}{value}?"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn questions_become_claims() {
        for (before, after, value, expected) in [
            ("When was ", " built?", "1912", "Was X built in 1912?"),
            ("What year did ", " join the college?", "2004", "Did X join the college in 2004?"),
            ("On which day is ", " held?", "Monday", "Is X held on Monday?"),
            ("When was ", " set up?", "3 April 2004", "Was X set up on 3 April 2004?"),
            ("Where is ", " held?", "Orlin Hall", "Is X held in Orlin Hall?"),
            ("Where does ", " come from?", "St Osk", "Does X come from St Osk?"),
            ("What is the height of ", "?", "924 m", "Is 924 m the height of X?"),
            ("Who is ", "'s mentor?", "Bo Ek", "Is Bo Ek X's mentor?"),
            ("Who teaches ", "?", "Bo Ek", "Does Bo Ek teach X?"),
            ("Who set up ", "?", "Bo Ek", "Did Bo Ek set up X?"),
            ("Who is ", " taught by?", "Bo Ek", "Is X taught by Bo Ek?"),
            ("What does ", " speak?", "Low Vesk", "Does X speak Low Vesk?"),
            ("How many floors does ", " have?", "12", "Does X have 12 floors?"),
            ("How many credits is ", " worth?", "6", "Is X worth 6 credits?"),
            ("How long is ", "?", "97 km", "Is X 97 km long?"),
        ] {
            let asked = Asked { around: [before.into(), after.into()], named: None, answer: String::new() };
            assert_eq!(claim(&asked, "X", value).as_deref(), Some(expected));
        }
        let since = Asked { around: ["Since when has ".into(), " been head?".into()], named: None, answer: String::new() };
        assert_eq!(claim(&since, "X", "1999"), None);
        let students = Asked { around: ["What is the students of ".into(), "?".into()], named: None, answer: String::new() };
        assert_eq!(claim(&students, "X", "527"), None);
    }
}

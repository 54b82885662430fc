//! The little grammar that rewording needs: indirect questions (`how long the Loire is`) and
//! statements (`the Loire is longer than the Rhine`), made from the direct questions of schemas.

use autoact_base::random::Rng;

use crate::wording_frames::EMPHASES;

/// Verbs that stand before the subject in a question and after it elsewhere.
const MOVING: [&str; 6] = ["is", "was", "are", "were", "has", "have"];
/// Auxiliaries that only questions need.
const SUPPORTING: [&str; 3] = ["does", "did", "do"];
/// First words of questions, with or without a preposition before them.
const ASKING: [&str; 8] = ["who", "whom", "whose", "what", "which", "where", "when", "how"];
/// Prepositions that a question may begin with.
const PREPOSITIONS: [&str; 10] = ["in", "on", "to", "by", "of", "at", "from", "into", "around", "with"];
/// Past tenses that are not made with `ed`.
const IRREGULAR: [(&str, &str); 22] = [
    ("come", "came"),
    ("write", "wrote"),
    ("lead", "led"),
    ("teach", "taught"),
    ("keep", "kept"),
    ("win", "won"),
    ("have", "had"),
    ("stand", "stood"),
    ("build", "built"),
    ("make", "made"),
    ("draw", "drew"),
    ("sing", "sang"),
    ("run", "ran"),
    ("go", "went"),
    ("hold", "held"),
    ("wear", "wore"),
    ("plan", "planned"),
    ("get", "got"),
    ("lie", "lay"),
    ("eat", "ate"),
    ("sell", "sold"),
    ("drink", "drank"),
];

/// The direct question as a clause: `How long is X?` becomes `how long X is`. `subject` is the text
/// that the question asks about. `None` if the question has another form.
pub(crate) fn indirect(question: &str, subject: &str) -> Option<String> {
    let body = small_start(question.strip_suffix('?')?)?;
    for verb in MOVING {
        if let Some((asking, rest)) = around(&body, verb, subject) {
            // `what X's capital is`, but `where X was born`
            return Some(match rest.strip_prefix("'s") {
                Some(_) => format!("{asking} {subject}{rest} {verb}"),
                None => format!("{asking} {subject} {verb}{rest}"),
            });
        }
    }
    for auxiliary in SUPPORTING {
        if let Some((asking, rest)) = around(&body, auxiliary, subject) {
            return Some(format!("{asking} {subject}{}", inflected(rest, auxiliary)?));
        }
    }
    if SUPPORTING.iter().chain(&["can"]).any(|auxiliary| body.contains(&format!(" {auxiliary} "))) {
        return None;
    }
    // `what is the capital of X`: the noun phrase goes before the verb
    for verb in ["is", "was", "are", "were"] {
        let Some((asking, phrase)) = body.split_once(&format!(" {verb} the ")) else { continue };
        let open = matches!(asking, "what" | "who" | "where" | "when") || asking.starts_with("how ");
        if open {
            // `what the home of the one who leads X is` is hard to read
            let clause = [" where ", " who ", " that ", " which "].iter().any(|word| phrase.contains(word));
            return (phrase.ends_with(subject) && !clause).then(|| format!("{asking} the {phrase} {verb}"));
        }
    }
    // the asking word is the subject: `who wrote X`
    Some(body)
}

/// The direct question with its asking word set apart: `What does X flow into?` becomes `What is it
/// that X flows into?`. `None` if the question has another form.
pub(crate) fn cleft(question: &str, subject: &str) -> Option<String> {
    let body = small_start(question.strip_suffix('?')?)?;
    let asked = |asking: &str| ["who", "what", "which "].iter().any(|word| asking.starts_with(word));
    for verb in MOVING {
        if let Some((asking, rest)) = around(&body, verb, subject).filter(|(asking, rest)| asked(asking) && rest.starts_with(' ')) {
            return Some(upper_first(&format!("{asking} is it that {subject} {verb}{rest}?")));
        }
    }
    for auxiliary in SUPPORTING {
        if let Some((asking, rest)) = around(&body, auxiliary, subject).filter(|(asking, _)| asked(asking)) {
            return Some(upper_first(&format!("{asking} is it that {subject}{}?", inflected(rest, auxiliary)?)));
        }
    }
    let did = body.strip_prefix("who ").filter(|did| !MOVING.iter().chain(&SUPPORTING).any(|verb| did.starts_with(verb)))?;
    Some(format!("Who is it that {did}?"))
}

/// The question with a word after its asking word: `Who exactly wrote X?`
pub(crate) fn emphasised(question: &str, rng: &mut Rng) -> Option<String> {
    let (asking, rest) = question.split_once(' ')?;
    let next = rest.split(' ').next()?;
    let verb = MOVING.contains(&next) || SUPPORTING.contains(&next);
    let fits = asking == "Who" || (verb && ["What", "Where", "When", "Which"].contains(&asking));
    fits.then(|| rng.pick(&EMPHASES).map(|emphasis| format!("{asking}{emphasis} {rest}"))).flatten()
}

/// What a clause asks for, as a noun phrase: `which country has the code 33` with the noun `country`
/// becomes `the country that has the code 33`.
pub(crate) fn described(clause: &str, noun: &str) -> Option<String> {
    for asking in ["which", "what"] {
        if let Some(rest) = clause.strip_prefix(&format!("{asking} {noun} ")) {
            return Some(format!("the {noun} that {rest}"));
        }
        for preposition in PREPOSITIONS {
            if let Some(rest) = clause.strip_prefix(&format!("{preposition} {asking} {noun} ")) {
                return Some(format!("the {noun} {preposition} which {rest}"));
            }
        }
    }
    None
}

/// The parts before ` verb subject` and after it.
fn around<'a>(body: &'a str, verb: &str, subject: &str) -> Option<(&'a str, &'a str)> {
    let (asking, rest) = body.split_once(&format!(" {verb} {subject}"))?;
    (rest.is_empty() || rest.starts_with([' ', '\''])).then_some((asking, rest))
}

/// The text with a small first letter, if it begins like a question.
fn small_start(text: &str) -> Option<String> {
    let small = text.to_lowercase();
    let mut words = small.split(' ');
    let first = words.next()?;
    let asks = ASKING.contains(&first) || (PREPOSITIONS.contains(&first) && words.next().is_some_and(|word| ASKING.contains(&word)));
    asks.then(|| lower_first(text))
}

/// ` live in Y` as what follows the subject of a statement: ` lives in Y`, ` lived in Y`.
fn inflected(rest: &str, auxiliary: &str) -> Option<String> {
    let rest = rest.strip_prefix(' ')?;
    let (verb, more) = rest.split_once(' ').map_or((rest, String::new()), |(verb, more)| (verb, format!(" {more}")));
    let form = match auxiliary {
        "does" => third_person(verb),
        "did" => past(verb),
        _ => verb.to_owned(),
    };
    Some(format!(" {form}{more}"))
}

fn third_person(verb: &str) -> String {
    match verb {
        "have" => "has".to_owned(),
        "go" => "goes".to_owned(),
        _ if ["s", "x", "ch", "sh"].iter().any(|end| verb.ends_with(end)) => format!("{verb}es"),
        _ if consonant_y(verb) => format!("{}ies", &verb[..verb.len() - 1]),
        _ => format!("{verb}s"),
    }
}

fn past(verb: &str) -> String {
    if let Some((_, past)) = IRREGULAR.iter().find(|(present, _)| *present == verb) {
        return (*past).to_owned();
    }
    match verb {
        _ if verb.ends_with('e') => format!("{verb}d"),
        _ if consonant_y(verb) => format!("{}ied", &verb[..verb.len() - 1]),
        _ => format!("{verb}ed"),
    }
}

fn consonant_y(verb: &str) -> bool {
    let mut letters = verb.chars().rev();
    letters.next() == Some('y') && letters.next().is_some_and(|letter| !"aeiou".contains(letter))
}

/// The yes/no question as a statement: `Did X write Y?` becomes `X wrote Y`. `subjects` are the
/// texts that may be its subject. `None` if none of them is.
pub(crate) fn statement(question: &str, subjects: &[&str]) -> Option<String> {
    let body = question.strip_suffix('?')?;
    let (verb, rest) = body.split_once(' ')?;
    let verb = verb.to_lowercase();
    if verb == "do" {
        return Some(rest.to_owned());
    }
    let mut fitting: Vec<&&str> = subjects.iter().filter(|subject| rest.starts_with(**subject)).collect();
    fitting.sort_by_key(|subject| std::cmp::Reverse(subject.len()));
    let subject = fitting.first()?;
    let after = &rest[subject.len()..];
    if !after.starts_with(' ') {
        return None;
    }
    if MOVING.contains(&verb.as_str()) {
        return Some(format!("{subject} {verb}{after}"));
    }
    SUPPORTING.contains(&verb.as_str()).then(|| inflected(after, &verb)).flatten().map(|after| format!("{subject}{after}"))
}

/// What a comparison asks, without the names: `Which is longer, A or B?` gives (`which`,
/// `is longer`), `Which river is longer, A or B?` (`which river`, `is longer`).
pub(crate) fn comparing(template: &str, noun: &str) -> Option<(String, String)> {
    let (head, names) = template.split_once(", ")?;
    if names != "{a} or {b}?" {
        return None;
    }
    let typed = format!("Which {noun} ");
    for asking in [typed.as_str(), "Which ", "Who "] {
        if let Some(predicate) = head.strip_prefix(asking) {
            return Some((lower_first(asking.trim_end()), predicate.to_owned()));
        }
    }
    None
}

/// `What is` as `What's`, and the like, at the beginning of a text.
pub(crate) fn contracted(text: &str) -> Option<String> {
    let short = ["What", "Who", "Where"].iter().find_map(|word| {
        let rest = text.strip_prefix(&format!("{word} is "))?;
        Some(format!("{word}'s {rest}"))
    });
    short.or_else(|| text.strip_prefix("I would ").map(|rest| format!("I'd {rest}")))
}

/// The text with its first letter small.
pub(crate) fn lower_first(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or_else(String::new, |first| first.to_lowercase().chain(chars).collect())
}

/// The text with its first letter capital.
pub(crate) fn upper_first(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or_else(String::new, |first| first.to_uppercase().chain(chars).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn direct_questions_become_clauses() {
        for (question, clause) in [
            ("How long is X?", "how long X is"),
            ("Where was X born?", "where X was born"),
            ("Who wrote X?", "who wrote X"),
            ("When did X die?", "when X died"),
            ("In which year did X come out?", "in which year X came out"),
            ("On which river does X stand?", "on which river X stands"),
            ("What is the capital of X?", "what the capital of X is"),
            ("What is X's capital?", "what X's capital is"),
            ("Which city is the capital of X?", "which city is the capital of X"),
            ("How many moons does X have?", "how many moons X has"),
            ("Where are the headquarters of X?", "where the headquarters of X are"),
            ("How much longer is X than Y?", "how much longer X is than Y"),
        ] {
            assert_eq!(indirect(question, "X").as_deref(), Some(clause), "{question}");
        }
        for none in ["Name the capital of X.", "What does the market of X sell?", "What is the call of X like?"] {
            assert_eq!(indirect(none, "X"), None, "{none}");
        }
    }

    #[test]
    fn questions_are_cleft_emphasised_and_described() {
        for (question, cleft_text) in [
            ("What does X flow into?", Some("What is it that X flows into?")),
            ("Which country is X in?", Some("Which country is it that X is in?")),
            ("Who wrote X?", Some("Who is it that wrote X?")),
            ("How long is X?", None),
            ("Who is the author of X?", None),
            ("What is X's capital?", None),
        ] {
            assert_eq!(cleft(question, "X").as_deref(), cleft_text, "{question}");
        }
        let mut rng = Rng::new(1);
        assert!(emphasised("Who wrote X?", &mut rng).unwrap().ends_with(" wrote X?"));
        assert_eq!(emphasised("Which city is it?", &mut rng), None);
        assert_eq!(described("which country has the code 33", "country").as_deref(), Some("the country that has the code 33"));
        assert_eq!(described("of which country X is the capital", "country").as_deref(), Some("the country of which X is the capital"));
        assert_eq!(described("whose capital X is", "country"), None);
    }

    #[test]
    fn yes_no_questions_become_statements() {
        for (question, stated) in [
            ("Is X longer than Y?", "X is longer than Y"),
            ("Did X write Y?", "X wrote Y"),
            ("Does X flow into Y?", "X flows into Y"),
            ("Do X and Y have the same author?", "X and Y have the same author"),
            ("Was X founded earlier than Y?", "X was founded earlier than Y"),
        ] {
            assert_eq!(statement(question, &["X", "X and Y"]).as_deref(), Some(stated), "{question}");
        }
        assert_eq!(statement("Is the crew of X larger than that of Y?", &["X"]), None);
    }

    #[test]
    fn comparisons_have_a_predicate() {
        let pair = |a: &str, b: &str| Some((a.to_owned(), b.to_owned()));
        assert_eq!(comparing("Which river is {c}, {a} or {b}?", "river"), pair("which river", "is {c}"));
        assert_eq!(comparing("Who was born {c}, {a} or {b}?", "person"), pair("who", "was born {c}"));
        assert_eq!(contracted("What is the age?").as_deref(), Some("What's the age?"));
    }
}

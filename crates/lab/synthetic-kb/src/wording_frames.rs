//! The frames that questions are worded in. `{i}` is a clause or a noun phrase, other slots are
//! named with each. The usual ones are here; `frames.toml` has many more, which only training uses.

use std::sync::LazyLock;

use serde::Deserialize;

/// Frames that only training uses: a model that has read few of them takes an unknown one for part
/// of a name, or of what is asked.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Further {
    /// Words before a question.
    pub(crate) openers: Vec<String>,
    /// Sentences before a question.
    pub(crate) contexts: Vec<String>,
    /// Sentences before a question that name something else, `{n}`.
    pub(crate) distractions: Vec<String>,
    /// Requests that a clause completes.
    pub(crate) requests: Vec<String>,
    /// Requests that a noun phrase completes.
    pub(crate) noun_requests: Vec<String>,
    /// Yes/no questions around a statement `{s}`.
    pub(crate) verify: Vec<String>,
    /// Choices between `{a}` and `{b}`; `{w}` asks which one, `{p}` is the predicate.
    pub(crate) choices: Vec<String>,
    /// What `{first}` stands for.
    pub(crate) first_names: Vec<String>,
}

/// The frames of `frames.toml`.
pub(crate) fn further() -> &'static Further {
    // a mistake in the file is found by this module's test
    static FURTHER: LazyLock<Further> = LazyLock::new(|| toml::from_str(include_str!("../frames.toml")).unwrap_or_default());
    &FURTHER
}

/// Requests that a clause (`how long the Loire is`) or a noun phrase (`the length of the Loire`)
/// completes.
pub(crate) const REQUESTS: [&str; 20] = [
    "Tell me {i}.",
    "Tell me {i}.",
    "Please tell me {i}.",
    "Can you tell me {i}?",
    "Can you tell me {i}?",
    "Could you tell me {i}?",
    "Can you please tell me {i}?",
    "Could you please tell me {i}?",
    "Would you tell me {i}?",
    "I'd like to know {i}.",
    "I would like to know {i}.",
    "I want to know {i}.",
    "I need to know {i}.",
    "Do you know {i}?",
    "Do you know {i}?",
    "Find out {i}.",
    "Please find out {i}.",
    "Let me know {i}.",
    "Can you find out {i}?",
    "Could you find out {i}?",
];
/// Requests that only a clause completes.
pub(crate) const QUESTIONS: [&str; 2] = ["Can I ask {i}?", "Please say {i}."];
/// Requests that only a noun phrase completes.
pub(crate) const IMPERATIVES: [&str; 14] = [
    "Give me {i}.",
    "Give me {i}.",
    "Please give me {i}.",
    "Can you give me {i}?",
    "Could you give me {i}?",
    "Find {i}.",
    "Please find {i}.",
    "Look up {i}.",
    "Please look up {i}.",
    "Can you look up {i}?",
    "Show me {i}.",
    "I need {i}.",
    "I am looking for {i}.",
    "I'm looking for {i}.",
];
/// The same for what has a name.
pub(crate) const NAMING: [&str; 4] = ["Name {i}.", "Please name {i}.", "Can you name {i}?", "Could you name {i}?"];
/// Wishes, which are held out.
pub(crate) const WISHES: [&str; 6] =
    ["I wonder {i}.", "I was wondering {i}.", "I keep wondering {i}.", "I have no idea {i}.", "Any idea {i}?", "I always forget {i}."];
/// Words before a question; the empty ones are the most frequent.
pub(crate) const GREETINGS: [&str; 16] =
    ["", "", "", "", "", "", "", "", "", "", "Hi, ", "Hello, ", "Hey, ", "Quick question: ", "So, ", "OK, "];
/// Words after a question, which are held out.
pub(crate) const THANKS: [&str; 6] =
    [", please", "{.} Thanks!", "{.} Thank you.", "{.} Thanks in advance.", ", do you know", ", if I may ask"];
/// Yes/no questions around a statement.
pub(crate) const VERIFY: [&str; 12] = [
    "Is it true that {s}?",
    "Is it true that {s}?",
    "Is it right that {s}?",
    "Is it correct that {s}?",
    "Is it the case that {s}?",
    "{s}, right?",
    "{s}, right?",
    "{s}, correct?",
    "{s}, true?",
    "{s}?",
    "{s}?",
    "True or false: {s}?",
];
/// Claims in a sentence of their own, which are held out.
pub(crate) const BELIEFS: [&str; 6] = [
    "I think that {s}. Is that right?",
    "I read that {s}. Is it true?",
    "Somebody told me that {s}. Is that true?",
    "Am I right that {s}?",
    "I believe {s}. Am I right?",
    "My friend says that {s}. Is that correct?",
];
/// The subject before the question, which is held out.
pub(crate) const TOPICS: [&str; 6] = [
    "Take {x}: {w} is the {r}?",
    "As for {x}, {w} is the {r}?",
    "About {x}: {w} is the {r}?",
    "Speaking of {x}, {w} is the {r}?",
    "Think of {x}. {W} is the {r}?",
    "{x} - {w} is the {r}?",
];
/// The asking word at the end, which is held out.
pub(crate) const ECHOES: [&str; 5] = ["{p} is {w}?", "{p} would be {w}?", "{p} is {w} exactly?", "And {p} is {w}?", "So {p} is {w}?"];
/// Comparisons with both names first, which are held out. `{q}` is `which` with the predicate.
pub(crate) const BETWEEN: [&str; 6] = [
    "Between {a} and {b}, {q}?",
    "Of {a} and {b}, {q}?",
    "Out of {a} and {b}, {q}?",
    "Comparing {a} with {b}, {q}?",
    "Take {a} and {b}: {q}?",
    "If you compare {a} and {b}, {q}?",
];

/// Words after the asking word.
pub(crate) const EMPHASES: [&str; 9] =
    [" exactly", " exactly", " precisely", " actually", " again", " on earth", ", by the way,", ", then,", ", exactly,"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_further_frames_have_their_slots() {
        let further: Further = toml::from_str(include_str!("../frames.toml")).unwrap();
        assert!(further.openers.len() > 80 && further.contexts.len() > 80 && further.first_names.len() > 10);
        for (frames, slots) in [
            (&further.requests, vec!["{i}"]),
            (&further.noun_requests, vec!["{i}"]),
            (&further.verify, vec!["{s}"]),
            (&further.choices, vec!["{a}", "{b}"]),
        ] {
            for frame in frames {
                assert!(slots.iter().all(|slot| frame.matches(slot).count() == 1), "{frame}");
                // what is asked ends the sentence
                assert!(slots.len() == 2 || frame.ends_with(&format!("{}.", slots[0])) || frame.ends_with('?'), "{frame}");
            }
        }
        assert!(further.distractions.iter().all(|text| text.matches("{n}").count() == 1 && text.ends_with(['.', ':'])));
        assert!(further.choices.iter().all(|frame| frame.contains("{w}") != frame.contains("{p}")));
        assert!(further.openers.iter().chain(&further.contexts).all(|text| !text.contains(['[', '\n']) && text.trim() == text));
    }
}

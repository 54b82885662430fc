//! Texts that ask for no fact: greetings, small talk, remarks, requests, wishes for advice, opinions
//! and nonsense. Each is composed of parts, so that thousands arise.

use autoact_base::random::Rng;

/// Relative frequencies: greetings, small talk, remarks, requests, advice, opinions, nonsense.
const SHARES: [f64; 7] = [0.16, 0.1, 0.1, 0.28, 0.08, 0.08, 0.2];

const HELLO: [&str; 14] = [
    "hi",
    "hey",
    "good morning",
    "good evening",
    "hello there",
    "hi there",
    "greetings",
    "good day",
    "hey there",
    "howdy",
    "good afternoon",
    "hello again",
    "hiya",
    "welcome back",
];
const WHOM: [&str; 12] =
    ["", "", "", " friend", " everyone", " assistant", " robot", " team", " my dear", " all", " dear group", " you three"];
const AFTER: [&str; 14] = [
    "",
    "",
    "",
    "",
    " How are you?",
    " Nice to meet you.",
    " I hope you are well.",
    " Long time no see.",
    " I am back.",
    " It is me again.",
    " Are you there?",
    " What's up?",
    " I have a question.",
    " Can you help me?",
];
const TALK: [&str; 22] = [
    "How are you",
    "How was your day",
    "What is your name",
    "Who made you",
    "Are you a robot",
    "Do you like music",
    "What are you doing",
    "Did you sleep well",
    "Are you busy",
    "Do you ever get tired",
    "Are we friends",
    "Can you hear me",
    "What is your favourite colour",
    "Do you dream",
    "How old are you",
    "Where do you live",
    "Are you happy",
    "Will you remember me",
    "Do you have feelings",
    "What did you eat",
    "Is anybody there",
    "Do you speak other languages",
];
const TALK_AFTER: [&str; 8] = ["?", "?", "?", " today?", " now?", ", my friend?", " these days", ", assistant?"];
const REMARKS: [&str; 12] = [
    "thank you",
    "thanks a lot",
    "that is great",
    "I am tired",
    "I do not understand",
    "that was wrong",
    "you are funny",
    "I am bored",
    "well done",
    "never mind",
    "I like that",
    "see you later",
];
const REMARK_AFTER: [&str; 12] =
    ["", "", ".", "!", " for your help.", ", really.", " today.", ", goodbye.", " so much!", ", I think.", " after all.", ", good night."];
const VERBS: [&str; 12] =
    ["Write", "Compose", "Make up", "Invent", "Draft", "Create", "Draw", "Sing", "Translate", "Send", "Prepare", "Improve"];
const WORKS: [&str; 24] = [
    "a poem",
    "a song",
    "a short story",
    "an email",
    "a letter",
    "a speech",
    "a joke",
    "a limerick",
    "a picture",
    "a shopping list",
    "a recipe",
    "a cover letter",
    "a haiku",
    "a dialogue",
    "a summary",
    "an advertisement",
    "an invitation",
    "a birthday card",
    "a plan",
    "a program",
    "a spreadsheet",
    "a logo",
    "a lullaby",
    "a toast",
];
const ABOUT: [&str; 20] = [
    "the sea",
    "my dog",
    "a rainy day",
    "love",
    "my boss",
    "autumn leaves",
    "the weekend",
    "a lost key",
    "the future",
    "an old friend",
    "a wedding",
    "my holidays",
    "the stars",
    "a brave mouse",
    "breakfast",
    "the new office",
    "a long journey",
    "silence",
    "the moon and me",
    "a broken heart",
];
const ASKED: [&str; 8] = ["", "", "", "Please ", "Can you ", "Could you please ", "I want you to ", "Would you "];
const ORDERS: [&str; 16] = [
    "Book a table for two",
    "Set an alarm for seven",
    "Turn off the light",
    "Play some music",
    "Remind me to call my mother",
    "Order a pizza",
    "Open the window",
    "Call a taxi",
    "Buy me a train ticket",
    "Delete all my files",
    "Reset my password",
    "Sort these numbers",
    "Clean the kitchen",
    "Fix my computer",
    "Send money to my brother",
    "Cancel my appointment",
];
const ORDER_AFTER: [&str; 8] = ["", ".", ", please.", " now.", " tomorrow.", " at once.", " for me.", " tonight."];
const ADVICE: [&str; 14] = [
    "How do I bake bread",
    "How can I lose weight",
    "Should I buy a new car",
    "What should I wear",
    "How do I learn to swim",
    "What shall I cook",
    "How can I sleep better",
    "Which job should I take",
    "How do I tie a tie",
    "How can I save money",
    "What should I read next",
    "How do I get rid of ants",
    "Should I call her back",
    "How do I grow tomatoes",
];
const ADVICE_AFTER: [&str; 7] = ["?", "?", " quickly?", " at home?", " this week?", " without help?", ""];
const OPINION: [&str; 8] = [
    "What do you think of ",
    "Do you like ",
    "Is it worth seeing ",
    "Who is better than ",
    "Why does everybody love ",
    "How do you feel about ",
    "What is so special about ",
    "Would you recommend ",
];
const SYLLABLES: [&str; 20] =
    ["ba", "lo", "fli", "gru", "zop", "ka", "mi", "sna", "tro", "wex", "qui", "bli", "pum", "do", "ra", "vek", "xo", "hum", "ni", "jaf"];
const LOOSE: [&str; 28] = [
    "green", "runs", "the", "of", "seven", "quickly", "table", "because", "under", "blue", "why", "eats", "on", "cloud", "is", "not",
    "window", "and", "sleeping", "what", "spoon", "over", "them", "loud", "from", "nothing", "jumped", "who",
];

/// A text that asks for no fact, and what it is. `title` may stand in it.
pub(crate) fn idle(title: Option<&str>, rng: &mut Rng) -> (String, &'static str) {
    let (text, what) = match rng.weighted(&SHARES).unwrap_or_default() {
        0 => (format!("{}{}{}{}", any(&HELLO, rng), any(&WHOM, rng), any(&["", "!", ".", ","], rng), any(&AFTER, rng)), "a greeting"),
        1 => (format!("{}{}", any(&TALK, rng), any(&TALK_AFTER, rng)), "small talk"),
        2 => (format!("{}{}", any(&REMARKS, rng), any(&REMARK_AFTER, rng)), "a remark"),
        3 => (request(title, rng), "a request"),
        4 => (format!("{}{}", any(&ADVICE, rng), any(&ADVICE_AFTER, rng)), "a wish for advice"),
        5 => (format!("{}{}?", any(&OPINION, rng), title.unwrap_or("this")), "a matter of opinion"),
        _ => (nonsense(title, rng), "nonsense"),
    };
    (capital(text.trim_end_matches(',').trim(), rng), what)
}

fn request(title: Option<&str>, rng: &mut Rng) -> String {
    let asked = any(&ASKED, rng);
    let polite = |text: &str| if asked.is_empty() { text.to_owned() } else { format!("{asked}{}{}", text[..1].to_lowercase(), &text[1..]) };
    if rng.chance(0.35) {
        return format!("{}{}", polite(any(&ORDERS, rng)), any(&ORDER_AFTER, rng));
    }
    let about = match title.filter(|_| rng.chance(0.4)) {
        Some(title) => title,
        None => any(&ABOUT, rng),
    };
    let whole = format!("{} {} about {about}", any(&VERBS, rng), any(&WORKS, rng));
    let end = any(&["", ".", "!", " for me.", ", please."], rng);
    format!("{}{end}", polite(&whole))
}

/// Letters, made words, words in no order, a name alone in a heap of words, signs.
fn nonsense(title: Option<&str>, rng: &mut Rng) -> String {
    let count = 1 + rng.below(5);
    match rng.below(5) {
        0 => words(count, rng, |rng| {
            let letters = 3 + rng.below(8);
            mashed(letters, rng)
        }),
        1 => words(count, rng, |rng| {
            let parts = 2 + rng.below(3);
            (0..parts).map(|_| any(&SYLLABLES, rng)).collect()
        }),
        2 => words(count + 2, rng, |rng| any(&LOOSE, rng).to_owned()),
        3 => format!("{} {} {}", words(count, rng, |rng| any(&LOOSE, rng).to_owned()), title.unwrap_or("it"), any(&LOOSE, rng)),
        _ => words(count, rng, |rng| {
            let signs = 2 + rng.below(5);
            (0..signs).map(|_| any(&["?", "!", "#", "%", "&", "1", "7", "x", "-", "."], rng)).collect()
        }),
    }
}

fn words(count: usize, rng: &mut Rng, mut word: impl FnMut(&mut Rng) -> String) -> String {
    let all: Vec<String> = (0..count).map(|_| word(rng)).collect();
    format!("{}{}", all.join(" "), any(&["", "", "?", "."], rng))
}

/// Letters as a hand falls on a keyboard.
pub(crate) fn mashed(letters: usize, rng: &mut Rng) -> String {
    (0..letters)
        .map(|_| any(&["a", "s", "d", "f", "j", "k", "l", "q", "w", "e", "r", "u", "i", "o", "z", "x", "v", "n", "m"], rng))
        .collect()
}

fn any(texts: &[&'static str], rng: &mut Rng) -> &'static str {
    rng.pick(texts).copied().unwrap_or_default()
}

/// Half of the texts begin with a capital.
fn capital(text: &str, rng: &mut Rng) -> String {
    let mut chars = text.chars();
    match chars.next().filter(|_| rng.chance(0.5)) {
        Some(first) => first.to_uppercase().chain(chars).collect(),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thousands_of_texts_arise() {
        let mut rng = Rng::new(1);
        let texts: std::collections::HashSet<String> = (0..6000).map(|_| idle(Some("Lima"), &mut rng).0).collect();
        assert!(texts.len() > 3000, "{}", texts.len());
        assert!(texts.iter().all(|text| !text.is_empty() && !text.contains('\n')));
    }
}

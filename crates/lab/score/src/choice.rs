//! Multiple choice in ScienceQA's form: the options are in the question's text
//! (`Options: (A) … (B) …`). An answer names one of them by its letter, by its text, or by both
//! (`B. Louisiana`).

use crate::answer::normalize;

/// Number of options that have letters.
const LETTERS: usize = 26;

/// The letter of the option at `index`: `A` for 0, `?` after `Z`.
pub fn label(index: usize) -> char {
    u8::try_from(index).ok().filter(|at| usize::from(*at) < LETTERS).map_or('?', |at| char::from(b'A' + at))
}

/// A question with its options, as agents read it: `Which? Options: (A) one (B) two`. Without
/// options it is unchanged.
pub fn with_options<S: AsRef<str>>(question: &str, options: &[S]) -> String {
    if options.is_empty() {
        return question.to_owned();
    }
    let listed: Vec<String> = options.iter().enumerate().map(|(index, option)| format!("({}) {}", label(index), option.as_ref())).collect();
    format!("{question} Options: {}", listed.join(" "))
}

/// The question without its options: the inverse of [`with_options`].
pub fn without_options(question: &str) -> &str {
    question.rsplit_once(" Options: (A)").map_or(question, |(question, _)| question)
}

/// The options in a question's text, without letters; empty without `Options: (A) …`.
pub fn options(question: &str) -> Vec<String> {
    let Some((_, list)) = question.rsplit_once("Options:") else { return Vec::new() };
    let end = ["\n", " Caption:"].iter().filter_map(|mark| list.trim_start().find(mark)).min();
    let list = list.trim_start();
    let mut rest = &list[..end.unwrap_or(list.len())];
    let Some(after) = rest.strip_prefix("(A)") else { return Vec::new() };
    rest = after;
    let mut options = Vec::new();
    for index in 1..=LETTERS {
        let next = format!("({})", label(index));
        match rest.split_once(&next).filter(|_| index < LETTERS) {
            Some((option, after)) => {
                options.push(option.trim().to_owned());
                rest = after;
            }
            None => {
                options.push(rest.trim().to_owned());
                break;
            }
        }
    }
    options
}

/// The index of the option that an answer names. `None` if it names none, if its text fits several,
/// or if letter and text contradict each other.
pub fn named<S: AsRef<str>>(answer: &str, options: &[S]) -> Option<usize> {
    let answer = stripped(answer);
    match lettered(answer).filter(|(index, _)| *index < options.len()) {
        Some((index, rest)) => by_text(rest, options).is_none_or(|named| named == index).then_some(index),
        None => by_text(answer, options),
    }
}

/// The index of the option with this text.
fn by_text<S: AsRef<str>>(answer: &str, options: &[S]) -> Option<usize> {
    // options may differ in punctuation only, so exact equality comes first
    if let Some(index) = options.iter().position(|option| option.as_ref().trim() == answer) {
        return Some(index);
    }
    let wanted = normalize(answer);
    let mut same = options.iter().enumerate().filter(|(_, option)| !wanted.is_empty() && normalize(option.as_ref()) == wanted);
    match (same.next(), same.next()) {
        (Some((index, _)), None) => Some(index),
        _ => None,
    }
}

/// Removes `Answer:` or `The answer is` at the beginning.
fn stripped(answer: &str) -> &str {
    let answer = answer.trim();
    for prefix in ["answer:", "the answer is"] {
        if let Some(head) = answer.get(..prefix.len()).filter(|head| head.eq_ignore_ascii_case(prefix)) {
            return answer[head.len()..].trim();
        }
    }
    answer
}

/// The index of the letter in `B`, `b`, `(B)`, `B.`, `B) text` or `B: text`, and the text after it.
/// A letter followed by a space (`A volcano`) is text.
fn lettered(answer: &str) -> Option<(usize, &str)> {
    let (open, inner) = answer.strip_prefix('(').map_or((false, answer), |inner| (true, inner));
    let mut chars = inner.chars();
    let letter = chars.next().filter(char::is_ascii_alphabetic)?;
    let index = usize::from(letter.to_ascii_uppercase() as u8 - b'A');
    let mark = chars.next();
    let rest = chars.as_str();
    let ends = match mark {
        None => !open,
        Some(')') => true,
        Some('.' | ':') => !open && !rest.starts_with(|c: char| !c.is_whitespace()),
        Some(_) => false,
    };
    ends.then(|| (index, rest.trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const QUESTION: &str = "Which of these states is the farthest north?\nOptions: (A) West Virginia (B) Louisiana (C) Arizona";

    #[test]
    fn options_are_read_from_the_question() {
        assert_eq!(options(QUESTION), ["West Virginia", "Louisiana", "Arizona"]);
        assert_eq!(options(&format!("{QUESTION}\nCaption: A painting (B) of a forest.")), ["West Virginia", "Louisiana", "Arizona"]);
        assert_eq!(options(&format!("{QUESTION} Caption: A painting.").replace('\n', " ")), ["West Virginia", "Louisiana", "Arizona"]);
        assert_eq!(options("Options: (A) one"), ["one"]);
        assert!(options("Which one?").is_empty());
        assert!(options("Options: none").is_empty());
    }

    #[test]
    fn answers_name_options_by_letter_or_text() {
        let options = options(QUESTION);
        for answer in
            ["B", "b", "(B)", "B.", "B)", "B. Louisiana", "(B) Louisiana", "B: Louisiana", "louisiana.", "Answer: B", "The answer is (B)"]
        {
            assert_eq!(named(answer, &options), Some(1), "{answer}");
        }
        for answer in ["", "D", "Texas", "(", "?", "B12", "A volcano", "B.12", "B. West Virginia"] {
            assert_eq!(named(answer, &options), None, "{answer}");
        }
    }

    #[test]
    fn options_that_differ_in_punctuation_are_told_apart() {
        let options = ["The Law of Life", "\"The Law of Life\""];
        assert_eq!(named("\"The Law of Life\"", &options), Some(1));
        assert_eq!(named("The Law of Life", &options), Some(0));
        assert_eq!(named("the law of life", &options), None);
        assert_eq!(named("A volcano", &["A river", "A volcano"]), Some(1));
    }

    #[test]
    fn options_are_written_as_they_are_read() {
        let list = ["West Virginia", "Louisiana"];
        assert_eq!(with_options("Which?", &list), "Which? Options: (A) West Virginia (B) Louisiana");
        assert_eq!(options(&with_options("Which?", &list)), list);
        assert_eq!(with_options::<&str>("Which?", &[]), "Which?");
    }

    #[test]
    fn letters_end_at_z() {
        assert_eq!((label(0), label(25), label(26)), ('A', 'Z', '?'));
    }
}

//! Arithmetic in words and signs: `What is 17 times 23?`, `how much is nine minus four`, `12 + 30`.

use autoact_base::random::{Rng, stable_hash};

use crate::question::{Kind, Question, QuestionPlan};
use crate::text::fill;

/// Probability that a number below [`WORDS`] is written as a word.
const AS_WORD: f64 = 0.25;
/// Numbers from here on are written in digits.
const WORDS: i64 = 100;
/// Probability of a plain sum, without words around it.
const BARE: f64 = 0.15;
/// Probability of a comparison of two numbers.
const COMPARED: f64 = 0.12;

const SMALL: [&str; 20] = [
    "zero",
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
];
const TENS: [&str; 10] = ["", "", "twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"];

/// How a sum is asked for: `{s}` is the sum.
const FRAMES: [&str; 16] = [
    "What is {s}?",
    "What's {s}?",
    "How much is {s}?",
    "Calculate {s}.",
    "Compute {s}.",
    "what is {s}",
    "how much is {s}",
    "{s} = ?",
    "What does {s} make?",
    "Tell me what {s} is.",
    "Can you work out {s}?",
    "{s} equals what?",
    "what do you get for {s}",
    "Work out {s}",
    "I need {s}.",
    "Please add up: {s}",
];
const ENDS: [&str; 3] = ["{s}", "{s}?", "{s} ="];

/// An operator: its sign for the calculator, and its spellings between two numbers.
struct Operator {
    sign: &'static str,
    spelt: &'static [&'static str],
    /// Spellings of the whole: `{a}` and `{b}`.
    whole: &'static [&'static str],
}

const OPERATORS: [Operator; 4] = [
    Operator { sign: "+", spelt: &["+", "plus", "and"], whole: &["the sum of {a} and {b}", "{b} more than {a}", "{a} added to {b}"] },
    Operator { sign: "-", spelt: &["-", "minus", "less", "−"], whole: &["the difference between {a} and {b}", "{b} less than {a}"] },
    Operator { sign: "*", spelt: &["*", "times", "x", "×", "multiplied by"], whole: &["the product of {a} and {b}"] },
    Operator { sign: "/", spelt: &["/", "divided by", "÷", "over"], whole: &["{a} split into {b} equal parts"] },
];

/// Comparisons: the sign and the spelling.
const RELATIONS: [(&str, &str); 6] =
    [(">", "more than"), (">", "greater than"), (">", "larger than"), ("<", "less than"), ("<", "smaller than"), (">", "bigger than")];

/// A random question of arithmetic.
pub(crate) fn arithmetic(rng: &mut Rng) -> Option<Question> {
    if rng.chance(COMPARED) {
        return compared(rng);
    }
    let operator = rng.pick(&OPERATORS)?;
    let (a, b) = numbers(operator.sign, rng);
    let (mut value, mut expression) = (worth(operator.sign, a, b), format!("{a} {} {b}", operator.sign));
    let (x, y) = (written(a, rng), written(b, rng));
    let mut sum = if rng.chance(0.15) {
        fill(rng.pick(operator.whole)?, |slot| match slot {
            "a" => Some(x.clone()),
            "b" => Some(y.clone()),
            _ => None,
        })
    } else {
        let spelt = rng.pick(operator.spelt)?;
        let tight = !spelt.chars().any(char::is_alphabetic) && rng.chance(0.25);
        if tight { format!("{x}{spelt}{y}") } else { format!("{x} {spelt} {y}") }
    };
    // a third number, where the order of the operators says nothing
    if operator.sign == "+" && sum.starts_with(&x) && rng.chance(0.2) {
        let c = rng.between(2, 300);
        sum.push_str(&format!(" plus {}", written(c, rng)));
        (value, expression) = (value + c, format!("{expression} + {c}"));
    }
    let frames: &[&str] =
        if rng.chance(BARE) { &ENDS } else { &FRAMES[..if operator.sign == "+" { FRAMES.len() } else { FRAMES.len() - 1 }] };
    let text = fill(rng.pick(frames)?, |slot| (slot == "s").then(|| sum.clone()));
    Some(question(text, value.to_string(), expression))
}

fn compared(rng: &mut Rng) -> Option<Question> {
    let (a, b) = (rng.between(2, 5000), rng.between(2, 5000));
    let (sign, spelt) = *rng.pick(&RELATIONS)?;
    let holds = if sign == ">" { a > b } else { a < b };
    let text = format!("Is {} {spelt} {}?", written(a, rng), written(b, rng));
    (a != b).then(|| question(text, if holds { "yes" } else { "no" }.to_owned(), format!("{a} {sign} {b}")))
}

fn question(text: String, answer: String, expression: String) -> Question {
    let id = format!("arithmetic-{:010x}", stable_hash(&expression) >> 24);
    let plan = QuestionPlan::Calculate { expression };
    Question {
        id,
        text,
        answer,
        kind: Kind::Arithmetic,
        hops: 0,
        chain: Vec::new(),
        entities: Vec::new(),
        plan,
        written: None,
        spelt: Vec::new(),
        family: None,
    }
}

/// Two numbers whose result is a whole number, and not below zero more often than not.
fn numbers(sign: &str, rng: &mut Rng) -> (i64, i64) {
    let large = *rng.pick(&[20, 100, 100, 1000, 9999]).unwrap_or(&100);
    let (a, b) = (rng.between(2, large), rng.between(2, large));
    match sign {
        "-" if a < b && rng.chance(0.9) => (b, a),
        "*" => (a, rng.between(2, 99)),
        "/" => {
            let by = rng.between(2, 40);
            (by * rng.between(2, large.min(500)), by)
        }
        _ => (a, b),
    }
}

fn worth(sign: &str, a: i64, b: i64) -> i64 {
    match sign {
        "+" => a + b,
        "-" => a - b,
        "*" => a * b,
        _ => a / b,
    }
}

/// A number in digits, or as a word if it is a small one.
fn written(number: i64, rng: &mut Rng) -> String {
    if !(0..WORDS).contains(&number) || !rng.chance(AS_WORD) {
        return number.to_string();
    }
    let at = |index: i64| usize::try_from(index).unwrap_or_default();
    if number < 20 {
        return SMALL[at(number)].to_owned();
    }
    let (ten, one) = (TENS[at(number / 10)], at(number % 10));
    if one == 0 { ten.to_owned() } else { format!("{ten}-{}", SMALL[one]) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_written_as_words() {
        let mut rng = Rng::new(1);
        let mut seen: Vec<String> = (0..200).map(|_| written(42, &mut rng)).collect();
        seen.sort();
        seen.dedup();
        assert_eq!(seen, ["42", "forty-two"]);
        assert!((0..50).all(|_| written(1006, &mut rng) == "1006"));
    }

    #[test]
    fn many_forms_arise_and_their_answers_are_right() {
        let mut rng = Rng::new(2);
        let mut forms = std::collections::HashSet::new();
        for _ in 0..2000 {
            let question = arithmetic(&mut rng).filter(|question| question.is_answerable());
            let Some(question) = question else { continue };
            let digits = |text: &str| text.split(|c: char| c.is_ascii_digit()).collect::<String>();
            forms.insert(digits(&question.text));
        }
        assert!(forms.len() > 300, "{}", forms.len());
    }
}

//! Arithmetic in words and signs: `What is 17 times 23?`, `how much is nine minus four`, `12 + 30`.
//!
//! A form has a shape such as `(a + b) * c`. Its text is written with operators, as a name of the
//! sum, as an order, or as a whole question. Frames, openings and endings come around it.

use autoact_base::random::{Rng, stable_hash};

use crate::arithmetic_words::{
    ASK_ENDS, ASKS, CLOSINGS, COMPARISONS, ENDS, Form, NESTED, OPENINGS, OPERATORS, ORDER_ASKS, ORDER_TELLS, OWNERS, PAIRS, RELATIONS,
    SIGNED, SINGLES, SMALL, TELL_ENDS, TELLS, TENS, THINGS, TRIPLES,
};
use crate::question::{Kind, Question, QuestionPlan};
use crate::text::fill;

/// Up to which number, and how probably, numbers are written in words. Larger ones are in digits.
/// People seldom spell out a large number.
const AS_WORDS: [(i64, f64); 3] = [(99, 0.3), (999, 0.15), (9999, 0.05)];
/// Probability of an `and` within a number in words, where it may stand.
const WITH_AND: f64 = 0.6;
/// Probability of a plain sum, without words around it.
const BARE: f64 = 0.15;
/// Probability of a frame for signs, if the sum is written with operators.
const WITH_SIGNS: f64 = 0.2;
/// Probability of a comparison of two numbers.
const COMPARED: f64 = 0.12;
/// Probability that operators are written in words.
const SPELT: f64 = 0.45;
/// Probability that there are no blanks around signs.
const TIGHT: f64 = 0.3;
/// Probability of a question instead of a request.
const ASKED: f64 = 0.6;
/// Probability of an opening before the question.
const OPENED: f64 = 0.08;
/// Probability of an ending after the question.
const CLOSED: f64 = 0.06;
/// Probability that all is in lower case.
const LOWER: f64 = 0.25;
/// Probability that a difference that would be negative is turned around.
const UPRIGHT: f64 = 0.9;
/// Weights of the groups of forms: pairs, singles, triples, nested ones.
const GROUPS: [f64; 4] = [0.54, 0.14, 0.18, 0.14];

/// A random question of arithmetic.
pub(crate) fn arithmetic(rng: &mut Rng) -> Option<Question> {
    if rng.chance(COMPARED) {
        return compared(rng);
    }
    let group = match rng.weighted(&GROUPS)? {
        0 => PAIRS,
        1 => SINGLES,
        2 => TRIPLES,
        _ => NESTED,
    };
    let form = rng.pick(group)?;
    let numbers = numbers(form.shape, rng);
    let value = (form.worth)(numbers[0], numbers[1], numbers[2]);
    let text = asked(form, numbers, value, rng)?;
    Some(question(finished(&text, rng)?, value.to_string(), expression(form.shape, numbers)))
}

/// A comparison of two numbers, whose answer is yes or no.
fn compared(rng: &mut Rng) -> Option<Question> {
    let large = *rng.pick(&[20, 100, 1000, 5000, 9999])?;
    let (a, b) = (rng.between(2, large), rng.between(2, large));
    let (sign, relation) = *rng.pick(RELATIONS)?;
    let holds = if sign == ">" { a > b } else { a < b };
    let template = *rng.pick(COMPARISONS)?;
    let (x, y) = (written(a, rng), written(b, rng));
    let text = fill(template, |slot| match slot {
        "a" => Some(x.clone()),
        "b" => Some(y.clone()),
        "r" => Some(relation.to_owned()),
        "s" => Some(sign.to_owned()),
        _ => None,
    });
    let text = finished(&format!("{text}{}", rng.pick(ASK_ENDS)?), rng)?;
    (a != b).then(|| question(text, if holds { "yes" } else { "no" }.to_owned(), format!("{a} {sign} {b}")))
}

/// The question of a text, its answer and what the calculator gets.
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

/// The text of a form with its frame. A negative result is asked for by operators or an order.
fn asked(form: &Form, numbers: [i64; 3], value: i64, rng: &mut Rng) -> Option<String> {
    let weight = |texts: &[&str], most: f64| if texts.is_empty() || value < 0 { 0.0 } else { most };
    // one number or a percentage is seldom written with operators
    let plain = form.shape.contains('b') && !form.shape.ends_with("100");
    let between = if plain { 2.0 } else { 0.3 };
    match rng.weighted(&[between, weight(form.nouns, 1.2), 1.2, weight(form.asked, 1.0)])? {
        0 => {
            let sum = infix(form.shape, numbers, rng)?;
            if rng.chance(BARE) {
                return framed(&sum, ENDS, &[""], rng);
            }
            if rng.chance(WITH_SIGNS) {
                return framed(&sum, SIGNED, &[""], rng);
            }
            in_frame(&sum, (ASKS, TELLS), rng)
        }
        1 => {
            let sum = filled(rng.pick(form.nouns)?, numbers, rng);
            if rng.chance(BARE / 2.0) { framed(&sum, ENDS, &[""], rng) } else { in_frame(&sum, (ASKS, TELLS), rng) }
        }
        2 => {
            let order = filled(rng.pick(form.orders)?, numbers, rng);
            in_frame(&order, (ORDER_ASKS, ORDER_TELLS), rng)
        }
        _ => {
            let text = filled(rng.pick(form.asked)?, numbers, rng);
            framed(&text, &["{s}"], ASK_ENDS, rng)
        }
    }
}

/// A sum or an order in a question or a request.
fn in_frame(sum: &str, (asks, tells): (&[&str], &[&str]), rng: &mut Rng) -> Option<String> {
    if rng.chance(ASKED) { framed(sum, asks, ASK_ENDS, rng) } else { framed(sum, tells, TELL_ENDS, rng) }
}

/// A sum in one of the frames, with one of the ends.
fn framed(sum: &str, frames: &[&str], ends: &[&str], rng: &mut Rng) -> Option<String> {
    let text = fill(rng.pick(frames)?, |slot| (slot == "s").then(|| sum.to_owned()));
    let end = *rng.pick(ends)?;
    Some(format!("{text}{end}"))
}

/// The text with an opening, an ending, and a capital at its start or none at all.
fn finished(text: &str, rng: &mut Rng) -> Option<String> {
    let opening = if rng.chance(OPENED) { *rng.pick(OPENINGS)? } else { "" };
    let marked = text.ends_with('?') || text.ends_with('.') || text.ends_with('!');
    let closing = if marked && rng.chance(CLOSED) { *rng.pick(CLOSINGS)? } else { "" };
    let apart = opening.ends_with(". ") || opening.ends_with("! ");
    let text = if apart { capitalised(text) } else { text.to_owned() };
    let whole = format!("{opening}{text}{closing}");
    Some(if rng.chance(LOWER) { whole.to_lowercase() } else { capitalised(&whole) })
}

/// The text with a capital at its start.
fn capitalised(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map(|first| first.to_uppercase().chain(chars).collect()).unwrap_or_default()
}

/// A template with its numbers, things and owners. Beside an `and` the numbers have none.
fn filled(template: &str, numbers: [i64; 3], rng: &mut Rng) -> String {
    let with_and = !template.contains(" and ");
    let mut texts = numbers.map(|number| spelled(number, with_and, rng));
    if template.contains("{b}%") || template.contains("{b} %") {
        texts[1] = numbers[1].to_string();
    }
    let thing = rng.pick(THINGS).copied().unwrap_or("things");
    let owner = rng.pick(OWNERS).copied().unwrap_or("I have");
    fill(template, |slot| match slot {
        "a" => Some(texts[0].clone()),
        "b" => Some(texts[1].clone()),
        "c" => Some(texts[2].clone()),
        "n" => Some(thing.to_owned()),
        "o" => Some(owner.to_owned()),
        _ => None,
    })
}

/// A sum written with operators between its numbers: `12 times 3`, `12·3`, `(4+6) x 12`.
fn infix(shape: &str, numbers: [i64; 3], rng: &mut Rng) -> Option<String> {
    let in_words = rng.chance(SPELT);
    let mut spelt = Vec::new();
    for operator in OPERATORS {
        let spellings = if in_words { operator.words } else { operator.signs };
        spelt.push((operator.sign, *rng.pick(spellings)?));
    }
    let texts = numbers.map(|number| written(number, rng));
    let mut text = String::new();
    for c in shape.chars() {
        match c {
            'a' => text.push_str(&texts[0]),
            'b' => text.push_str(&texts[1]),
            'c' => text.push_str(&texts[2]),
            _ => match spelt.iter().find(|pair| pair.0 == c) {
                Some(pair) => text.push_str(pair.1),
                None => text.push(c),
            },
        }
    }
    let plain = !text.chars().any(|c| c.is_alphabetic() && c != 'x');
    Some(if plain && rng.chance(TIGHT) { text.replace(' ', "") } else { text })
}

/// What the calculator gets.
fn expression(shape: &str, numbers: [i64; 3]) -> String {
    let one = |c: char| match c {
        'a' => numbers[0].to_string(),
        'b' => numbers[1].to_string(),
        'c' => numbers[2].to_string(),
        _ => c.to_string(),
    };
    shape.chars().map(one).collect()
}

/// Numbers whose result is a whole number, and not below zero more often than not.
fn numbers(shape: &str, rng: &mut Rng) -> [i64; 3] {
    let large = *rng.pick(&[12, 20, 100, 100, 1000, 9999]).unwrap_or(&100);
    let (a, b, c) = (rng.between(2, large), rng.between(2, large), rng.between(2, large));
    let (high, low) = (a.max(b), a.min(b));
    let (by, part) = (rng.between(2, 40), rng.between(2, large.min(500)));
    let upright = rng.chance(UPRIGHT);
    match shape {
        "a - b" if upright => [high, low, c],
        "a * b" if rng.chance(0.5) => [a, rng.between(2, 99), c],
        "a * b" => [rng.between(2, 99), b, c],
        "a / b" => [by * part, by, c],
        "a / 2" => [2 * part, b, c],
        "a / 3" => [3 * part, b, c],
        "a / 4" => [4 * part, b, c],
        "a / 5" => [5 * part, b, c],
        "a / 10" => [10 * part, b, c],
        "a * a" => [rng.between(2, 120), b, c],
        "a * a * a" => [rng.between(2, 20), b, c],
        "a * b / 100" => {
            let percent = *rng.pick(&[1, 3, 5, 10, 12, 15, 20, 25, 30, 40, 50, 60, 75, 80, 90]).unwrap_or(&50);
            let step = [2, 4, 5, 10, 20, 25].into_iter().find(|step: &i64| percent * *step % 100 == 0).unwrap_or(100);
            [step * part.min(99), percent, c]
        }
        "a * b * c" => [rng.between(2, 60), rng.between(2, 30), rng.between(2, 20)],
        "a + b - c" if upright && c > a + b => [c, b, a],
        "a - b + c" => [high, low, c],
        "a - b - c" if upright && a < b + c => [a + b + c, b, c],
        "(a + b) * c" | "c * (a + b)" => [a, b, by],
        "(a - b) * c" | "c * (a - b)" => [high, low, by],
        "(a + b) / c" => {
            let first = rng.between(2, by * part - 2);
            [first, by * part - first, by]
        }
        "(a - b) / c" => [by * part + b, b, by],
        "c / (a + b)" => {
            let first = rng.between(2, by);
            [first, by, (first + by) * part]
        }
        "c / (a - b)" => [b + by, b, by * part],
        "c - (a + b)" => [a, b, a + b + c],
        "c - (a - b)" => [high, low, c + high - low],
        "(a + b) / 2" => [a, b + (a + b) % 2, c],
        _ => [a, b, c],
    }
}

/// A number in digits or in words, with or without an `and` in it.
fn written(number: i64, rng: &mut Rng) -> String {
    spelled(number, true, rng)
}

/// A number in digits or in words, by [`AS_WORDS`].
fn spelled(number: i64, with_and: bool, rng: &mut Rng) -> String {
    let rate = AS_WORDS.iter().find(|(up_to, _)| (0..=*up_to).contains(&number)).map_or(0.0, |(_, rate)| *rate);
    if rng.chance(rate) { in_words(number, with_and && rng.chance(WITH_AND)) } else { number.to_string() }
}

/// A number from 0 to 9999 in words: `two thousand three hundred and twelve`.
fn in_words(number: i64, with_and: bool) -> String {
    let at = |index: i64| usize::try_from(index).unwrap_or_default();
    let (thousands, hundreds, rest) = (at(number / 1000), at(number / 100 % 10), at(number % 100));
    let mut words = Vec::new();
    if thousands > 0 {
        words.push(format!("{} thousand", SMALL[thousands]));
    }
    if hundreds > 0 {
        words.push(format!("{} hundred", SMALL[hundreds]));
    }
    if with_and && !words.is_empty() && rest > 0 {
        words.push("and".to_owned());
    }
    if rest >= 20 && rest % 10 > 0 {
        words.push(format!("{}-{}", TENS[rest / 10], SMALL[rest % 10]));
    } else if rest >= 20 {
        words.push(TENS[rest / 10].to_owned());
    } else if rest > 0 || words.is_empty() {
        words.push(SMALL[rest].to_owned());
    }
    words.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The characters of an expression without blanks.
    type Signs<'a> = std::iter::Peekable<std::str::Chars<'a>>;

    /// The value of terms with `+` and `-` between them.
    fn sum(signs: &mut Signs<'_>) -> i64 {
        let mut value = product(signs);
        while let Some(sign) = signs.next_if(|c| matches!(c, '+' | '-')) {
            let next = product(signs);
            value = if sign == '+' { value + next } else { value - next };
        }
        value
    }

    /// The value of factors with `*` and `/` between them. Divisions come out whole.
    fn product(signs: &mut Signs<'_>) -> i64 {
        let mut value = factor(signs);
        while let Some(sign) = signs.next_if(|c| matches!(c, '*' | '/')) {
            let next = factor(signs);
            assert!(sign == '*' || value % next == 0, "{value} / {next}");
            value = if sign == '*' { value * next } else { value / next };
        }
        value
    }

    /// The value of a number or of a sum in parentheses.
    fn factor(signs: &mut Signs<'_>) -> i64 {
        if signs.next_if_eq(&'(').is_some() {
            let value = sum(signs);
            assert_eq!(signs.next(), Some(')'));
            return value;
        }
        let mut value = 0;
        assert!(signs.peek().is_some_and(char::is_ascii_digit));
        while let Some(digit) = signs.peek().and_then(|c| c.to_digit(10)) {
            signs.next();
            value = value * 10 + i64::from(digit);
        }
        value
    }

    #[test]
    fn numbers_are_written_as_words() {
        let seen = |number: i64| {
            let mut rng = Rng::new(1);
            let mut seen: Vec<String> = (0..200).map(|_| written(number, &mut rng)).collect();
            seen.sort();
            seen.dedup();
            seen
        };
        assert_eq!(seen(42), ["42", "forty-two"]);
        assert_eq!(seen(1006), ["1006", "one thousand and six", "one thousand six"]);
        assert_eq!(seen(10_006), ["10006"]);
        assert_eq!(in_words(0, true), "zero");
        assert_eq!(in_words(312, true), "three hundred and twelve");
        assert_eq!(in_words(2000, true), "two thousand");
        assert_eq!(in_words(9990, false), "nine thousand nine hundred ninety");
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

    #[test]
    fn expressions_have_the_value_of_the_answer() {
        let mut rng = Rng::new(3);
        let mut checked = 0;
        while checked < 2000 {
            let Some(question) = arithmetic(&mut rng) else { continue };
            let QuestionPlan::Calculate { expression } = &question.plan else { continue };
            if expression.contains(['<', '>']) {
                continue;
            }
            let plain = expression.replace(' ', "");
            let mut signs = plain.chars().peekable();
            assert_eq!(sum(&mut signs).to_string(), question.answer, "{expression}: {}", question.text);
            assert_eq!(signs.next(), None, "{expression}");
            assert!(!question.text.contains(['{', '}']), "{}", question.text);
            checked += 1;
        }
    }
}

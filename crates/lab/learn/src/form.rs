//! The forms of the task's examples. A small model that is free to write any question about pages of
//! a kind that it has never read invents words, and asks for nothing that the pages say. So a part of
//! the questions follow an example: the same words, with the names of other pages, and in place of the
//! words that the example has from a sentence of its pages those of another sentence, which has an
//! answer of the same kind. The model chooses among them, and writes question and answer.

use std::collections::{BTreeMap, BTreeSet};

use autoact_base::random::Rng;
use autoact_score::normalize;
use regex::escape;

use crate::pages::Pages;
use crate::task::Example;

/// Words of this length or longer can name a relation; shorter ones are `the`, `of`, `who`.
const SHORTEST: usize = 4;
/// Two words are forms of one if they begin with this many equal letters.
const STEM: usize = 4;
/// A word in this many examples is one of the form (`which`, `does`), and names no relation.
const COMMON: usize = 3;
/// Maximum number of words that name a relation.
const RELATION_WORDS: usize = 3;
/// Maximum number of words of an answer at the end of a sentence.
const ANSWER_WORDS: usize = 4;
/// A relation's words stand on this share of the pages of a kind or more; others are values.
const SHARED: f64 = 0.2;
/// Probability that a question keeps the example's relation.
const KEPT: f64 = 0.4;
/// Numbers of more digits than this are quantities, and may have any number of them.
const DIGITS: usize = 4;
/// What looks like a year.
const YEARS: std::ops::RangeInclusive<u32> = 1500..=2100;
/// Draws of pages, until some have what the form asks for.
const DRAWS: usize = 20;

/// A part of an example's question.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Part {
    /// Words that stay.
    Text(String),
    /// The name of a page, by its position among those that the example names.
    Name(usize),
    /// Words that the example has from its pages.
    Relation(String),
}

/// What the answers to questions of a form are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Answers {
    /// Yes or no. `linked`: what is right where a sentence of the first page names the second; `None`:
    /// the model says.
    Claim { linked: Option<bool> },
    /// One of the names in the question.
    Named,
    /// The name of a page. `kind`: that of the example's.
    Name { kind: usize },
    /// A number, of that many digits if it is a short one, with or without the word after it, and a
    /// year or none.
    Number { digits: Option<usize>, unit: bool, year: bool },
    /// A name that no page has: words with capital letters.
    Capitals,
    /// Other words, at the end of a sentence.
    Words,
}

/// The form of one example.
#[derive(Debug, Clone)]
struct Form {
    parts: Vec<Part>,
    /// By part: the page, counted from that named first, whose sentence a relation's words are from.
    sources: Vec<Option<usize>>,
    /// The pages of the example: those that it names, and those that lead to the answer.
    pages: Vec<usize>,
    named: usize,
    answers: Answers,
    /// Whether its relation stays the example's: it has words that name relations elsewhere, and that
    /// no sentence of its own pages has. With another relation beside these, the question would ask for
    /// what its answer is not.
    fixed: bool,
}

/// A question to be written: the pages to show, and the grammar of the reply.
#[derive(Debug)]
pub(crate) struct Blank {
    /// The pages, by index.
    pub(crate) pages: Vec<usize>,
    /// A regular expression for question and answer.
    pub(crate) grammar: String,
}

/// The pages drawn for a form, the sentence of each that matters, and the answers.
struct Drawn<'a> {
    pages: Vec<usize>,
    sentences: Vec<&'a str>,
    answers: Vec<String>,
}

/// The forms of the examples that name pages, and the words of the pages.
#[derive(Debug, Default)]
pub(crate) struct Forms {
    forms: Vec<Form>,
    /// By kind of page: the words that may name a relation.
    relations: Vec<BTreeSet<String>>,
}

impl Forms {
    /// Reads the forms from the examples.
    pub(crate) fn of(examples: &[Example], pages: &Pages) -> Forms {
        // without the names: `department` is no word of the form because some ask for the Sales Department
        let unnamed = |question: &str| {
            let titles = pages.named_in(question).into_iter().map(|page| &pages.all()[page].title);
            titles.fold(question.to_owned(), |rest, title| rest.replace(title.as_str(), " "))
        };
        let all: Vec<Vec<String>> = examples.iter().map(|example| lower_words(&unnamed(&example.question))).collect();
        let common = |word: &str| all.iter().filter(|words| words.iter().any(|other| other == word)).count() >= COMMON;
        let mut forms: Vec<Form> = examples.iter().filter_map(|example| Form::of(example, pages, common)).collect();
        let relations: Vec<BTreeSet<String>> =
            if forms.is_empty() { Vec::new() } else { pages.kinds().iter().map(|kind| shared(kind, pages)).collect() };
        for form in &mut forms {
            let names_relation = |word: &String| !common(word) && relations.iter().any(|known| known.contains(word));
            form.fixed = form.parts.iter().any(|part| matches!(part, Part::Text(text) if lower_words(text).iter().any(names_relation)));
        }
        Forms { forms, relations }
    }

    /// Whether no example has a form.
    pub(crate) fn is_empty(&self) -> bool {
        self.forms.is_empty()
    }

    /// Draws an example's form and pages for it. `None` if there are no forms, or no such pages.
    pub(crate) fn draw(&self, pages: &Pages, rng: &mut Rng) -> Option<Blank> {
        (0..DRAWS).find_map(|_| {
            let form = rng.pick(&self.forms)?;
            let kept = rng.chance(KEPT) || form.fixed || form.relations().next().is_none();
            let drawn = form.draw(kept, pages, rng)?;
            let grammar = self.grammar(form, &drawn, kept, pages)?;
            Some(Blank { pages: drawn.pages, grammar })
        })
    }

    fn grammar(&self, form: &Form, drawn: &Drawn<'_>, kept: bool, pages: &Pages) -> Option<String> {
        let last = drawn.pages.len() - 1;
        let words = |at: usize| -> Vec<String> {
            let known = &self.relations[pages.kind(drawn.pages[at])];
            let mut found = relations(drawn.sentences[at]);
            found.retain(|run| known.contains(run));
            // what two are compared by, both have
            found.retain(|run| form.answers != Answers::Named || pages.all()[drawn.pages[last]].text.contains(run.as_str()));
            found
        };
        let mut question = String::new();
        for (part, source) in form.parts.iter().zip(&form.sources) {
            question.push_str(&match part {
                Part::Text(text) => escape(text),
                Part::Name(at) => escape(&pages.all()[drawn.pages[*at]].title),
                Part::Relation(text) if kept => escape(text),
                Part::Relation(_) => any(source.map_or_else(|| (0..=last).flat_map(words).collect(), words))?,
            });
        }
        Some(format!(" {question}\\nAnswer: {}\\n", any(drawn.answers.clone())?))
    }
}

impl Form {
    fn of(example: &Example, pages: &Pages, common: impl Fn(&str) -> bool) -> Option<Form> {
        let named = pages.named_in(&example.question);
        if named.is_empty() || !example.options.is_empty() {
            return None;
        }
        let title = |page: usize| pages.all()[page].title.as_str();
        let answer = normalize(&example.answer);
        let answers = match answer.as_str() {
            "yes" | "no" => {
                let differ = named.len() == 2 && pages.kind(named[0]) != pages.kind(named[1]);
                let linked = named.len() == 2 && pages.linked(named[0]).contains(&named[1]);
                Answers::Claim { linked: differ.then_some((answer == "yes") == linked) }
            }
            _ if named.iter().any(|page| normalize(title(*page)) == answer) => Answers::Named,
            _ => match (pages.find(&example.answer), example.answer.split_once(' ')) {
                (Some(page), _) => Answers::Name { kind: pages.kind(page) },
                (None, None) if is_number(&example.answer) => {
                    let digits = Some(example.answer.len()).filter(|digits| *digits <= DIGITS);
                    Answers::Number { digits, unit: false, year: is_year(&example.answer) }
                }
                (None, Some((number, unit))) if is_number(number) && !unit.contains(' ') => {
                    Answers::Number { digits: None, unit: true, year: false }
                }
                _ if example.answer.starts_with(char::is_uppercase) => Answers::Capitals,
                _ => Answers::Words,
            },
        };
        let about = match answers {
            Answers::Claim { .. } | Answers::Named => named.clone(),
            _ => pages.about(&example.question, &example.answer),
        };
        // the sentences that lead from page to page, and the one with the answer
        let trail: Vec<String> = (0..about.len())
            .map(|at| {
                let next = about.get(at + 1).filter(|_| named.len() == 1 || answers == Answers::Claim { linked: Some(true) });
                let holds = |sentence: &&str| match next {
                    Some(next) => sentence.contains(title(*next)),
                    None => format!(" {} ", normalize(sentence)).contains(&format!(" {answer} ")),
                };
                let sentences = pages.all()[about[at]].sentences();
                let found: Vec<&str> = sentences.iter().copied().filter(holds).collect();
                if found.is_empty() { sentences.join(" ") } else { found.join(" ") }
            })
            .collect();
        let source = |word: &str| trail.iter().rposition(|sentence| says(sentence, word));
        let relation = |word: &str| {
            let word = word.to_lowercase();
            word.chars().count() >= SHORTEST && !common(&word) && source(&word).is_some()
        };
        let mut parts = Vec::new();
        let mut rest = example.question.as_str();
        while !rest.is_empty() {
            let at = |(at, page): (usize, &usize)| Some((rest.find(title(*page))?, std::cmp::Reverse(title(*page).len()), at));
            let next = named.iter().enumerate().filter_map(at).min();
            let (before, name) = next.map_or((rest.len(), None), |(start, _, at)| (start, Some(at)));
            split(&rest[..before], &relation, &mut parts);
            rest = &rest[before..];
            if let Some(at) = name {
                parts.push(Part::Name(at));
                rest = &rest[title(named[at]).len()..];
            }
        }
        let of = |part: &Part| match part {
            Part::Relation(words) => words.split(' ').find_map(|word| source(&word.to_lowercase())),
            _ => None,
        };
        let sources = parts.iter().map(of).collect();
        Some(Form { parts, sources, pages: about, named: named.len(), answers, fixed: false })
    }

    /// The words that name relations, with their sources.
    fn relations(&self) -> impl Iterator<Item = (&str, Option<usize>)> {
        self.parts.iter().zip(&self.sources).filter_map(|(part, source)| match part {
            Part::Relation(words) => Some((words.as_str(), *source)),
            _ => None,
        })
    }

    /// Draws pages with sentences that the form can ask for.
    fn draw<'a>(&self, kept: bool, pages: &'a Pages, rng: &mut Rng) -> Option<Drawn<'a>> {
        // where the relation is the example's, the sentence says so
        let fits = |at: usize, sentence: &str| {
            !kept
                || self
                    .relations()
                    .filter(|(_, source)| *source == Some(at))
                    .all(|(words, _)| words.split(' ').any(|word| says(sentence, word)))
        };
        let first = if kept { *rng.pick(pages.of_kind(self.pages[0]))? } else { rng.below(pages.all().len()) };
        let mut drawn = Drawn { pages: vec![first], sentences: Vec::new(), answers: Vec::new() };
        let pick = |options: Vec<&'a str>, rng: &mut Rng| rng.pick(&options).copied();
        let of = |page: usize, at: usize| -> Vec<&'a str> {
            pages.all()[page].sentences().into_iter().filter(|sentence| fits(at, sentence)).collect()
        };
        // a sentence that names another page, and that page
        let link = |from: usize, at: usize, rng: &mut Rng| {
            let all = of(from, at).into_iter().flat_map(|sentence| pages.named_in(sentence).into_iter().map(move |to| (sentence, to)));
            rng.pick(&all.filter(|(_, to)| *to != from).collect::<Vec<_>>()).copied()
        };
        match self.answers {
            Answers::Claim { linked: Some(linked) } => {
                let (sentence, mut other) = link(first, 0, rng)?;
                let true_one = rng.chance(0.5);
                if !true_one {
                    other = *rng.pick(pages.of_kind(other)).filter(|other| !pages.linked(first).contains(other) && **other != first)?;
                }
                drawn.pages.push(other);
                drawn.sentences = vec![sentence, pages.all()[other].text.as_str()];
                drawn.answers.push(if linked == true_one { "yes" } else { "no" }.to_owned());
            }
            Answers::Claim { linked: None } | Answers::Named => {
                for _ in 1..self.named {
                    let other = *rng.pick(pages.of_kind(first))?;
                    (!drawn.pages.contains(&other)).then(|| drawn.pages.push(other))?;
                }
                for (at, page) in drawn.pages.iter().enumerate() {
                    let numbers = of(*page, at).into_iter().filter(|sentence| kept || sentence.split_whitespace().any(is_number_in_text));
                    drawn.sentences.push(pick(numbers.collect(), rng)?);
                }
                let names = drawn.pages.iter().map(|page| pages.all()[*page].title.clone());
                drawn.answers = if self.answers == Answers::Named { names.collect() } else { vec!["yes".to_owned(), "no".to_owned()] };
            }
            Answers::Name { .. } | Answers::Number { .. } | Answers::Capitals | Answers::Words => {
                for at in 0..self.pages.len() - 1 {
                    let (sentence, next) = link(*drawn.pages.last()?, at, rng)?;
                    let alike = !kept || pages.kind(next) == pages.kind(self.pages[at + 1]);
                    (alike && !drawn.pages.contains(&next)).then(|| drawn.pages.push(next))?;
                    drawn.sentences.push(sentence);
                }
                let last = *drawn.pages.last()?;
                let mut options = of(last, drawn.pages.len() - 1);
                options.retain(|sentence| !self.answers(sentence, last, kept, pages).is_empty());
                let sentence = pick(options, rng)?;
                drawn.answers = self.answers(sentence, last, kept, pages);
                drawn.sentences.push(sentence);
            }
        }
        Some(drawn)
    }

    /// The answers of the form's kind in a sentence of a page. What has the example's relation is of
    /// the kind that the example's answer is: who heads a department is an employee.
    fn answers(&self, sentence: &str, page: usize, kept: bool, pages: &Pages) -> Vec<String> {
        let words = sentence.split_whitespace().map(|word| word.trim_matches(|c: char| !c.is_alphanumeric()));
        let words: Vec<&str> = words.filter(|word| !word.is_empty()).collect();
        match self.answers {
            Answers::Name { kind } => {
                let fits = |other: &usize| *other != page && (!kept || pages.kind(*other) == kind);
                let named = pages.named_in(sentence).into_iter().filter(fits);
                named.map(|other| pages.all()[other].title.clone()).collect()
            }
            Answers::Number { digits, unit, year } => {
                // another relation than the example's has nothing but its values to be told by
                let fits = |word: &str| digits.is_none_or(|digits| word.len() == digits) && (kept || unit || is_year(word) == year);
                let numbers = words.iter().enumerate().filter(|(_, word)| is_number(word) && fits(word));
                numbers
                    .filter_map(
                        |(at, number)| {
                            if unit { words.get(at + 1).map(|unit| format!("{number} {unit}")) } else { Some((*number).to_owned()) }
                        },
                    )
                    .collect()
            }
            Answers::Capitals => {
                // the first word of a sentence has a capital letter in any case, and may yet begin a name
                let capital = |word: &&str| word.starts_with(char::is_uppercase);
                let start = usize::from(words.first().is_some_and(capital) && !words.get(1).is_some_and(capital));
                let runs = words[start..].split(|word| !capital(word));
                runs.filter(|run| !run.is_empty()).map(|run| run.join(" ")).collect()
            }
            _ => (1..=ANSWER_WORDS.min(words.len().saturating_sub(1))).map(|count| words[words.len() - count..].join(" ")).collect(),
        }
    }
}

/// Splits words between names into those that stay and runs that name a relation.
fn split(text: &str, relation: &impl Fn(&str) -> bool, parts: &mut Vec<Part>) {
    let mut stay = String::new();
    let mut run = String::new();
    for piece in text.split_inclusive(' ') {
        let word = piece.trim_matches(|c: char| !c.is_alphanumeric());
        if !word.is_empty() && relation(word) {
            let start = piece.find(word).unwrap_or_default();
            let gap = &piece[..start];
            if run.is_empty() {
                stay.push_str(gap);
                parts.extend((!stay.is_empty()).then(|| Part::Text(std::mem::take(&mut stay))));
            } else {
                run.push_str(&std::mem::take(&mut stay));
            }
            run.push_str(word);
            stay.push_str(&piece[start + word.len()..]);
        } else {
            parts.extend((!run.is_empty()).then(|| Part::Relation(std::mem::take(&mut run))));
            stay.push_str(piece);
        }
    }
    parts.extend((!run.is_empty()).then_some(Part::Relation(run)));
    parts.extend((!stay.is_empty()).then_some(Part::Text(stay)));
}

/// The runs of words that enough pages of a kind have.
fn shared(kind: &[usize], pages: &Pages) -> BTreeSet<String> {
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for page in kind {
        let own: BTreeSet<String> = relations(&pages.all()[*page].text).into_iter().collect();
        own.into_iter().for_each(|run| *counts.entry(run).or_default() += 1);
    }
    counts.into_iter().filter(|(_, count)| *count as f64 >= SHARED * kind.len() as f64).map(|(run, _)| run).collect()
}

/// One of these texts, as a regular expression.
fn any(mut texts: Vec<String>) -> Option<String> {
    texts.sort();
    texts.dedup();
    let escaped: Vec<String> = texts.iter().map(|text| escape(text)).collect();
    (!escaped.is_empty()).then(|| format!("({})", escaped.join("|")))
}

/// Runs of words that may name a relation: of small letters, not short at either end.
fn relations(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    let long = |word: &&str| word.chars().count() >= SHORTEST;
    for sentence in text.split(['\n', '.', ',', ';', ':', '(', ')']) {
        let words: Vec<&str> = sentence.split_whitespace().collect();
        for run in words.split(|word| !word.starts_with(char::is_lowercase)) {
            for length in 1..=RELATION_WORDS.min(run.len()) {
                let ends = |run: &&[&str]| run.first().is_some_and(long) && run.last().is_some_and(long);
                found.extend(run.windows(length).filter(ends).map(|run| run.join(" ")));
            }
        }
    }
    found
}

fn lower_words(text: &str) -> Vec<String> {
    let words = text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    words.map(str::to_lowercase).collect()
}

/// Whether a text has a word, or a form of it.
fn says(text: &str, word: &str) -> bool {
    let word = word.to_lowercase();
    lower_words(text).iter().any(|other| {
        let same = word.chars().zip(other.chars()).take_while(|(a, b)| a == b).count();
        word == *other || same >= STEM
    })
}

fn is_number(word: &str) -> bool {
    !word.is_empty() && word.chars().all(|c| c.is_ascii_digit())
}

/// Whether a number looks like a year.
fn is_year(word: &str) -> bool {
    word.parse::<u32>().is_ok_and(|number| YEARS.contains(&number))
}

fn is_number_in_text(word: &str) -> bool {
    is_number(word.trim_matches(|c: char| !c.is_alphanumeric()))
}

#[cfg(test)]
#[path = "form_tests.rs"]
mod tests;

//! The form of one example: the words of its question that stay, and those that give way.

use std::collections::BTreeSet;

use autoact_base::random::Rng;
use autoact_score::normalize;

use super::answers::{Answers, is_number_in_text, unit_of, yes_or_no};
use crate::decide::Decides;
use crate::filter::within;
use crate::pages::Pages;
use crate::relation_words::{FORM_WORDS, SHORTEST, lower_words, says};
use crate::stated::Stated;
use crate::task::Example;

/// Probability that a question keeps the example's relation: of one that asks for anything, and of
/// others, in which other words seldom make sense (`Where does Ada Lind worked?`).
const KEPT: f64 = 0.4;
const KEPT_BY_OTHERS: f64 = 0.7;
/// Words of a question that a verb without an ending follows.
const DOING: [&str; 2] = ["did", "does"];
/// A question with this word can ask for anything; `who`, `when` and `where` say what they ask for.
const ANYTHING: &str = "what";

/// A part of an example's question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Part {
    /// Words that stay.
    Text(String),
    /// The name of a page, by its position among those that the example names.
    Name(usize),
    /// Words that the example has from its pages.
    Relation(String),
}

/// The form of one example.
#[derive(Debug, Clone)]
pub(super) struct Form {
    pub(super) parts: Vec<Part>,
    /// By part: the page, counted from that named first, whose sentence a relation's words are from.
    pub(super) sources: Vec<Option<usize>>,
    /// The pages of the example: those that it names, and those that lead to the answer.
    pub(super) pages: Vec<usize>,
    pub(super) named: usize,
    pub(super) answers: Answers,
    /// The unit of the example's answer, which that to the same relation has.
    pub(super) unit: Option<String>,
    /// Probability that its relation stays the example's. It is 1 where there are words that name
    /// relations elsewhere, and that no sentence of its own pages has: with another relation beside
    /// these, the question would ask for what its answer is not.
    pub(super) kept: f64,
    /// Whether it can ask for anything, with another relation than the example's.
    pub(super) asks_anything: bool,
    /// What decides the answer, if it is of two names, or yes or no.
    pub(super) decides: Option<Decides>,
}

/// The pages drawn for a form, the sentence of each that matters, and the answers.
pub(super) struct Drawn<'a> {
    pub(super) pages: Vec<usize>,
    pub(super) sentences: Vec<&'a str>,
    pub(super) answers: BTreeSet<String>,
    /// What decides the answer.
    pub(super) values: Vec<String>,
}

impl Form {
    pub(super) fn of(example: &Example, pages: &Pages, common: impl Fn(&str) -> bool) -> Option<Form> {
        let named = pages.named_in(&example.question);
        if named.is_empty() || !example.options.is_empty() {
            return None;
        }
        let title = |page: usize| pages.all()[page].title.as_str();
        let answer = normalize(&example.answer);
        let answers = Answers::of(example, &named, pages);
        let about = match answers {
            Answers::Claim { .. } | Answers::Named => named.clone(),
            // two names and a value, as in `How many years after … was … built?`: it is on no page
            _ if named.len() > 1 => return None,
            _ => pages.about(&example.question, &example.answer),
        };
        // the sentences that lead from page to page, and the one with the answer
        let trail: Vec<String> = (0..about.len())
            .map(|at| {
                let next = about.get(at + 1).filter(|_| named.len() == 1 || answers == Answers::Claim { linked: Some(true) });
                let holds = |sentence: &&str| match next {
                    Some(next) => sentence.contains(title(*next)),
                    None => within(&answer, &normalize(sentence)),
                };
                let sentences = pages.all()[about[at]].sentences();
                let compared = |sentence: &&str| sentence.split_whitespace().any(is_number_in_text);
                let matters = |sentence: &&str| if answers == Answers::Named { compared(sentence) } else { holds(sentence) };
                let found: Vec<&str> = sentences.iter().copied().filter(matters).collect();
                if found.is_empty() { sentences.join(" ") } else { found.join(" ") }
            })
            .collect();
        let source = |word: &str| trail.iter().rposition(|sentence| says(sentence, word));
        let relation = |word: &str| {
            let word = word.to_lowercase();
            word.chars().count() >= SHORTEST && !common(&word) && !FORM_WORDS.contains(&word.as_str()) && source(&word).is_some()
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
        let value = !matches!(answers, Answers::Claim { .. } | Answers::Named);
        if value {
            widen(&mut parts, &common);
        }
        let sources = parts.iter().map(of).collect();
        let words = lower_words(&example.question);
        let asks_anything = value && words.iter().any(|word| word == ANYTHING);
        // what somebody did is a verb in a form that pages seldom have: `Did Line 3 open before Line 5?`
        let does = words.iter().any(|word| DOING.contains(&word.as_str()));
        let kept = if does {
            1.0
        } else if asks_anything {
            KEPT
        } else {
            KEPT_BY_OTHERS
        };
        let unit = unit_of(&example.answer).filter(|_| value).map(str::to_owned);
        Some(Form { parts, sources, pages: about, named: named.len(), answers, unit, kept, asks_anything, decides: None })
    }

    /// `What is the … of the … of …?` over so many pages, for anything.
    pub(super) fn own(pages: usize) -> Form {
        let text = |text: &str| Part::Text(text.to_owned());
        let mut parts = vec![text("What is")];
        let mut sources = vec![None];
        for at in (0..pages).rev() {
            parts.extend([text(" the "), Part::Relation(String::new()), text(" of")]);
            sources.extend([None, Some(at), None]);
        }
        parts.extend([text(" "), Part::Name(0), text("?")]);
        sources.extend([None; 3]);
        Form {
            parts,
            sources,
            pages: vec![0; pages],
            named: 1,
            answers: Answers::Any,
            unit: None,
            kept: 0.0,
            asks_anything: true,
            decides: None,
        }
    }

    /// The example's question about other pages. `claimed`: the value in it, and what stands in its
    /// place.
    pub(super) fn worded(&self, named: &[usize], claimed: Option<(&str, &str)>, pages: &Pages) -> String {
        let word = |part: &Part| match part {
            Part::Name(at) => named.get(*at).map(|page| pages.all()[*page].title.clone()).unwrap_or_default(),
            Part::Text(text) | Part::Relation(text) => claimed.map_or_else(|| text.clone(), |(old, new)| text.replacen(old, new, 1)),
        };
        self.parts.iter().map(word).collect()
    }

    /// Whether pages decide its answers, and not what the model makes of two of them.
    pub(super) fn is_certain(&self) -> bool {
        !self.answers.are_guessable() || self.decides.is_some() || matches!(self.answers, Answers::Claim { linked: Some(_) })
    }

    /// The words that name relations, with their sources.
    pub(super) fn relations(&self) -> impl Iterator<Item = (&str, Option<usize>)> {
        self.parts.iter().zip(&self.sources).filter_map(|(part, source)| match part {
            Part::Relation(words) => Some((words.as_str(), *source)),
            _ => None,
        })
    }

    /// Draws pages with sentences that the form can ask for.
    pub(super) fn draw<'a>(&self, kept: bool, stated: &Stated, pages: &'a Pages, rng: &mut Rng) -> Option<Drawn<'a>> {
        // where the relation is the example's, the sentence says so
        let fits = |at: usize, sentence: &str| {
            !kept
                || self
                    .relations()
                    .filter(|(_, source)| *source == Some(at))
                    .all(|(words, _)| words.split(' ').any(|word| says(sentence, word)))
        };
        let first = if kept { *rng.pick(pages.of_kind(self.pages[0]))? } else { rng.below(pages.all().len()) };
        let mut drawn = Drawn { pages: vec![first], sentences: Vec::new(), answers: BTreeSet::new(), values: Vec::new() };
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
                // with the example's words, who is asked about is of the kind that the example asks about
                let alike = |other: usize| !kept || self.pages.get(1).is_none_or(|second| pages.kind(*second) == pages.kind(other));
                alike(other).then_some(())?;
                let true_one = rng.chance(0.5);
                // where one page of the kind is named, it is what decides
                drawn.values =
                    pages.only_linked(first, pages.kind(other)).map(|told| pages.all()[told].title.clone()).into_iter().collect();
                if !true_one {
                    other = *rng.pick(pages.of_kind(other)).filter(|other| !pages.linked(first).contains(other) && **other != first)?;
                }
                drawn.pages.push(other);
                drawn.sentences = vec![sentence, pages.all()[other].text.as_str()];
                drawn.answers.insert(yes_or_no(linked == true_one));
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
                drawn.answers = if self.answers == Answers::Named { names.collect() } else { ["yes".to_owned(), "no".to_owned()].into() };
            }
            Answers::Name { .. } | Answers::Number { .. } | Answers::Sorted(_) | Answers::Capitals | Answers::Words | Answers::Any => {
                for at in 0..self.pages.len() - 1 {
                    let (sentence, next) = link(*drawn.pages.last()?, at, rng)?;
                    let alike = !kept || pages.kind(next) == pages.kind(self.pages[at + 1]);
                    (alike && !drawn.pages.contains(&next)).then(|| drawn.pages.push(next))?;
                    drawn.sentences.push(sentence);
                }
                let last = *drawn.pages.last()?;
                // with another relation than the example's, a form may ask for anything
                let answers = if !kept && self.asks_anything { Answers::Any } else { self.answers };
                let all = of(last, drawn.pages.len() - 1).into_iter();
                let unit = self.unit.as_deref().filter(|_| kept);
                let at = drawn.pages.len() - 1;
                let words: Vec<&str> = self.relations().filter(|(_, source)| *source == Some(at)).map(|(words, _)| words).collect();
                let in_words = kept && matches!(answers, Answers::Words);
                let told = if in_words { stated.told(last, &words) } else { BTreeSet::new() };
                let found = |sentence: &'a str| {
                    let mut found = answers.within(sentence, last, kept, pages);
                    found.retain(|answer| unit.is_none_or(|unit| unit_of(answer) == Some(unit)));
                    // `Turkish lira`, and not `Turkish lira its currency`
                    let told: BTreeSet<String> = told.iter().filter(|told| sentence.contains(told.as_str())).cloned().collect();
                    if !told.is_empty() {
                        found = told;
                    }
                    (sentence, found)
                };
                let mut options: Vec<_> = all.map(found).collect();
                options.retain(|(_, answers)| !answers.is_empty());
                let (sentence, answers) = rng.pick(&options)?.clone();
                drawn.answers = answers;
                drawn.sentences.push(sentence);
            }
        }
        Some(drawn)
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

/// Adds words beside a relation that belong to its name, though no page says them: `phone extension`,
/// where the page has `extension`, goes as a whole.
fn widen(parts: &mut Vec<Part>, common: &impl Fn(&str) -> bool) {
    let belongs = |word: &str| {
        let word = word.trim_end_matches('?').to_lowercase();
        word.chars().count() >= SHORTEST && word.chars().all(char::is_alphabetic) && !common(&word) && !FORM_WORDS.contains(&word.as_str())
    };
    for at in 0..parts.len() {
        let Part::Relation(run) = &parts[at] else { continue };
        let mut run = run.clone();
        if let Some(Part::Text(before)) = at.checked_sub(1).map(|at| parts[at].clone()) {
            let mut rest = before.as_str();
            while let Some((head, word)) = rest.strip_suffix(' ').and_then(|rest| rest.rsplit_once(' ')).filter(|(_, word)| belongs(word)) {
                run = format!("{word} {run}");
                rest = &before[..=head.len()];
            }
            parts[at - 1] = Part::Text(rest.to_owned());
        }
        if let Some(Part::Text(after)) = parts.get(at + 1).cloned() {
            let mut rest = after.as_str();
            while let Some(next) = rest.strip_prefix(' ') {
                let word = next.split([' ', '?']).next().unwrap_or_default();
                if !belongs(word) {
                    break;
                }
                run = format!("{run} {word}");
                rest = &next[word.len()..];
            }
            parts[at + 1] = Part::Text(rest.to_owned());
        }
        parts[at] = Part::Relation(run);
    }
    parts.retain(|part| !matches!(part, Part::Text(text) if text.is_empty()));
}

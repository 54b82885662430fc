//! The forms of the task's examples. A small model that is free to write any question about pages of
//! a kind that it has never read invents words, and asks for nothing that the pages say. So a part of
//! the questions follow an example: the same words, with the names of other pages. A handful of
//! examples has few of the relations of the pages, so many are made of what a sentence states
//! (`stated.rs`). Where nearly all sentences are understood, or too few for that, such as in another
//! language, an example's words from a sentence of its pages give way to those of another sentence
//! that has an answer of the same kind, some follow a form of our own, and the model chooses among the
//! words and answers. Between the two, in prose, words that pages share are no names of relations.

use std::collections::BTreeSet;

use autoact_base::random::Rng;
use autoact_score::normalize;
use regex::escape;

use crate::compared::Compared;
use crate::decide::{Deciders, Decides};
use crate::filter::within;
use crate::form_answers::{Answers, is_counted, is_number_in_text, unit_of, yes_or_no};
use crate::pages::Pages;
use crate::relation_words::{FORM_WORDS, SHORTEST, lower_words, relations, says, shared};
use crate::stated::{Guessable, Singles, Stated};
use crate::statement::is_past;
use crate::task::Example;

/// A word in this many examples is one of the form (`which`, `does`), and names no relation.
const COMMON: usize = 3;
/// Probability that a question keeps the example's relation: of one that asks for anything, and of
/// others, in which other words seldom make sense (`Where does Ada Lind worked?`).
const KEPT: f64 = 0.4;
const KEPT_BY_OTHERS: f64 = 0.7;
/// Share of the questions in a form of our own, over one page or two: `What is the … of the … of …?`
/// A handful of examples has few of the relations of the pages, and chains few of them.
const OWN: f64 = 0.15;
/// Share of the questions made of a sentence of a page ([`Stated`]), where there are such sentences.
const STATED: f64 = 0.6;
/// Where less of the sentences state something, they are prose.
const PLAIN: f64 = 0.7;
/// Draws of pages, until some have what the form asks for.
const DRAWS: usize = 20;
/// Words of English questions.
const ASKING: [&str; 10] = ["did", "does", "how", "is", "what", "when", "where", "which", "who", "whose"];
/// Of these, those that a verb without an ending follows.
const DOING: [&str; 2] = ["did", "does"];
/// A question with this word can ask for anything; `who`, `when` and `where` say what they ask for.
const ANYTHING: &str = "what";

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
    /// The unit of the example's answer, which that to the same relation has.
    unit: Option<String>,
    /// Probability that its relation stays the example's. It is 1 where there are words that name
    /// relations elsewhere, and that no sentence of its own pages has: with another relation beside
    /// these, the question would ask for what its answer is not.
    kept: f64,
    /// Whether it can ask for anything, with another relation than the example's.
    asks_anything: bool,
    /// What decides the answer, if it is of two names, or yes or no.
    decides: Option<Decides>,
}

/// A question to be written: the pages to show, and the grammar of the reply.
#[derive(Debug)]
pub(crate) struct Blank {
    /// The pages, by index.
    pub(crate) pages: Vec<usize>,
    /// A regular expression for question and answer.
    pub(crate) grammar: String,
    /// What decides the answer, by page, if it is certain though it could be guessed.
    pub(crate) values: Vec<String>,
}

impl Blank {
    /// Where the model has no choice.
    fn given(pages: Vec<usize>, question: &str, answer: &str, values: Vec<String>) -> Blank {
        Blank { pages, grammar: format!(" {}\\nAnswer: {}\\n", escape(question), escape(answer)), values }
    }
}

/// The pages drawn for a form, the sentence of each that matters, and the answers.
struct Drawn<'a> {
    pages: Vec<usize>,
    sentences: Vec<&'a str>,
    answers: BTreeSet<String>,
    /// What decides the answer.
    values: Vec<String>,
}

/// The forms of the examples that name pages, and the words of the pages.
#[derive(Debug, Default)]
pub(crate) struct Forms {
    forms: Vec<Form>,
    own: Vec<Form>,
    stated: Stated,
    deciders: Deciders,
    /// What the examples ask that could be guessed.
    guessable: Guessable,
    /// By kind of page: the words that may name a relation.
    relations: Vec<BTreeSet<String>>,
}

impl Forms {
    /// Reads the forms from the examples.
    pub(crate) fn of(examples: &[Example], pages: &Pages) -> Forms {
        Forms::with(examples, pages, Stated::of)
    }

    /// The same. `read`: what the pages state.
    fn with(examples: &[Example], pages: &Pages, read: impl Fn(&Pages, &Singles) -> Stated) -> Forms {
        // without the names: `department` is no word of the form because some ask for the Sales Department
        let unnamed = |question: &str| {
            let titles = pages.named_in(question).into_iter().map(|page| &pages.all()[page].title);
            titles.fold(question.to_owned(), |rest, title| rest.replace(title.as_str(), " "))
        };
        let all: Vec<Vec<String>> = examples.iter().map(|example| lower_words(&unnamed(&example.question))).collect();
        let common = |word: &str| all.iter().filter(|words| words.iter().any(|other| other == word)).count() >= COMMON;
        let formed = examples.iter().filter_map(|example| Some((Form::of(example, pages, common)?, example)));
        let (mut forms, with_forms): (Vec<Form>, Vec<&Example>) = formed.unzip();
        let relations: Vec<BTreeSet<String>> =
            if forms.is_empty() { Vec::new() } else { pages.kinds().iter().map(|kind| shared(kind, pages)).collect() };
        for form in &mut forms {
            let names_relation = |word: &String| !common(word) && relations.iter().any(|known| known.contains(word));
            let foreign = form.parts.iter().any(|part| matches!(part, Part::Text(text) if lower_words(text).iter().any(names_relation)));
            if foreign || form.relations().next().is_none() {
                form.kept = 1.0;
            }
        }
        // what we word ourselves is English, and beside questions in another language makes no sense
        let english = |words: &Vec<String>| words.iter().any(|word| ASKING.contains(&word.as_str()));
        let ours = !forms.is_empty() && all.iter().any(english);
        let singles = if ours { Singles::of(pages) } else { Singles::default() };
        let stated = if ours { read(pages, &singles) } else { Stated::default() };
        // What sentences state has questions for all relations, in words that fit. In prose, words that many
        // pages share may be anything: `What is the years of Liquorice?`
        let told = stated.len() >= pages.all().len();
        let prose = told && stated.understood() < PLAIN;
        let own = if ours && !prose { vec![Form::own(1), Form::own(2)] } else { Vec::new() };
        let deciders = Deciders { compared: Compared::of(&stated, &singles, pages), singles };
        let mut guessable = Guessable::default();
        for (form, example) in forms.iter_mut().zip(with_forms) {
            guessable.choices |= form.answers == Answers::Named;
            guessable.claims |= form.answers.are_guessable() && form.answers != Answers::Named;
            form.decides = deciders.of(example, form.answers, &form.pages[..form.named.min(form.pages.len())], pages);
            if prose {
                form.kept = 1.0;
            }
        }
        if told {
            forms.retain(Form::is_certain);
        }
        Forms { forms, own, stated, deciders, guessable, relations }
    }

    /// Whether nothing can be drawn.
    pub(crate) fn is_empty(&self) -> bool {
        self.forms.is_empty() && self.stated.len() == 0
    }

    /// Draws an example's form and pages for it. `None` if there are no forms, or no such pages.
    /// Where the model has no choice, the question is none of the `taken` ones. `guessable`: whether
    /// the answer may be one that could be guessed.
    pub(crate) fn draw(&self, pages: &Pages, taken: impl Fn(&str) -> bool, guessable: bool, rng: &mut Rng) -> Option<Blank> {
        let like = if guessable { self.guessable } else { Guessable::default() };
        if rng.chance(STATED)
            && let Some(drawn) = (0..DRAWS).find_map(|_| {
                let drawn = self.stated.draw(&self.deciders.compared, like, pages, rng)?;
                (!taken(&drawn.question)).then_some(drawn)
            })
        {
            return Some(Blank::given(drawn.pages, &drawn.question, &drawn.answer, drawn.values));
        }
        // each form is tried several times, so that those that fit few pages have their share
        (0..DRAWS).find_map(|_| {
            let own = rng.chance(OWN);
            let form = rng.pick(if own { &self.own } else { &self.forms }).filter(|form| guessable || !form.answers.are_guessable())?;
            (0..DRAWS).find_map(|_| self.fill(form, pages, &taken, rng))
        })
    }

    fn fill(&self, form: &Form, pages: &Pages, taken: impl Fn(&str) -> bool, rng: &mut Rng) -> Option<Blank> {
        if let Some(decides) = &form.decides {
            let decided = self.deciders.draw(decides, form.answers, &form.pages, pages, rng)?;
            let question = form.worded(&decided.pages, decides.claimed().zip(decided.claimed.as_deref()), pages);
            return (!taken(&question)).then(|| Blank::given(decided.pages, &question, &decided.answer, decided.values));
        }
        let kept = rng.chance(form.kept);
        let drawn = form.draw(kept, &self.stated, pages, rng)?;
        let choices = self.choices(form, &drawn, kept, pages)?;
        let only: Option<String> = choices.iter().map(|texts| texts.first().filter(|_| texts.len() == 1).map(String::as_str)).collect();
        let question: String = choices.iter().map(any).collect();
        let grammar = format!(" {question}\\nAnswer: {}\\n", any(&drawn.answers));
        (!only.is_some_and(|only| taken(&only)) && !drawn.answers.is_empty()).then_some(Blank {
            pages: drawn.pages,
            grammar,
            values: Vec::new(),
        })
    }

    /// By part of the question: the texts among which the model chooses. `None`: there are none.
    fn choices(&self, form: &Form, drawn: &Drawn<'_>, kept: bool, pages: &Pages) -> Option<Vec<BTreeSet<String>>> {
        let last = drawn.pages.len() - 1;
        let words = |at: usize| -> Vec<String> {
            let known = &self.relations[pages.kind(drawn.pages[at])];
            let mut found = relations(drawn.sentences[at]);
            found.retain(|run| known.contains(run) && !is_counted(run, drawn.sentences[at]));
            // what two are compared by, both have
            if form.answers == Answers::Named {
                let others: BTreeSet<String> = relations(&pages.all()[drawn.pages[last]].text).into_iter().collect();
                found.retain(|run| others.contains(run));
            }
            found
        };
        // a noun stands in the place of a noun, and a verb in that of a verb
        let is_verb = |run: &str| run.split(' ').next_back().is_some_and(is_past);
        let choices = form.parts.iter().zip(&form.sources).map(|(part, source)| match part {
            Part::Text(text) => BTreeSet::from([text.clone()]),
            Part::Name(at) => BTreeSet::from([pages.all()[drawn.pages[*at]].title.clone()]),
            Part::Relation(text) if kept => BTreeSet::from([text.clone()]),
            Part::Relation(text) => {
                let found: Vec<String> = source.map_or_else(|| (0..=last).flat_map(words).collect(), words);
                found.into_iter().filter(|run| is_verb(run) == is_verb(text)).collect()
            }
        });
        choices.map(|texts| (!texts.is_empty()).then_some(texts)).collect()
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
    fn own(pages: usize) -> Form {
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
    fn worded(&self, named: &[usize], claimed: Option<(&str, &str)>, pages: &Pages) -> String {
        let word = |part: &Part| match part {
            Part::Name(at) => named.get(*at).map(|page| pages.all()[*page].title.clone()).unwrap_or_default(),
            Part::Text(text) | Part::Relation(text) => claimed.map_or_else(|| text.clone(), |(old, new)| text.replacen(old, new, 1)),
        };
        self.parts.iter().map(word).collect()
    }

    /// Whether pages decide its answers, and not what the model makes of two of them.
    fn is_certain(&self) -> bool {
        !self.answers.are_guessable() || self.decides.is_some() || matches!(self.answers, Answers::Claim { linked: Some(_) })
    }

    /// The words that name relations, with their sources.
    fn relations(&self) -> impl Iterator<Item = (&str, Option<usize>)> {
        self.parts.iter().zip(&self.sources).filter_map(|(part, source)| match part {
            Part::Relation(words) => Some((words.as_str(), *source)),
            _ => None,
        })
    }

    /// Draws pages with sentences that the form can ask for.
    fn draw<'a>(&self, kept: bool, stated: &Stated, pages: &'a Pages, rng: &mut Rng) -> Option<Drawn<'a>> {
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

/// One of these texts, as a regular expression.
fn any(texts: &BTreeSet<String>) -> String {
    let escaped: Vec<String> = texts.iter().map(|text| escape(text)).collect();
    if escaped.len() == 1 { escaped.concat() } else { format!("({})", escaped.join("|")) }
}

#[cfg(test)]
#[path = "form_tests.rs"]
mod tests;

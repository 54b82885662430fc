//! The forms of the task's examples. A small model that is free to write any question about pages of
//! a kind that it has never read invents words, and asks for nothing that the pages say. So a part of
//! the questions follow an example: the same words, with the names of other pages. A handful of
//! examples has few of the relations of the pages, so many are made of what a sentence states
//! (`stated.rs`). Where nearly all sentences are understood, or too few for that, such as in another
//! language, an example's words from a sentence of its pages give way to those of another sentence
//! that has an answer of the same kind, some follow a form of our own, and the model chooses among the
//! words and answers. Between the two, in prose, words that pages share are no names of relations.

pub(crate) mod answers;
mod example;

use std::collections::BTreeSet;

use autoact_base::random::Rng;
use regex::escape;

use answers::{Answers, is_counted};
use example::{Drawn, Form, Part};

use crate::compared::Compared;
use crate::decide::Deciders;
use crate::pages::Pages;
use crate::relation_words::{lower_words, relations, shared};
use crate::stated::{Guessable, Singles, Stated};
use crate::statement::is_past;
use crate::task::Example;

/// A word in this many examples is one of the form (`which`, `does`), and names no relation.
const COMMON: usize = 3;
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

/// One of these texts, as a regular expression.
fn any(texts: &BTreeSet<String>) -> String {
    let escaped: Vec<String> = texts.iter().map(|text| escape(text)).collect();
    if escaped.len() == 1 { escaped.concat() } else { format!("({})", escaped.join("|")) }
}

#[cfg(test)]
mod tests;

//! Rewording: a question as people type it. Independent choices are composed: an opening, a form of
//! the question itself, an ending, how names are written, and surface noise. So one question has
//! thousands of forms. Every form belongs to a named family, and some families are never trained.

use autoact_base::random::Rng;

use crate::base::{EntityId, KnowledgeBase};
use crate::phrase::phrase;
use crate::question::{Asks, Question, QuestionPlan, Spelling};
use crate::schema::{Relation, RelationRef, Together};
use crate::text::{contains_words, say, with_article};
use crate::wording_frames::{GREETINGS, IMPERATIVES, NAMING, QUESTIONS, REQUESTS, THANKS, WISHES, further};
use crate::wording_grammar::{contracted, lower_first, upper_first};
use crate::wording_noise::{Noise, disturb, placeholder, put_names};

/// The families that training never makes, each with the reason why it is a fair test.
pub const HELD_OUT_FAMILIES: [(&str, &str); 6] = [
    ("topic-first", "the subject is named before anything is asked (`Take X: what is the length?`); trained forms ask in one clause"),
    ("echo", "the asking word stands at the end (`The author of X is who?`); in trained forms it begins the question or is missing"),
    ("wonder", "a wish without a request (`I wonder who wrote X.`); trained openings ask somebody to tell something"),
    ("polite", "words after the question (`…, please?`, `… Thanks!`); trained questions end with what is asked"),
    ("between", "both names come first, in a phrase (`Between A and B, which is longer?`); trained forms join them by `or` or `of`"),
    ("belief", "a claim in a sentence of its own (`I think that … Is that right?`); trained ones ask and claim in one sentence"),
];

/// Which families of wordings may be made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Families {
    /// All that are not held out.
    Train,
    /// This one of the held-out families.
    HeldOut(&'static str),
}

impl Families {
    fn holds(self, family: &str) -> bool {
        matches!(self, Families::HeldOut(wanted) if wanted == family)
    }
}

/// How a question is reworded.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Wording {
    /// The families to draw from.
    pub families: Families,
    /// Probability that a name is written as an alias, if it has any.
    pub aliases: f64,
    /// Surface noise.
    pub noise: Noise,
}

impl Wording {
    /// What training uses.
    pub const TRAIN: Wording = Wording { families: Families::Train, aliases: 0.3, noise: Noise::TYPED };

    /// The same as people write it with care: without noise, and with full names.
    pub const CLEAN: Wording = Wording { families: Families::Train, aliases: 0.0, noise: Noise::NONE };
}

/// Probability of a whole question that only rewording has, where the schema has any.
pub(crate) const OTHERWISE: f64 = 0.5;
/// Probability that two relations are asked for at once, where there is a wording for it.
const FUSED: f64 = 0.5;
/// Probability of a contraction in a question without an answer.
const CONTRACTED: f64 = 0.4;
/// Probability of a frame of `frames.toml`, where there is one.
const FURTHER: f64 = 0.5;
/// Frequencies of no words before a question, of the usual ones, of others, of a sentence, and of
/// one that names something else.
const OPENINGS: [f64; 5] = [0.5, 0.14, 0.18, 0.13, 0.05];
/// Probability of a capital after a colon.
const CAPITAL: f64 = 0.4;
/// Attempts before a question counts as having no other wording.
const TRIES: usize = 12;

/// Fraction of these among the requests with a clause.
const ONLY_CLAUSE: f64 = 0.08;

/// The text as it is, or contracted.
pub(crate) fn as_asked(text: String, rng: &mut Rng) -> Form {
    match contracted(&text).filter(|_| rng.chance(CONTRACTED)) {
        Some(text) => Form { text, family: "contraction" },
        None => Form { text, family: "direct" },
    }
}

/// A composed text without names, and its family.
pub(crate) struct Form {
    pub(crate) text: String,
    pub(crate) family: &'static str,
}

/// What is needed while a question is composed.
pub(crate) struct Composer<'a> {
    pub(crate) base: &'a KnowledgeBase,
    families: Families,
    aliases: f64,
    /// What names and values are called in pages, and in the question.
    names: Vec<Spelling>,
    /// Which of them are titles of pages to be opened.
    titles: Vec<bool>,
}

impl KnowledgeBase {
    /// The question in other words, with the same plan and answer. `None` if it has no wording of
    /// the wanted families, or if every one tried contains the answer.
    pub fn reword(&self, question: &Question, wording: &Wording, rng: &mut Rng) -> Option<Question> {
        let chain: Vec<RelationRef> = question.chain.iter().map(|path| self.schema.relation_at(path)).collect::<Option<_>>()?;
        (0..TRIES).find_map(|_| {
            let mut composer =
                Composer { base: self, families: wording.families, aliases: wording.aliases, names: Vec::new(), titles: Vec::new() };
            let form = composer.compose(question, &chain, rng)?;
            let mut names: Vec<String> = composer.names.iter().map(|name| name.written.clone()).collect();
            let text = disturb(&wording.noise, form.text, &mut names, &composer.titles, rng);
            let text = put_names(&text, &names).replace("??", "?").replace("?.", "?");
            let told =
                matches!(question.plan, QuestionPlan::Follow { .. } | QuestionPlan::Inverse { .. } | QuestionPlan::Difference { .. })
                    && contains_words(&text.to_lowercase(), &question.answer.to_lowercase());
            if told {
                return None;
            }
            let spelt = composer.names.into_iter().zip(names).map(|(name, written)| Spelling { title: name.title, written });
            let spelt = spelt.filter(|name| name.title != name.written).collect();
            Some(Question { text, spelt, written: None, family: Some(form.family.to_owned()), ..question.clone() })
        })
    }
}

impl Composer<'_> {
    fn compose(&mut self, question: &Question, chain: &[RelationRef], rng: &mut Rng) -> Option<Form> {
        let form = match &question.plan {
            QuestionPlan::Follow { start } => self.follow(start, chain, rng),
            QuestionPlan::Inverse { value } => self.inverse(value, *chain.first()?, rng),
            QuestionPlan::Compare { a, b, more } => self.compare(a, b, *more, chain, rng),
            QuestionPlan::IsMore { a, b, more } => self.is_more(a, b, *more, *chain.first()?, rng),
            QuestionPlan::IsSame { a, b } => self.is_same(a, b, *chain.first()?, rng),
            QuestionPlan::IsValue { start, claim } => self.is_value(start, claim, chain, rng),
            QuestionPlan::Difference { a, b, more, minus } if minus.is_empty() => self.difference(a, b, *more, *chain.first()?, rng),
            QuestionPlan::Difference { a, b, .. } => self.age(a, b, question, *chain.first()?, rng),
            QuestionPlan::Missing { asks, .. } => self.missing(&question.text, asks, rng),
            QuestionPlan::Calculate { .. } => Some(as_asked(question.text.clone(), rng)),
            QuestionPlan::NoQuestion { .. } => Some(Form { text: question.text.clone(), family: "direct" }),
        }?;
        let form = self.end(form, rng)?;
        if matches!(question.plan, QuestionPlan::NoQuestion { .. }) {
            return Some(form); // it has a greeting of its own, or is one
        }
        if form.family == "keywords" {
            return Some(Form { text: lower_first(&form.text), family: form.family });
        }
        let opening = if form.family == "bare" { String::new() } else { self.opening(question, rng)? };
        let sentence = opening.is_empty() || opening.trim_end().ends_with(['.', '!', '?', ')', '-', '>']);
        let capital = sentence || (self.trains() && opening.ends_with(": ") && rng.chance(CAPITAL));
        let text = if capital || starts_with_name(&form.text) {
            format!("{opening}{}", upper_first(&form.text))
        } else {
            let kept = form.text.starts_with("I ") || form.text.starts_with("I'");
            format!("{opening}{}", if kept { form.text } else { lower_first(&form.text) })
        };
        Some(Form { text, family: form.family })
    }

    /// What stands before a question, with a blank if it is something.
    fn opening(&self, question: &Question, rng: &mut Rng) -> Option<String> {
        if !self.trains() {
            return Some(GREETINGS[rng.below(GREETINGS.len())].to_owned());
        }
        let text = match rng.weighted(&OPENINGS)? {
            0 => return Some(String::new()),
            1 => return rng.pick(&GREETINGS).map(|text| (*text).to_owned()),
            2 => rng.pick(&further().openers)?,
            3 => rng.pick(&further().contexts)?,
            _ => {
                let text = named(rng.pick(&further().distractions)?, rng);
                return Some(format!("{} ", say(&text, &[("n", &self.something_else(question, rng)?)])));
            }
        };
        Some(format!("{} ", named(text, rng)))
    }

    /// A name that has nothing to do with the question.
    fn something_else(&self, question: &Question, rng: &mut Rng) -> Option<String> {
        let other = rng.pick(self.base.entities())?;
        let apart = |name: &String| !name.contains(other.title.as_str()) && !other.title.contains(name.as_str());
        let named = question.entities.iter().chain([&question.answer]).chain(question.spelt.iter().map(|name| &name.title));
        named.filter(|name| !name.is_empty()).all(apart).then(|| self.base.name_in_text(other.kind, &other.title))
    }

    /// One of the usual frames; in training also one of the others.
    pub(crate) fn frame(&self, usual: &[&str], others: &[String], rng: &mut Rng) -> Option<String> {
        if self.trains() && rng.chance(FURTHER) {
            return rng.pick(others).map(|frame| named(frame, rng));
        }
        rng.pick(usual).map(|frame| (*frame).to_owned())
    }

    /// Whether no held-out family is wanted.
    pub(crate) fn trains(&self) -> bool {
        self.families == Families::Train
    }

    /// Adds the ending. A wanted held-out family that no part has made yet is made here, or not at
    /// all.
    fn end(&self, form: Form, rng: &mut Rng) -> Option<Form> {
        match self.families {
            Families::Train => Some(form),
            Families::HeldOut(wanted) if wanted == form.family => Some(form),
            Families::HeldOut("polite") => {
                let mark = if form.text.ends_with('.') { "." } else { "?" };
                let body = form.text.trim_end_matches(['?', '.']);
                let request = mark == "." || body.contains("ease");
                let thanks: Vec<&str> = THANKS.into_iter().filter(|thanks| !request || thanks.starts_with('{')).collect();
                let thanks = *rng.pick(&thanks)?;
                let text = match thanks.strip_prefix("{.}") {
                    Some(after) => format!("{body}{mark}{after}"),
                    None => format!("{body}{thanks}{mark}"),
                };
                Some(Form { text, family: "polite" })
            }
            Families::HeldOut(_) => None,
        }
    }

    /// A question that no page answers, in its own words; names are known to the noise.
    fn missing(&mut self, text: &str, asks: &Asks, rng: &mut Rng) -> Option<Form> {
        let names: Vec<&str> = match asks {
            Asks::Value { start, .. } => vec![start],
            Asks::Both { a, b, .. } => vec![a, b],
            Asks::Owner { value, .. } => vec![value],
        };
        let mut text = text.to_owned();
        for name in names {
            let at = text.find(name)?;
            let page = self.base.find(name);
            let titled = text[..at].ends_with("the ") || text[..at].ends_with("The ");
            let alias = page.filter(|_| !titled && rng.chance(self.aliases)).and_then(|id| self.pick_alias(id, rng));
            let mark = self.add(name, alias.unwrap_or_else(|| name.to_owned()), page.is_some());
            text.replace_range(at..at + name.len(), &mark);
        }
        Some(as_asked(text, rng))
    }

    /// The placeholder of a page's name, without an article, and the name with it.
    pub(crate) fn name(&mut self, title: &str, rng: &mut Rng) -> Option<String> {
        let id: EntityId = self.base.find(title)?;
        let entity = &self.base.entities()[id];
        let kind = &self.base.schema().types[entity.kind];
        let alias = if rng.chance(self.aliases) { self.pick_alias(id, rng) } else { None };
        let written = alias.unwrap_or_else(|| title.to_owned());
        let titled = self.base.name_in_text(entity.kind, title).starts_with("the ") && !title.starts_with("the ");
        let acronym = written != title && !written.chars().any(char::is_lowercase);
        let the = kind.article || if acronym { titled } else { self.base.name_in_text(entity.kind, &written).starts_with("the ") };
        let mark = self.add(title, written.clone(), true);
        let the = the && !written.starts_with("The ") && !written.starts_with("the ");
        Some(if the { format!("the {mark}") } else { mark })
    }

    /// An alias; the usual one most of the time.
    fn pick_alias(&self, id: EntityId, rng: &mut Rng) -> Option<String> {
        let aliases = self.base.aliases(id);
        let at = if rng.chance(0.7) { 0 } else { rng.below(aliases.len().max(1)) };
        aliases.get(at).cloned()
    }

    fn add(&mut self, title: &str, written: String, opens: bool) -> String {
        self.names.push(Spelling { title: title.to_owned(), written });
        self.titles.push(opens);
        placeholder(self.names.len() - 1)
    }

    /// The placeholder of a value that the question names, with the article it needs, and with `a`
    /// or `an`. In training it may be an alias, a surname as a rule.
    pub(crate) fn value(&mut self, at: RelationRef, value: &str, rng: &mut Rng) -> (String, String) {
        let alias = if self.trains() && rng.chance(self.aliases) { self.only_alias(value, rng) } else { None };
        let aliased = alias.is_some();
        let written = alias.unwrap_or_else(|| value.to_owned());
        let mark = self.add(value, written.clone(), false);
        let target = self.base.schema().relation(at).target.filter(|_| !aliased);
        let named = target.map_or(written.clone(), |kind| self.base.name_in_text(kind, &written));
        let the = named.starts_with("the ") && !written.starts_with("the ");
        let article = with_article(&written);
        let article = article.split(' ').next().unwrap_or("a").to_owned();
        (if the { format!("the {mark}") } else { mark.clone() }, format!("{article} {mark}"))
    }

    /// An alias that is part of no other title: a claim must not be taken for another name.
    fn only_alias(&self, title: &str, rng: &mut Rng) -> Option<String> {
        let alias = self.pick_alias(self.base.find(title)?, rng)?;
        let others = self.base.entities().iter().filter(|other| other.title != title);
        others.map(|other| &other.title).all(|other| !contains_words(other, &alias)).then_some(alias)
    }

    pub(crate) fn holds(&self, family: &str) -> bool {
        self.families.holds(family)
    }

    /// Whether a held-out family is wanted that is made of the question itself.
    pub(crate) fn holds_any(&self) -> bool {
        matches!(self.families, Families::HeldOut(family) if family != "polite")
    }

    /// The phrase of a whole chain around a name; the name itself for an empty chain.
    pub(crate) fn referring(&self, chain: &[RelationRef], name: String, rng: &mut Rng) -> String {
        let mut x = name;
        let mut depth = 0;
        while let Some(at) = chain.get(depth) {
            if let Some(template) = chain.get(depth..depth + 2).and_then(|two| self.fused(two, |together| &together.phrases, rng)) {
                x = say(template, &[("x", &x)]);
                depth += 2;
                continue;
            }
            let relation = self.base.schema().relation(*at);
            let fits = |text: &&String| depth == 0 || !text.contains("{x}'s");
            let asked: Vec<&String> = relation.asked.phrases.iter().filter(fits).collect();
            x = match rng.pick(&asked).filter(|_| rng.chance(OTHERWISE)) {
                Some(template) => say(template, &[("x", &x)]),
                None => phrase(self.base, *at, &x, depth > 0, rng),
            };
            depth += 1;
        }
        x
    }

    /// A wording of two relations at once, if there is one that may be made.
    pub(crate) fn fused(&self, two: &[RelationRef], which: fn(&Together) -> &Vec<String>, rng: &mut Rng) -> Option<&String> {
        let together = self.base.schema().together(two).filter(|_| self.trains())?;
        rng.pick(which(together)).filter(|_| rng.chance(FUSED))
    }

    /// One of the forms that only rewording has, or one of the others.
    pub(crate) fn either<'b>(asked: &'b [String], others: &'b [String], rng: &mut Rng) -> Option<&'b String> {
        let other = others.is_empty() || rng.chance(OTHERWISE);
        rng.pick(if other && !asked.is_empty() { asked } else { others })
    }

    /// A noun phrase in a request; `named` for what has a name.
    pub(crate) fn imperative(&self, phrase: &str, named: bool, rng: &mut Rng) -> Option<String> {
        let usual: &[&str] = if named { &NAMING } else { &IMPERATIVES };
        Some(say(&self.frame(usual, &further().noun_requests, rng)?, &[("i", phrase)]))
    }

    /// A clause or a noun phrase in a request.
    pub(crate) fn request(&self, asked: &str, rng: &mut Rng) -> Option<String> {
        Some(say(&self.frame(&REQUESTS, &further().requests, rng)?, &[("i", asked)]))
    }

    /// A clause in a request.
    pub(crate) fn asking(&self, clause: &str, rng: &mut Rng) -> Option<Form> {
        let text = match rng.chance(ONLY_CLAUSE) {
            true => say(rng.pick(&QUESTIONS)?, &[("i", clause)]),
            false => self.request(clause, rng)?,
        };
        Some(Form { text, family: "request" })
    }

    /// A clause in a wish.
    pub(crate) fn wondering(&self, clause: &str, rng: &mut Rng) -> Option<Form> {
        Some(Form { text: say(rng.pick(&WISHES)?, &[("i", clause)]), family: "wonder" })
    }
}

/// Whether the relation's noun reads well alone: `the length of X`.
pub(crate) fn plain_noun(relation: &Relation) -> bool {
    relation.generic || relation.phrases.iter().any(|phrase| *phrase == format!("the {} of {{x}}", relation.noun))
}

/// The text without an article before it.
pub(crate) fn bare(text: &str) -> &str {
    text.strip_prefix("the ").unwrap_or(text)
}

/// The frame with a person's first name where it wants one.
pub(crate) fn named(frame: &str, rng: &mut Rng) -> String {
    match frame.contains("{first}") {
        true => frame.replace("{first}", rng.pick(&further().first_names).map_or("Anna", String::as_str)),
        false => frame.to_owned(),
    }
}

fn starts_with_name(text: &str) -> bool {
    text.chars().next().is_some_and(|first| (0xE000..=0xE0FF).contains(&u32::from(first)))
}

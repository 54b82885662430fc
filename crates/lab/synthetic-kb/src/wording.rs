//! Rewording: a question as people type it. Independent choices are composed: an opening, a form of
//! the question itself, an ending, how names are written, and surface noise. So one question has
//! thousands of forms. Every form belongs to a named family, and some families are never trained.

use autoact_base::random::Rng;

use crate::base::{EntityId, KnowledgeBase};
use crate::difference::{difference_text, forms};
use crate::phrase::{phrase, question};
use crate::question::{Asks, Question, QuestionPlan, Spelling};
use crate::schema::{Compare, Relation, RelationRef, Together};
use crate::text::{contains_words, fill, with_article};
use crate::wording_frames::{
    BELIEFS, BETWEEN, ECHOES, GREETINGS, IMPERATIVES, NAMING, QUESTIONS, REQUESTS, THANKS, TOPICS, VERIFY, WISHES,
};
use crate::wording_grammar::{comparing, contracted, indirect, lower_first, statement, upper_first};
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
const OTHERWISE: f64 = 0.5;
/// Probability that two relations are asked for at once, where there is a wording for it.
const FUSED: f64 = 0.5;
/// Probability of a phrase in such a question.
const FUSED_PHRASE: f64 = 0.3;
/// Probability of a difference that does not say which value is larger.
const GAP: f64 = 0.4;
/// Probability that such a question has the relation's own wording, where another would do.
const OWN_GAP: f64 = 0.75;
/// Probability of `what` in place of `which`.
const WHAT: f64 = 0.3;
/// Probability of a contraction in a question without an answer.
const CONTRACTED: f64 = 0.4;
/// Attempts before a question counts as having no other wording.
const TRIES: usize = 12;

/// Fraction of these among the requests with a clause.
const ONLY_CLAUSE: f64 = 0.08;

/// The text as it is, or contracted.
fn as_asked(text: String, rng: &mut Rng) -> Form {
    match contracted(&text).filter(|_| rng.chance(CONTRACTED)) {
        Some(text) => Form { text, family: "contraction" },
        None => Form { text, family: "direct" },
    }
}

/// A composed text without names, and its family.
struct Form {
    text: String,
    family: &'static str,
}

/// What is needed while a question is composed.
struct Composer<'a> {
    base: &'a KnowledgeBase,
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
        let greeting = if form.family == "bare" { "" } else { GREETINGS[rng.below(GREETINGS.len())] };
        let text = if greeting.is_empty() || starts_with_name(&form.text) {
            format!("{greeting}{}", upper_first(&form.text))
        } else {
            let kept = form.text.starts_with("I ") || form.text.starts_with("I'");
            format!("{greeting}{}", if kept { form.text } else { lower_first(&form.text) })
        };
        Some(Form { text, family: form.family })
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
    fn name(&mut self, title: &str, rng: &mut Rng) -> Option<String> {
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

    /// The placeholder of a claimed value with the article it needs, and with `a` or `an`.
    fn value(&mut self, at: RelationRef, value: &str) -> (String, String) {
        let mark = self.add(value, value.to_owned(), false);
        let target = self.base.schema().relation(at).target;
        let named = target.map_or(value.to_owned(), |kind| self.base.name_in_text(kind, value));
        let the = named.starts_with("the ") && !value.starts_with("the ");
        let article = with_article(value);
        let article = article.split(' ').next().unwrap_or("a").to_owned();
        (if the { format!("the {mark}") } else { mark.clone() }, format!("{article} {mark}"))
    }

    fn holds(&self, family: &str) -> bool {
        self.families.holds(family)
    }

    /// The phrase of a whole chain around a name; the name itself for an empty chain.
    fn referring(&self, chain: &[RelationRef], name: String, rng: &mut Rng) -> String {
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
    fn fused(&self, two: &[RelationRef], which: fn(&Together) -> &Vec<String>, rng: &mut Rng) -> Option<&String> {
        let together = self.base.schema().together(two).filter(|_| self.families == Families::Train)?;
        rng.pick(which(together)).filter(|_| rng.chance(FUSED))
    }

    /// A question about the end of a chain whose last two relations are asked for at once.
    fn follow_fused(&mut self, start: &str, chain: &[RelationRef], rng: &mut Rng) -> Option<Form> {
        let before = chain.len().checked_sub(2)?;
        let (inner, two) = chain.split_at(before);
        let template = self.fused(two, |together| &together.questions, rng)?.clone();
        let phrases = self.base.schema().together(two).map(|together| together.phrases.clone()).unwrap_or_default();
        let name = self.name(start, rng)?;
        let x = self.referring(inner, name, rng);
        if rng.chance(FUSED_PHRASE)
            && let Some(template) = rng.pick(&phrases)
        {
            let p = say(template, &[("x", &x)]);
            return Some(match rng.below(4) {
                0 => Form { text: format!("What's {p}?"), family: "noun-phrase" },
                1 => Form { text: say(rng.pick(&IMPERATIVES)?, &[("i", &p)]), family: "imperative" },
                2 => Form { text: p.strip_prefix("the ").unwrap_or(&p).to_owned(), family: "keywords" },
                _ => Form { text: say(rng.pick(&REQUESTS)?, &[("i", &p)]), family: "request" },
            });
        }
        let direct = with_what(say(&template, &[("x", &x)]), rng);
        match rng.weighted(&[0.5, 0.2, 0.3])? {
            0 => Some(Form { text: direct, family: "direct" }),
            1 => Some(as_asked(direct, rng)),
            _ => match indirect(&direct, &x) {
                Some(clause) => self.asking(&clause, rng),
                None => Some(Form { text: direct, family: "direct" }),
            },
        }
    }

    /// One of the forms that only rewording has, or one of the others.
    fn either<'b>(asked: &'b [String], others: &'b [String], rng: &mut Rng) -> Option<&'b String> {
        let other = others.is_empty() || rng.chance(OTHERWISE);
        rng.pick(if other && !asked.is_empty() { asked } else { others })
    }

    /// A question about the value at the end of a chain.
    fn follow(&mut self, start: &str, chain: &[RelationRef], rng: &mut Rng) -> Option<Form> {
        if let Some(form) = self.follow_fused(start, chain, rng) {
            return Some(form);
        }
        let (last, inner) = chain.split_last()?;
        let name = self.name(start, rng)?;
        let nested = !inner.is_empty();
        let x = self.referring(inner, name, rng);
        let relation = self.base.schema().relation(*last);
        let who = self.base.schema().relation(*last).target.is_some_and(|kind| self.base.schema().types[kind].surnames);
        let what = if who { "who" } else { "what" };
        if self.holds("topic-first") {
            let slots = [("x", x.as_str()), ("r", relation.noun.as_str()), ("w", what), ("W", &upper_first(what))];
            let text = say(rng.pick(&TOPICS)?, &slots);
            let text = if rng.chance(0.4) { text.replace(" is the ", "'s the ") } else { text };
            return plain_noun(relation).then_some(Form { text, family: "topic-first" });
        }
        if self.holds("echo") {
            let p = self.noun_phrase(*last, &x, nested, rng);
            return (!p.starts_with("what ")).then_some(Form { text: say(rng.pick(&ECHOES)?, &[("p", &p), ("w", what)]), family: "echo" });
        }
        let asked: Vec<&String> = relation.asked.questions.iter().filter(|asked| !nested || !asked.contains("{x}'s")).collect();
        let direct = match rng.pick(&asked).filter(|_| rng.chance(OTHERWISE)) {
            Some(template) => say(template, &[("x", &x)]),
            None => question(self.base, *last, &x, nested, rng),
        };
        let direct = with_what(direct, rng);
        if self.holds("wonder") {
            return self.wondering(&indirect(&direct, &x)?, rng);
        }
        match rng.weighted(&[0.2, 0.12, 0.2, 0.13, 0.1, 0.15, 0.1])? {
            0 => Some(Form { text: direct, family: "direct" }),
            1 => Some(Form { text: contracted(&direct)?, family: "contraction" }),
            2 => self.asking(&indirect(&direct, &x)?, rng),
            3 => {
                let p = self.noun_phrase(*last, &x, nested, rng);
                let family = "noun-phrase";
                let be = if rng.chance(0.5) { "'s" } else { " is" };
                (!p.starts_with("what ")).then(|| Form { text: format!("{}{be} {p}?", upper_first(what)), family })
            }
            4 => {
                let p = self.noun_phrase(*last, &x, nested, rng);
                if !p.starts_with("what ") && rng.chance(0.5) {
                    let named = !matches!(relation.range.as_str(), "number" | "year") && rng.chance(0.4);
                    let template = if named { rng.pick(&NAMING)? } else { rng.pick(&IMPERATIVES)? };
                    return Some(Form { text: say(template, &[("i", &p)]), family: "imperative" });
                }
                Some(Form { text: say(rng.pick(&REQUESTS)?, &[("i", &p)]), family: "request" })
            }
            5 => self.keywords(relation, *last, &x, nested, rng),
            _ => {
                let p = self.noun_phrase(*last, &x, nested, rng);
                let p = if rng.chance(0.3) { p.strip_prefix("the ").unwrap_or(&p).to_owned() } else { p };
                (!p.starts_with("what ")).then(|| Form { text: format!("{p}?"), family: "bare" })
            }
        }
    }

    /// `the length of X`, `X's length`, `the X length`.
    fn noun_phrase(&self, at: RelationRef, x: &str, nested: bool, rng: &mut Rng) -> String {
        let relation = self.base.schema().relation(at);
        if !nested && plain_noun(relation) && !relation.noun.contains(" of ") {
            if rng.chance(0.25) {
                return format!("{x}'s {}", relation.noun);
            }
            if rng.chance(0.1) {
                return format!("the {} {}", x.strip_prefix("the ").unwrap_or(x), relation.noun);
            }
        }
        phrase(self.base, at, x, nested, rng)
    }

    /// A query for a search engine.
    fn keywords(&self, relation: &Relation, at: RelationRef, x: &str, nested: bool, rng: &mut Rng) -> Option<Form> {
        let bare = x.strip_prefix("the ").unwrap_or(x);
        let text = match rng.below(3) {
            0 if plain_noun(relation) && !nested => format!("{bare} {}", relation.noun),
            1 if plain_noun(relation) && !nested => format!("{} {bare}", relation.noun),
            _ => {
                let p = phrase(self.base, at, x, nested, rng);
                p.strip_prefix("the ").filter(|p| !p.starts_with("what "))?.to_owned()
            }
        };
        Some(Form { text, family: "keywords" })
    }

    /// A clause in a request.
    fn asking(&self, clause: &str, rng: &mut Rng) -> Option<Form> {
        let template = if rng.chance(ONLY_CLAUSE) { rng.pick(&QUESTIONS)? } else { rng.pick(&REQUESTS)? };
        Some(Form { text: say(template, &[("i", clause)]), family: "request" })
    }

    /// A clause in a wish.
    fn wondering(&self, clause: &str, rng: &mut Rng) -> Option<Form> {
        Some(Form { text: say(rng.pick(&WISHES)?, &[("i", clause)]), family: "wonder" })
    }

    fn inverse(&mut self, value: &str, at: RelationRef, rng: &mut Rng) -> Option<Form> {
        let (v, _) = self.value(at, value);
        let relation = self.base.schema().relation(at);
        let direct = fill(Self::either(&relation.asked.inverse, &relation.inverse, rng)?, |slot| (slot == "v").then(|| v.clone()));
        if self.holds("wonder") {
            return self.wondering(&indirect(&direct, &v)?, rng);
        }
        if rng.chance(0.5) { Some(Form { text: direct, family: "direct" }) } else { self.asking(&indirect(&direct, &v)?, rng) }
    }

    fn compare(&mut self, a: &str, b: &str, more: bool, chain: &[RelationRef], rng: &mut Rng) -> Option<Form> {
        let (a, b) = (self.name(a, rng)?, self.name(b, rng)?);
        let compare = self.base.schema().relation(*chain.last()?).compare.as_ref()?;
        let (which, does) = match chain {
            [at] => {
                let compare = *rng.pick(&[compare].into_iter().chain(&compare.also).collect::<Vec<_>>())?;
                let noun = &self.base.schema().types[at.kind].noun;
                let (which, does) = comparing(rng.pick(&compare.which)?, noun)?;
                let comparing_word = word(compare, more, &does, rng);
                if !self.holds_any() && rng.chance(0.2) {
                    return self.inverted(compare, more, &a, &b, rng);
                }
                (which, does.replace("{c}", &comparing_word))
            }
            [first, ..] => {
                let does = compare.whose.as_ref()?;
                let comparing_word = word(compare, more, does, rng);
                let does = does.replace("{c}", &comparing_word);
                (format!("whose {}", self.base.schema().relation(*first).noun), does)
            }
            [] => return None,
        };
        self.choice(&a, &b, &which, &does, rng)
    }

    fn holds_any(&self) -> bool {
        matches!(self.families, Families::HeldOut(family) if family != "polite")
    }

    /// `Is A or B longer?`
    fn inverted(&self, compare: &Compare, more: bool, a: &str, b: &str, rng: &mut Rng) -> Option<Form> {
        let than = rng.pick(&compare.than)?.strip_suffix(" than {b}?")?;
        let word = word(compare, more, than, rng);
        let text = than.replace("{a}", &format!("{a} or {b}")).replace("{c}", &word);
        Some(Form { text: format!("{text}?"), family: "a-or-b" })
    }

    /// A choice between two, from `which` and what it `does`.
    fn choice(&self, a: &str, b: &str, which: &str, does: &str, rng: &mut Rng) -> Option<Form> {
        let asked = format!("{which} {does}");
        let or = format!("{a} or {b}");
        if self.holds("between") {
            let text = say(rng.pick(&BETWEEN)?, &[("a", a), ("b", b), ("q", &asked)]);
            return Some(Form { text, family: "between" });
        }
        let listed = match rng.below(4) {
            0 => format!("{asked} - {or}"),
            1 => format!("{asked}: {or}"),
            _ => format!("{asked}, {or}"),
        };
        if self.holds("wonder") {
            return self.wondering(&listed, rng);
        }
        let whose = which.starts_with("whose");
        let thing = !whose && which != "who" && does.starts_with("is ");
        let (text, family) = match rng.weighted(&[0.25, 0.2, 0.15, 0.12, 0.12, 0.16])? {
            0 => (format!("{listed}?"), "choice"),
            1 => (if rng.chance(0.5) { format!("{or}, {asked}?") } else { format!("{or}: {asked}?") }, "or-first"),
            2 if !whose => (format!("{} of {a} and {b} {does}?", if rng.chance(0.5) { "which" } else { "which one" }), "which-of"),
            3 if thing => (format!("{} {}, {or}?", if rng.chance(0.7) { "what's" } else { "what is" }, &does["is ".len()..]), "whats"),
            4 => return self.asking(&listed, rng),
            5 if !whose => {
                let last = does.split(' ').skip(1).filter(|word| *word != "the").collect::<Vec<_>>().join(" ");
                let bare = |name: &str| name.strip_prefix("the ").unwrap_or(name).to_owned();
                let (a, b) = (bare(a), bare(b));
                let text = match rng.below(3) {
                    0 => format!("{a} or {b} {last}"),
                    1 => format!("{a} vs {b} {last}"),
                    _ => format!("{last} {a} or {b}"),
                };
                (text, "keywords")
            }
            _ => (format!("{asked}, {or}?"), "choice"),
        };
        Some(Form { text, family })
    }

    /// A yes/no question in its own words, or around its statement.
    fn check(&self, direct: &str, subjects: &[&str], rng: &mut Rng) -> Option<Form> {
        let stated = statement(direct, subjects);
        if self.holds("belief") {
            let text = say(rng.pick(&BELIEFS)?, &[("s", &stated?)]);
            return Some(Form { text, family: "belief" });
        }
        if self.holds("wonder") {
            let whether = if rng.chance(0.5) { "if" } else { "whether" };
            return self.wondering(&format!("{whether} {}", stated?), rng);
        }
        match rng.weighted(&[0.35, 0.4, 0.17, 0.08])? {
            0 => Some(Form { text: direct.to_owned(), family: "direct" }),
            1 => {
                let template = *rng.pick(&VERIFY)?;
                let family = if template.starts_with("{s}") { "statement" } else { "is-it-true" };
                Some(Form { text: say(template, &[("s", &stated?)]), family })
            }
            2 => {
                let whether = if rng.chance(0.5) { "if" } else { "whether" };
                self.asking(&format!("{whether} {}", stated?), rng)
            }
            _ => {
                let stated = stated?;
                Some(Form { text: stated.strip_prefix("the ").unwrap_or(&stated).to_owned(), family: "keywords" })
            }
        }
    }

    fn is_more(&mut self, a: &str, b: &str, more: bool, at: RelationRef, rng: &mut Rng) -> Option<Form> {
        let (a, b) = (self.name(a, rng)?, self.name(b, rng)?);
        let compare = self.base.schema().relation(at).compare.as_ref()?;
        let with_than: Vec<&Compare> = [compare].into_iter().chain(&compare.also).filter(|compare| !compare.than.is_empty()).collect();
        let compare = *rng.pick(&with_than)?;
        let comparing_word = word(compare, more, "", rng);
        let direct = say(rng.pick(&compare.than)?, &[("a", &a), ("b", &b), ("c", &comparing_word)]);
        self.check(&direct, &[&a], rng)
    }

    fn is_same(&mut self, a: &str, b: &str, at: RelationRef, rng: &mut Rng) -> Option<Form> {
        let (a, b) = (self.name(a, rng)?, self.name(b, rng)?);
        let relation = self.base.schema().relation(at);
        let pool = if relation.same.is_empty() { &self.base.schema().generic.same } else { &relation.same };
        let direct = say(Self::either(&relation.asked.same, pool, rng)?, &[("a", &a), ("b", &b), ("r", &relation.noun)]);
        self.check(&direct, &[&format!("{a} and {b}")], rng)
    }

    fn is_value(&mut self, start: &str, claim: &str, chain: &[RelationRef], rng: &mut Rng) -> Option<Form> {
        let two = chain.len().checked_sub(2).map(|before| &chain[before..]);
        let fused = two.and_then(|two| self.fused(two, |together| &together.checks, rng)).cloned();
        let (last, inner) = match &fused {
            Some(_) => (chain.last()?, &chain[..chain.len() - 2]),
            None => chain.split_last()?,
        };
        let name = self.name(start, rng)?;
        let x = self.referring(inner, name, rng);
        let (v, a_v) = self.value(*last, claim);
        let relation = self.base.schema().relation(*last);
        let own = Self::either(&relation.asked.checks, &relation.checks, rng)
            .filter(|_| !relation.generic || !rng.chance(self.base.schema().generic.rate));
        let own = fused.as_ref().or(own);
        let p;
        let direct = match own {
            Some(template) => say(template, &[("v", &v), ("a v", &a_v), ("x", &x)]),
            None => {
                p = phrase(self.base, *last, &x, !inner.is_empty(), rng);
                let generic = rng.pick(&self.base.schema().generic.checks).map_or("Is {v} {p}?", String::as_str);
                // `Is it true that …` and the like are composed here
                let generic = if generic.contains(" that ") || generic.starts_with("Is it ") { "Is {v} {p}?" } else { generic };
                say(generic, &[("v", &v), ("p", &p)])
            }
        };
        let the_v = format!("the {v}");
        self.check(&direct, &[&x, &v, &the_v], rng)
    }

    fn difference(&mut self, a: &str, b: &str, more: bool, at: RelationRef, rng: &mut Rng) -> Option<Form> {
        let (a, b) = (self.name(a, rng)?, self.name(b, rng)?);
        let relation = self.base.schema().relation(at);
        if !self.holds_any() && rng.chance(GAP) {
            let r = relation.noun.as_str();
            let templates =
                ["What is the difference between the {r} of {a} and that of {b}?", "What's the difference in {r} between {a} and {b}?"];
            let own = rng.pick(&relation.asked.gaps).filter(|_| !plain_noun(relation) || rng.chance(OWN_GAP));
            let text = match own {
                Some(own) => say(own, &[("a", &a), ("b", &b)]),
                None if plain_noun(relation) => say(rng.pick(&templates)?, &[("r", r), ("a", &a), ("b", &b)]),
                None => difference_text(rng.pick(&forms(relation))?, more, &a, &b),
            };
            return Some(Form { text, family: "gap" });
        }
        let direct = difference_text(rng.pick(&forms(relation))?, more, &a, &b);
        self.direct_or_asked(direct, &a, rng)
    }

    /// How long something lasted, or somebody's age at a point in time.
    fn age(&mut self, a: &str, b: &str, question: &Question, at: RelationRef, rng: &mut Rng) -> Option<Form> {
        let x = self.name(a, rng)?;
        let schema = self.base.schema();
        let QuestionPlan::Difference { minus, .. } = &question.plan else { return None };
        let made = a != b || minus.len() > 1;
        let direct = if made {
            let age = schema.ages_at.iter().find(|age| age.year == at)?;
            if a == b {
                say(rng.pick(&age.unnamed)?, &[("x", &x)])
            } else {
                say(rng.pick(&age.questions)?, &[("x", &x), ("y", &self.name(b, rng)?)])
            }
        } else {
            say(rng.pick(&schema.relation(at).ages)?, &[("x", &x)])
        };
        self.direct_or_asked(direct, &x, rng)
    }

    /// The question as it is, or within a request.
    fn direct_or_asked(&self, direct: String, a: &str, rng: &mut Rng) -> Option<Form> {
        if self.holds("wonder") {
            return self.wondering(&indirect(&direct, a)?, rng);
        }
        if rng.chance(0.55) { Some(Form { text: direct, family: "direct" }) } else { self.asking(&indirect(&direct, a)?, rng) }
    }
}

/// `What year` and `In what year` for `In which year`, `What river` for `Which river`.
fn with_what(question: String, rng: &mut Rng) -> String {
    if !rng.chance(WHAT) {
        return question;
    }
    if let Some(rest) = question.strip_prefix("In which year ") {
        return if rng.chance(0.5) { format!("What year {rest}") } else { format!("In what year {rest}") };
    }
    for (which, what) in [("In which ", "In what "), ("On which ", "On what "), ("Which ", "What ")] {
        if let Some(rest) = question.strip_prefix(which) {
            return format!("{what}{rest}");
        }
    }
    question
}

/// Whether the relation's noun reads well alone: `the length of X`.
fn plain_noun(relation: &Relation) -> bool {
    relation.generic || relation.phrases.iter().any(|phrase| *phrase == format!("the {} of {{x}}", relation.noun))
}

/// The comparing word, or one that means the same. `first` needs a predicate that it can end:
/// `born first` has no `than`.
fn word(compare: &Compare, more: bool, predicate: &str, rng: &mut Rng) -> String {
    let word = if more { &compare.more } else { &compare.less };
    let other = match word.as_str() {
        "earlier" | "sooner" if predicate.ends_with("{c}") && !predicate.contains("first ") => "first",
        "larger" => "bigger",
        _ => return word.clone(),
    };
    if rng.chance(0.4) { other.to_owned() } else { word.clone() }
}

fn starts_with_name(text: &str) -> bool {
    text.chars().next().is_some_and(|first| (0xE000..=0xE0FF).contains(&u32::from(first)))
}

fn say(template: &str, values: &[(&str, &str)]) -> String {
    fill(template, |slot| values.iter().find(|(name, _)| *name == slot).map(|(_, value)| (*value).to_owned()))
}

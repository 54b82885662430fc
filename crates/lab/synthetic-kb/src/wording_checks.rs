//! Rewording of yes/no questions.

use autoact_base::random::Rng;

use crate::phrase::phrase;
use crate::schema::{Compare, RelationRef};
use crate::text::say;
use crate::wording::{Composer, Form, bare};
use crate::wording_frames::{BELIEFS, VERIFY, further};
use crate::wording_grammar::statement;
use crate::wording_pairs::word;

impl Composer<'_> {
    /// A yes/no question in its own words, or around its statement.
    pub(crate) fn check(&self, direct: &str, subjects: &[&str], rng: &mut Rng) -> Option<Form> {
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
                let template = self.frame(&VERIFY, &further().verify, rng)?;
                let family = if template.starts_with("{s}") { "statement" } else { "is-it-true" };
                Some(Form { text: say(&template, &[("s", &stated?)]), family })
            }
            2 => {
                let whether = if rng.chance(0.5) { "if" } else { "whether" };
                self.asking(&format!("{whether} {}", stated?), rng)
            }
            _ => {
                let stated = stated?;
                Some(Form { text: bare(&stated).to_owned(), family: "keywords" })
            }
        }
    }

    pub(crate) fn is_more(&mut self, a: &str, b: &str, more: bool, at: RelationRef, rng: &mut Rng) -> Option<Form> {
        let (a, b) = (self.name(a, rng)?, self.name(b, rng)?);
        let relation = self.base.schema().relation(at);
        let with_than: Vec<&Compare> = relation.compares().filter(|compare| !compare.than.is_empty()).collect();
        let compare = *rng.pick(&with_than)?;
        let comparing_word = word(compare, more, "", rng);
        let direct = say(rng.pick(&compare.than)?, &[("a", &a), ("b", &b), ("c", &comparing_word)]);
        self.check(&direct, &[&a], rng)
    }

    pub(crate) fn is_same(&mut self, a: &str, b: &str, at: RelationRef, rng: &mut Rng) -> Option<Form> {
        let (a, b) = (self.name(a, rng)?, self.name(b, rng)?);
        let relation = self.base.schema().relation(at);
        let pool = if relation.same.is_empty() { &self.base.schema().generic.same } else { &relation.same };
        let direct = say(Self::either(&relation.asked.same, pool, rng)?, &[("a", &a), ("b", &b), ("r", &relation.noun)]);
        self.check(&direct, &[&format!("{a} and {b}")], rng)
    }

    pub(crate) fn is_value(&mut self, start: &str, claim: &str, chain: &[RelationRef], rng: &mut Rng) -> Option<Form> {
        let two = chain.len().checked_sub(2).map(|before| &chain[before..]);
        let fused = two.and_then(|two| self.fused(two, |together| &together.checks, rng)).cloned();
        let (last, inner) = match &fused {
            Some(_) => (chain.last()?, &chain[..chain.len() - 2]),
            None => chain.split_last()?,
        };
        let name = self.name(start, rng)?;
        let x = self.referring(inner, name, rng);
        let (v, a_v) = self.value(*last, claim, rng);
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
}

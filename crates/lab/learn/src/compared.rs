//! What pages can be compared by: numbers that several pages of a kind state, such as their lengths.

use std::collections::{BTreeMap, BTreeSet};

use autoact_base::random::Rng;

use crate::form::answers::yes_or_no;
use crate::pages::Pages;
use crate::stated::{Singles, Stated, StatedQuestion};
use crate::statement::{Sort, Wording, compared};

/// Draws of two pages, until they have different numbers.
const DRAWS: usize = 20;

/// A number on a page.
#[derive(Debug, Clone, PartialEq)]
struct Told {
    number: f64,
    unit: String,
    /// As the page has it.
    text: String,
}

impl Told {
    fn of(text: &str) -> Option<Told> {
        let (number, unit) = text.split_once(' ').unwrap_or((text, ""));
        let number = number.replace(',', "").parse().ok()?;
        Some(Told { number, unit: unit.to_owned(), text: text.to_owned() })
    }
}

/// A number that pages of a kind have.
#[derive(Debug, Default)]
pub(crate) struct Quantity {
    kind: usize,
    /// What it is: `long`, `number of floors`, `year built`. Empty: the only year of each page.
    by: String,
    wordings: Vec<Wording>,
    /// By page; `None` if a page states several.
    values: BTreeMap<usize, Option<Told>>,
}

/// Two pages that can be compared, and the texts of their numbers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Pair {
    pub(crate) pages: [usize; 2],
    pub(crate) values: [String; 2],
    /// Whether the first one's number is the greater.
    pub(crate) first_greater: bool,
}

impl Quantity {
    /// Whether it is told in words like this one.
    pub(crate) fn says(&self, says: impl Fn(&str) -> bool) -> bool {
        says(&self.by) || self.wordings.iter().any(|wording| says(&wording.around[0]) || says(&wording.around[1]))
    }

    pub(crate) fn is_year(&self) -> bool {
        self.by.is_empty() || self.by.starts_with("year ")
    }

    /// Whether it is the only year that each page has.
    pub(crate) fn is_only_year(&self) -> bool {
        self.by.is_empty()
    }

    /// The kind of its pages.
    pub(crate) fn kind(&self) -> usize {
        self.kind
    }
}

/// The quantities of all kinds of pages.
#[derive(Debug, Default)]
pub(crate) struct Compared {
    all: Vec<Quantity>,
    /// Those with wordings of our own, as positions in `all`, each as often as it has pages.
    worded: Vec<usize>,
}

impl Compared {
    /// Reads what the pages state.
    pub(crate) fn of(stated: &Stated, singles: &Singles, pages: &Pages) -> Compared {
        let mut found: BTreeMap<(usize, String), Quantity> = BTreeMap::new();
        for (page, asked, answer) in stated.answers() {
            let (Some((by, wordings)), Some(told)) = (compared(asked, answer), Told::of(answer)) else { continue };
            let quantity = found.entry((pages.kind(page), by.clone())).or_insert_with(|| Quantity {
                kind: pages.kind(page),
                by,
                ..Quantity::default()
            });
            quantity.wordings.extend(wordings);
            let known = quantity.values.entry(page).or_insert_with(|| Some(told.clone()));
            known.take_if(|known| *known != told);
        }
        for page in 0..pages.all().len() {
            let Some(told) = singles.only(page, Sort::Year).and_then(|year| Told::of(year)) else { continue };
            let kind = pages.kind(page);
            found.entry((kind, String::new())).or_insert_with(|| Quantity { kind, ..Quantity::default() }).values.insert(page, Some(told));
        }
        let mut all: Vec<Quantity> = found.into_values().filter(|quantity| quantity.values.len() > 1).collect();
        for quantity in &mut all {
            quantity.wordings.sort();
            quantity.wordings.dedup();
        }
        let worded = (0..all.len()).filter(|at| !all[*at].wordings.is_empty());
        let worded = worded.flat_map(|at| std::iter::repeat_n(at, all[at].values.len())).collect();
        Compared { all, worded }
    }

    pub(crate) fn all(&self) -> &[Quantity] {
        &self.all
    }

    /// The number of a page that one of some quantities has; `None` if several have different ones.
    fn told(&self, quantities: &[usize], page: usize) -> Option<&Told> {
        let mut all = quantities.iter().filter_map(|at| self.all.get(*at)?.values.get(&page));
        let first = all.next()?.as_ref();
        if all.all(|other| other.as_ref() == first) { first } else { None }
    }

    /// Two pages, if their numbers differ and have the same unit. `quantities`: one in several words.
    pub(crate) fn pair(&self, quantities: &[usize], first: usize, second: usize) -> Option<Pair> {
        let (a, b) = (self.told(quantities, first)?, self.told(quantities, second)?);
        let differ = a.unit == b.unit && a.number != b.number;
        differ.then(|| Pair { pages: [first, second], values: [a.text.clone(), b.text.clone()], first_greater: a.number > b.number })
    }

    /// The pages that have one of some quantities.
    pub(crate) fn pages_with(&self, quantities: &[usize]) -> BTreeSet<usize> {
        quantities.iter().filter_map(|at| self.all.get(*at)).flat_map(|quantity| quantity.values.keys().copied()).collect()
    }

    /// Two random pages, of those that fit.
    pub(crate) fn draw_pair(&self, quantities: &[usize], fits: impl Fn(usize) -> bool, rng: &mut Rng) -> Option<Pair> {
        let pages: Vec<usize> = self.pages_with(quantities).into_iter().filter(|page| fits(*page)).collect();
        (0..DRAWS).find_map(|_| self.pair(quantities, *rng.pick(&pages)?, *rng.pick(&pages)?))
    }

    /// A random question which of two it is, or a claim about two, in words of our own.
    pub(crate) fn draw(&self, claims: bool, pages: &Pages, rng: &mut Rng) -> Option<StatedQuestion> {
        let at = *rng.pick(&self.worded)?;
        let quantity = &self.all[at];
        let wordings: Vec<&Wording> = quantity.wordings.iter().filter(|wording| wording.claims == claims).collect();
        let wording = rng.pick(&wordings)?;
        let pair = self.draw_pair(&[at], |_| true, rng)?;
        let [first, second] = pair.pages.map(|page| pages.all()[page].title.as_str());
        let [before, between, after] = &wording.around;
        Some(StatedQuestion {
            question: format!("{before}{first}{between}{second}{after}"),
            answer: answer(&pair, wording.greater, claims, pages),
            pages: pair.pages.to_vec(),
            values: pair.values.to_vec(),
        })
    }
}

/// The answer to a question about two pages, of which the one with the greater number, or with the
/// smaller one, is asked for or claimed to be the first.
pub(crate) fn answer(pair: &Pair, greater: bool, claims: bool, pages: &Pages) -> String {
    let first = pair.first_greater == greater;
    if claims { yes_or_no(first) } else { pages.all()[pair.pages[usize::from(!first)]].title.clone() }
}

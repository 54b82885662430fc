//! What decides the answer to an example that could be guessed: which of two names it is, yes or no.
//! Where a number, a name or another value on the pages decides it, it decides questions in the
//! example's form about other pages, too, and their answers are certain.

use autoact_base::random::Rng;
use autoact_score::normalize;

use crate::compared::{Compared, Quantity, answer};
use crate::form::answers::{Answers, yes_or_no};
use crate::pages::Pages;
use crate::relation_words::{ALIKE, EARLIER, LATER, compares, is_telling, lower_words, says};
use crate::stated::Singles;
use crate::statement::Sort;
use crate::task::Example;

/// Fewest pages with a number that decides.
const FEWEST: usize = 4;

/// What decides.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Decides {
    /// A number of each of two pages. `quantities`: the positions among all of those that it is, in
    /// several words. `greater`: whether the greater one is asked for, or claimed to be the first's.
    /// `said`: words of the question, of which a page has to say one, if there are any.
    Number { quantities: Vec<usize>, greater: bool, said: Vec<String> },
    /// Whether both pages name the same page of this kind.
    Same { kind: usize, said: Vec<String> },
    /// Whether the page's only value of this sort is the one in the question, `claimed`.
    Value { sort: Sort, claimed: String },
}

impl Decides {
    /// The value in the example's question.
    pub(crate) fn claimed(&self) -> Option<&str> {
        match self {
            Decides::Value { claimed, .. } => Some(claimed),
            Decides::Number { .. } | Decides::Same { .. } => None,
        }
    }
}

/// A question in the example's form that is decided.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Decided {
    /// The pages, in the order of their names in the question.
    pub(crate) pages: Vec<usize>,
    /// What decides it, by page.
    pub(crate) values: Vec<String>,
    pub(crate) answer: String,
    /// What stands in the place of the example's value, if it has one.
    pub(crate) claimed: Option<String>,
}

/// What is read from the pages to decide by.
#[derive(Debug, Default)]
pub(crate) struct Deciders {
    pub(crate) compared: Compared,
    pub(crate) singles: Singles,
}

impl Deciders {
    /// What decides an example. `named`: the pages in its question. `None`: nothing is sure to.
    pub(crate) fn of(&self, example: &Example, answers: Answers, named: &[usize], pages: &Pages) -> Option<Decides> {
        let yes = normalize(&example.answer) == "yes";
        let titles = named.iter().map(|page| pages.all()[*page].title.as_str());
        let words = lower_words(&titles.fold(example.question.clone(), |rest, title| rest.replace(title, " ")));
        let has = |some: &[&str]| words.iter().any(|word| some.contains(&word.as_str()));
        match (answers, named) {
            (Answers::Named, [first, second]) => {
                let won = normalize(&pages.all()[*first].title) == normalize(&example.answer);
                self.number(&words, won, [*first, *second], pages)
            }
            (Answers::Claim { linked: None }, [first, second]) if has(&ALIKE) => same(&words, yes, *first, *second, pages),
            (Answers::Claim { linked: None }, [first, second]) => self.number(&words, yes, [*first, *second], pages),
            (Answers::Claim { .. }, [page]) if !compares(&example.question) => self.value(&example.question, yes, *page, pages),
            _ => None,
        }
    }

    /// A number, of which the question says which one it is, or the only year.
    fn number(&self, words: &[String], first: bool, both: [usize; 2], pages: &Pages) -> Option<Decides> {
        let has = |some: &[&str]| words.iter().any(|word| some.contains(&word.as_str()));
        let (earlier, later) = (has(&EARLIER), has(&LATER));
        // whether the later one is asked for, if it is about time
        let later = (earlier || later).then_some(later);
        let alike = |quantity: &Quantity| quantity.kind() == pages.kind(both[0]);
        let told = |quantity: &Quantity| quantity.says(|text| words.iter().any(|word| is_telling(word) && says(text, word)));
        let named = self.decided(later, first, both, Vec::new(), |quantity| alike(quantity) && told(quantity));
        // a tree is compared with a tower by what both are
        named.or_else(|| self.decided(later, first, both, Vec::new(), told)).or_else(|| {
            later?;
            self.decided(later, first, both, said(words, both, pages), |quantity| alike(quantity) && quantity.is_only_year())
        })
    }

    /// The quantities that are meant, if enough pages have one and the example agrees.
    fn decided(
        &self,
        later: Option<bool>,
        first: bool,
        [one, other]: [usize; 2],
        said: Vec<String>,
        is_meant: impl Fn(&Quantity) -> bool,
    ) -> Option<Decides> {
        let all = self.compared.all().iter().enumerate();
        let quantities: Vec<usize> = all.filter(|(_, quantity)| is_meant(quantity)).map(|(at, _)| at).collect();
        (self.compared.pages_with(&quantities).len() >= FEWEST).then_some(())?;
        let greater = self.compared.pair(&quantities, one, other)?.first_greater == first;
        // the earlier one has the smaller year
        let years = quantities.iter().all(|at| self.compared.all()[*at].is_year());
        let against = years && later.is_some_and(|later| later != greater);
        (!against).then_some(Decides::Number { quantities, greater, said })
    }

    /// A value in the question that is the page's only one of its sort, or is not.
    fn value(&self, question: &str, yes: bool, page: usize, pages: &Pages) -> Option<Decides> {
        let rest = question.replace(pages.all()[page].title.as_str(), " ");
        let words = rest.split_whitespace().map(|word| word.trim_matches(|c: char| !c.is_alphanumeric()));
        let sorts: Vec<(Sort, &str)> = words.filter_map(|word| Some((Sort::of_word(word)?, word))).collect();
        let [(sort, claimed)] = sorts[..] else { return None };
        let told = self.singles.only(page, sort)?;
        (yes == (bare(told) == bare(claimed))).then(|| Decides::Value { sort, claimed: claimed.to_owned() })
    }

    /// A question in the form of the example that this decides, about pages of the example's kind.
    /// `named`: the pages of the example.
    pub(crate) fn draw(&self, decides: &Decides, answers: Answers, named: &[usize], pages: &Pages, rng: &mut Rng) -> Option<Decided> {
        let alike = pages.of_kind(*named.first()?);
        let says_one = |said: &[String], page: usize| said.is_empty() || said.iter().any(|word| says(&pages.all()[page].text, word));
        match decides {
            Decides::Number { quantities, greater, said } => {
                let pair = self.compared.draw_pair(quantities, |page| says_one(said, page), rng)?;
                let answer = answer(&pair, *greater, answers != Answers::Named, pages);
                Some(Decided { pages: pair.pages.to_vec(), values: pair.values.to_vec(), answer, claimed: None })
            }
            Decides::Same { kind, said } => {
                let alike: Vec<usize> = alike.iter().copied().filter(|page| says_one(said, *page)).collect();
                let first = *rng.pick(&alike)?;
                let value = pages.only_linked(first, *kind)?;
                // as many that are the same as that are not
                let same = rng.chance(0.5);
                let fits = |other: &usize| *other != first && pages.only_linked(*other, *kind).is_some_and(|told| (told == value) == same);
                let others: Vec<usize> = alike.iter().copied().filter(fits).collect();
                let second = *rng.pick(&others)?;
                let title = |page: usize| pages.all()[page].title.clone();
                let values = vec![title(value), title(pages.only_linked(second, *kind)?)];
                let answer = yes_or_no(same);
                Some(Decided { pages: vec![first, second], values, answer, claimed: None })
            }
            Decides::Value { sort, claimed } => {
                let page = *rng.pick(alike)?;
                let told = self.singles.only(page, *sort)?;
                let holds = rng.chance(0.5);
                let of = if holds { page } else { *rng.pick(alike)? };
                let other = self.singles.only(of, *sort)?;
                ((bare(other) == bare(told)) == holds).then_some(())?;
                let plural = claimed.ends_with('s') && claimed != bare(claimed);
                let claimed = if plural { other.clone() } else { bare(other).to_owned() };
                let answer = yes_or_no(holds);
                Some(Decided { pages: vec![page], values: vec![told.clone()], answer, claimed: Some(claimed) })
            }
        }
    }
}

/// The words of a question that both pages say.
fn said(words: &[String], both: [usize; 2], pages: &Pages) -> Vec<String> {
    let by_both = |word: &&String| is_telling(word) && both.iter().all(|page| says(&pages.all()[*page].text, word));
    words.iter().filter(by_both).cloned().collect()
}

/// What both pages name, or both should: pages of the kind that stands where the question's words do,
/// or the only kind that they have in common.
fn same(words: &[String], yes: bool, first: usize, second: usize, pages: &Pages) -> Option<Decides> {
    let telling: Vec<&String> = words.iter().filter(|word| is_telling(word)).collect();
    let kinds = |page: usize| -> Vec<usize> {
        let sentences = pages.all()[page].sentences();
        let told = sentences.into_iter().filter(|sentence| telling.iter().any(|word| says(sentence, word)));
        let named = told.flat_map(|sentence| pages.named_in(sentence)).filter(|other| *other != page);
        named.map(|other| pages.kind(other)).collect()
    };
    let (of_first, of_second) = (kinds(first), kinds(second));
    let mut found: Vec<usize> = of_first.into_iter().filter(|kind| of_second.contains(kind)).collect();
    if found.is_empty() && yes {
        let both = pages.linked(first).iter().filter(|other| pages.linked(second).contains(other));
        found = both.map(|other| pages.kind(*other)).collect();
    }
    found.sort_unstable();
    found.dedup();
    let [kind] = found[..] else { return None };
    let alike = pages.only_linked(first, kind)? == pages.only_linked(second, kind)?;
    (alike == yes).then(|| Decides::Same { kind, said: said(words, [first, second], pages) })
}

/// A weekday without the ending of several: `Mondays`.
fn bare(value: &str) -> &str {
    value.strip_suffix('s').filter(|day| day.ends_with("day")).unwrap_or(value)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::sync::Arc;

    use autoact_tools::{Corpus, Page};

    use super::*;
    use crate::stated::Stated;

    fn pages() -> Pages {
        let page = |title: &str, text: String| Page { title: title.to_owned(), text: format!("{title} {text}") };
        let courses = [("Knots", 6, 30, "Monday"), ("Bells", 9, 20, "Tuesday"), ("Maps", 4, 50, "Monday"), ("Tides", 6, 40, "Friday")];
        let courses = courses.map(|(name, credits, places, day)| {
            page(name, format!("is a course. It is worth {credits} credits. It has {places} places. It takes place on {day}s."))
        });
        let films = [("Vertigo", 1958, "Orland"), ("Psycho", 1960, "Orland"), ("Ran", 1985, "Nippa"), ("Alien", 1979, "Orland")];
        let films = films.map(|(name, year, land)| page(name, format!("is a film. It was released in {year}. Its country is {land}.")));
        let lands = ["Orland", "Nippa"].map(|name| page(name, "is a land. It is far.".to_owned()));
        Pages::new(Arc::new(Corpus::from_pages(courses.into_iter().chain(films).chain(lands).collect()).unwrap()))
    }

    /// What decides the example, and the questions that it decides: with what decides them, and answer.
    fn of(question: &str, answer: &str) -> Option<(Decides, Vec<String>)> {
        let pages = pages();
        let singles = Singles::of(&pages);
        let compared = Compared::of(&Stated::of(&pages, &singles), &singles, &pages);
        let deciders = Deciders { compared, singles };
        let named = pages.named_in(question);
        let example = Example { question: question.into(), answer: answer.into(), options: Vec::new() };
        let answers = Answers::of(&example, &named, &pages);
        let decides = deciders.of(&example, answers, &named, &pages)?;
        let mut rng = Rng::new(5);
        let told = |one: Decided| {
            let names: Vec<&str> = one.pages.iter().map(|page| pages.all()[*page].title.as_str()).collect();
            let claimed = one.claimed.unwrap_or_default();
            format!("{} {claimed} ({}): {}", names.join(" "), one.values.join(" "), one.answer)
        };
        let drawn = (0..400).filter_map(|_| deciders.draw(&decides, answers, &named, &pages, &mut rng)).map(told);
        let drawn: BTreeSet<String> = drawn.collect();
        Some((decides, drawn.into_iter().collect()))
    }

    #[track_caller]
    fn decides(question: &str, answer: &str, expected: &[&str]) {
        let (_, drawn) = of(question, answer).expect("it is decided");
        expected.iter().for_each(|one| assert!(drawn.iter().any(|other| other == one), "{one} is not among {drawn:#?}"));
    }

    #[test]
    fn a_number_that_the_question_names_decides() {
        decides("Which course has more credits, Knots or Bells?", "Bells", &["Maps Bells  (4 9): Bells", "Bells Maps  (9 4): Bells"]);
        let (_, drawn) = of("Which course has more credits, Knots or Bells?", "Bells").unwrap();
        assert!(!drawn.iter().any(|one| one.starts_with("Knots Tides")), "both have 6: {drawn:#?}");
        decides("Which course has fewer places, Knots or Bells?", "Bells", &["Maps Bells  (50 20): Bells"]);
        // credits or places: nothing says which
        assert_eq!(of("Which course is larger, Knots or Bells?", "Bells"), None);
    }

    #[test]
    fn the_only_year_decides_what_was_earlier() {
        decides("Did Psycho come out earlier than Vertigo?", "no", &["Psycho Ran  (1960 1985): yes", "Ran Vertigo  (1985 1958): no"]);
        // the answer says the opposite of what the years do
        assert_eq!(of("Did Psycho come out earlier than Vertigo?", "yes"), None);
        assert_eq!(of("Which is the better one, Psycho or Vertigo?", "Vertigo"), None);
    }

    #[test]
    fn two_of_different_kinds_are_compared_by_what_both_have() {
        let page = |title: &str, text: String| Page { title: title.to_owned(), text: format!("{title} {text}") };
        let trees = [("Old Bess", 27), ("Corker", 12), ("Nine", 9), ("Ten", 10)]
            .map(|(name, height)| page(name, format!("is a tree. It is {height} metres tall. It was planted in 18{height:02}.")));
        let towers = [("Spire", 40), ("Dome", 21), ("Mast", 16), ("Gate", 5)]
            .map(|(name, height)| page(name, format!("is a tower. It is {height} metres tall. It was opened in 19{height:02}.")));
        let pages = Pages::new(Arc::new(Corpus::from_pages(trees.into_iter().chain(towers).collect()).unwrap()));
        let singles = Singles::of(&pages);
        let compared = Compared::of(&Stated::of(&pages, &singles), &singles, &pages);
        let deciders = Deciders { compared, singles };
        let drawn = |question: &str, answer: &str| -> Option<BTreeSet<String>> {
            let named = pages.named_in(question);
            let example = Example { question: question.into(), answer: answer.into(), options: Vec::new() };
            let answers = Answers::of(&example, &named, &pages);
            let decides = deciders.of(&example, answers, &named, &pages)?;
            let mut rng = Rng::new(7);
            let told = |one: Decided| one.pages.iter().map(|page| pages.all()[*page].title.as_str()).collect::<Vec<_>>().join(" ");
            Some((0..400).filter_map(|_| deciders.draw(&decides, answers, &named, &pages, &mut rng)).map(told).collect())
        };
        let taller = drawn("Which is taller, Old Bess or the Spire?", "Spire").expect("both are so many metres tall");
        assert!(taller.contains("Corker Dome") && taller.contains("Mast Nine"), "{taller:#?}");
        assert_eq!(drawn("Which is older, Old Bess or the Spire?", "Old Bess"), None, "planted or opened");
    }

    #[test]
    fn where_no_relation_is_named_a_page_has_to_say_the_word() {
        let page = |title: &str, text: &str| Page { title: title.to_owned(), text: format!("{title} {text}") };
        let all =
            [("Ann", "came 1990 as a guest"), ("Bea", "came 1995 as a guest"), ("Cem", "came 1997 as a cook"), ("Den", "dates back, 1890")];
        let pages = Pages::new(Arc::new(Corpus::from_pages(all.map(|(title, text)| page(title, text)).to_vec()).unwrap()));
        assert_eq!(said(&lower_words("Did Ann arrive as a guest before Bea?"), [0, 1], &pages), ["guest"]);
        assert!(said(&lower_words("Did Ann arrive as a guest before Cem?"), [0, 2], &pages).is_empty());
    }

    #[test]
    fn what_both_name_decides_whether_they_are_the_same() {
        let expected = ["Psycho Vertigo  (Orland Orland): yes", "Ran Psycho  (Nippa Orland): no"];
        decides("Are Vertigo and Psycho from the same country?", "yes", &expected);
        decides("Do Vertigo and Ran share their country?", "no", &expected);
        decides("Were Vertigo and Psycho both made there?", "yes", &expected);
        assert_eq!(of("Do Vertigo and Ran share anything?", "no"), None);
    }

    #[test]
    fn the_only_value_of_its_sort_decides() {
        let expected = ["Maps Monday (Mondays): yes", "Maps Tuesday (Mondays): no", "Bells Monday (Tuesdays): no"];
        decides("Is Bells on a Friday?", "no", &expected);
        decides("Is Bells on a Tuesday?", "yes", &expected);
        assert_eq!(of("Is Bells on a Friday?", "yes"), None);
        assert_eq!(of("Does Bells have more than 30 places?", "no"), None);
    }
}

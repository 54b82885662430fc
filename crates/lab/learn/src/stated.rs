//! What the pages state, as questions: about one page, or about a page that another one leads to.
//!
//! Pages say the same thing in several wordings: `The building is Tansley Court` on one, `It takes
//! place in Orlin Hall` on another. A group that is asked in each page's own words alone learns to
//! look for them, and not what they mean. So the questions that a value answers on one page are asked
//! of all pages of its kind, where it is plain which value it is: most pages of the kind have exactly
//! one that is such a thing, such as one year, one weekday, or one name of a building.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use autoact_base::random::Rng;

use crate::pages::Pages;
use crate::statement::{Asked, Sort, asked, values};

/// Share of the questions over two pages, where pages lead to others.
const CHAINED: f64 = 0.4;
/// Share of the pages of a kind that have exactly one value of a sort, where one says what the
/// others mean.
const SINGLE: f64 = 0.8;

/// One thing that a page states, by the questions that it answers.
#[derive(Debug)]
struct Statement {
    page: usize,
    /// The value, where the questions are of all pages of the kind.
    value: Option<String>,
    questions: Arc<[Asked]>,
}

impl Statement {
    fn answer<'a>(&'a self, question: &'a Asked) -> &'a str {
        self.value.as_deref().unwrap_or(&question.answer)
    }
}

/// All statements of the pages.
#[derive(Debug, Default)]
pub(crate) struct Stated {
    all: Vec<Statement>,
    /// By page: its statements, as positions in `all`.
    of_page: Vec<Vec<usize>>,
    /// Those that lead to another page with statements: the statement, and that page.
    links: Vec<(usize, usize)>,
}

/// A question with its answer, and the pages that lead there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct StatedQuestion {
    pub(crate) pages: Vec<usize>,
    pub(crate) question: String,
    pub(crate) answer: String,
}

impl Stated {
    /// Reads the pages.
    pub(crate) fn of(pages: &Pages) -> Stated {
        let told: Vec<BTreeMap<Sort, BTreeSet<String>>> = (0..pages.all().len()).map(|page| values(page, pages)).collect();
        let only = |page: usize, sort: Sort| told[page].get(&sort).filter(|all| all.len() == 1).and_then(BTreeSet::first);
        let mut alike: BTreeMap<(usize, Sort), usize> = BTreeMap::new();
        for (page, sorts) in told.iter().enumerate() {
            let one = sorts.iter().filter(|(_, all)| all.len() == 1);
            one.for_each(|(sort, _)| *alike.entry((pages.kind(page), *sort)).or_default() += 1);
        }
        let single = |kind: usize, sort: Sort| {
            let count = alike.get(&(kind, sort)).copied().unwrap_or_default();
            count as f64 >= SINGLE * pages.kinds()[kind].len() as f64
        };
        let mut all = Vec::new();
        let mut shared: BTreeMap<(usize, Sort), Vec<Asked>> = BTreeMap::new();
        for (page, text) in pages.all().iter().enumerate() {
            let kind = pages.kind(page);
            for sentence in text.sentences() {
                // `built in 1912 by Ada Lind` states two things
                let mut by_answer: BTreeMap<String, Vec<Asked>> = BTreeMap::new();
                asked(sentence, page, pages).into_iter().for_each(|one| by_answer.entry(one.answer.clone()).or_default().push(one));
                for (answer, mut questions) in by_answer {
                    let sort = Sort::of(&answer, pages).filter(|sort| only(page, *sort) == Some(&answer) && single(kind, *sort));
                    let Some(sort) = sort else {
                        all.push(Statement { page, value: None, questions: questions.into() });
                        continue;
                    };
                    let known = shared.entry((kind, sort)).or_default();
                    questions.retain(|one| !known.iter().any(|other| other.around == one.around && other.named == one.named));
                    known.append(&mut questions);
                }
            }
        }
        for ((kind, sort), questions) in shared {
            let questions: Arc<[Asked]> = questions.into();
            for page in &pages.kinds()[kind] {
                let Some(value) = only(*page, sort).cloned() else { continue };
                all.push(Statement { page: *page, value: Some(value), questions: Arc::clone(&questions) });
            }
        }
        let mut of_page = vec![Vec::new(); pages.all().len()];
        all.iter().enumerate().for_each(|(at, statement)| of_page[statement.page].push(at));
        let leads = |(at, statement): (usize, &Statement)| {
            let answer = statement.answer(statement.questions.iter().find(|question| question.named.is_some())?);
            let next = pages.find(answer).filter(|next| *next != statement.page && !of_page[*next].is_empty())?;
            Some((at, next))
        };
        let links = all.iter().enumerate().filter_map(leads).collect();
        Stated { all, of_page, links }
    }

    /// A random question; `None` if no sentence is understood.
    pub(crate) fn draw(&self, pages: &Pages, rng: &mut Rng) -> Option<StatedQuestion> {
        let title = |page: usize| pages.all()[page].title.as_str();
        if rng.chance(CHAINED)
            && let Some((at, next)) = rng.pick(&self.links)
        {
            let first = &self.all[*at];
            let names: Vec<&[String; 2]> = first.questions.iter().filter_map(|question| question.named.as_ref()).collect();
            let [before, after] = rng.pick(&names)?;
            let then = &self.all[*rng.pick(&self.of_page[*next])?];
            // `the one who built X's height` asks for the height of X
            let whole: Vec<&Asked> = then.questions.iter().filter(|asked| !asked.around[1].starts_with('\'')).collect();
            let asked = rng.pick(&whole)?;
            let (Asked { around: [opening, rest], .. }, answer) = (asked, then.answer(asked));
            let question = format!("{opening}{before}{}{after}{rest}", title(first.page));
            let back = pages.find(answer) == Some(first.page);
            return (!back).then(|| StatedQuestion { pages: vec![first.page, *next], question, answer: answer.to_owned() });
        }
        let statement = rng.pick(&self.all)?;
        let asked = rng.pick(&statement.questions)?;
        let question = asked.around.join(title(statement.page));
        Some(StatedQuestion { pages: vec![statement.page], question, answer: statement.answer(asked).to_owned() })
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use autoact_tools::{Corpus, Page};

    use super::*;

    fn pages() -> Pages {
        let page = |title: &str, text: &str| Page { title: title.to_owned(), text: text.to_owned() };
        let halls = [
            ("Elm Hall", "It was built in 1912 by Bo Ek."),
            ("Oak Hall", "Oak Hall dates from 1887."),
            ("Ash Hall", "It went up in 1901."),
        ];
        let courses = [
            ("Knots", "The course is held in Elm Hall. It is worth 6 credits. 20 places."),
            ("Bells", "The course takes place in Oak Hall. It is worth 9 credits. 30 places."),
            ("Maps", "The course is held in Ash Hall. It is worth 4 credits. 50 places."),
        ];
        let halls = halls.map(|(title, text)| page(title, &format!("{title} is a hall. {text} Its walls are brick.")));
        let courses = courses.map(|(title, text)| page(title, &format!("{title} is a course. {}", text.replace("The course", title))));
        Pages::new(Arc::new(Corpus::from_pages(halls.into_iter().chain(courses).collect()).unwrap()))
    }

    fn drawn() -> Vec<String> {
        let pages = pages();
        let stated = Stated::of(&pages);
        let mut rng = Rng::new(3);
        let all = (0..600).filter_map(|_| stated.draw(&pages, &mut rng)).map(|one| format!("{} -> {}", one.question, one.answer));
        all.collect::<BTreeSet<_>>().into_iter().collect()
    }

    #[test]
    fn what_one_page_says_is_asked_of_all_of_its_kind() {
        let drawn = drawn();
        for expected in [
            "When was Elm Hall built? -> 1912",
            "When was Oak Hall built? -> 1887",
            "In which year was Ash Hall built? -> 1901",
            "Where is Knots held? -> Elm Hall",
            "Where is Bells held? -> Oak Hall",
        ] {
            assert!(drawn.iter().any(|one| one == expected), "{expected} is not among {drawn:#?}");
        }
        assert!(drawn.iter().filter(|one| one.starts_with("Who built")).all(|one| one.ends_with("-> Bo Ek")), "{drawn:#?}");
        // credits and places are both numbers, so no page says which is which for another
        assert!(drawn.iter().any(|one| one == "How many credits is Bells worth? -> 9"), "{drawn:#?}");
        assert!(!drawn.iter().any(|one| one.starts_with("How many credits") && one.ends_with("0")), "{drawn:#?}");
    }

    #[test]
    fn chains_lead_over_what_another_page_calls_it() {
        let drawn = drawn();
        let chain = "When was the place where Bells is held built? -> 1887";
        assert!(drawn.iter().any(|one| one == chain), "{drawn:#?}");
    }
}

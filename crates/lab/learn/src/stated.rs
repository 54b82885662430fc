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
use autoact_score::normalize;

use crate::compared::Compared;
use crate::filter::within;
use crate::form::answers::yes_or_no;
use crate::pages::Pages;
use crate::statement::{Asked, Lexicon, Reader, Sort, claim, values};

/// Share of the questions over two pages, where pages lead to others.
const CHAINED: f64 = 0.4;
/// Share of the pages of a kind that have exactly one value of a sort, where one says what the
/// others mean.
const SINGLE: f64 = 0.8;
/// Share of the questions that compare two pages or claim something, where the examples do.
const COMPARED_OR_CLAIMED: f64 = 0.35;
/// Draws of a value that makes a claim false, until one does.
const DRAWS: usize = 20;

/// The values of each page that are the only ones of their sort, as they are on most pages of its
/// kind.
#[derive(Debug, Default)]
pub(crate) struct Singles {
    of_page: Vec<BTreeMap<Sort, String>>,
}

impl Singles {
    /// Reads the pages.
    pub(crate) fn of(pages: &Pages) -> Singles {
        let only = |(sort, all): (Sort, BTreeSet<String>)| all.first().filter(|_| all.len() == 1).map(|one| (sort, one.clone()));
        let mut of_page: Vec<BTreeMap<Sort, String>> =
            (0..pages.all().len()).map(|page| values(page, pages).into_iter().filter_map(only).collect()).collect();
        let mut alike: BTreeMap<(usize, Sort), usize> = BTreeMap::new();
        for (page, sorts) in of_page.iter().enumerate() {
            sorts.keys().for_each(|sort| *alike.entry((pages.kind(page), *sort)).or_default() += 1);
        }
        for (page, sorts) in of_page.iter_mut().enumerate() {
            let kind = pages.kind(page);
            let least = SINGLE * pages.kinds()[kind].len() as f64;
            sorts.retain(|sort, _| alike.get(&(kind, *sort)).is_some_and(|count| *count as f64 >= least));
        }
        Singles { of_page }
    }

    /// The page's only value of a sort.
    pub(crate) fn only(&self, page: usize, sort: Sort) -> Option<&String> {
        self.of_page.get(page)?.get(&sort)
    }
}

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
    /// The share of the sentences that state something.
    understood: f64,
    /// By page: its statements, as positions in `all`.
    of_page: Vec<Vec<usize>>,
    /// Those that lead to another page with statements: the statement, and that page.
    links: Vec<(usize, usize)>,
    /// The statements that answer a question with these words around the name.
    alike: BTreeMap<(usize, [String; 2]), Vec<usize>>,
}

/// A question with its answer, and the pages that lead there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct StatedQuestion {
    pub(crate) pages: Vec<usize>,
    pub(crate) question: String,
    pub(crate) answer: String,
    /// What decides the answer, by page, if it could be guessed.
    pub(crate) values: Vec<String>,
}

/// What a question is about.
struct Subject {
    /// The page, behind those that lead to it.
    pages: Vec<usize>,
    /// What it is called: by its title, or by what another page calls it.
    name: String,
}

/// What questions are to be drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Guessable {
    /// Which of two, as an example asks.
    pub(crate) choices: bool,
    /// Yes or no, as an example asks.
    pub(crate) claims: bool,
}

impl Stated {
    /// Reads the pages.
    pub(crate) fn of(pages: &Pages, singles: &Singles) -> Stated {
        let lexicon = Lexicon::of(pages);
        let mut all = Vec::new();
        let mut shared: BTreeMap<(usize, Sort), Vec<Asked>> = BTreeMap::new();
        let (mut sentences, mut understood) = (0_usize, 0_usize);
        for (page, text) in pages.all().iter().enumerate() {
            let kind = pages.kind(page);
            let reader = Reader::of(page, pages, &lexicon);
            for sentence in text.sentences() {
                // `built in 1912 by Ada Lind` states two things
                let mut by_answer: BTreeMap<String, Vec<Asked>> = BTreeMap::new();
                let asked = reader.asked(sentence);
                sentences += 1;
                understood += usize::from(!asked.is_empty());
                asked.into_iter().for_each(|one| by_answer.entry(one.answer.clone()).or_default().push(one));
                for (answer, mut questions) in by_answer {
                    let sort = Sort::of(&answer, pages).filter(|sort| singles.only(page, *sort) == Some(&answer));
                    let Some(sort) = sort else {
                        all.push(Statement { page, value: None, questions: questions.into() });
                        continue;
                    };
                    // another page's year is not when it joined Purchasing
                    let own: Vec<Asked> = questions.extract_if(.., |one| one.names_another()).collect();
                    if !own.is_empty() {
                        all.push(Statement { page, value: None, questions: own.into() });
                    }
                    let known = shared.entry((kind, sort)).or_default();
                    questions.retain(|one| !known.iter().any(|other| other.around == one.around && other.named == one.named));
                    known.append(&mut questions);
                }
            }
        }
        for ((kind, sort), questions) in shared {
            let questions: Arc<[Asked]> = questions.into();
            for page in &pages.kinds()[kind] {
                let Some(value) = singles.only(*page, sort).cloned() else { continue };
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
        let mut alike: BTreeMap<(usize, [String; 2]), Vec<usize>> = BTreeMap::new();
        for (at, statement) in all.iter().enumerate() {
            let kind = pages.kind(statement.page);
            statement.questions.iter().for_each(|asked| alike.entry((kind, asked.around.clone())).or_default().push(at));
        }
        Stated { all, understood: understood as f64 / sentences.max(1) as f64, of_page, links, alike }
    }

    /// The share of the sentences that state something.
    pub(crate) fn understood(&self) -> f64 {
        self.understood
    }

    /// How many statements there are.
    pub(crate) fn len(&self) -> usize {
        self.all.len()
    }

    /// What a page states by one of these words, in words of its own.
    pub(crate) fn told(&self, page: usize, words: &[&str]) -> BTreeSet<String> {
        let statements = self.of_page.get(page).into_iter().flatten().map(|at| &self.all[*at]);
        let told = statements.flat_map(|one| one.questions.iter().map(move |asked| (asked, one.answer(asked))));
        let by_word = told.filter(|(asked, answer)| {
            let says = |word: &&str| asked.around.iter().any(|text| text.contains(*word));
            answer.starts_with(char::is_alphabetic) && words.iter().any(says)
        });
        by_word.map(|(_, answer)| answer.to_owned()).collect()
    }

    /// Each page's questions, with their answers.
    pub(crate) fn answers(&self) -> impl Iterator<Item = (usize, &Asked, &str)> {
        self.all.iter().flat_map(|statement| statement.questions.iter().map(move |asked| (statement.page, asked, statement.answer(asked))))
    }

    /// A random question; `None` if no sentence is understood.
    pub(crate) fn draw(&self, compared: &Compared, like: Guessable, pages: &Pages, rng: &mut Rng) -> Option<StatedQuestion> {
        let guessable = like != Guessable::default() && rng.chance(COMPARED_OR_CLAIMED);
        if guessable && like.choices && (!like.claims || rng.chance(0.5)) {
            return compared.draw(false, pages, rng);
        }
        if guessable && rng.chance(0.5) {
            return compared.draw(true, pages, rng);
        }
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
            let subject = Subject { pages: vec![first.page, *next], name: format!("{before}{}{after}", title(first.page)) };
            let drawn = self.about(subject, then, asked, guessable, pages, rng)?;
            let back = pages.find(then.answer(asked)) == Some(first.page);
            return (!back).then_some(drawn);
        }
        let statement = rng.pick(&self.all)?;
        let asked = rng.pick(&statement.questions)?;
        let subject = Subject { pages: vec![statement.page], name: title(statement.page).to_owned() };
        self.about(subject, statement, asked, guessable, pages, rng)
    }

    /// The question about a page, or a claim.
    fn about(
        &self,
        subject: Subject,
        statement: &Statement,
        asked: &Asked,
        claims: bool,
        pages: &Pages,
        rng: &mut Rng,
    ) -> Option<StatedQuestion> {
        let Subject { pages: about, name } = subject;
        let truth = statement.answer(asked);
        if !claims {
            let question = asked.around.join(&name);
            return Some(StatedQuestion { pages: about, question, answer: truth.to_owned(), values: Vec::new() });
        }
        let holds = rng.chance(0.5);
        let value = if holds { truth } else { self.false_one(statement, asked, pages, rng)? };
        let values = about[1..].iter().map(|page| pages.all()[*page].title.clone()).chain([truth.to_owned()]).collect();
        let answer = yes_or_no(holds);
        Some(StatedQuestion { question: claim(asked, &name, value)?, pages: about, answer, values })
    }

    /// What another page answers to the question, and this one does not.
    fn false_one(&self, statement: &Statement, asked: &Asked, pages: &Pages, rng: &mut Rng) -> Option<&str> {
        let alike = self.alike.get(&(pages.kind(statement.page), asked.around.clone()))?;
        (0..DRAWS).find_map(|_| {
            let other = &self.all[*rng.pick(alike)?];
            let value = other.answer(other.questions.iter().find(|one| one.around == asked.around)?);
            (!within(&normalize(value), &normalize(&pages.all()[statement.page].text))).then_some(value)
        })
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

    fn drawn_like(like: Guessable) -> Vec<String> {
        let pages = pages();
        let stated = Stated::of(&pages, &Singles::of(&pages));
        let compared = Compared::of(&stated, &Singles::of(&pages), &pages);
        let mut rng = Rng::new(3);
        let told = |one: StatedQuestion| {
            let values = if one.values.is_empty() { String::new() } else { format!(" {:?}", one.values) };
            format!("{} -> {}{values}", one.question, one.answer)
        };
        let all = (0..4000).filter_map(|_| stated.draw(&compared, like, &pages, &mut rng)).map(told);
        all.collect::<BTreeSet<_>>().into_iter().collect()
    }

    fn drawn() -> Vec<String> {
        drawn_like(Guessable::default())
    }

    #[test]
    fn claims_and_comparisons_are_certain() {
        let drawn = drawn_like(Guessable { choices: true, claims: true });
        for expected in [
            r#"Was Elm Hall built in 1912? -> yes ["1912"]"#,
            r#"Was Elm Hall built in 1887? -> no ["1912"]"#,
            r#"Is Bells held in Oak Hall? -> yes ["Oak Hall"]"#,
            r#"Was the place where Bells is held built in 1912? -> no ["Oak Hall", "1887"]"#,
            r#"Which was built first, Elm Hall or Oak Hall? -> Oak Hall ["1912", "1887"]"#,
            r#"Was Elm Hall built before Oak Hall? -> no ["1912", "1887"]"#,
            r#"Which is worth more credits, Knots or Bells? -> Bells ["6", "9"]"#,
        ] {
            assert!(drawn.iter().any(|one| one == expected), "{expected} is not among {drawn:#?}");
        }
        let guessed = |one: &&String| one.contains("-> yes") || one.contains("-> no") || one.contains(" or ");
        assert!(drawn.iter().filter(guessed).all(|one| one.contains('[')), "{drawn:#?}");
        let choices = drawn_like(Guessable { choices: true, claims: false });
        assert!(!choices.iter().any(|one| one.contains("-> yes")), "{choices:#?}");
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
    fn what_names_something_else_is_asked_of_one_page() {
        let page = |title: &str, text: &str| Page { title: title.to_owned(), text: format!("{title} is a nurse. {text}") };
        let all = ["She joined Elm Hall in 1912.", "She came in 1887.", "She came in 1901."];
        let all = ["Ann", "Bea", "Cem"].iter().zip(all).map(|(title, text)| page(title, text));
        let pages = Pages::new(Arc::new(Corpus::from_pages(all.collect()).unwrap()));
        let stated = Stated::of(&pages, &Singles::of(&pages));
        let asked: BTreeSet<String> =
            stated.answers().map(|(page, asked, answer)| format!("{} {answer}", asked.around.join(&pages.all()[page].title))).collect();
        assert!(asked.contains("When did Ann join Elm Hall? 1912") && asked.contains("When did Ann come? 1912"), "{asked:#?}");
        assert!(!asked.iter().any(|one| one.starts_with("When did Bea join")), "{asked:#?}");
    }

    #[test]
    fn chains_lead_over_what_another_page_calls_it() {
        let drawn = drawn();
        let chain = "When was the place where Bells is held built? -> 1887";
        assert!(drawn.iter().any(|one| one == chain), "{drawn:#?}");
    }
}

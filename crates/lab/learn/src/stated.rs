//! What the pages state, as questions: about one page, or about a page that another one leads to.

use autoact_base::random::Rng;

use crate::pages::Pages;
use crate::statement::{Asked, asked};

/// Share of the questions over two pages, where pages lead to others.
const CHAINED: f64 = 0.4;

/// A sentence that is understood, by the questions that it answers.
#[derive(Debug)]
struct Statement {
    page: usize,
    questions: Vec<Asked>,
}

/// All statements of the pages.
#[derive(Debug, Default)]
pub(crate) struct Stated {
    all: Vec<Statement>,
    /// By page: its statements, as positions in `all`.
    of_page: Vec<Vec<usize>>,
    /// Those that lead to another page with statements: the statement, the question, that page.
    links: Vec<(usize, usize, usize)>,
}

/// A question with its answer, and the pages that lead there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Drawn {
    pub(crate) pages: Vec<usize>,
    pub(crate) question: String,
    pub(crate) answer: String,
}

impl Stated {
    /// Reads the pages.
    pub(crate) fn of(pages: &Pages) -> Stated {
        let mut stated = Stated { of_page: vec![Vec::new(); pages.all().len()], ..Stated::default() };
        for (page, text) in pages.all().iter().enumerate() {
            for sentence in text.sentences() {
                let questions = asked(sentence, page, pages);
                if !questions.is_empty() {
                    stated.of_page[page].push(stated.all.len());
                    stated.all.push(Statement { page, questions });
                }
            }
        }
        for (at, statement) in stated.all.iter().enumerate() {
            for (number, question) in statement.questions.iter().enumerate().filter(|(_, question)| question.named.is_some()) {
                let next = pages.find(&question.answer).filter(|next| *next != statement.page && !stated.of_page[*next].is_empty());
                stated.links.extend(next.map(|next| (at, number, next)));
            }
        }
        stated
    }

    /// A random question; `None` if no sentence is understood.
    pub(crate) fn draw(&self, pages: &Pages, rng: &mut Rng) -> Option<Drawn> {
        let title = |page: usize| pages.all()[page].title.as_str();
        if rng.chance(CHAINED)
            && let Some((at, number, next)) = rng.pick(&self.links)
        {
            let first = &self.all[*at];
            let [before, after] = first.questions[*number].named.as_ref()?;
            let then = &self.all[*rng.pick(&self.of_page[*next])?];
            // `the one who built X's height` asks for the height of X
            let whole: Vec<&Asked> = then.questions.iter().filter(|asked| !asked.around[1].starts_with('\'')).collect();
            let Asked { around: [opening, rest], answer, .. } = rng.pick(&whole)?;
            let question = format!("{opening}{before}{}{after}{rest}", title(first.page));
            let back = pages.find(answer) == Some(first.page);
            return (!back).then(|| Drawn { pages: vec![first.page, *next], question, answer: answer.clone() });
        }
        let statement = rng.pick(&self.all)?;
        let Asked { around: [before, after], answer, .. } = rng.pick(&statement.questions)?;
        let question = format!("{before}{}{after}", title(statement.page));
        Some(Drawn { pages: vec![statement.page], question, answer: answer.clone() })
    }
}

//! Plain training texts for the base model: questions with the pages that answer them, and
//! questions with the tools that they need.

use autoact_base::random::Rng;
use autoact_trajectory::ToolSpec;

use crate::base::KnowledgeBase;
use crate::question::{Kind, Mix, Question};
use crate::solve::{CALCULATE, RETRIEVE, SEARCH};
use crate::split::Split;
use crate::wording::Wording;

/// Probability that all questions of a list have one kind, so that the next question's kind
/// follows from the context.
const ONE_KIND: f64 = 0.5;

/// A list of questions, each after the pages that answer it. A model can continue such a list with
/// a question of its own about given pages. The fraction `reworded` of the questions is in other
/// words, without noise. `None` if the knowledge base has no such question.
pub fn question_list(base: &KnowledgeBase, count: usize, split: Split, reworded: f64, rng: &mut Rng) -> Option<String> {
    let mix = if rng.chance(ONE_KIND) { one_kind(rng) } else { Mix::default() };
    let mut text = String::new();
    for _ in 0..count {
        let Some(question) = base.question(rng, &Mix { misspelt: 0.0, ..mix }, split) else { continue };
        let wanted = reworded > 0.0 && rng.chance(reworded);
        let question = if wanted { base.reword(&question, &Wording::CLEAN, rng).unwrap_or(question) } else { question };
        let pages = question.entities.iter().filter_map(|title| base.page(base.find(title)?));
        let pages: Vec<(&str, String)> = pages.map(|page| (page.title.as_str(), page.text())).collect();
        text.push_str(&question_after_pages(&pages, &question.text, &question.answer));
    }
    (!text.is_empty()).then_some(text)
}

/// One entry of a [`question_list`].
fn question_after_pages(pages: &[(&str, String)], question: &str, answer: &str) -> String {
    let mut text = String::new();
    for (title, page) in pages {
        text.push_str(&format!("{title}: {}\n", page.replace('\n', " ")));
    }
    text.push_str(&format!("Question: {question}\nAnswer: {answer}\n\n"));
    text
}

fn one_kind(rng: &mut Rng) -> Mix {
    match rng.below(6) {
        0 => Mix::only_comparison(),
        1 => Mix::only_yes_no(),
        2 => Mix::only_inverse(),
        _ => Mix::only_hops(1 + rng.below(3)),
    }
}

/// A text with the list of tools, a few questions, and the tools that these questions need.
pub fn tool_choice(base: &KnowledgeBase, tools: &[ToolSpec], split: Split, rng: &mut Rng) -> Option<String> {
    let mut listed: Vec<&ToolSpec> = tools.iter().collect();
    rng.shuffle(&mut listed);
    let mut text = String::from("Tools:\n");
    for tool in &listed {
        text.push_str(&format!("- {}: {}\n", tool.usage, tool.definition));
    }
    let mix = one_kind(rng);
    let questions: Vec<Question> = (0..2 + rng.below(3)).filter_map(|_| base.question(rng, &mix, split)).collect();
    text.push_str("Questions:\n");
    questions.iter().for_each(|question| text.push_str(&format!("- {}\n", question.text)));
    let needs = |name: &str, tool: &ToolSpec| tool.name == name && questions.iter().any(|question| uses(question, name));
    let needed: Vec<&str> =
        listed.iter().filter(|tool| tool.is_terminal() || needs(&tool.name, tool)).map(|tool| tool.name.as_str()).collect();
    text.push_str(&format!("Needed: {}\n", needed.join(", ")));
    (!questions.is_empty()).then_some(text)
}

/// Whether the gold trajectory of a question uses a tool. Every page may need Lookup.
fn uses(question: &Question, tool: &str) -> bool {
    if question.kind == Kind::Arithmetic {
        return tool == CALCULATE;
    }
    match tool {
        SEARCH => question.kind == Kind::Inverse,
        CALCULATE => {
            use crate::question::QuestionPlan::{Compare, Difference, IsMore};
            matches!(question.plan, Compare { .. } | IsMore { .. } | Difference { .. })
        }
        RETRIEVE => true,
        _ => tool == crate::solve::LOOKUP && question.kind != Kind::Inverse,
    }
}

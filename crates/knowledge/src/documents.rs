//! Plain texts for the base's variety: questions about given pages, and which tools a question needs.

use autoact_trajectory::ToolSpec;

use crate::base::KnowledgeBase;
use crate::question::{Kind, Mix, Question};
use crate::rng::Rng;
use crate::solve::{CALCULATE, RETRIEVE, SEARCH};
use crate::split::Split;

/// Pages of a reading list.
const PAGES: usize = 3;
/// Draws before a reading list or tool choice has fewer questions.
const TRIES: usize = 60;

/// A few pages and question-answer pairs about them: a list that a model can continue. `None` if the base has no question on them.
pub fn reading_list(base: &KnowledgeBase, pairs: usize, split: Split, rng: &mut Rng) -> Option<String> {
    let schema = base.schema();
    let mut text = String::from("Pages:\n");
    let mut chosen = Vec::new();
    for _ in 0..PAGES {
        let id = rng.below(base.entities().len());
        if !chosen.contains(&id) {
            let page = base.page(id)?;
            text.push_str(&format!("{}: {}\n", page.title, page.text().replace('\n', " ")));
            chosen.push(id);
        }
    }
    text.push_str("Questions and answers:\n");
    let mut asked: Vec<String> = Vec::new();
    for _ in 0..TRIES {
        if asked.len() == pairs {
            break;
        }
        let Some(start) = rng.pick(&chosen).copied() else { break };
        let kind = base.entities()[start].kind;
        let chains: Vec<_> = schema.chains(1, split).iter().filter(|chain| chain.first().is_some_and(|first| first.kind == kind)).collect();
        let Some(question) = rng.pick(&chains).and_then(|chain| base.question_of_chain(start, chain, 0.0, rng)) else { continue };
        if !asked.contains(&question.id) {
            text.push_str(&format!("Question: {}\nAnswer: {}\n", question.text, question.answer));
            asked.push(question.id);
        }
    }
    (!asked.is_empty()).then_some(text)
}

/// What tools there are, a few questions, and which of the tools they need.
pub fn tool_choice(base: &KnowledgeBase, tools: &[ToolSpec], split: Split, rng: &mut Rng) -> Option<String> {
    let mut listed: Vec<&ToolSpec> = tools.iter().collect();
    rng.shuffle(&mut listed);
    let mut text = String::from("Tools:\n");
    for tool in &listed {
        text.push_str(&format!("- {}: {}\n", tool.usage, tool.definition));
    }
    let mix = match rng.below(4) {
        0 => Mix::only_comparison(),
        1 => Mix::only_yes_no(),
        2 => Mix::only_inverse(),
        _ => Mix::only_hops(1 + rng.below(3)),
    };
    let questions: Vec<Question> = (0..2 + rng.below(3)).filter_map(|_| base.question(rng, &mix, split)).collect();
    text.push_str("Questions:\n");
    questions.iter().for_each(|question| text.push_str(&format!("- {}\n", question.text)));
    let needs = |name: &str, tool: &ToolSpec| tool.name == name && questions.iter().any(|question| uses(question, name));
    let needed: Vec<&str> = listed.iter().filter(|tool| tool.terminal || needs(&tool.name, tool)).map(|tool| tool.name.as_str()).collect();
    text.push_str(&format!("Needed: {}\n", needed.join(", ")));
    (!questions.is_empty()).then_some(text)
}

/// Whether a question's straight way uses a tool. Any page may need Lookup.
fn uses(question: &Question, tool: &str) -> bool {
    match tool {
        SEARCH => question.kind == Kind::Inverse,
        CALCULATE => {
            matches!(question.plan, crate::question::Plan::Compare { .. } | crate::question::Plan::IsMore { .. })
        }
        RETRIEVE => true,
        _ => tool == crate::solve::LOOKUP && question.kind != Kind::Inverse,
    }
}

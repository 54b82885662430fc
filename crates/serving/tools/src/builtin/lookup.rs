//! `Lookup[keyword]`

use std::collections::HashSet;
use std::ops::Range;

use autoact_trajectory::{Step, ToolSpec};
use tantivy::tokenizer::TextAnalyzer;

use crate::knowledge::{Knowledge, Opened, PlacedPage};
use crate::text::{analyzer, fold, one_line, query_stems, quoted, stems_with};
use crate::tool::{Tool, ToolCall, ToolError, ToolOutput};
use crate::typo::is_typo_of;

/// Words for kinds of values.
const VALUE_KINDS: &str = "number amount total year date time name";

/// Finds a word on the page that was retrieved last: `(1 of 2) sentence`, and with the same keyword
/// again the next one. It keeps no state; the trajectory says what was retrieved and shown.
pub struct Lookup {
    spec: ToolSpec,
    knowledge: Knowledge,
    /// The names of the tools that retrieve a page.
    retrieve: Vec<String>,
}

impl Lookup {
    /// The tool over a corpus, or over more; `retrieve` names the tools whose pages it looks into.
    pub fn new(spec: ToolSpec, knowledge: impl Into<Knowledge>, retrieve: Vec<String>) -> Lookup {
        Lookup { spec, knowledge: knowledge.into(), retrieve }
    }

    /// The page retrieved last, and how often `keyword` was looked up on it since.
    fn state(&self, call: &ToolCall<'_>, keyword: &str) -> Result<Option<(PlacedPage, usize)>, ToolError> {
        let keyword = fold(keyword);
        let mut shown = 0;
        let steps: Vec<&Step> = call.trajectory.steps().collect();
        for (before, step) in steps.iter().enumerate().rev().filter(|(_, step)| step.observation.is_some()) {
            let Some(params) = &step.params else { continue };
            if self.retrieve.contains(&step.tool) {
                if let Opened::Page { page, .. } = self.knowledge.open_written(call, params, before, 0)? {
                    return Ok(Some((page, shown)));
                }
            } else if step.tool == self.spec.name && fold(params) == keyword {
                shown += 1;
            }
        }
        Ok(None)
    }
}

impl Tool for Lookup {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn run(&self, call: &ToolCall<'_>) -> Result<ToolOutput, ToolError> {
        let keyword = call.params.trim();
        let Some((found, shown)) = self.state(call, keyword)? else {
            let first = self.retrieve.first().map_or(String::new(), |tool| format!(" Use {tool} first."));
            return Ok(format!("No page has been retrieved yet.{first}").into());
        };
        let mut analyzer = analyzer();
        let page = &found.page;
        let sentences = page.sentence_spans();
        let stems = |sentence: &Range<usize>| stems_with(&mut analyzer, &page.text[sentence.clone()]).into_iter().collect();
        let stems: Vec<HashSet<String>> = sentences.iter().map(stems).collect();
        let having = |wanted: Vec<String>| -> Vec<Range<usize>> {
            let wanted = spelt_as_on(&stems, wanted);
            let has_all = |stems: &HashSet<String>| !wanted.is_empty() && wanted.iter().all(|stem| stems.contains(stem));
            sentences.iter().zip(&stems).filter(|(_, stems)| has_all(stems)).map(|(sentence, _)| sentence.clone()).collect()
        };
        let mut matches = having(query_stems(keyword));
        if matches.is_empty() {
            matches = having(without_optional(query_stems(keyword), &page.title, &mut analyzer));
        }
        let text = match matches.get(shown) {
            Some(sentence) => {
                let text = format!("({} of {}) {}", shown + 1, matches.len(), one_line(&page.text[sentence.clone()]));
                return Ok(ToolOutput { text, sources: vec![found.source(sentence.clone())], ..ToolOutput::default() });
            }
            None if matches.is_empty() => format!("No sentence of {} contains {}.", page.title, quoted(keyword)),
            None => format!("No more sentences of {} contain {}.", page.title, quoted(keyword)),
        };
        Ok(text.into())
    }
}

/// The stems without those that a sentence with the value does not need: what kind of value is
/// meant, and whose page it is. `number of berths` is in `It has 31 berths`, `launch year` in
/// `Launched in 1968`, `adviser of the Film Club` on that club's page in `Its adviser is Ada Lind`.
fn without_optional(wanted: Vec<String>, title: &str, analyzer: &mut TextAnalyzer) -> Vec<String> {
    let optional: HashSet<String> = [VALUE_KINDS, title].into_iter().flat_map(|text| stems_with(analyzer, text)).collect();
    wanted.into_iter().filter(|stem| !optional.contains(stem)).collect()
}

/// The stems of a keyword. One that the page does not have, but misspells just one of the page's,
/// becomes that one.
fn spelt_as_on(page: &[HashSet<String>], wanted: Vec<String>) -> Vec<String> {
    let corrected = |stem: String| {
        if page.iter().any(|sentence| sentence.contains(&stem)) {
            return stem;
        }
        let meant: HashSet<&String> = page.iter().flatten().filter(|word| is_typo_of(&stem, word)).collect();
        match meant.into_iter().collect::<Vec<_>>().as_slice() {
            [only] => (*only).clone(),
            _ => stem,
        }
    };
    wanted.into_iter().map(corrected).collect()
}

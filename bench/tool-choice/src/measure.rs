//! The tables.

use std::fmt::Write as _;

use autoact_score::Bootstrap;
use autoact_tool_choice::{ChoiceOptions, Merge, ToolIndex};
use autoact_trajectory::RankedTool;

use crate::questions::Question;

/// The depths at which recall is told.
const DEPTHS: [usize; 4] = [1, 3, 5, 8];
/// The strategies, as the tables name them.
const MERGES: [(&str, Merge); 4] = [
    ("words (BM25)", Merge::Words),
    ("meaning", Merge::Vectors),
    ("reciprocal ranks", Merge::ReciprocalRanks),
    ("weighted mean", Merge::Mean),
];
/// Libraries whose recall is told beside the whole.
const SIZES: [usize; 3] = [100, 250, 500];
/// Bounds whose effect is told.
const BOUNDS: [f64; 8] = [0.0, 0.08, 0.1, 0.12, 0.15, 0.2, 0.25, 0.3];

/// Whether a tool that serves the question is among these.
fn found(question: &Question, tools: &[RankedTool]) -> f64 {
    f64::from(u8::from(tools.iter().any(|tool| question.tools.contains(&tool.name))))
}

/// Recall and mean reciprocal rank of each strategy.
pub(crate) fn ranking(index: &ToolIndex, questions: &[Question], vectors: &[Vec<f32>]) -> String {
    let served: Vec<_> = questions.iter().zip(vectors).filter(|(question, _)| !question.tools.is_empty()).collect();
    let mut text = format!("{} questions that a tool serves\n\n| strategy |", served.len());
    DEPTHS.iter().for_each(|depth| {
        let _ = write!(text, " recall@{depth} |");
    });
    text.push_str(" MRR |\n| --- | --- | --- | --- | --- | --- |\n| random |");
    for depth in DEPTHS {
        // at least one of the question's tools among so many drawn
        let missed =
            |question: &Question| (0..depth).map(|drawn| 1.0 - question.tools.len() as f64 / (index.len() - drawn) as f64).product::<f64>();
        let mean = served.iter().map(|(question, _)| 1.0 - missed(question)).sum::<f64>() / served.len() as f64;
        let _ = write!(text, " {:.1}% |", mean * 100.0);
    }
    text.push_str(" |\n");
    for (name, merge) in MERGES {
        let (mut recalls, mut reciprocal) = (vec![Vec::new(); DEPTHS.len()], Vec::new());
        for (question, vector) in &served {
            let ranked = index.rank(&question.text, Some(vector), merge);
            for (recall, depth) in recalls.iter_mut().zip(DEPTHS) {
                recall.push(found(question, &ranked[..depth.min(ranked.len())]));
            }
            let rank = ranked.iter().position(|tool| question.tools.contains(&tool.name));
            reciprocal.push(rank.map_or(0.0, |rank| 1.0 / (rank + 1) as f64));
        }
        let _ = write!(text, "| {name} |");
        for recall in &recalls {
            let interval = Bootstrap::default().mean(recall);
            let _ = write!(text, " {:.1}% [{:.1}, {:.1}] |", interval.mean * 100.0, interval.low * 100.0, interval.high * 100.0);
        }
        let _ = writeln!(text, " {:.3} |", Bootstrap::default().mean(&reciprocal).mean);
    }
    text
}

/// Recall@5 in libraries of several sizes: the question's tools, and others drawn from the library.
/// Scores are those of the whole library.
pub(crate) fn sizes(index: &ToolIndex, questions: &[Question], vectors: &[Vec<f32>]) -> String {
    let served: Vec<_> = questions.iter().zip(vectors).filter(|(question, _)| !question.tools.is_empty()).collect();
    let mut text = String::from("recall@5 in smaller libraries\n\n| tools |");
    MERGES.iter().for_each(|(name, _)| {
        let _ = write!(text, " {name} |");
    });
    text.push_str("\n| --- | --- | --- | --- | --- |\n");
    for size in SIZES.into_iter().filter(|size| *size < index.len()).chain([index.len()]) {
        let _ = write!(text, "| {size} |");
        for (_, merge) in MERGES {
            let mut recall = Vec::new();
            for (at, (question, vector)) in served.iter().enumerate() {
                let mut ranked = index.rank(&question.text, Some(vector), merge);
                // a share of the names, drawn anew for each question
                let kept = |name: &str| (drawn(at, name) % index.len() as u64) < size as u64;
                ranked.retain(|tool| kept(&tool.name) || question.tools.contains(&tool.name));
                recall.push(found(question, &ranked[..ranked.len().min(5)]));
            }
            let interval = Bootstrap::default().mean(&recall);
            let _ = write!(text, " {:.1}% [{:.1}, {:.1}] |", interval.mean * 100.0, interval.low * 100.0, interval.high * 100.0);
        }
        text.push('\n');
    }
    text
}

/// A number that depends on both and on nothing else (FNV-1a, then mixed).
fn drawn(question: usize, name: &str) -> u64 {
    let start = 0xcbf2_9ce4_8422_2325 ^ (question as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let hash = name.bytes().fold(start, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
    (hash ^ hash >> 31).wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 20
}

/// What the defaults choose.
pub(crate) fn choice(index: &ToolIndex, questions: &[Question], vectors: &[Vec<f32>], options: &ChoiceOptions) -> String {
    let mut text = format!(
        "chosen by default: at most {}, score at least {} ({} by words alone)\n\n\
         | | a tool that serves it is chosen | tools chosen | something chosen where nothing serves |\n| --- | --- | --- | --- |\n",
        options.limit, options.least, options.least_by_words
    );
    for (name, meaning) in [("words and meaning", true), ("words alone", false)] {
        let chosen = |(question, vector): (&Question, &Vec<f32>)| -> Vec<RankedTool> {
            let ranked = index.choose(&question.text, meaning.then_some(vector.as_slice()), options);
            ranked.into_iter().filter(|tool| tool.chosen).collect()
        };
        let all: Vec<(&Question, Vec<RankedTool>)> =
            questions.iter().zip(questions.iter().zip(vectors)).map(|(question, pair)| (question, chosen(pair))).collect();
        let served = all.iter().filter(|(question, _)| !question.tools.is_empty());
        let right: Vec<f64> = served.clone().map(|(question, chosen)| found(question, chosen)).collect();
        let count: Vec<f64> = served.map(|(_, chosen)| chosen.len() as f64).collect();
        let unserved = all.iter().filter(|(question, _)| question.tools.is_empty());
        let falsely: Vec<f64> = unserved.map(|(_, chosen)| f64::from(u8::from(!chosen.is_empty()))).collect();
        let _ = writeln!(
            text,
            "| {name} | {:.1}% | {:.1} | {:.1}% of {} |",
            mean(&right) * 100.0,
            mean(&count),
            mean(&falsely) * 100.0,
            falsely.len()
        );
    }
    text
}

/// What bounds on the score would choose.
pub(crate) fn bounds(index: &ToolIndex, questions: &[Question], vectors: &[Vec<f32>]) -> String {
    let mut text = String::from(
        "bounds on the score: a tool that serves it is chosen / tools chosen where one serves / something chosen where none serves\n\n\
         | at least | words and meaning | words alone |\n| --- | --- | --- |\n",
    );
    for least in BOUNDS {
        let options = ChoiceOptions { least, least_by_words: least, ..ChoiceOptions::default() };
        let _ = write!(text, "| {least:.2} |");
        for meaning in [true, false] {
            let (mut right, mut count, mut falsely) = (Vec::new(), Vec::new(), Vec::new());
            for (question, vector) in questions.iter().zip(vectors) {
                let ranked = index.choose(&question.text, meaning.then_some(vector.as_slice()), &options);
                let chosen: Vec<RankedTool> = ranked.into_iter().filter(|tool| tool.chosen).collect();
                if question.tools.is_empty() {
                    falsely.push(f64::from(u8::from(!chosen.is_empty())));
                } else {
                    right.push(found(question, &chosen));
                    count.push(chosen.len() as f64);
                }
            }
            let _ = write!(text, " {:.1}% / {:.1} / {:.1}% |", mean(&right) * 100.0, mean(&count), mean(&falsely) * 100.0);
        }
        text.push('\n');
    }
    text
}

/// Questions whose tool is not among the first five.
pub(crate) fn misses(index: &ToolIndex, questions: &[Question], vectors: &[Vec<f32>]) -> String {
    let mut text = String::new();
    for (question, vector) in questions.iter().zip(vectors).filter(|(question, _)| !question.tools.is_empty()) {
        let ranked = index.rank(&question.text, Some(vector), Merge::default());
        let at = ranked.iter().position(|tool| question.tools.contains(&tool.name)).unwrap_or(ranked.len());
        if at < 5 {
            continue;
        }
        let show = |tool: &RankedTool| format!("{} {:.2} ({:.2}, {:.2})", tool.name, tool.score, tool.words, tool.meaning.unwrap_or(0.0));
        let _ = writeln!(text, "{}\n  at {}: {}", question.text, at + 1, ranked.get(at).map(show).unwrap_or_default());
        for tool in ranked.iter().take(3) {
            let _ = writeln!(text, "       {}", show(tool));
        }
    }
    text
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len().max(1) as f64
}

//! What choosing from a large library costs, and what it cost when every tool was ranked and told:
//! `cargo run --release -p autoact-tool-choice --example choose -- [TOOLS]`.
#![allow(clippy::unwrap_used)] // a measurement ends where something fails

use std::collections::HashMap;
use std::hint::black_box;
use std::time::{Duration, Instant};

use autoact_tool_choice::{ChoiceOptions, ToolIndex};
use autoact_trajectory::{Effect, ToolBackground, ToolSpec};

/// Of all-MiniLM-L6-v2.
const DIMENSIONS: usize = 384;
/// Words that definitions and questions are made of.
const VOCABULARY: u64 = 4000;
const QUESTIONS: u64 = 201;

/// The SplitMix64 generator: the same library in every run.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut x = self.0;
        x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        x ^ (x >> 31)
    }

    fn text(&mut self, words: usize) -> String {
        // a smaller number is a more frequent word
        (0..words).map(|_| format!("w{}", self.next() % VOCABULARY * (self.next() % VOCABULARY) / VOCABULARY)).collect::<Vec<_>>().join(" ")
    }

    fn vector(&mut self) -> Vec<f32> {
        let raw: Vec<f32> = (0..DIMENSIONS).map(|_| f32::from((self.next() % 2001) as u16) / 1000.0 - 1.0).collect();
        let length = raw.iter().map(|x| x * x).sum::<f32>().sqrt();
        raw.into_iter().map(|x| x / length).collect()
    }
}

fn tool(number: usize, random: &mut Random) -> (ToolSpec, ToolBackground) {
    let spec = ToolSpec {
        name: format!("api_operation_{number}"),
        definition: random.text(12),
        usage: format!("api_operation_{number}[x]"),
        effect: Effect::ReadOnly,
        timeout: Duration::from_secs(1),
        max_observation_bytes: 1024,
        terminal: None,
        schema: None,
        examples: Vec::new(),
        multiline: false,
        asks: None,
    };
    // twenty operations belong to one API
    let title = format!("API w{}", number / 20);
    (spec, ToolBackground { title, ..ToolBackground::default() })
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times[times.len() / 2]
}

fn main() {
    let count: usize = std::env::args().nth(1).map_or(2048, |count| count.parse().unwrap());
    let mut random = Random(7);
    let tools: Vec<_> = (0..count).map(|number| tool(number, &mut random)).collect();
    let words = ToolIndex::new(tools.iter().map(|(spec, background)| (spec, background)));
    let vectors: HashMap<String, Vec<f32>> = words.texts().into_iter().map(|text| (text.to_owned(), random.vector())).collect();
    let meaning = words.clone().with_vectors(&vectors);
    assert!(meaning.has_vectors());
    let options = ChoiceOptions::default();
    let most = options.limit * 2;
    println!("{count} tools, medians of {QUESTIONS} questions");
    for (what, index) in [("by words", &words), ("by words and meaning", &meaning)] {
        let (mut ranking, mut choosing) = (Vec::new(), Vec::new());
        for at in 0..QUESTIONS {
            let (question, vector) = (random.text(10), random.vector());
            let vector = index.has_vectors().then_some(vector.as_slice());
            let rank = || {
                let began = Instant::now();
                let mut ranked = index.rank(black_box(&question), vector, options.merge);
                ranked.retain(|tool| tool.score > 0.0);
                ranked.truncate(most);
                (began.elapsed(), ranked)
            };
            let choose = || {
                let began = Instant::now();
                let chosen = index.choose(black_box(&question), vector, &options);
                (began.elapsed(), chosen)
            };
            // the second finds in the processor's cache what the first has read
            let ((ranked_in, ranked), (chosen_in, chosen)) = if at % 2 == 0 {
                let first = rank();
                (first, choose())
            } else {
                let first = choose();
                (rank(), first)
            };
            ranking.push(ranked_in);
            choosing.push(chosen_in);
            assert!(chosen.iter().map(|tool| &tool.name).eq(ranked.iter().map(|tool| &tool.name)));
        }
        let (ranked, chosen) = (median(ranking), median(choosing));
        println!("{what}: all ranked {ranked:.1?}, the best {chosen:.1?}: {:.2} times", ranked.as_secs_f64() / chosen.as_secs_f64());
    }
}

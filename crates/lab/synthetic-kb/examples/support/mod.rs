//! A simple in-memory substitute for the tool library, for examples only. It imitates Retrieve,
//! Lookup, Search and Calculate.

use std::collections::HashMap;
use std::time::Duration;

use autoact_synthetic_kb::{Environment, KnowledgeBase, LEAD_SENTENCES};
use autoact_trajectory::{Action, Effect, Terminal, ToolSpec, Trajectory};

pub(crate) struct Shelf {
    pages: HashMap<String, Vec<String>>,
    order: Vec<String>,
}

impl Shelf {
    pub(crate) fn new(base: &KnowledgeBase) -> Shelf {
        let pages = base.pages();
        let order = pages.iter().map(|(title, _)| title.clone()).collect();
        Shelf { pages: pages.into_iter().map(|(title, text)| (title, text.lines().map(str::to_owned).collect())).collect(), order }
    }

    fn similar(&self, title: &str) -> Option<&String> {
        let distance = |other: &str| {
            let (a, b): (Vec<char>, Vec<char>) = (title.chars().collect(), other.chars().collect());
            let mut row: Vec<usize> = (0..=b.len()).collect();
            for (i, x) in a.iter().enumerate() {
                let mut left = i + 1;
                let mut corner = i;
                for (j, y) in b.iter().enumerate() {
                    let cost = (corner + usize::from(x != y)).min(left + 1).min(row[j + 1] + 1);
                    corner = row[j + 1];
                    row[j] = left;
                    left = cost;
                }
                row[b.len()] = left;
            }
            row[b.len()]
        };
        self.order.iter().min_by_key(|other| distance(other))
    }

    fn search(&self, query: &str) -> String {
        let words: Vec<String> = query.to_lowercase().split_whitespace().map(str::to_owned).collect();
        let score = |text: &str| words.iter().filter(|word| text.to_lowercase().contains(word.as_str())).count();
        let mut hits: Vec<(usize, &String, &String)> = Vec::new();
        for title in &self.order {
            if let Some(best) = self.pages[title].iter().rev().max_by_key(|sentence| score(sentence)) {
                hits.push((score(best) * 4 + score(title), title, best));
            }
        }
        hits.sort_by_key(|hit| std::cmp::Reverse(hit.0));
        hits.iter().take(3).map(|(_, title, text)| format!("{title}: {text}")).collect::<Vec<_>>().join(" | ")
    }
}

impl Environment for Shelf {
    fn run(&mut self, action: &Action, trajectory: &Trajectory) -> String {
        match action.tool.as_str() {
            "Retrieve" => match self.pages.get(&action.params) {
                Some(lines) if lines.len() > LEAD_SENTENCES => format!("{} (More: use Lookup.)", lines[..LEAD_SENTENCES].join(" ")),
                Some(lines) => lines.join(" "),
                None => {
                    format!("No page is titled {}. Similar: {}.", action.params, self.similar(&action.params).map_or("", String::as_str))
                }
            },
            "Lookup" => {
                let open =
                    trajectory.steps().rev().filter(|step| step.tool == "Retrieve").find_map(|step| self.pages.get(step.params.as_ref()?));
                let Some(lines) = open else { return "No page has been retrieved yet. Use Retrieve first.".to_owned() };
                let word = action.params.to_lowercase();
                let found: Vec<&String> = lines.iter().filter(|line| line.to_lowercase().contains(&word)).collect();
                found.first().map_or(format!("No sentence contains {word}."), |line| format!("(1 of {}) {line}", found.len()))
            }
            "Calculate" => {
                let parts: Vec<&str> = action.params.split(' ').collect();
                let numbers = (parts.first().and_then(|x| x.parse::<f64>().ok()), parts.last().and_then(|x| x.parse::<f64>().ok()));
                match (numbers, parts.get(1)) {
                    ((Some(a), Some(b)), Some(&">")) => (a > b).to_string(),
                    ((Some(a), Some(b)), Some(&"<")) => (a < b).to_string(),
                    _ => "cannot calculate".to_owned(),
                }
            }
            _ => self.search(&action.params),
        }
    }
}

pub(crate) fn tools() -> Vec<ToolSpec> {
    let usages = ["Search[query]", "Retrieve[title]", "Lookup[keyword]", "Calculate[expression]", "Finish[answer]"];
    let spec = |usage: &str| {
        let name = usage.split('[').next().unwrap_or_default();
        ToolSpec {
            name: name.to_owned(),
            definition: String::new(),
            usage: usage.to_owned(),
            effect: Effect::ReadOnly,
            timeout: Duration::from_secs(1),
            max_observation_bytes: 4096,
            terminal: (name == "Finish").then_some(Terminal::Answer),
            schema: None,
            examples: Vec::new(),
            multiline: false,
        }
    };
    usages.iter().map(|usage| spec(usage)).collect()
}

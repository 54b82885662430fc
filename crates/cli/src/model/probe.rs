//! `autoact model probe`: the three agents in one process over the atlas's questions. It leaves out services, bus and limits, so it is
//! quick to start and shows what the weights can do; `autoact eval` is the real thing.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context as _;
use autoact_knowledge::metrics::exact_match;
use autoact_model::{Engine, EngineOptions, GenerateRequest, Grammar, ModelDir};
use autoact_prompt::{Expect, cue, parse_input, parse_plan, parse_reflection, transcript};
use autoact_stem::Role;
use autoact_tools::{Corpus, ToolLibrary};
use autoact_trajectory::{Action, Reflection, Step, Trajectory, Turn, Verdict};
use clap::Args;

use crate::eval::set;
use crate::exit;

/// Planning loops at most.
const MAX_STEPS: usize = 12;
/// Rejections at most.
const MAX_REFLECTIONS: usize = 2;

/// `autoact model probe`
#[derive(Debug, Args)]
pub(crate) struct ProbeOptions {
    /// The base model.
    #[arg(long, default_value = "models/stem")]
    model: PathBuf,
    /// Directory with the adapters; `none` for the base alone.
    #[arg(long, default_value = "models/stem/adapters")]
    adapters: PathBuf,
    /// `held-out`, `dev`, or a JSONL file.
    #[arg(long, default_value = "dev")]
    set: String,
    /// The pages.
    #[arg(long, default_value = "corpora/atlas/pages.jsonl")]
    corpus: PathBuf,
    /// Only the first so many questions.
    #[arg(long)]
    limit: Option<usize>,
    /// Print the transcripts of wrong answers.
    #[arg(long)]
    wrong: bool,
}

pub(crate) fn run(options: &ProbeOptions) -> anyhow::Result<u8> {
    let group = Group::load(options)?;
    let mut questions = set::load(&options.set)?;
    questions.truncate(options.limit.unwrap_or(usize::MAX));
    let mut rows: BTreeMap<String, [usize; 4]> = BTreeMap::new();
    let begun = std::time::Instant::now();
    for question in &questions {
        let (trajectory, answer, approved) = group.answer(&question.question)?;
        let right = exact_match(&answer, &question.answer);
        for label in [question.label(), "all".to_owned()] {
            let row = rows.entry(label).or_default();
            row[0] += 1;
            row[1] += usize::from(right);
            row[2] += usize::from(approved);
            row[3] += usize::from(approved && right);
        }
        if options.wrong && !right {
            println!("{}expected: {}\n", transcript(&trajectory), question.answer);
        }
    }
    println!("{:<12}{:>10}{:>14}{:>11}{:>22}", "kind", "questions", "exact match", "approved", "approved and right");
    for (label, [count, right, approved, both]) in rows {
        let part = |n: usize| 100.0 * n as f64 / count as f64;
        println!("{label:<12}{count:>10}{:>13.1}%{:>10.1}%{:>21.1}%", part(right), part(approved), part(both));
    }
    println!("{:.0} ms a question", begun.elapsed().as_secs_f64() * 1e3 / questions.len().max(1) as f64);
    Ok(exit::OK)
}

struct Group {
    engine: Engine,
    adapted: bool,
    library: ToolLibrary,
}

impl Group {
    fn load(options: &ProbeOptions) -> anyhow::Result<Group> {
        let engine = Engine::start(&ModelDir::open(&options.model)?, EngineOptions::default())?;
        let adapted = options.adapters != Path::new("none");
        if adapted {
            for role in Role::ALL {
                engine.load_adapter(role.as_str(), options.adapters.join(role.as_str()))?;
            }
        }
        let library = ToolLibrary::bundled(Arc::new(Corpus::load(&options.corpus)?))?;
        Ok(Group { engine, adapted, library })
    }

    fn say(&self, role: Role, trajectory: &Trajectory) -> anyhow::Result<String> {
        use autoact_model::Backend as _;
        let expect = Expect::new(role, &trajectory.tools);
        let request = GenerateRequest {
            adapter: self.adapted.then(|| role.as_str().to_owned()),
            grammar: Some(Grammar::Regex(expect.regex)),
            max_tokens: expect.max_tokens,
            ..GenerateRequest::new(format!("{}{}", transcript(trajectory), cue(role)))
        };
        Ok(self.engine.generate(request)?.blocking_finish()?.text)
    }

    /// The trajectory, the last answer, and whether it was approved.
    fn answer(&self, question: &str) -> anyhow::Result<(Trajectory, String, bool)> {
        let mut trajectory = Trajectory { question: question.to_owned(), tools: self.library.specs().to_vec(), ..Trajectory::default() };
        let mut answer = String::new();
        let mut rejected = 0;
        for _ in 0..MAX_STEPS {
            let finished = match self.step(&mut trajectory) {
                Ok(finished) => finished,
                // a prompt that no longer fits ends the task with what there is
                Err(_) => break,
            };
            let Some(given) = finished else { continue };
            answer = given;
            let Ok((thought, verdict)) = self.say(Role::Reflect, &trajectory).and_then(|reply| Ok(parse_reflection(&reply)?)) else {
                break;
            };
            trajectory.turns.push(Turn::Reflection(Reflection { thought, verdict }));
            if verdict == Verdict::Right {
                return Ok((trajectory, answer, true));
            }
            rejected += 1;
            if rejected > MAX_REFLECTIONS {
                break;
            }
        }
        Ok((trajectory, answer, false))
    }

    /// One planning loop; the answer if it was `Finish`.
    fn step(&self, trajectory: &mut Trajectory) -> anyhow::Result<Option<String>> {
        let (thought, tool) = parse_plan(&self.say(Role::Plan, trajectory)?)?;
        let spec = trajectory.tool(&tool).context("the plan names no tool")?.clone();
        trajectory.turns.push(Turn::Step(Step { thought: thought.clone(), tool: tool.clone(), params: None, observation: None }));
        let params = parse_input(&self.say(Role::Tool, trajectory)?)?;
        let action = Action { tool: tool.clone(), params: params.clone() };
        let observation = (!spec.terminal).then(|| self.library.execute(&action, trajectory).text);
        trajectory.turns.pop();
        trajectory.turns.push(Turn::Step(Step { thought, tool, params: Some(params.clone()), observation }));
        Ok(spec.terminal.then_some(params))
    }
}

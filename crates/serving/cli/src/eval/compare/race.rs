//! Planners over questions: question by question, so that whatever stops it, all planners have the
//! same questions behind them.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use autoact_planners::{Outcome, Planner, PlannerOptions, build};
use autoact_trajectory::JudgedAnswer;
use serde_json::json;
use tokio::sync::mpsc;

use super::cast::PlannerSetup;
use super::entrant::{Entrant, SECOND_TEMPERATURE, better};
use super::problem::Problem;
use super::scores::{Scored, Scores};
use crate::args::EvalOptions;
use crate::eval::judgement::judgement_json;
use crate::eval::progress::progress;
use crate::out;

/// Results that may wait to be counted.
const WAITING: usize = 64;
/// Lines of progress where there is no terminal.
const LINES: usize = 10;

/// A race and its results so far.
pub(crate) struct Race {
    entrants: Vec<Entrant>,
    problems: Arc<Vec<Problem>>,
    /// By question, then by planner.
    outcomes: Vec<Vec<Option<Outcome>>>,
    model: String,
    digest: String,
    elapsed: Duration,
    pub(crate) interrupted: bool,
}

/// A result: which question, which planner, and what came of it.
type Done = (usize, usize, anyhow::Result<Outcome>);

impl Race {
    /// Runs every planner on every question, or as many as there are until Ctrl-C.
    pub(crate) async fn run(
        setup: PlannerSetup,
        entrants: Vec<Entrant>,
        problems: Vec<Problem>,
        options: &EvalOptions,
    ) -> anyhow::Result<Race> {
        let begun = Instant::now();
        let info = setup.backends.first().map(|backend| backend.info().clone()).context("there is no engine")?;
        let total = problems.len() * entrants.len();
        let mut race = Race {
            outcomes: vec![vec![None; entrants.len()]; problems.len()],
            entrants,
            problems: Arc::new(problems),
            model: info.name,
            digest: info.digest,
            elapsed: Duration::ZERO,
            interrupted: false,
        };
        let bar = progress(total as u64, options.json);
        let (stop, mut results) = race.start(setup, options)?;
        let mut count = 0;
        loop {
            let done = tokio::select! {
                done = results.recv() => done,
                _ = tokio::signal::ctrl_c() => { race.interrupted = true; None }
            };
            let Some((question, planner, outcome)) = done else { break };
            let outcome = outcome.inspect_err(|_| stop.store(true, Ordering::Relaxed))?;
            if let Some(place) = race.outcomes.get_mut(question).and_then(|row| row.get_mut(planner)) {
                *place = Some(outcome);
            }
            count += 1;
            bar.inc(1);
            if bar.is_hidden() && !options.json && (count * LINES) % total < LINES {
                out::note(format_args!("{count} of {total} answers, {:.0} s", begun.elapsed().as_secs_f64()));
            }
        }
        // what still runs is not waited for: the process ends after the report
        stop.store(true, Ordering::Relaxed);
        bar.finish_and_clear();
        race.elapsed = begun.elapsed();
        race.choose();
        Ok(race)
    }

    /// Puts the better one of two tries in place of the second, or nothing where one is missing.
    fn choose(&mut self) {
        for (problem, outcomes) in self.problems.iter().zip(&mut self.outcomes) {
            for at in (1..outcomes.len()).filter(|at| matches!(self.entrants.get(*at), Some(Entrant::BestOfTwo(_)))) {
                let both = outcomes[at - 1].as_ref().zip(outcomes[at].as_ref());
                outcomes[at] = both.map(|(first, second)| better(problem, first, second));
            }
        }
    }

    /// Threads that take question after question; each has an engine and planners of its own.
    fn start(&self, setup: PlannerSetup, options: &EvalOptions) -> anyhow::Result<(Arc<AtomicBool>, mpsc::Receiver<Done>)> {
        let stop = Arc::new(AtomicBool::new(false));
        let next = Arc::new(AtomicUsize::new(0));
        let (sender, results) = mpsc::channel(WAITING);
        let setup = Arc::new(setup);
        for number in 0..options.concurrency.clamp(1, 256) {
            let backend = setup.backends.get(number % setup.backends.len().max(1)).context("there is no engine")?;
            let planner = |entrant: &Entrant| build(entrant.kind(), backend, &setup.cast, &tested(*entrant, setup.options));
            let planners: Vec<Box<dyn Planner>> = self.entrants.iter().map(planner).collect::<Result<_, _>>()?;
            let entrants = self.entrants.clone();
            let (setup, problems, sender) = (Arc::clone(&setup), Arc::clone(&self.problems), sender.clone());
            let (stop, next, seed) = (Arc::clone(&stop), Arc::clone(&next), options.seed);
            let work = move || {
                while !stop.load(Ordering::Relaxed) {
                    let at = next.fetch_add(1, Ordering::Relaxed);
                    let (question, planner) = (at / planners.len(), at % planners.len());
                    let who = entrants.get(planner).zip(planners.get(planner));
                    let (Some(problem), Some((entrant, solver))) = (problems.get(question), who) else { break };
                    let outcome = problem.tools(&setup.tools).map(|tools| entrant.solve(solver.as_ref(), problem, &tools, seed));
                    let outcome = outcome.with_context(|| format!("the question `{}` has pages that cannot be used", problem.id));
                    if sender.blocking_send((question, planner, outcome)).is_err() {
                        break;
                    }
                }
            };
            std::thread::Builder::new().name(format!("race-{number}")).spawn(work).context("cannot start a thread")?;
        }
        Ok((stop, results))
    }

    /// The results, scored.
    pub(crate) fn scores(&self, origin: String, left_out: Vec<String>) -> Scores {
        let row = |(question, outcomes): (usize, &Vec<Option<Outcome>>)| {
            let problem = self.problems.get(question);
            outcomes.iter().map(|outcome| Some(Scored::new(problem?, outcome.as_ref()?))).collect()
        };
        Scores {
            origin,
            model: self.model.clone(),
            digest: self.digest.clone(),
            left_out,
            entrants: self.entrants.clone(),
            labels: self.problems.iter().map(|problem| problem.label.clone()).collect(),
            metric: self.problems.first().map(|problem| problem.metric).unwrap_or_default(),
            scored: self.outcomes.iter().enumerate().map(row).collect(),
            elapsed: self.elapsed,
            interrupted: self.interrupted,
        }
    }

    /// Every answer, a JSON object a line.
    pub(crate) fn write(&self, path: &Path) -> anyhow::Result<()> {
        let mut text = String::new();
        for (problem, outcomes) in self.problems.iter().zip(&self.outcomes) {
            for (entrant, outcome) in self.entrants.iter().zip(outcomes) {
                let Some(outcome) = outcome else { continue };
                let scored = Scored::new(problem, outcome);
                let judged = |one: &JudgedAnswer| judgement_json(one, problem.score(one.answer.as_deref()).0);
                let line = json!({
                    "id": problem.id, "kind": problem.label, "planner": entrant.to_string(), "question": problem.question, "gold": problem.answer,
                    "answer": outcome.answer, "exact": scored.right, "reward": scored.reward, "approved": outcome.approved,
                    "rounds": outcome.steps, "ended": outcome.ended, "calls": outcome.cost.calls,
                    "prompt_tokens": outcome.cost.prompt_tokens, "completion_tokens": outcome.cost.completion_tokens,
                    "seconds": outcome.cost.time.as_secs_f64(), "transcript": outcome.transcript,
                    "judgements": outcome.judgements.iter().map(judged).collect::<Vec<_>>(),
                });
                text.push_str(&line.to_string());
                text.push('\n');
            }
        }
        std::fs::write(path, text).with_context(|| format!("cannot write `{}`", path.display()))
    }
}

/// The options of a row's planner.
fn tested(entrant: Entrant, options: PlannerOptions) -> PlannerOptions {
    let mut options = options;
    if matches!(entrant, Entrant::BestOfTwo(_)) && options.sampling.temperature <= 0.0 {
        options.sampling.temperature = SECOND_TEMPERATURE;
    }
    options
}

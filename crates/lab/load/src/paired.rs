//! A paired comparison of two builds: the same tasks, in short alternating phases.
//!
//! A pair is one phase of each build with the same questions. Which build comes first alternates
//! (A B, B A, A B, …), so that a machine that becomes slower or faster hits both. Every figure is
//! the ratio of the second build to the first over all phases, with a 95% interval by a paired
//! bootstrap: whole pairs are drawn with replacement, because the tasks of a phase share the
//! machine's state at that moment and are not independent.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use autoact_base::random::Rng;
use autoact_kernels::Machine;
use serde::Serialize;

use crate::collect::Collected;
use crate::compare::Change;
use crate::distribution::Durations;
use crate::html::ms;
use crate::phase::{Agent, Phase};

/// The schema of the result as JSON. Fields may be added; a change of meaning needs a new number.
pub const PAIRED_SCHEMA: &str = "autoact.load-paired/1";
/// Number of draws of the bootstrap.
const DRAWS: usize = 2_000;
/// Seed of the draws: the same figures always have the same interval.
const DRAWS_SEED: u64 = 13;
/// Bounds of a 95% interval.
const INTERVAL: [f64; 2] = [0.025, 0.975];
/// Fewer pairs give no interval: of three, a bootstrap draws nothing but ten different sets, and its
/// interval is far too narrow (seen: a setting that does not touch decoding, and "shorter" decoding).
pub const LEAST_PAIRS: usize = 6;
/// Maximum increase of the fraction of failed tasks that is not reported.
const MORE_FAILURES: f64 = 0.01;
/// The phases of an agent's time that are told apart.
const TOLD: [Phase; 2] = [Phase::Prefill, Phase::Decode];

/// One phase of one build.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Trial {
    /// From the first task's start to the last one's end.
    pub seconds: f64,
    /// Tasks that finished.
    pub finished: u64,
    /// Tasks that did not.
    pub failed: u64,
    /// Finished tasks whose right answer is known, and the right ones among them.
    pub scored: (u64, u64),
    /// Milliseconds of each finished task: the whole of it (`task`), and its parts (`plan`, `plan
    /// prefill`).
    samples: BTreeMap<String, Vec<f64>>,
}

impl Trial {
    /// What a load came to.
    pub fn of(collected: &Collected) -> Trial {
        let (finished, failed) = collected.counts();
        let mut samples = BTreeMap::from([("task".to_owned(), millis(&collected.latency))]);
        for (agent, durations) in &collected.agents {
            samples.insert(agent.name().to_owned(), millis(durations));
        }
        for ((agent, phase), durations) in &collected.parts {
            if TOLD.contains(phase) {
                samples.insert(format!("{} {}", agent.name(), phase.name()), millis(durations));
            }
        }
        Trial { seconds: collected.last_end.as_secs_f64(), finished, failed, scored: collected.scored, samples }
    }

    fn samples(&self, name: &str) -> &[f64] {
        self.samples.get(name).map_or(&[], Vec::as_slice)
    }
}

/// The phases with the same questions, each of the first build and of the second.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Pair {
    /// One task at a time.
    pub alone: [Trial; 2],
    /// As many at once as saturate the group.
    pub saturated: [Trial; 2],
}

/// A build that is compared.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Build {
    /// The program, or the address of a gateway that runs.
    pub what: String,
    /// What it says of its version; empty: an address, which says nothing.
    pub version: String,
    /// When the program was built, as the file says; empty: unknown.
    pub built: String,
    /// Variables that only this one was started with.
    pub env: Vec<String>,
}

/// What was done.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct PairedAsked {
    /// The source of the questions.
    pub questions: String,
    /// Tasks of a phase with one at a time.
    pub tasks: usize,
    /// Tasks of a phase at saturation.
    pub saturated_tasks: usize,
    /// Tasks at once at saturation.
    pub at_once: usize,
    /// Seed of the questions' order and of the sampling.
    pub seed: u64,
    /// Sampling temperature.
    pub temperature: f32,
}

/// One figure of both builds.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Figure {
    /// Its name.
    pub name: String,
    /// `ms`, or `tasks/s`.
    pub unit: &'static str,
    /// The first build's value over all its phases.
    pub a: f64,
    /// The second's.
    pub b: f64,
    /// The second divided by the first.
    pub ratio: Option<f64>,
    /// The 95% interval of the ratio; absent with too few pairs.
    pub interval: Option<[f64; 2]>,
    /// Whether the interval excludes 1.
    pub change: Change,
}

impl Figure {
    /// Whether more is better.
    fn is_rate(&self) -> bool {
        self.unit == RATE
    }

    /// By how much it is worse: a time that is longer, a rate that is lower. The bound of the
    /// interval that is nearest to no change.
    fn surely_worse(&self) -> Option<f64> {
        let [low, high] = self.interval?;
        Some(if self.is_rate() { 1.0 / high.max(f64::MIN_POSITIVE) } else { low })
    }
}

const TIME: &str = "ms";
const RATE: &str = "tasks/s";

/// The comparison of two builds.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Paired {
    /// [`PAIRED_SCHEMA`].
    pub schema: &'static str,
    /// Where both ran; for addresses, where this program ran.
    pub machine: Machine,
    /// The builds.
    pub builds: [Build; 2],
    /// What was done.
    pub asked: PairedAsked,
    /// Number of complete pairs.
    pub pairs: usize,
    /// The figures.
    pub figures: Vec<Figure>,
    /// Fraction of tasks that did not finish, in both.
    pub failing: [f64; 2],
    /// Fraction of right answers, in both, if known.
    pub right: Option<[f64; 2]>,
    /// Reasons to doubt it.
    pub cautions: Vec<String>,
}

impl Paired {
    /// What the pairs say.
    pub fn new(machine: Machine, builds: [Build; 2], asked: PairedAsked, pairs: &[Pair]) -> Paired {
        let figures = figures(&asked, pairs);
        let trials = |side: usize| pairs.iter().flat_map(move |pair| [&pair.alone[side], &pair.saturated[side]]);
        let failing = [0, 1].map(|side| {
            let (failed, all) =
                trials(side).fold((0, 0), |(failed, all), trial| (failed + trial.failed, all + trial.failed + trial.finished));
            failed as f64 / all.max(1) as f64
        });
        let right =
            [0, 1].map(|side| trials(side).fold((0, 0), |(scored, right), trial| (scored + trial.scored.0, right + trial.scored.1)));
        let known = right.iter().all(|(scored, _)| *scored > 0);
        let right = known.then(|| right.map(|(scored, right)| right as f64 / scored as f64));
        let mut cautions = Vec::new();
        if pairs.len() < LEAST_PAIRS {
            cautions.push(format!("{} pairs are too few for an interval; {LEAST_PAIRS} are needed", pairs.len()));
        }
        if let Some([a, b]) = right.filter(|[a, b]| (a - b).abs() > 0.05) {
            cautions.push(format!("the builds do not do the same work: {:.1}% and {:.1}% of the answers are right", 100.0 * a, 100.0 * b));
        }
        Paired { schema: PAIRED_SCHEMA, machine, builds, asked, pairs: pairs.len(), figures, failing, right, cautions }
    }

    /// The reasons why the second build is worse than a factor allows; empty if it is not. Only
    /// changes that are more than chance count.
    pub fn failures(&self, most: f64) -> Vec<String> {
        let worse = self.figures.iter().filter_map(|figure| {
            let worse = figure.surely_worse().filter(|worse| *worse > most)?;
            Some(format!("{} is at least {worse:.2} times worse; {most} is allowed", figure.name))
        });
        let mut failures: Vec<String> = worse.collect();
        let [a, b] = self.failing;
        if b > a + MORE_FAILURES {
            failures.push(format!("{:.1}% of the tasks fail, {:.1}% did before", 100.0 * b, 100.0 * a));
        }
        failures
    }

    /// The comparison as text for a terminal.
    pub fn table(&self) -> String {
        let mut out = format!("machine: {}\n", self.machine);
        for (name, build) in ["A", "B"].into_iter().zip(&self.builds) {
            let Build { what, version, built, env } = build;
            let version = if version.is_empty() { "a running gateway, version unknown" } else { version };
            let built = if built.is_empty() { String::new() } else { format!(", built {built}") };
            let env = if env.is_empty() { String::new() } else { format!(", with {}", env.join(" ")) };
            // writing to a string cannot fail
            let _ = writeln!(out, "{name}: {what} ({version}{built}{env})");
        }
        let PairedAsked { questions, tasks, saturated_tasks, at_once, seed, .. } = &self.asked;
        let _ = writeln!(
            out,
            "{} pairs of phases, each of {tasks} tasks alone and {saturated_tasks} with {at_once} at once; {questions}, seed {seed}\n",
            self.pairs
        );
        let _ = writeln!(out, "{:<32}{:>12}{:>12}{:>8}  95% interval", "", "A", "B", "B/A");
        for figure in &self.figures {
            let shown = |value: f64| if figure.is_rate() { format!("{value:.2}") } else { ms(value) };
            let ratio = figure.ratio.map_or_else(|| "–".to_owned(), |ratio| format!("{ratio:.3}"));
            let interval = figure.interval.map_or_else(|| "–".to_owned(), |[low, high]| format!("{low:.3} – {high:.3}"));
            let note = match (figure.change, figure.is_rate()) {
                (Change::Unclear, _) => "  (perhaps chance)",
                (Change::Up, false) => "  longer",
                (Change::Down, false) => "  shorter",
                (Change::Up, true) => "  more",
                (Change::Down, true) => "  fewer",
            };
            let _ = writeln!(out, "{:<32}{:>12}{:>12}{ratio:>8}  {interval}{note}", figure.name, shown(figure.a), shown(figure.b));
        }
        let percent = |[a, b]: [f64; 2]| format!("{:>11.1}%{:>11.1}%", 100.0 * a, 100.0 * b);
        let _ = writeln!(out, "{:<32}{}", "failing", percent(self.failing));
        if let Some(right) = self.right {
            let _ = writeln!(out, "{:<32}{}", "right answers", percent(right));
        }
        for caution in &self.cautions {
            let _ = writeln!(out, "caution: {caution}");
        }
        out
    }
}

/// What is computed of each side of the drawn pairs.
type Statistic<'a> = Box<dyn Fn(&[&Pair], usize) -> f64 + 'a>;

fn figures(asked: &PairedAsked, pairs: &[Pair]) -> Vec<Figure> {
    let alone = |name: &'static str, quantile: f64| -> Statistic<'_> {
        Box::new(move |drawn, side| quantile_of(drawn.iter().map(|pair| pair.alone[side].samples(name)), quantile))
    };
    let mean = |name: String| -> Statistic<'_> {
        Box::new(move |drawn, side| {
            let sum: f64 = drawn.iter().flat_map(|pair| pair.alone[side].samples(&name)).sum();
            // over all tasks: one that did not ask the agent has spent no time there
            sum / drawn.iter().map(|pair| pair.alone[side].finished).sum::<u64>().max(1) as f64
        })
    };
    let mut all: Vec<(String, &'static str, Statistic<'_>)> =
        [("p50", 0.5), ("p95", 0.95)].map(|(label, at)| (format!("task, {label}"), TIME, alone("task", at))).into();
    all.push(("task, mean".into(), TIME, mean("task".into())));
    for agent in [Agent::Plan, Agent::Tool, Agent::Reflect] {
        all.push((format!("  {agent}-agent, mean of a task"), TIME, mean(agent.name().into())));
        for phase in TOLD {
            all.push((format!("    {phase}"), TIME, mean(format!("{} {}", agent.name(), phase.name()))));
        }
    }
    all.push((format!("  {}, mean of a task", Agent::Gateway), TIME, mean(Agent::Gateway.name().into())));
    let rate: Statistic<'_> = Box::new(|drawn, side| {
        let sums = drawn
            .iter()
            .map(|pair| &pair.saturated[side])
            .fold((0, 0.0), |(finished, seconds), trial| (finished + trial.finished, seconds + trial.seconds));
        sums.0 as f64 / sums.1.max(f64::MIN_POSITIVE)
    });
    all.push((format!("tasks a second, {} at once", asked.at_once), RATE, rate));
    let p50: Statistic<'_> = Box::new(|drawn, side| quantile_of(drawn.iter().map(|pair| pair.saturated[side].samples("task")), 0.5));
    all.push((format!("task, p50, {} at once", asked.at_once), TIME, p50));
    all.into_iter()
        .map(|(name, unit, statistic)| figure(name, unit, &*statistic, pairs))
        .filter(|figure| figure.a > 0.0 || figure.b > 0.0)
        .collect()
}

fn figure(name: String, unit: &'static str, statistic: &dyn Fn(&[&Pair], usize) -> f64, pairs: &[Pair]) -> Figure {
    let all: Vec<&Pair> = pairs.iter().collect();
    let [a, b] = [0, 1].map(|side| statistic(&all, side));
    let ratio = |a: f64, b: f64| Some(b / a).filter(|ratio| a > 0.0 && ratio.is_finite());
    let interval = (pairs.len() >= LEAST_PAIRS).then(|| {
        let mut random = Rng::new(DRAWS_SEED);
        let mut drawn = Vec::with_capacity(pairs.len());
        let draw = |_| {
            drawn.clear();
            drawn.extend((0..pairs.len()).map(|_| &pairs[random.below(pairs.len())]));
            ratio(statistic(&drawn, 0), statistic(&drawn, 1))
        };
        let mut ratios: Vec<f64> = (0..DRAWS).filter_map(draw).collect();
        ratios.sort_by(f64::total_cmp);
        let at = |quantile: f64| ratios.get(((ratios.len().max(1) - 1) as f64 * quantile).round() as usize).copied();
        Some([at(INTERVAL[0])?, at(INTERVAL[1])?])
    });
    let interval = interval.flatten();
    let change = match interval {
        Some([low, _]) if low > 1.0 => Change::Up,
        Some([_, high]) if high < 1.0 => Change::Down,
        _ => Change::Unclear,
    };
    Figure { name, unit, a, b, ratio: ratio(a, b), interval, change }
}

/// A quantile of several samples together; 0 if there are none.
fn quantile_of<'a>(samples: impl Iterator<Item = &'a [f64]>, quantile: f64) -> f64 {
    let mut all: Vec<f64> = samples.flatten().copied().collect();
    if all.is_empty() {
        return 0.0;
    }
    let at = ((all.len() as f64 * quantile).ceil() as usize).clamp(1, all.len()) - 1;
    *all.select_nth_unstable_by(at, f64::total_cmp).1
}

/// The durations of a histogram in milliseconds, with its three digits.
fn millis(durations: &Durations) -> Vec<f64> {
    let counts = durations.distribution().counts;
    counts.into_iter().flat_map(|(micros, count)| std::iter::repeat_n(micros as f64 / 1e3, usize::try_from(count).unwrap_or(0))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A phase whose tasks take `base` to `base + 90` ms, of which Plan-Agent's prefill is half.
    fn trial(base: f64, seconds: f64) -> Trial {
        let task: Vec<f64> = (0..10).map(|number| base + 10.0 * f64::from(number)).collect();
        let plan: Vec<f64> = task.iter().map(|ms| ms / 2.0).collect();
        let samples = [("task", task), ("plan", plan.clone()), ("plan prefill", plan)];
        let samples = samples.map(|(name, values)| (name.to_owned(), values)).into();
        Trial { seconds, finished: 10, failed: 0, scored: (10, 8), samples }
    }

    /// Pairs of a machine that becomes twice as slow meanwhile; the second build takes `times` as
    /// long, give or take a tenth.
    fn pairs(count: usize, times: f64) -> Vec<Pair> {
        (0..count)
            .map(|at| {
                let machine = 1.0 + at as f64 / count as f64;
                let noise = 1.0 + 0.1 * ((at * 7 % 5) as f64 / 2.0 - 1.0);
                let side = |times: f64| trial(100.0 * machine * times, 2.0 * machine * times);
                let both = [side(1.0), side(times * noise)];
                Pair { alone: both.clone(), saturated: both }
            })
            .collect()
    }

    fn paired(pairs: &[Pair]) -> Paired {
        let asked = PairedAsked { tasks: 10, saturated_tasks: 10, at_once: 4, ..PairedAsked::default() };
        Paired::new(Machine::default(), [Build::default(), Build { version: "autoact 9".into(), ..Build::default() }], asked, pairs)
    }

    fn named<'a>(paired: &'a Paired, name: &str) -> &'a Figure {
        paired.figures.iter().find(|figure| figure.name == name).unwrap()
    }

    #[test]
    fn a_faster_build_is_found_on_a_machine_that_slows_down() {
        let paired = paired(&pairs(10, 0.7));
        let (task, rate) = (named(&paired, "task, p50"), named(&paired, "tasks a second, 4 at once"));
        assert_eq!((task.change, rate.change), (Change::Down, Change::Up), "{paired:?}");
        let [low, high] = rate.interval.unwrap();
        assert!(low < 1.0 / 0.7 && 1.0 / 0.7 < high && low > 1.3 && high < 1.55, "{low} {high}");
        assert_eq!(named(&paired, "    prefill").change, Change::Down);
        assert!(paired.failures(1.0).is_empty());
        let table = paired.table();
        for expected in ["B: ", "autoact 9", "version unknown", "10 pairs", "shorter", "more", "80.0%"] {
            assert!(table.contains(expected), "`{expected}` is missing in\n{table}");
        }
    }

    #[test]
    fn a_slower_build_fails_and_chance_does_not() {
        let slower = paired(&pairs(10, 1.5));
        let failures = slower.failures(1.2);
        assert!(failures.iter().any(|failure| failure.starts_with("task, p50")), "{failures:?}");
        assert!(failures.iter().any(|failure| failure.starts_with("tasks a second")), "{failures:?}");
        assert!(slower.failures(2.0).is_empty());
        let same = paired(&pairs(10, 1.0));
        assert!(same.failures(1.0).is_empty() && same.cautions.is_empty(), "{same:?}");
        assert!(same.figures.iter().all(|figure| figure.change == Change::Unclear), "{same:?}");
    }

    #[test]
    fn the_same_pairs_have_the_same_intervals() {
        assert_eq!(paired(&pairs(6, 0.9)), paired(&pairs(6, 0.9)));
    }

    #[test]
    fn few_pairs_and_other_work_are_cautions() {
        let few = paired(&pairs(2, 0.5));
        assert!(few.figures.iter().all(|figure| figure.interval.is_none()) && few.failures(1.0).is_empty());
        assert!(few.cautions[0].contains("2 pairs"), "{few:?}");
        let mut wrong = pairs(6, 1.0);
        wrong.iter_mut().for_each(|pair| (pair.alone[1].scored, pair.saturated[1].failed) = ((10, 1), 5));
        let wrong = paired(&wrong);
        assert!(wrong.cautions[0].contains("not do the same work"), "{wrong:?}");
        assert!(wrong.failures(9.0)[0].contains("of the tasks fail"), "{wrong:?}");
        assert!(paired(&[]).figures.is_empty() && !paired(&[]).table().contains("NaN"));
    }

    #[test]
    fn quantiles_are_those_of_all_phases_together() {
        let samples: [&[f64]; 2] = [&[1.0, 2.0, 3.0], &[10.0]];
        assert_eq!([0.0, 0.5, 0.95].map(|at| quantile_of(samples.into_iter(), at)), [1.0, 2.0, 10.0]);
        assert_eq!(quantile_of(std::iter::empty(), 0.5), 0.0);
        let mut durations = Durations::default();
        for millis in [20, 20, 50] {
            durations.record(crate::testing::ms(millis));
        }
        assert_eq!(millis(&durations).len(), 3);
    }
}

//! Variants for comparison: the ablations of the paper's table 2, the numbers of trajectories of
//! figure 3, and the groups of figure 4 with other divisions of labour. They are trained on the
//! trajectories of the round whose adapters are installed, so that the comparison is fair.

use std::collections::BTreeMap;

use autoact_in_process::Voices;
use autoact_prompt::Role;

use crate::differentiate::{FEWEST, document, judgements, retried, thin, write};
use crate::error::LearnError;
use crate::iterate::GROUP;
use crate::records::{DocumentRecord, ReflectionRecord, Selection, TrajectoryRecord, TurnRecord};
use crate::round::Round;
use crate::row::Row;
use crate::run::Run;
use crate::store::{read, read_json};
use crate::train::train;
use crate::workplace::Workplace;

/// Numbers of training trajectories, with each row's name and title. Only numbers below that of the
/// kept trajectories are used.
const SCALES: [(usize, &str, &str); 6] = [
    (25, "trained-on-25", "25 trajectories"),
    (50, "trained-on-50", "50 trajectories"),
    (100, "trained-on-100", "100 trajectories"),
    (200, "trained-on-200", "200 trajectories"),
    (400, "trained-on-400", "400 trajectories"),
    (800, "trained-on-800", "800 trajectories"),
];
/// The row of the group with one Tool-Agent for each tool.
pub const TOOL_SPECIFIED: &str = "tool-specified";

/// The number of training trajectories of a row of figure 3.
pub(crate) fn scale_of(row: &str) -> Option<usize> {
    SCALES.iter().find(|(_, name, _)| *name == row).map(|(count, ..)| *count)
}

fn scaled(count: usize, role: &str) -> String {
    format!("{count}-{role}")
}

fn specialist(tool: &str) -> String {
    format!("tool-{tool}")
}

/// The names of the tools that a run selected; empty before the selection.
pub(crate) fn tools(run: &Run) -> Result<Vec<String>, LearnError> {
    Ok(read_json::<Selection>(&run.path("tools.json"))?.map(|selection| selection.selected).unwrap_or_default())
}

/// The names of the variants' adapters for which a round has data.
pub(crate) fn adapters(run: &Run, round: &Round) -> Result<Vec<String>, LearnError> {
    let table = ["one", "unfiltered-plan", "unfiltered-tool", "unfiltered-reflect"].map(str::to_owned);
    let specialists = tools(run)?.into_iter().map(|tool| specialist(&tool));
    let scales = SCALES.iter().flat_map(|(count, ..)| GROUP.map(|role| scaled(*count, role)));
    let all = table.into_iter().chain(specialists).chain(scales);
    Ok(all.filter(|name| round.path(&format!("datasets/{name}.jsonl")).exists()).collect())
}

/// Writes the data sets and trains the adapters of all variants, as far as they do not exist.
///
/// # Errors
/// The model, the data or a file fails, or a stop was requested.
pub(crate) fn prepare(work: &mut Workplace, run: &Run, round: &Round) -> Result<(), LearnError> {
    // this file is written last
    if !round.path("datasets/one.jsonl").exists() {
        documents(work, round)?;
    }
    let adapters = adapters(run, round)?;
    if adapters.iter().any(|name| !round.adapter(name).join("training.json").exists()) {
        work.dismiss();
        train(work, round, &adapters)?;
    }
    Ok(())
}

/// Writes the data sets of all variants.
fn documents(work: &Workplace, round: &Round) -> Result<(), LearnError> {
    let seed = work.task.seed;
    let path = |name: &str| round.path(&format!("datasets/{name}.jsonl"));
    let (plan, tool, reflect) =
        (read::<DocumentRecord>(&path("plan"))?, read::<DocumentRecord>(&path("tool"))?, read::<DocumentRecord>(&path("reflect"))?);
    let mut all: Vec<TrajectoryRecord> = read(&round.path("trajectories.jsonl"))?;
    let reflections: Vec<ReflectionRecord> = read(&round.path("reflections.jsonl"))?;
    // the first judgements, whether they agree with the reward or not
    write(&path("unfiltered-reflect"), &judgements(work, &all, &reflections, |record| record.draws.first().cloned()))?;
    let retried = if work.task.settings.differentiate.retried { retried(&all, &reflections, any_other) } else { Vec::new() };
    // as many trajectories as the filter kept, so that only the filter differs; the known answer has
    // filtered those on known paths already
    all.retain(|one| !one.turns.is_empty() && !one.hinted);
    thin(&mut all, plan.iter().filter(|document| document.rejected == 0).count(), seed);
    for role in [Role::Plan, Role::Tool] {
        let documents = all.iter().map(|one| document(work, one, 0, role, None));
        let documents: Vec<_> = documents.chain(retried.iter().map(|(one, at)| document(work, one, *at, role, None))).collect();
        write(&path(&format!("unfiltered-{}", role.as_str())), &documents)?;
    }
    let selected = tool.first().map(|document| document.tools.clone()).unwrap_or_default();
    for name in selected {
        let own: Vec<DocumentRecord> = tool.iter().filter_map(|document| of_one_tool(document, &name)).collect();
        if own.iter().filter(|document| !document.validation).count() >= FEWEST {
            write(&path(&specialist(&name)), &own)?;
        }
    }
    let training = plan.iter().filter(|document| !document.validation).count();
    for (count, ..) in SCALES.iter().filter(|(count, ..)| *count < training) {
        for (role, documents) in GROUP.into_iter().zip([&plan, &tool, &reflect]) {
            let (mut fewer, held): (Vec<_>, Vec<_>) = documents.iter().cloned().partition(|document| !document.validation);
            thin(&mut fewer, *count, seed);
            fewer.extend(held);
            write(&path(&scaled(*count, role)), &fewer)?;
        }
    }
    let one: Vec<DocumentRecord> = plan.into_iter().chain(tool).chain(reflect).collect();
    write(&path("one"), &one)
}

/// What comes after a rejected trajectory without a filter: the next judged one of its question.
fn any_other<'a>(rejected: &'a ReflectionRecord, judged: &[&'a ReflectionRecord]) -> Option<&'a ReflectionRecord> {
    let at = judged.iter().position(|other| other.sample == rejected.sample)?;
    judged.get((at + 1) % judged.len()).copied()
}

/// The document with one tool's parameters as its only targets; `None` if it does not use the tool.
fn of_one_tool(document: &DocumentRecord, tool: &str) -> Option<DocumentRecord> {
    let steps = document.turns[document.rejected..].iter().filter_map(|turn| match turn {
        TurnRecord::Step { tool, input: Some(_), .. } => Some(tool),
        _ => None,
    });
    let outputs: Vec<String> =
        steps.zip(&document.outputs).filter(|(own, _)| own.as_str() == tool).map(|(_, output)| output.clone()).collect();
    (!outputs.is_empty()).then(|| DocumentRecord { tool: tool.to_owned(), outputs, ..document.clone() })
}

/// The rows of table 2 and of the figures whose adapters are trained.
pub(crate) fn rows(run: &Run, round: &Round) -> Result<Vec<Row>, LearnError> {
    let there = adapters(run, round)?;
    let all_there = |voices: &Voices| {
        let names = [&voices.plan, &voices.tool, &voices.reflect].into_iter().flatten().chain(voices.specialists.values());
        names
            .into_iter()
            .all(|voice| GROUP.iter().any(|name| *voice == round.voice(name)) || there.iter().any(|name| *voice == round.voice(name)))
    };
    let row = |name, title, voices, without_reflection| Row { name, title, voices, without_reflection };
    let specialists: BTreeMap<String, String> = tools(run)?
        .into_iter()
        .filter(|tool| there.contains(&specialist(tool)))
        .map(|tool| (tool.clone(), round.voice(&specialist(&tool))))
        .collect();
    let mut rows = vec![
        row("no-reflection", "− reflection", round.group(), true),
        row("one", "− multi", Voices::one(&round.voice("one")), false),
        row("unfiltered", "− filtering", Voices::named(|role| round.voice(&format!("unfiltered-{}", role.as_str()))), false),
    ];
    if !specialists.is_empty() {
        // a tool that no trajectory uses has no adapter: the base fills in its parameters
        rows.push(row(TOOL_SPECIFIED, "tool-specified", Voices { tool: None, specialists, ..round.group() }, false));
    }
    for (count, name, title) in SCALES {
        rows.push(row(name, title, Voices::named(|role| round.voice(&scaled(count, role.as_str()))), false));
    }
    rows.retain(|row| all_there(&row.voices));
    Ok(rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_specialist_learns_its_own_tool() {
        let step = |tool: &str, input: &str| TurnRecord::Step {
            thought: "t".into(),
            tool: tool.into(),
            input: Some(input.into()),
            observation: None,
        };
        let document = DocumentRecord {
            id: 0,
            sample: 0,
            validation: false,
            role: "tool".into(),
            tool: String::new(),
            question: "q".into(),
            tools: vec!["Retrieve".into(), "Finish".into()],
            turns: vec![step("Retrieve", "a"), step("Retrieve", "b"), step("Finish", "c")],
            rejected: 0,
            outputs: vec![" a\n".into(), " b\n".into(), " c\n".into()],
        };
        let own = of_one_tool(&document, "Retrieve").unwrap();
        assert_eq!((own.outputs.len(), own.tool.as_str()), (2, "Retrieve"));
        assert_eq!(of_one_tool(&document, "Finish").unwrap().outputs, [" c\n"]);
        assert!(of_one_tool(&document, "Search").is_none());
        let retried = DocumentRecord { rejected: 2, outputs: vec![" c\n".into()], ..document };
        assert_eq!(of_one_tool(&retried, "Finish").unwrap().outputs, [" c\n"]);
        assert!(of_one_tool(&retried, "Retrieve").is_none());
    }

    #[test]
    fn rows_are_there_once_their_adapters_have_data() {
        let dir = tempfile::tempdir().unwrap();
        let run = Run::open(dir.path(), "t", crate::run::Origin::new(), None).unwrap();
        let first = Round::new(&run, 1);
        let names = |run: &Run| rows(run, &first).unwrap().into_iter().map(|row| row.name).collect::<Vec<_>>();
        assert_eq!(names(&run), ["no-reflection"]);
        std::fs::create_dir_all(run.path("datasets")).unwrap();
        for name in ["one", "50-plan", "50-tool", "50-reflect", "100-plan"] {
            std::fs::write(run.path(&format!("datasets/{name}.jsonl")), "").unwrap();
        }
        assert_eq!(names(&run), ["no-reflection", "one", "trained-on-50"]);
        assert_eq!((scale_of("trained-on-50"), scale_of("one")), (Some(50), None));
    }
}

//! What is trained and asked for comparison: the rows of the paper's table 2, the points of its figure 3 (how many trajectories) and the
//! groups of its figure 4 (how much division of labour). All of it learns from the trajectories of the round whose adapters are installed,
//! as the group it is compared with does.

use std::collections::BTreeMap;

use autoact_in_process::Voices;
use autoact_prompt::Role;

use crate::differentiate::{FEWEST, document, judgements, thin, write};
use crate::error::LearnError;
use crate::iterate::GROUP;
use crate::records::{DocumentRecord, ReflectionRecord, Selection, TrajectoryRecord, TurnRecord};
use crate::round::Round;
use crate::row::Row;
use crate::run::Run;
use crate::store::{read, read_json};
use crate::train::train;
use crate::workplace::Workplace;

/// Trajectories to train on, where there are more.
const SCALES: [(usize, &str, &str); 4] = [
    (25, "trained-on-25", "25 trajectories"),
    (50, "trained-on-50", "50 trajectories"),
    (100, "trained-on-100", "100 trajectories"),
    (200, "trained-on-200", "200 trajectories"),
];
/// The row of the group with a Tool-Agent for each tool.
pub const TOOL_SPECIFIED: &str = "tool-specified";

/// The number of trajectories that a row of figure 3 learned from.
pub(crate) fn scale_of(row: &str) -> Option<usize> {
    SCALES.iter().find(|(_, name, _)| *name == row).map(|(count, ..)| *count)
}

fn scaled(count: usize, role: &str) -> String {
    format!("{count}-{role}")
}

fn specialist(tool: &str) -> String {
    format!("tool-{tool}")
}

/// The tools that a run selected; none before it has.
pub(crate) fn tools(run: &Run) -> Result<Vec<String>, LearnError> {
    Ok(read_json::<Selection>(&run.path("tools.json"))?.map(|selection| selection.selected).unwrap_or_default())
}

/// The adapters that are trained for comparison, as far as a round has data for them.
pub(crate) fn adapters(run: &Run, round: &Round) -> Result<Vec<String>, LearnError> {
    let table = ["one", "unfiltered-plan", "unfiltered-tool", "unfiltered-reflect"].map(str::to_owned);
    let specialists = tools(run)?.into_iter().map(|tool| specialist(&tool));
    let scales = SCALES.iter().flat_map(|(count, ..)| GROUP.map(|role| scaled(*count, role)));
    let all = table.into_iter().chain(specialists).chain(scales);
    Ok(all.filter(|name| round.path(&format!("datasets/{name}.jsonl")).exists()).collect())
}

/// Makes data sets and adapters of everything that is compared, as far as they are not there.
///
/// # Errors
/// The model, the data, a file; or a stop.
pub(crate) fn prepare(work: &mut Workplace, run: &Run, round: &Round) -> Result<(), LearnError> {
    // written last
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

/// Writes the data sets of everything that is compared.
fn documents(work: &Workplace, round: &Round) -> Result<(), LearnError> {
    let seed = work.task.seed;
    let path = |name: &str| round.path(&format!("datasets/{name}.jsonl"));
    let (plan, tool, reflect) =
        (read::<DocumentRecord>(&path("plan"))?, read::<DocumentRecord>(&path("tool"))?, read::<DocumentRecord>(&path("reflect"))?);
    let mut all: Vec<TrajectoryRecord> = read(&round.path("trajectories.jsonl"))?;
    let reflections: Vec<ReflectionRecord> = read(&round.path("reflections.jsonl"))?;
    // judgements as they came first, right or not
    write(&path("unfiltered-reflect"), &judgements(work, &all, &reflections, |record| record.draws.first().cloned()))?;
    // as many trajectories as the filter left, so that the filter is all that differs
    all.retain(|one| !one.turns.is_empty());
    thin(&mut all, plan.len(), seed);
    for role in [Role::Plan, Role::Tool] {
        let documents: Vec<_> = all.iter().map(|one| document(work, one, role, None)).collect();
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

/// What a specialist learns of a document: its own tool's parameters; `None` if the tool is not used.
fn of_one_tool(document: &DocumentRecord, tool: &str) -> Option<DocumentRecord> {
    let steps = document.turns.iter().filter_map(|turn| match turn {
        TurnRecord::Step { tool, input: Some(_), .. } => Some(tool),
        _ => None,
    });
    let outputs: Vec<String> =
        steps.zip(&document.outputs).filter(|(own, _)| own.as_str() == tool).map(|(_, output)| output.clone()).collect();
    (!outputs.is_empty()).then(|| DocumentRecord { tool: tool.to_owned(), outputs, ..document.clone() })
}

/// The rows of table 2 and of the figures, as far as their adapters are trained.
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
        // a tool that no trajectory uses has no agent: the base speaks for it
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
            outputs: vec![" a\n".into(), " b\n".into(), " c\n".into()],
        };
        let own = of_one_tool(&document, "Retrieve").unwrap();
        assert_eq!((own.outputs.len(), own.tool.as_str()), (2, "Retrieve"));
        assert_eq!(of_one_tool(&document, "Finish").unwrap().outputs, [" c\n"]);
        assert!(of_one_tool(&document, "Search").is_none());
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

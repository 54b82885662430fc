//! What holds for any history that is shortened, and for the events that say so.

use crate::common::*;
use autoact_trajectory::*;
use proptest::prelude::*;

/// Bytes of all texts, and a little for each turn's labels: a measure as a model's tokens are one.
fn bytes(history: &Trajectory) -> usize {
    let note = if history.left_out > 0 { 34 } else { 0 };
    let turn = |turn: &Turn| match turn {
        Turn::Step(step) => {
            let filled = |text: &Option<String>, label: usize| text.as_ref().map_or(0, |text| label + text.len());
            18 + step.thought.len() + step.tool.len() + filled(&step.params, 8) + filled(&step.observation, 14)
        }
        Turn::Reflection(reflection) => 24 + reflection.thought.len(),
    };
    history.question.len() + note + history.turns.iter().map(turn).sum::<usize>()
}

fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        prop::collection::vec("[A-Z][a-zé ]{0,30}[.!?]", 0..12).prop_map(|sentences| sentences.join(" ")),
        "[a-z]{0,300}",
        "\\PC{0,80}",
    ]
}

/// A turn with a finished step, and perhaps a reflection on it.
fn finished() -> impl Strategy<Value = Vec<Turn>> {
    (text(), text(), prop::option::weighted(0.2, text())).prop_map(|(thought, observation, reflection)| {
        let answer = reflection.is_some();
        let step = Step {
            thought,
            tool: if answer { FINISH } else { "Retrieve" }.into(),
            params: Some("Loire".into()),
            observation: (!answer).then_some(observation),
            ..Step::default()
        };
        let reflection = reflection.map(|thought| Turn::Reflection(Reflection::new(thought, Verdict::Wrong)));
        [Some(Turn::Step(step)), reflection].into_iter().flatten().collect()
    })
}

/// Up to a hundred steps; the last may wait for Tool-Agent or for Reflect-Agent.
fn history() -> impl Strategy<Value = Trajectory> {
    let open = prop_oneof![
        Just(None),
        text().prop_map(|thought| Some(Step { thought, tool: "Retrieve".into(), ..Step::default() })),
        text().prop_map(|thought| Some(Step { thought, tool: FINISH.into(), params: Some("Paris".into()), ..Step::default() })),
    ];
    (prop::collection::vec(finished(), 0..100), open).prop_map(|(turns, open)| Trajectory {
        question: "Where is it?".into(),
        turns: turns.into_iter().flatten().chain(open.map(Turn::Step)).collect(),
        ..Trajectory::default()
    })
}

/// What cannot be left out: the question, and the step that waits for an agent, with a note in
/// place of its thought.
fn fixed(history: &Trajectory) -> usize {
    let open = history.open_step().filter(|step| step.observation.is_none());
    let steps = history.steps().count() - usize::from(open.is_some());
    let short =
        |step: &Step| Step { thought: if step.thought.len() > 11 { "(Left out.)".into() } else { step.thought.clone() }, ..step.clone() };
    let turns = open.map(|step| Turn::Step(short(step))).into_iter().collect();
    bytes(&Trajectory { left_out: u32::try_from(steps).unwrap(), turns, ..history.clone() })
}

proptest! {
    #[test]
    fn any_history_fits_any_context_that_holds_its_fixed_parts(history in history(), share in 0.0..1.2f64) {
        let (fixed, whole) = (fixed(&history), bytes(&history));
        let budget = fixed + ((whole.saturating_sub(fixed)) as f64 * share) as usize;
        let none = Shortening::default();
        let shortening = shorten(&history, &none, bytes, budget);
        let shown = shortening.apply(&history);
        prop_assert!(bytes(&shown) <= budget, "{} > {budget}: {shortening:?}", bytes(&shown));
        // deterministic, and nothing is shortened twice
        prop_assert_eq!(&shorten(&history, &none, bytes, budget), &shortening);
        prop_assert_eq!(&shorten(&history, &shortening, bytes, budget), &shortening);
        // what fits stays as it is
        if whole <= budget {
            prop_assert_eq!(&shown, &history);
        }
        prop_assert_eq!(shown.left_out as usize + shown.steps().count(), history.steps().count());
        prop_assert_eq!((&shown.question, &shown.tools), (&history.question, &history.tools));
        // the step that waits keeps its action, and the step before it goes last
        let waiting = |history: &Trajectory| history.open_step().filter(|step| step.observation.is_none()).map(Step::action);
        prop_assert_eq!(waiting(&shown), waiting(&history));
    }

    #[test]
    fn a_shorter_budget_never_brings_anything_back(history in history(), shares in prop::collection::vec(0.0..1.0f64, 1..5)) {
        let mut shortening = Shortening::default();
        let mut before = bytes(&history);
        for share in shares {
            shortening = shorten(&history, &shortening, bytes, (before as f64 * share) as usize);
            let now = bytes(&shortening.apply(&history));
            prop_assert!(now <= before);
            before = now;
        }
    }
}

#[test]
fn old_observations_go_first_and_every_cut_says_so() {
    let step = |at: usize| {
        let observation = Some(format!("Page {at} is first. It is long. It goes on."));
        Turn::Step(Step { thought: "hm".into(), tool: "Retrieve".into(), params: Some("x".into()), observation, ..Step::default() })
    };
    let history = Trajectory { turns: (1..=4).map(step).collect(), ..Trajectory::default() };
    let whole = bytes(&history);
    let shown = |budget| shorten(&history, &Shortening::default(), bytes, budget).apply(&history);
    let observations = |history: &Trajectory| history.steps().filter_map(|step| step.observation.clone()).collect::<Vec<_>>();
    let full = observations(&history);
    // the note would be longer than the sentences it stands for
    assert!("Page 1 is first. (2 more sentences are left out.)".len() > full[0].len());
    let two_left = shown(whole - 1);
    assert_eq!((two_left.left_out, observations(&two_left)), (1, full[1..].to_vec()));
    assert_eq!(shown(bytes(&two_left) - 1).left_out, 2);
    let one_left = shown(fixed(&history) + 100);
    assert_eq!((one_left.left_out, observations(&one_left)), (3, full[3..].to_vec()));
    let cut = shown(bytes(&one_left) - 1);
    assert_eq!(observations(&cut), ["Page 4 (The rest is left out.)"]);
    assert_eq!(shown(0), Trajectory { left_out: 4, turns: vec![], ..history.clone() });
}

#[test]
fn sentences_are_left_out_from_the_end() {
    let long = "The Loire is the longest river in France and flows for a thousand kilometres. ".repeat(5);
    let step = |observation: &str| {
        Turn::Step(Step { tool: "Retrieve".into(), params: Some("x".into()), observation: Some(observation.into()), ..Step::default() })
    };
    let turns = vec![step(&long), step(&long), step("Short."), step("Short.")];
    let history = Trajectory { turns, ..Trajectory::default() };
    let shortening = shorten(&history, &Shortening::default(), bytes, bytes(&history) - 250);
    let shown = shortening.apply(&history);
    let observation = shown.steps().next().unwrap().observation.clone().unwrap();
    let sentence = long.split_inclusive(". ").next().unwrap();
    assert_eq!(observation, format!("{sentence}(4 more sentences are left out.)"));
    assert_eq!(shown.turns[1..], history.turns[1..]);
}

/// A task with this many observed steps, and its events.
fn task(steps: usize) -> Task {
    let step = |at: usize| [thought("Retrieve"), action("Retrieve", &format!("page {at}")), observation("One é. Two. Three.")];
    Task::fold(&events([submitted(Limits::default()), started(1)].into_iter().chain((0..steps).flat_map(step)))).unwrap()
}

fn shortened(shortening: Shortening) -> EventBody {
    EventBody::Shortened(Shortened { shortening, tokens: 2026, limit: 1728 })
}

fn cut(step: u32, kept: u32) -> Shortening {
    Shortening { observations: [(step, Cut { kept, sentences: 2 })].into(), ..Shortening::default() }
}

fn applied(task: &Task, body: EventBody) -> Result<Task, FoldError> {
    let mut task = task.clone();
    task.apply(&event(task.next_index(), body)).map(|()| task)
}

#[test]
fn the_task_keeps_the_whole_history_and_shows_what_is_left() {
    let task = task(3);
    assert_eq!(*task.shown(), *task.trajectory());
    let shorter = applied(&task, shortened(Shortening { left_out: 1, ..cut(2, 7) })).unwrap();
    assert_eq!(shorter.trajectory(), task.trajectory());
    let shown = shorter.shown();
    assert_eq!((shown.left_out, shown.turns.len()), (1, 2));
    assert_eq!(shown.steps().next().unwrap().observation.as_deref(), Some("One é. (2 more sentences are left out.)"));
    assert_eq!(shorter.call(), task.call(), "the next call is the same");
    // what comes after is shown whole
    let later = applied(&shorter, thought("Retrieve")).unwrap();
    assert_eq!(later.shown().turns.len(), 3);
    assert_eq!(later.steps(), 4);
}

#[test]
fn a_shortening_that_does_not_fit_is_refused() {
    let task = task(3);
    let refused = |task: &Task, shortening: Shortening| {
        let error = applied(task, shortened(shortening)).unwrap_err();
        assert!(matches!(error, FoldError::Shortening(_)), "{error}");
    };
    refused(&task, Shortening::default());
    refused(&task, Shortening { left_out: 4, ..Shortening::default() });
    for (step, kept) in [(0, 1), (4, 1), (1, 5), (1, 99)] {
        refused(&task, cut(step, kept));
    }
    let shorter = applied(&task, shortened(Shortening { left_out: 1, ..cut(2, 7) })).unwrap();
    refused(&shorter, cut(2, 7));
    refused(&shorter, Shortening { left_out: 1, ..Shortening::default() });
    refused(&shorter, Shortening { left_out: 1, ..cut(2, 7) });
    assert!(applied(&shorter, shortened(Shortening { left_out: 2, ..Shortening::default() })).is_ok());
    // nobody is asked while a tool runs
    let acting = applied(&applied(&task, thought("Retrieve")).unwrap(), action("Retrieve", "x")).unwrap();
    assert!(matches!(applied(&acting, shortened(cut(1, 7))), Err(FoldError::Unexpected { .. })));
}

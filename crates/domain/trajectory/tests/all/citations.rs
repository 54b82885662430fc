//! Which passages are cited, for histories as the group writes them.

use crate::common::*;
use autoact_trajectory::*;
use proptest::prelude::*;

/// A page of the group's own, as `Retrieve` shows it.
fn page(title: &str, text: &str) -> Source {
    Source { title: title.into(), start: 10, end: 10 + text.len() as u64, text: text.into(), ..Source::default() }
}

fn step(thought: &str, tool: &str, params: &str, sources: &[Source]) -> Turn {
    let text: Vec<&str> = sources.iter().map(|source| source.text.as_str()).collect();
    Turn::Step(Step {
        thought: thought.into(),
        tool: tool.into(),
        params: Some(params.into()),
        observation: Some(text.join(" | ")),
        sources: sources.to_vec(),
        ..Step::default()
    })
}

fn retrieve(thought: &str, title: &str, text: &str) -> Turn {
    step(thought, "Retrieve", title, &[page(title, text)])
}

fn calculate(thought: &str, params: &str) -> Turn {
    step(thought, "Calculate", params, &[])
}

fn finish(thought: &str, answer: &str) -> Turn {
    let step = Step { thought: thought.into(), tool: FINISH.into(), params: Some(answer.into()), ..Step::default() };
    Turn::Step(step)
}

/// (step, quote) of each citation of the answer of the last step.
#[track_caller]
fn check(question: &str, turns: &[Turn], expected: &[(u32, &str)]) {
    let Some(Turn::Step(Step { params: Some(answer), .. })) = turns.last() else { panic!("no answer") };
    let found = citations(question, turns, answer);
    let found: Vec<(u32, &str)> = found.iter().map(|citation| (citation.step, citation.quote.as_str())).collect();
    assert_eq!(found, expected);
}

const NEW_ZEALAND: &str = "New Zealand is a country in Oceania. Its longest river is the Waikato River. The official language is \
                           English. Its highest mountain is Aoraki Mount Cook. Its calling code is +64.";

#[test]
fn an_answer_of_one_page_cites_its_sentence() {
    let turns = [
        retrieve("I need the highest mountain of New Zealand.", "New Zealand", NEW_ZEALAND),
        finish("The highest mountain of New Zealand is Aoraki Mount Cook. That is the answer.", "Aoraki Mount Cook"),
    ];
    check("Which mountain is the highest in New Zealand?", &turns, &[(1, "Its highest mountain is Aoraki Mount Cook.")]);
    let found = citations("Which mountain is the highest in New Zealand?", &turns, "Aoraki Mount Cook");
    let at = NEW_ZEALAND.find("Its highest").unwrap() as u64;
    assert_eq!((found[0].title.as_str(), found[0].start, found[0].end), ("New Zealand", 10 + at, 10 + at + 42));
}

#[test]
fn a_chain_cites_every_hop() {
    let turns = [
        retrieve("I need the country of Christchurch.", "Christchurch", "Christchurch is a city in New Zealand. It is old."),
        retrieve("The country of Christchurch is New Zealand. I need its highest mountain.", "New Zealand", NEW_ZEALAND),
        finish("The highest mountain of New Zealand is Aoraki Mount Cook.", "Aoraki Mount Cook"),
    ];
    let expected = [(1, "Christchurch is a city in New Zealand."), (2, "Its highest mountain is Aoraki Mount Cook.")];
    check("Which mountain is the highest in the country of Christchurch?", &turns, &expected);
    // a model that says nothing between: what it asked for tells
    let [mut first, mut second, mut last] = turns;
    for turn in [&mut first, &mut second, &mut last] {
        if let Turn::Step(step) = turn {
            step.thought = "So.".into();
        }
    }
    check("Which mountain is the highest in the country of Christchurch?", &[first, second, last], &expected);
}

#[test]
fn a_name_in_a_title_is_a_hop_where_it_is_said_again() {
    let turns = [
        retrieve(
            "I need the city of University of Jena.",
            "University of Jena",
            "The University of Jena is a university in Jena. Its country is Germany.",
        ),
        retrieve(
            "The city of University of Jena is Jena. I need the river of Jena.",
            "Jena",
            "Jena is a city in Germany. It stands on the Saale, a river.",
        ),
        finish("The river of Jena is Saale. That is the answer.", "Saale"),
    ];
    let expected = [(1, "The University of Jena is a university in Jena."), (2, "It stands on the Saale, a river.")];
    check("Which river does the city of the University of Jena lie on?", &turns, &expected);
}

const VIENNA: &str = "The University of Vienna is a university in Austria. It was founded in 1365. It is in the city of Vienna.";
const BUENOS_AIRES: &str = "The University of Buenos Aires is a university in Argentina. Its founding year is 1821.";

#[test]
fn a_comparison_cites_every_fact_compared() {
    let question = "Which was founded later, the University of Vienna or the University of Buenos Aires?";
    let turns = [
        retrieve("I need the founding year of University of Vienna.", "University of Vienna", VIENNA),
        retrieve(
            "The founding year of University of Vienna is 1365. I need that of University of Buenos Aires.",
            "University of Buenos Aires",
            BUENOS_AIRES,
        ),
        calculate("The founding year of University of Buenos Aires is 1821. I need to know whether 1365 is more than 1821.", "1365 > 1821"),
        finish("It is false that 1365 is more than 1821. The answer is University of Buenos Aires.", "University of Buenos Aires"),
    ];
    let expected = [(1, "It was founded in 1365."), (2, "Its founding year is 1821.")];
    check(question, &turns, &expected);
    // in one sentence, without a calculation
    let turns = [
        retrieve("First one.", "University of Vienna", VIENNA),
        retrieve("Then the other.", "University of Buenos Aires", BUENOS_AIRES),
        finish("Vienna's was founded in 1365 and that of Buenos Aires in 1821, so it is the latter.", "University of Buenos Aires"),
    ];
    check(question, &turns, &expected);
}

#[test]
fn yes_and_no_cite_what_was_compared() {
    let turns = [
        retrieve("I need the country of Gazprom.", "Gazprom", "Gazprom is a company based in Saint Petersburg. Its country is Russia."),
        retrieve(
            "The country of Gazprom is Russia. I need the country of Lukoil.",
            "Lukoil",
            "Lukoil is a company from Russia. Its industry is oil.",
        ),
        calculate("The country of Lukoil is Russia. I need to know whether Russia and Russia are the same.", "Russia = Russia"),
        finish("They are the same.", "yes"),
    ];
    let expected = [(1, "Its country is Russia."), (2, "Lukoil is a company from Russia.")];
    check("Do Gazprom and Lukoil come from the same country?", &turns, &expected);
    // the value is in the question, and is no name
    let turns = [
        retrieve("I need the currency of Japan.", "Japan", "Japan is a country in Asia. Its currency is the yen. Its capital is Tokyo."),
        calculate("The currency of Japan is yen. The question says yen. I need to know whether yen and yen are the same.", "yen = yen"),
        finish("They are the same.", "yes"),
    ];
    check("Do people in Japan pay with the yen?", &turns, &[(1, "Its currency is the yen.")]);
}

#[test]
fn what_was_opened_in_vain_is_not_cited() {
    let turns = [
        retrieve("I need the length of the Loire.", "Loire Valley", "The Loire Valley is a region of France. It has 300 castles."),
        retrieve(
            "The length of the Loire is not shown yet. I need the length of the Loire.",
            "Loire",
            "The Loire is a river in France. It is 1,006 km long.",
        ),
        finish("The length of the Loire is 1006 km. That is the answer.", "1006 km"),
    ];
    check("How long is the Loire?", &turns, &[(2, "It is 1,006 km long.")]);
}

#[test]
fn what_a_search_only_listed_is_not_cited() {
    let listed = [page("Nihonium", "Its atomic number is 113."), page("Tin", "Its atomic number is 50."), page("Iron", "Iron is a metal.")];
    let turns = [
        step("I need the element with the atomic number 50.", "Search", "atomic number 50", &listed),
        finish("The atomic number of Tin is 50. That is the answer.", "Tin"),
    ];
    check("What is the element with atomic number 50?", &turns, &[(1, "Its atomic number is 50.")]);
}

#[test]
fn the_thoughts_of_another_answer_do_not_count() {
    let turns = [
        retrieve(
            "I need the river of Tours.",
            "Tours",
            "Tours is a city in France. It has 137,000 people. It stands on the Loire, a river.",
        ),
        finish("The river of Tours is 137000. That is the answer.", "137000"),
        Turn::Reflection(Reflection::new("That is no river.", Verdict::Wrong)),
        finish("The river of Tours is Loire. That is the answer.", "Loire"),
    ];
    check("Which river is in Tours?", &turns, &[(1, "It stands on the Loire, a river.")]);
}

#[test]
fn the_same_passage_is_cited_once() {
    let text = "The Loire is a river in France. It is 1,006 km long.";
    let turns = [
        retrieve("I need the length of the Loire.", "Loire", text),
        retrieve("I need the length of the Loire.", "Loire", text),
        finish("The Loire is 1,006 km long.", "1,006 km"),
    ];
    let found = citations("How long is the Loire?", &turns, "1,006 km");
    assert_eq!(found.len(), 1, "{found:?}");
}

#[test]
fn what_no_page_shows_has_no_citation() {
    let turns =
        [retrieve("I need the area.", "Badain Jaran Desert", "It covers an area of 49000 km²."), finish("I guess that it is 17.", "17")];
    check("How many dunes are there?", &turns, &[]);
    check("How many dunes are there?", &[finish("I know it.", "12")], &[]);
}

#[test]
fn each_statement_of_a_longer_answer_is_cited() {
    let travel = "Staff may travel. A manager approves travel over 2,000 euros. Receipts are kept for two years.";
    let answer = "A manager approves it where it costs over 2000 euros. Receipts of travel are kept for two years.";
    let turns = [retrieve("So.", "Travel", travel), finish("So.", answer)];
    let expected = [(1, "A manager approves travel over 2,000 euros."), (1, "Receipts are kept for two years.")];
    check("How is travel approved, and what is kept?", &turns, &expected);
}

/// The most that histories can be, in words that are all alike.
#[test]
fn the_work_is_bounded() {
    let sentence = |number: usize| format!("The Loire {number} of Tours is {} long and wide. ", number + 1);
    let text: String = (0..60).map(sentence).collect();
    let sources: Vec<Source> = (0..4).map(|number| page(&format!("Page {number}"), &text)).collect();
    let mut turns: Vec<Turn> = (0..60).map(|_| step(&text, "Retrieve", &text, &sources)).collect();
    turns.push(finish(&text, "long"));
    let found = citations("How long is the Loire of Tours?", &turns, "long");
    assert!(found.len() <= MAX_CITATIONS);
}

/// The events of a task that reads one page and then ends like this.
fn task(end: &[EventBody]) -> Task {
    let seen = Observation {
        text: "Loire: It is 1,006 km long.".into(),
        sources: vec![page("Loire", "It is 1,006 km long.")],
        ..Observation::default()
    };
    let begin = [submitted_with_not_found(Limits::default()), started(1), thought("Retrieve"), action("Retrieve", "Loire")];
    let bodies = [&begin[..], &[EventBody::Observation(seen)], end].concat();
    Task::fold(&events(bodies)).unwrap()
}

fn end(task: &Task) -> Finished {
    match decide(task, at(20)) {
        Decision::Finish(finished) => finished,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_task_ends_with_the_citations_of_its_answer() {
    let answered = EventBody::Thought(Thought { thought: "The Loire is 1,006 km long.".into(), tool: FINISH.into() });
    let right = task(&[answered.clone(), action(FINISH, "1,006 km"), reflection(Verdict::Right)]);
    let finished = end(&right);
    assert_eq!(finished.citations.iter().map(|citation| citation.quote.as_str()).collect::<Vec<_>>(), ["It is 1,006 km long."]);
    assert!(finished.approved && end(&right) == finished);
    // unapproved too, and not after an end without an answer
    let wrong = task(&[answered.clone(), action(FINISH, "1,006 km"), reflection(Verdict::Wrong)]);
    assert_eq!(wrong.finish(FinishReason::Cancelled, "").citations, finished.citations);
    let missing = [answered, action(FINISH, "1,006 km"), reflection(Verdict::Wrong), thought(NOT_FOUND), action(NOT_FOUND, "its mouth")];
    let missing = task(&[&missing[..], &[reflection(Verdict::Right)]].concat());
    assert_eq!((end(&missing).reason, end(&missing).citations), (FinishReason::NoAnswer, Vec::new()));
    assert!(task(&[]).finish(FinishReason::Failed, "").citations.is_empty());
}

/// Few words, so that claims and passages meet.
fn text() -> impl Strategy<Value = String> {
    prop::collection::vec("Loire|Tours|river|long|is|the|1006|1,006|[.!?] |é|東京は。| |\n", 0..24).prop_map(|words| words.join(" "))
}

fn any_source() -> impl Strategy<Value = Source> {
    (text(), text(), 0_u64..1000, any::<Option<u32>>()).prop_map(|(title, text, start, page)| Source {
        collection: "handbook".into(),
        file: "a.pdf".into(),
        end: start + text.len() as u64,
        title,
        start,
        page,
        text,
        ..Source::default()
    })
}

fn any_turn() -> impl Strategy<Value = Turn> {
    let seen = prop::option::weighted(0.8, prop::collection::vec(any_source(), 0..4));
    (text(), text(), seen).prop_map(|(thought, params, seen)| match seen {
        Some(sources) => step(&thought, "Retrieve", &params, &sources),
        None => finish(&thought, &params),
    })
}

proptest! {
    #[test]
    fn a_quote_is_exactly_what_a_source_has_at_its_place(
        question in text(), turns in prop::collection::vec(any_turn(), 0..6), answer in text(),
    ) {
        let found = citations(&question, &turns, &answer);
        prop_assert_eq!(&citations(&question, &turns, &answer), &found);
        prop_assert!(found.len() <= MAX_CITATIONS);
        prop_assert!(found.iter().map(|citation| citation.quote.len()).sum::<usize>() <= MAX_QUOTES_BYTES);
        let steps: Vec<&Step> = turns.iter().filter_map(|turn| match turn { Turn::Step(step) => Some(step), Turn::Reflection(_) => None }).collect();
        for Citation { step, collection, file, title, heading, page, start, end, quote } in &found {
            let shows = |source: &&Source| {
                let (from, to) = (start.checked_sub(source.start), end.checked_sub(source.start));
                let span = from.zip(to).and_then(|(from, to)| source.text.get(from as usize..to as usize));
                span == Some(quote) && (collection, file, title, heading, page) == (&source.collection, &source.file, &source.title, &source.heading, &source.page)
            };
            prop_assert!(!quote.is_empty() && steps[*step as usize - 1].sources.iter().any(|source| shows(&source)), "{found:?}");
        }
    }
}

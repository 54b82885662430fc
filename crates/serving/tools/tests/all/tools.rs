//! The built-in tools on a small corpus, as the group meets them.

use std::num::NonZeroUsize;
use std::sync::Arc;

use autoact_tools::text::fold;
use autoact_tools::{Corpus, CorpusError, Observation, Page, ToolLibrary};
use autoact_trajectory::{Action, Step, Trajectory, Turn};
use proptest::prelude::*;

fn page(title: &str, text: &str) -> Page {
    Page { title: title.into(), text: text.into() }
}

fn corpus() -> Arc<Corpus> {
    let pages = vec![
        page(
            "Loire",
            "The Loire is a river in France. It is 1006 km long. It rises in the Massif Central. It flows into the Atlantic Ocean. \
             Nantes lies on the Loire. Many castles stand along the river. Its valley is known for wine. Orléans lies on the Loire too. \
             The river floods in spring.",
        ),
        page("France", "France is a country in Europe. Its capital is Paris. Its longest river is the Loire."),
        page("Paris", "Paris is the capital of France. It lies on the Seine."),
        page("São Tomé", "São Tomé is the capital of São Tomé and Príncipe."),
        page("The Hague", "The Hague is a city in the Netherlands."),
        page("Mercury (planet)", "Mercury (planet) is the smallest planet."),
        page("Mercury (element)", "Mercury (element) is a metal with the symbol Hg."),
    ];
    Arc::new(Corpus::from_pages(pages).unwrap())
}

fn library() -> ToolLibrary {
    ToolLibrary::bundled(corpus()).unwrap()
}

fn observe(tool: &str, params: &str, trajectory: &Trajectory) -> Observation {
    library().execute(&Action { tool: tool.into(), params: params.into() }, trajectory)
}

#[track_caller]
fn check(tool: &str, params: &str, expected: &str) {
    let observation = observe(tool, params, &Trajectory::default());
    assert_eq!((observation.text.as_str(), observation.is_error), (expected, false), "{tool}[{params}]");
}

#[test]
fn an_observation_names_what_it_shows() {
    let pages: Vec<Page> = corpus().pages().to_vec();
    let trajectory = history(&[("Retrieve", "Loire")]);
    for (tool, params, titles) in [
        ("Retrieve", "the loire", vec!["Loire"]),
        ("Retrieve", "Berlin", vec![]),
        ("Search", "capital of France", vec!["France", "Paris", "São Tomé"]),
        ("Lookup", "floods", vec!["Loire"]),
        ("Lookup", "zebra", vec![]),
        ("Calculate", "1 + 1", vec![]),
    ] {
        let observation = observe(tool, params, &trajectory);
        let named: Vec<&str> = observation.sources.iter().map(|source| source.title.as_str()).collect();
        assert_eq!(named, titles, "{tool}[{params}]");
        for source in &observation.sources {
            let page = pages.iter().find(|page| page.title == source.title).unwrap();
            assert_eq!(source.text, page.text[source.start as usize..source.end as usize]);
            assert!(observation.text.contains(&source.text), "{tool}[{params}]: {}", observation.text);
        }
    }
}

/// The trajectory in which these actions were really run, one after the other.
fn history(actions: &[(&str, &str)]) -> Trajectory {
    let mut trajectory = Trajectory::default();
    for (tool, params) in actions {
        let observation = observe(tool, params, &trajectory).text;
        let step = Step {
            thought: "…".into(),
            tool: (*tool).into(),
            params: Some((*params).into()),
            observation: Some(observation),
            ..Step::default()
        };
        trajectory.turns.push(Turn::Step(step));
    }
    trajectory
}

#[test]
fn a_page_is_found_by_its_alias() {
    let people = [
        (page("Wolfgang Amadeus Mozart", "Wolfgang Amadeus Mozart is known for music."), vec!["Mozart".to_owned(), "Paris".to_owned()]),
        (page("Paris", "A city of light."), vec!["Lutetia".to_owned()]),
    ];
    let library = ToolLibrary::bundled(Arc::new(Corpus::with_aliases(people).unwrap())).unwrap();
    let run = |tool: &str, params: &str| library.execute(&Action { tool: tool.into(), params: params.into() }, &Trajectory::default()).text;
    assert_eq!(run("Retrieve", "mozart"), "Wolfgang Amadeus Mozart is known for music.");
    // as is one by its name with a typo, or among words that name nothing
    assert_eq!(run("Retrieve", "Mozrat"), "Wolfgang Amadeus Mozart is known for music.");
    assert_eq!(run("Retrieve", "Mozart die"), "Wolfgang Amadeus Mozart is known for music.");
    assert_eq!(run("Retrieve", "Mozartkugel"), "No page is titled Mozartkugel. Similar: Wolfgang Amadeus Mozart.");
    // a title goes before an alias
    assert_eq!(run("Retrieve", "Paris"), "Paris: A city of light.");
    assert_eq!(run("Retrieve", "the Lutetia"), "Paris: A city of light.");
    assert_eq!(run("Search", "Lutetia"), "Paris: A city of light.");
}

#[test]
fn a_corpus_file_has_aliases() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("pages.jsonl");
    std::fs::write(&path, "{\"title\":\"Netherlands\",\"text\":\"A country.\",\"aliases\":[\"Holland\"]}\n").unwrap();
    assert_eq!(Corpus::load(&path).unwrap().page("holland").unwrap().title, "Netherlands");
}

#[test]
fn search_shows_the_best_sentence_of_the_best_pages() {
    check(
        "Search",
        "capitals of France",
        "France: Its capital is Paris. | Paris: Paris is the capital of France. | São Tomé: São Tomé is the capital of São Tomé and Príncipe.",
    );
    check("Search", "the symbol Hg?", "Mercury (element): Mercury (element) is a metal with the symbol Hg.");
    check("Search", "Orleans castle", "Loire: Many castles stand along the river.");
}

#[test]
fn a_page_that_says_it_is_found_before_what_shares_a_name() {
    let pages = vec![
        page("Cairo", "Cairo is a city in Egypt. It stands on the Nile. The landmark of Cairo is the Cairo Tower."),
        page("Cairo Tower", "The Cairo Tower is a tower in Cairo."),
        page("Cairo University", "Cairo University is a university. Its city is Cairo."),
        page("Egypt", "Egypt is a country in Africa. Its area is 1010408 km². Its longest river is the Nile. Its capital is Cairo."),
    ];
    let library = ToolLibrary::bundled(Arc::new(Corpus::from_pages(pages).unwrap())).unwrap();
    let found = |query: &str| -> Vec<String> {
        let found = library.execute(&Action { tool: "Search".into(), params: query.into() }, &Trajectory::default());
        found.sources.into_iter().map(|source| source.title).take(2).collect()
    };
    assert_eq!(found("capital Cairo"), ["Cairo", "Egypt"]);
    assert_eq!(found("Africa's capital"), ["Egypt"]);
    assert_eq!(found("Cairo Tower")[0], "Cairo Tower", "the longest name in the query");
}

#[test]
fn a_value_is_found_before_titles_that_share_a_word_of_the_query() {
    let atlas = Corpus::load(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../corpora/atlas/pages.jsonl")).unwrap();
    for (query, title) in [
        ("calling code +372", "Estonia"),
        ("orbital period 687 days", "Mars"),
        ("city Ann Arbor", "University of Michigan"),
        ("composer Frederick Loewe", "My Fair Lady"),
        ("director Ishirō Honda", "Godzilla"),
        ("author Harper Lee", "To Kill a Mockingbird"),
        ("highest mountain Grossglockner", "Austria"),
        ("Danube length", "Danube"),
    ] {
        let found: Vec<&str> = atlas.search(query, 3).unwrap().into_iter().map(|(page, _)| page.title.as_str()).collect();
        assert!(found.contains(&title), "{query}: {found:?}");
    }
}

#[test]
fn search_has_no_syntax_to_get_wrong() {
    check("Search", "xyzzy", "No page matches xyzzy.");
    check("Search", "title:(\"", "No page matches title:(\".");
    check("Search", "+Hg -\"metal AND", "Mercury (element): Mercury (element) is a metal with the symbol Hg.");
    check("Search", "", "No page matches .");
}

#[test]
fn retrieve_shows_the_lead() {
    let lead = "The Loire is a river in France. It is 1006 km long. It rises in the Massif Central. It flows into the Atlantic Ocean. \
                Nantes lies on the Loire. Many castles stand along the river. (More: use Lookup.)";
    for title in ["Loire", " loire ", "the Loire", "LOIRE.", "\"Loire\""] {
        check("Retrieve", title, lead);
    }
    check("Retrieve", "Paris", "Paris is the capital of France. It lies on the Seine.");
    check("Retrieve", "hague", "The Hague is a city in the Netherlands.");
    check("Retrieve", "Sao Tome", "São Tomé is the capital of São Tomé and Príncipe.");
}

/// An observation of a library whose `Retrieve` shows so many sentences.
fn observe_told(sentences: usize, question: &str, before: &[Step], thought: &str, title: &str) -> Observation {
    let library = library().showing(NonZeroUsize::new(sentences).unwrap());
    let now = Step { thought: thought.into(), tool: "Retrieve".into(), params: Some(title.into()), ..Step::default() };
    let turns = before.iter().cloned().chain([now]).map(Turn::Step).collect();
    let trajectory = Trajectory { question: question.into(), turns, ..Trajectory::default() };
    library.execute(&Action { tool: "Retrieve".into(), params: title.into() }, &trajectory)
}

#[test]
fn retrieve_shows_the_sentences_that_tell_most() {
    for (question, thought, expected) in [
        ("How long is the Loire?", "", "Loire: It is 1006 km long."),
        ("Which beverage is the valley of the Loire famous for?", "", "Loire: Its valley is known for wine."),
        ("?", "I need the ocean of the Loire.", "Loire: It flows into the Atlantic Ocean."),
        // another thought on the same page
        ("?", "I need the fortresses along the Loire.", "Loire: Many castles stand along the river."),
        // nothing is told: the first one
        ("?", "", "The Loire is a river in France."),
    ] {
        let observation = observe_told(1, question, &[], thought, "Loire");
        assert_eq!(observation.text, expected, "{question} {thought}");
        assert_eq!(observation.sources.len(), 1);
        let shown = observation.sources[0].text.as_str();
        assert!(expected.ends_with(shown), "{shown}");
    }
    let two = observe_told(2, "Which cities lie on the Loire?", &[], "", "Loire");
    assert_eq!(two.text, "Loire: Nantes lies on the Loire. Orléans lies on the Loire too.");
    assert_eq!(two.sources.len(), 2);
    assert_eq!(observe_told(20, "How long is the Loire?", &[], "", "Paris").text, "Paris is the capital of France. It lies on the Seine.");
}

#[test]
fn another_thought_is_shown_other_sentences_of_a_page() {
    let first = observe_told(1, "?", &[], "I need the length.", "Loire");
    let before = Step {
        thought: "I need the length.".into(),
        tool: "Retrieve".into(),
        params: Some("Loire".into()),
        observation: Some(first.text),
        ..Step::default()
    };
    let second = observe_told(1, "?", &[before], "I need the ocean.", "Loire");
    assert_eq!((second.text.as_str(), second.refers_back), ("Loire: It flows into the Atlantic Ocean.", false));
}

#[test]
fn an_unknown_page_gives_similar_ones() {
    check("Retrieve", "Mercury", "No page is titled Mercury. Similar: Mercury (planet); Mercury (element).");
    check("Retrieve", "Loire River", "No page is titled Loire River. Similar: Loire.");
    check("Retrieve", "xyzzy", "No page is titled xyzzy.");
}

/// Candidates are the titles most like a name, and there may be more that begin with it.
#[test]
fn no_name_is_completed_that_begins_two_titles_of_the_atlas() {
    let atlas = Arc::new(Corpus::load(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../corpora/atlas/pages.jsonl")).unwrap());
    let library = ToolLibrary::bundled(atlas.clone()).unwrap();
    let titles: Vec<String> = atlas.pages().iter().map(|page| fold(&page.title)).collect();
    let beginnings = titles.iter().flat_map(|title| title.match_indices(' ').map(|(at, _)| &title[..at]));
    let mut completed = 0;
    for name in beginnings.step_by(8).filter(|name| atlas.page(name).is_none()) {
        let opened = library.execute(&Action { tool: "Retrieve".into(), params: name.into() }, &Trajectory::default()).sources;
        let longer = |title: &str| title.strip_prefix(name).is_some_and(|rest| rest.starts_with(' '));
        if opened.first().is_some_and(|source| longer(&fold(&source.title))) {
            completed += 1;
            assert_eq!(titles.iter().filter(|title| longer(title)).count(), 1, "{name}: {}", opened[0].title);
        }
    }
    assert!(completed > 50, "{completed}");
}

/// Pages as people write them: few begin with their own names, and lines end without a mark.
#[test]
fn a_page_says_whose_it_is_and_where_a_value_ends() {
    let pages = vec![
        page("Ettermoor", "She is a cable layer by trade.\nLength: 99 metres\nBuilder: Yard Nine"),
        page("Ilsabet Corran", "Ilsabet Corran's ship is the Ettermoor."),
        page("Quillon", "The Quillon is a ferry."),
        page("Doveline (ship)", "Doveline, a feeder, calls Ambersund home."),
        page("Doveline (port)", "This port opened in 1802."),
        page("Vanmere", "The port of Vanmere opened in\nthe year 1802"),
    ];
    let library = ToolLibrary::bundled(Arc::new(Corpus::from_pages(pages).unwrap())).unwrap();
    let run = |params: &str| library.execute(&Action { tool: "Retrieve".into(), params: params.into() }, &Trajectory::default()).text;
    assert_eq!(run("Ettermoor"), "Ettermoor: She is a cable layer by trade. Length: 99 metres. Builder: Yard Nine.");
    assert_eq!(run("Ilsabet Corran"), "Ilsabet Corran: Ilsabet Corran's ship is the Ettermoor.");
    assert_eq!(run("Quillon"), "The Quillon is a ferry.");
    assert_eq!(run("Doveline (ship)"), "Doveline, a feeder, calls Ambersund home.");
    assert_eq!(run("Doveline (port)"), "Doveline (port): This port opened in 1802.");
    assert_eq!(run("Vanmere"), "Vanmere: The port of Vanmere opened in the year 1802.");
}

#[test]
fn a_work_is_found_behind_the_name_of_whose_it_is() {
    let pages = vec![
        page("The Trial", "The Trial is a novel by Franz Kafka."),
        page("Franz Kafka", "Franz Kafka was born in Prague."),
        page("Bleak House", "Bleak House is a novel by Charles Dickens."),
        page("Charles Dickens", "Charles Dickens came from England."),
        page("A Doll's House", "A Doll's House is a play by Henrik Ibsen."),
        page("Leo Tolstoy", "Leo Tolstoy came from Russia."),
    ];
    let library = ToolLibrary::bundled(Arc::new(Corpus::from_pages(pages).unwrap())).unwrap();
    let run = |params: &str| library.execute(&Action { tool: "Retrieve".into(), params: params.into() }, &Trajectory::default()).text;
    for name in ["Kafka's The Trial", "franz kafka’s trial", "Franz Kafka's The Trial"] {
        assert_eq!(run(name), "The Trial is a novel by Franz Kafka.", "{name}");
    }
    for name in ["The Trial by Kafka", "the trial by franz kafka", "Franz Kafka's novel The Trial"] {
        assert_eq!(run(name), "The Trial is a novel by Franz Kafka.", "{name}");
    }
    assert_eq!(run("Dickens' Bleak House"), "Bleak House is a novel by Charles Dickens.");
    assert_eq!(run("Henrik Ibsen's A Doll's House"), "A Doll's House is a play by Henrik Ibsen.");
    // it is somebody else's, or there is no such page
    for name in ["Leo Tolstoy's The Trial", "The Trial by Leo Tolstoy", "Franz Kafka's The Castle", "Dickens'", "by Kafka", "'s", "by"] {
        assert!(run(name).starts_with("No page is titled"), "{name}: {}", run(name));
    }
}

#[test]
fn words_of_a_title_may_stand_in_another_order_and_be_abbreviated() {
    let pages = vec![
        page("Yale University", "It was founded in 1701."),
        page("University of Pisa", "It was founded in 1343."),
        page("Mount Fuji", "It is 3776 m high."),
        page("Saint Helena", "It is an island."),
        page("St Andrews", "It is a town."),
    ];
    let library = ToolLibrary::bundled(Arc::new(Corpus::from_pages(pages).unwrap())).unwrap();
    let run = |params: &str| library.execute(&Action { tool: "Retrieve".into(), params: params.into() }, &Trajectory::default()).text;
    assert_eq!(run("the University of Yale"), "Yale University: It was founded in 1701.");
    assert_eq!(run("Pisa University"), "University of Pisa: It was founded in 1343.");
    assert_eq!(run("Mt. Fuji"), "Mount Fuji: It is 3776 m high.");
    assert_eq!(run("St. Helena"), "Saint Helena: It is an island.");
    assert_eq!(run("St. Andrews"), "St Andrews: It is a town.");
    assert!(run("University").starts_with("No page is titled University."));
}

#[test]
fn a_part_of_one_title_means_it() {
    let pages = vec![
        page("Institute of Maps and Roads", "It was founded in 1956. It has 174 students."),
        page("Faculty of Law and Customs", "It is in Orlin Hall."),
        page("Faculty of Numbers", "It is in Ferrow Tower."),
    ];
    let library = ToolLibrary::bundled(Arc::new(Corpus::from_pages(pages).unwrap())).unwrap();
    let run = |params: &str| library.execute(&Action { tool: "Retrieve".into(), params: params.into() }, &Trajectory::default()).text;
    assert_eq!(run("institute of maps"), "Institute of Maps and Roads: It was founded in 1956. It has 174 students.");
    assert_eq!(run("Faculty of Law"), "Faculty of Law and Customs: It is in Orlin Hall.");
    // or its end behind `and`, but no other end
    assert_eq!(run("roads"), "Institute of Maps and Roads: It was founded in 1956. It has 174 students.");
    assert!(run("Numbers").starts_with("No page is titled Numbers."));
    // two titles begin so, and half a word is no beginning
    assert_eq!(run("Faculty of"), "No page is titled Faculty of. Similar: Faculty of Numbers; Faculty of Law and Customs.");
    assert!(run("Instit").starts_with("No page is titled Instit."));
    assert!(run("").starts_with("No page is titled"));
    // the page is open for Lookup, too
    let step =
        Step { tool: "Retrieve".into(), params: Some("Institute of Maps".into()), observation: Some("…".into()), ..Step::default() };
    let mut history = Trajectory::default();
    history.turns.push(Turn::Step(step));
    let found = library.execute(&Action { tool: "Lookup".into(), params: "students".into() }, &history).text;
    assert_eq!(found, "(1 of 1) It has 174 students.");
}

#[test]
fn a_name_that_nobody_said_means_a_page_of_the_question_or_of_the_last_observation() {
    let pages = vec![
        page("Faculty of Law and Customs", "Its building is Orlin Hall. Its dean is Ida Klemm. It has 9 rooms."),
        page("Faculty of Numbers", "Its building is Ferrow Tower."),
        page("Orlin Hall", "It was built in 1934."),
        page("Ferrow Tower", "It was built in 1988."),
    ];
    let library = ToolLibrary::bundled(Arc::new(Corpus::from_pages(pages).unwrap())).unwrap();
    let run = |question: &str, actions: &[(&str, &str)]| {
        let mut trajectory = Trajectory { question: question.into(), ..Trajectory::default() };
        for (tool, params) in actions {
            let action = Action { tool: (*tool).into(), params: (*params).into() };
            let observation = library.execute(&action, &trajectory).text;
            let step = Step { tool: action.tool, params: Some(action.params), observation: Some(observation), ..Step::default() };
            trajectory.turns.push(Turn::Step(step));
        }
        trajectory.steps().last().and_then(|step| step.observation.clone()).unwrap()
    };
    let law = "When was the building of the Faculty of Law and Customs built?";
    assert!(run(law, &[("Retrieve", "Faculty of Law and Cust)")]).starts_with("Faculty of Law and Customs: Its building"));
    // Lookup looks into that page
    assert_eq!(run(law, &[("Retrieve", "Faculty of Law and Cust)"), ("Lookup", "rooms")]), "(1 of 1) It has 9 rooms.");
    // what is open already is not meant
    assert_eq!(run(law, &[("Retrieve", "Faculty of Law and Customs"), ("Retrieve", "Orlin Hkts")]), "Orlin Hall: It was built in 1934.");
    assert!(run(law, &[("Retrieve", "Faculty of Law and Customs"), ("Retrieve", "Hktly")]).starts_with("No page is titled Hktly."));
    // of two the one that it is like
    let both = "Is the Faculty of Law and Customs older than the Faculty of Numbers?";
    assert!(run(both, &[("Retrieve", "Faculty of Nambaes")]).starts_with("Faculty of Numbers: "));
    assert!(run(both, &[("Retrieve", "Xyzzy")]).starts_with("No page is titled Xyzzy. Similar: Faculty of Law and Customs; "));
    // words that name nothing, in a question that names one page
    let talk = "hey, any idea who leads the faculty of numbers?";
    assert!(run(talk, &[("Retrieve", "any idea")]).starts_with("Faculty of Numbers: "));
    // a name that is said has no page
    let unknown = "Who is the dean of Zwickel at the Faculty of Numbers?";
    assert_eq!(run(unknown, &[("Retrieve", "Zwickel")]), "No page is titled Zwickel. Similar: Faculty of Numbers.");
    assert!(run(law, &[("Retrieve", "Faculty of Law and Customs"), ("Retrieve", "Ida Klemm")]).starts_with("No page is titled Ida Klemm."));
}

#[test]
fn lookup_looks_into_the_page_retrieved_last() {
    let look = |actions: &[(&str, &str)], keyword: &str| observe("Lookup", keyword, &history(actions)).text;
    assert_eq!(look(&[], "wine"), "No page has been retrieved yet. Use Retrieve first.");
    assert_eq!(look(&[("Search", "Loire")], "wine"), "No page has been retrieved yet. Use Retrieve first.");
    assert_eq!(look(&[("Retrieve", "Loire")], "wine"), "(1 of 1) Its valley is known for wine.");
    assert_eq!(look(&[("Retrieve", "Loire")], "ORLEANS"), "(1 of 1) Orléans lies on the Loire too.");
    assert_eq!(look(&[("Retrieve", "Loire")], "flood"), "(1 of 1) The river floods in spring.");
    assert_eq!(look(&[("Retrieve", "Loire")], "Berlin"), "No sentence of Loire contains Berlin.");
    assert_eq!(look(&[("Retrieve", "Loire")], ""), "No sentence of Loire contains .");
    // with a typo, in the keyword or in what was retrieved
    assert_eq!(look(&[("Retrieve", "Loire")], "vallye"), "(1 of 1) Its valley is known for wine.");
    assert_eq!(look(&[("Retrieve", "Lorie")], "wine"), "(1 of 1) Its valley is known for wine.");
    // a failed Retrieve leaves the page where it was
    assert_eq!(look(&[("Retrieve", "Loire"), ("Retrieve", "xyzzy")], "wine"), "(1 of 1) Its valley is known for wine.");
    assert_eq!(look(&[("Retrieve", "Loire"), ("Retrieve", "Paris")], "Seine"), "(1 of 1) It lies on the Seine.");
}

#[test]
fn lookup_needs_no_word_for_the_kind_of_value() {
    let pages = vec![
        page("Wrathe", "It has 31 berths. It opened in 1862. Its horn is tonal."),
        page("Number Nine", "It was launched in the year 1968. It is called by number. Its crew is small."),
    ];
    let library = ToolLibrary::bundled(Arc::new(Corpus::from_pages(pages).unwrap())).unwrap();
    let look = |title: &str, keyword: &str| {
        let open = Step { tool: "Retrieve".into(), params: Some(title.into()), observation: Some("…".into()), ..Step::default() };
        let mut history = Trajectory::default();
        history.turns.push(Turn::Step(open));
        library.execute(&Action { tool: "Lookup".into(), params: keyword.into() }, &history).text
    };
    assert_eq!(look("Wrathe", "number of berths"), "(1 of 1) It has 31 berths.");
    assert_eq!(look("Wrathe", "opening year"), "(1 of 1) It opened in 1862.");
    // a word that may be missing is not taken for a typo of another
    assert_eq!(look("Wrathe", "total berths"), "(1 of 1) It has 31 berths.");
    // nor whose page it is
    assert_eq!(look("Wrathe", "berths of Wrathe"), "(1 of 1) It has 31 berths.");
    assert_eq!(look("Wrathe", "Wrathe"), "No sentence of Wrathe contains Wrathe.");
    // a sentence that has it comes first, and what else is wanted has to be there
    assert_eq!(look("Number Nine", "launch year"), "(1 of 1) It was launched in the year 1968.");
    assert_eq!(look("Number Nine", "number of crew"), "(1 of 1) Its crew is small.");
    assert_eq!(look("Number Nine", "number"), "(1 of 1) It is called by number.");
    assert_eq!(look("Wrathe", "number of cranes"), "No sentence of Wrathe contains number of cranes.");
    assert_eq!(look("Wrathe", "year"), "No sentence of Wrathe contains year.");
}

#[test]
fn lookup_goes_on_where_it_was() {
    let again = |times: usize| {
        let mut actions = vec![("Retrieve", "Loire")];
        actions.extend(vec![("Lookup", "lies"); times]);
        observe("Lookup", "Lies", &history(&actions)).text
    };
    assert_eq!(again(0), "(1 of 2) Nantes lies on the Loire.");
    assert_eq!(again(1), "(2 of 2) Orléans lies on the Loire too.");
    assert_eq!(again(2), "No more sentences of Loire contain Lies.");
    // another page, and the same one again, begin anew
    let actions = [("Retrieve", "Loire"), ("Lookup", "lies"), ("Retrieve", "Paris")];
    assert_eq!(observe("Lookup", "lies", &history(&actions)).text, "(1 of 1) It lies on the Seine.");
}

#[test]
fn calculate_computes_and_compares() {
    check("Calculate", "1006 - 6", "1000");
    check("Calculate", "1006 > 777", "true");
    check("Calculate", "1006 km - 777 km", "229 km");
    let failed = observe("Calculate", "1 +", &Trajectory::default());
    assert_eq!(failed.text, "cannot calculate `1 +`: expected a number at the end");
    assert!(failed.is_error);
}

#[test]
fn calculate_reads_words() {
    check("Calculate", "twelve plus thirty", "42");
    check("Calculate", "6x7", "42");
    check("Calculate", "Nine < 8", "false");
    check("Calculate", "abs(777 km - 1006 km)", "229 km");
    let zero = observe("Calculate", "twelve divided by zero", &Trajectory::default());
    assert_eq!(zero.text, "cannot calculate `12 / 0`: division by zero");
}

#[test]
fn calculate_knows_names_by_their_pages() {
    let pages = [("Giuseppe Verdi", "Verdi"), ("Rome", "Eternal City"), ("Italy", "Italian Republic"), ("Carbon", "C")];
    let pages = pages.map(|(title, alias)| (page(title, "It is known."), vec![alias.to_owned()]));
    let library = ToolLibrary::bundled(Arc::new(Corpus::with_aliases(pages).unwrap())).unwrap();
    for (texts, expected) in [
        ("Giuseppe Verdi = verdi", "true"),
        ("Verdi = Giuseppe Verdy", "true"),
        ("Rome = the Eternal City", "true"),
        ("Rome = Italy", "false"),
        ("Rossini = Verdi", "false"),
        ("Carbon = C", "true"),
        ("C = C++", "false"),
        ("euro = euros", "true"),
        ("Puccini = Puccini", "true"),
    ] {
        let action = Action { tool: "Calculate".into(), params: texts.into() };
        let observation = library.execute(&action, &Trajectory::default());
        assert_eq!((observation.text.as_str(), observation.is_error), (expected, false), "{texts}");
    }
}

#[test]
fn finish_and_unknown_tools_are_not_run() {
    assert!(observe("Finish", "Paris", &Trajectory::default()).is_error);
    let unknown = observe("Retreive", "Paris", &Trajectory::default());
    assert!(unknown.is_error);
    assert!(unknown.text.starts_with("there is no tool `Retreive`, did you mean `Retrieve`"), "{}", unknown.text);
}

#[test]
fn long_observations_are_cut() {
    let long = Arc::new(Corpus::from_pages(vec![page("Long", &"é".repeat(2000))]).unwrap());
    let library = library().with_corpus(&long);
    let observation = library.execute(&Action { tool: "Retrieve".into(), params: "Long".into() }, &Trajectory::default());
    assert!(observation.truncated && !observation.is_error);
    assert!(observation.text.len() <= 1200 && observation.text.ends_with("é … (cut)"));
}

#[test]
fn observations_are_one_line() {
    let broken = Arc::new(Corpus::from_pages(vec![page("A\nB", "One.\nAction: Finish\tTwo.")]).unwrap());
    let library = library().with_corpus(&broken);
    let text = library.execute(&Action { tool: "Retrieve".into(), params: "a b".into() }, &Trajectory::default()).text;
    assert_eq!(text, "A B: One. Action: Finish Two.");
}

#[test]
fn a_corpus_file_tells_every_mistake_with_its_line() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("pages.jsonl");
    std::fs::write(&path, "{\"title\": \"A\", \"text\": \"One.\"}\n\n{\"title\": \"B\", \"text\": \"Two.\"}\n").unwrap();
    assert_eq!(Corpus::load(&path).unwrap().pages().len(), 2);

    let lines = [
        r#"{"title": "A", "text": "One."}"#,
        r#"{"title": " ", "text": "One."}"#,
        r#"{"title": "A", "text": "Two."}"#,
        r#"{"title": "C", "text": ""}"#,
        r#"{"title": "D"}"#,
        "not json",
        r#"{"title": "E", "text": "One.", "tags": 1}"#,
    ];
    std::fs::write(&path, lines.join("\n")).unwrap();
    let error = Corpus::load(&path).unwrap_err();
    let CorpusError::Mistakes { mistakes, .. } = &error else { panic!("{error}") };
    assert_eq!(mistakes.iter().map(|mistake| mistake.line).collect::<Vec<_>>(), [2, 3, 4, 5, 6, 7]);
    let told = error.to_string();
    assert!(told.contains(&format!("{}:3: the title `A` is already that of line 1", path.display())), "{told}");

    std::fs::write(&path, "\n").unwrap();
    assert!(matches!(Corpus::load(&path), Err(CorpusError::Empty { .. })));
    assert!(matches!(Corpus::load(directory.path().join("none")), Err(CorpusError::Read { .. })));
    std::fs::write(&path, b"\xff\xfe\n").unwrap();
    assert!(matches!(Corpus::load(&path), Err(CorpusError::Mistakes { .. })));
}

#[test]
fn a_small_world_is_cheap() {
    let world = || (0..150).map(|n| page(&format!("Page {n}"), &format!("Page {n} is a town of {n} people. ").repeat(12))).collect();
    Corpus::from_pages(world()).unwrap();
    let start = std::time::Instant::now();
    for _ in 0..10 {
        Corpus::from_pages(world()).unwrap();
    }
    let each = start.elapsed() / 10;
    println!("{each:?} per world");
    // a loose bound: it is there to notice threads or waits, not to measure
    assert!(each < std::time::Duration::from_millis(300), "{each:?}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn no_tool_panics(
        tool in "Search|Retrieve|Lookup|Calculate|Finish|[A-Za-z]{0,9}",
        params in prop_oneof![any::<String>(), "[A-Za-z ()\"+-]{0,40}", "Loire|France|lies|1 \\+ 2"],
        earlier in any::<String>(),
    ) {
        let trajectory = history(&[("Retrieve", "Loire"), ("Lookup", &earlier), ("Lookup", &params)]);
        let observation = observe(&tool, &params, &trajectory);
        prop_assert!(!observation.text.is_empty() && observation.text.len() <= 1200);
        prop_assert!(!observation.text.contains('\n'));
    }
}

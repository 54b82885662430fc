use std::sync::Arc;

use autoact_tools::{Corpus, Page};

use super::*;

fn pages() -> Pages {
    let page = |(title, text): (&str, &str)| Page { title: title.to_owned(), text: text.to_owned() };
    let all = [
        ("Tansley Court", "The office manager of a court is its deputy head, too. The call sign and the extension say so."),
        ("Ada Lind", "Her extension is 130. It is in use. She knows."),
        ("Faculty of Arts and Crafts", "The department grew. Its extension is 131."),
        ("St Osk", "The department closed. A terminus, a zone and an engineer."),
        ("Knots", "A page. It is short."),
    ];
    Pages::new(Arc::new(Corpus::from_pages(all.map(page).to_vec()).unwrap())).described("Questions about courts, people and departments")
}

/// What a sentence on the first page, or on Ada Lind's, answers: `question -> answer`.
fn of(page: usize, sentence: &str) -> Vec<String> {
    let pages = pages();
    let title = &pages.all()[page].title;
    Reader::of(page, &pages, &Lexicon::of(&pages))
        .asked(sentence)
        .into_iter()
        .map(|one| format!("{} -> {}", one.around.join(title), one.answer))
        .collect()
}

#[track_caller]
fn answers(page: usize, sentence: &str, expected: &[&str]) {
    let found = of(page, sentence);
    for one in expected {
        assert!(found.iter().any(|other| other == one), "`{sentence}` gives {found:#?}, expected `{one}`");
    }
    assert_eq!(found.is_empty(), expected.is_empty(), "`{sentence}` gives {found:#?}");
}

#[test]
fn what_was_done_to_it_is_asked_by_when_where_and_who() {
    answers(
        0,
        "Tansley Court was built in 1912.",
        &["When was Tansley Court built? -> 1912", "In which year was Tansley Court built? -> 1912"],
    );
    answers(0, "Built 1912 by Ada Lind, of brick.", &["When was Tansley Court built? -> 1912", "Who built Tansley Court? -> Ada Lind"]);
    answers(
        0,
        "It is held in the Faculty of Arts and Crafts on Mondays.",
        &["Where is Tansley Court held? -> Faculty of Arts and Crafts", "On which day is Tansley Court held? -> Mondays"],
    );
    answers(
        0,
        "It is taught by Dr. Minna Voss.",
        &[
            "Who is the teacher of Tansley Court? -> Dr Minna Voss",
            "Who teaches Tansley Court? -> Dr Minna Voss",
            "Who is Tansley Court taught by? -> Dr Minna Voss",
        ],
    );
    answers(0, "It was set up in April 2004.", &["When was Tansley Court set up? -> April 2004"]);
    answers(0, "It is named after Minna Tansley.", &["Who is Tansley Court named after? -> Minna Tansley"]);
    answers(0, "It was built of larch in 1908.", &["What was Tansley Court built of? -> larch", "When was Tansley Court built? -> 1908"]);
}

#[test]
fn what_it_does_is_asked_with_does_and_did() {
    answers(1, "Ada Lind comes from St Osk.", &["Where does Ada Lind come from? -> St Osk"]);
    answers(1, "She works in Tansley Court, upstairs.", &["Where does Ada Lind work? -> Tansley Court"]);
    answers(1, "She reports to Bo Ek.", &["Who does Ada Lind report to? -> Bo Ek"]);
    answers(1, "She joined the college in 2004.", &["When did Ada Lind join the college? -> 2004"]);
    answers(1, "She grew up in St Osk.", &["Where did Ada Lind grow up? -> St Osk"]);
    answers(1, "Joined the company in 1988.", &["When did Ada Lind join the company? -> 1988"]);
    answers(1, "She holds the post of Data Engineer.", &["What is the post of Ada Lind? -> Data Engineer"]);
    answers(1, "She carries badge QT-8063.", &["What badge does Ada Lind carry? -> QT-8063"]);
    answers(1, "Speaks Low Vesk.", &["What does Ada Lind speak? -> Low Vesk"]);
    answers(0, "It earns 11 credits.", &["How many credits does Tansley Court earn? -> 11"]);
}

#[test]
fn who_asks_for_people_and_what_for_things() {
    let asked = |page: usize, sentence: &str| -> Vec<String> { of(page, sentence).into_iter().map(|one| one[..4].to_owned()).collect() };
    assert_eq!(asked(0, "It honours Ada Lind."), ["Who "], "she is a person");
    assert_eq!(asked(1, "She runs Knots."), ["What"], "it is a thing");
    assert_eq!(asked(1, "She reports to Bo Ek."), ["What", "Who "], "no page tells");
    answers(0, "It was opened in May.", &["When was Tansley Court opened? -> May", "In which month was Tansley Court opened? -> May"]);
}

#[test]
fn what_it_is_and_has_is_asked_by_the_noun() {
    answers(0, "Its main building is St Osk.", &["What is Tansley Court's main building? -> St Osk"]);
    answers(0, "The head of Tansley Court is Ada Lind.", &["Who is the head of Tansley Court? -> Ada Lind"]);
    answers(0, "Tansley Court's price is 12 crowns.", &["What is the price of Tansley Court? -> 12 crowns"]);
    answers(0, "It is 99 metres long.", &["How long is Tansley Court? -> 99 metres"]);
    answers(0, "It has 12 floors and a lift.", &["How many floors does Tansley Court have? -> 12"]);
    answers(0, "The course earns 11 credits.", &["How many credits does Tansley Court earn? -> 11"]);
    answers(0, "There are 19 places.", &["How many places does Tansley Court have? -> 19"]);
    answers(1, "Birth year 1955.", &["When was Ada Lind born? -> 1955"]);
    answers(0, "It is worth 6 credits.", &["How many credits is Tansley Court worth? -> 6"]);
    answers(1, "She is a member of the Faculty of Arts and Crafts.", &["What is Ada Lind a member of? -> Faculty of Arts and Crafts"]);
    answers(1, "She has been with the company since 2003.", &["Since when has Ada Lind been with the company? -> 2003"]);
    answers(0, "Ada Lind gives this course.", &["Who gives Tansley Court? -> Ada Lind"]);
}

#[test]
fn every_clause_about_the_page_is_read() {
    answers(
        0,
        "It was opened in 2009 and weighs about 6 kg, and its price is 12 crowns.",
        &[
            "When was Tansley Court opened? -> 2009",
            "How much does Tansley Court weigh? -> 6 kg",
            "What is the weight of Tansley Court? -> 6 kg",
            "What is the price of Tansley Court? -> 12 crowns",
        ],
    );
    answers(
        0,
        "It has four floors, 142 desks and a lift.",
        &["How many floors does Tansley Court have? -> four", "How many desks does Tansley Court have? -> 142"],
    );
    answers(0, "The sauna is hot; built in 1912.", &["When was Tansley Court built? -> 1912"]);
    answers(0, "Zone: B. Opened: 1911.", &["What is the zone of Tansley Court? -> B", "When was Tansley Court opened? -> 1911"]);
    // whose rails and baths they are stays open
    answers(0, "The hall is long and baths fill it.", &[]);
}

#[test]
fn parts_of_the_name_and_nouns_stand_for_the_page() {
    answers(1, "Ada joined in 2004.", &["When did Ada Lind join? -> 2004"]);
    answers(1, "Ada Lind, a physicist, was hired in 2008.", &["When was Ada Lind hired? -> 2008"]);
    answers(1, "Ada Lind, born in St Osk, is well.", &["Where was Ada Lind born? -> St Osk"]);
    answers(0, "The court belongs to St Osk.", &["What does Tansley Court belong to? -> St Osk"]);
    answers(2, "The department goes by Ada Lind and was founded in 1971.", &["When was Faculty of Arts and Crafts founded? -> 1971"]);
    // a page that does not say it of itself
    answers(1, "The department was founded in 1971.", &["When was the department of Ada Lind founded? -> 1971"]);
    answers(1, "I came in 2018.", &["When did Ada Lind come? -> 2018"]);
}

#[test]
fn sentences_about_others_tell_of_the_page() {
    answers(0, "Bo Ek looks after it.", &["Who looks after Tansley Court? -> Bo Ek"]);
    answers(0, "Bo Ek has looked after the court for years.", &["Who has looked after Tansley Court? -> Bo Ek"]);
    answers(0, "Ada Lind drew it in 1903.", &["Who drew Tansley Court? -> Ada Lind", "When was Tansley Court drawn? -> 1903"]);
    answers(0, "Bo Ek is the office manager.", &["Who is the office manager of Tansley Court? -> Bo Ek"]);
    answers(0, "Bo Ek is deputy head of the court.", &["Who is the deputy head of Tansley Court? -> Bo Ek"]);
    answers(0, "Ada Lind has been its head since 2010.", &["Who is Tansley Court's head? -> Ada Lind"]);
    answers(0, "Office manager Priit Sool keeps the list.", &["Who is the office manager of Tansley Court? -> Priit Sool"]);
    answers(0, "Its roof is held up by Bo Ek.", &["Who is Tansley Court's roof held up by? -> Bo Ek"]);
    answers(0, "The roof was replaced in 1950.", &["When was the roof of Tansley Court replaced? -> 1950"]);
    answers(0, "The nearest stop is called Stocznia.", &["What is the nearest stop of Tansley Court? -> Stocznia"]);
    answers(1, "You reach her on extension 210.", &["What is the extension of Ada Lind? -> 210"]);
    answers(1, "She leads its 8 members.", &["How many members does Ada Lind have? -> 8"]);
}

#[test]
fn what_somebody_has_done_is_asked_by_since_when() {
    answers(1, "She has since joined Tansley Court.", &["What does Ada Lind join? -> Tansley Court"]);
    answers(
        1,
        "She has headed St Osk since 2013.",
        &["Since when has Ada Lind headed St Osk? -> 2013", "What does Ada Lind head? -> St Osk"],
    );
    answers(
        1,
        "She has been a member of St Osk since 2018.",
        &["Since when has Ada Lind been a member of St Osk? -> 2018", "What is Ada Lind a member of? -> St Osk"],
    );
    answers(1, "She is an engineer in St Osk.", &["Where is Ada Lind an engineer? -> St Osk"]);
    answers(0, "It is a river in St Osk.", &["Where is Tansley Court? -> St Osk"]);
}

#[test]
fn measures_are_asked_by_their_adjective_and_their_noun() {
    answers(0, "It is 99 metres long.", &["How long is Tansley Court? -> 99 metres", "What is the length of Tansley Court? -> 99 metres"]);
    answers(0, "The gravel is 40 centimetres deep.", &["How deep is the gravel of Tansley Court? -> 40 centimetres"]);
    answers(
        0,
        "It costs 3800 euros.",
        &["How much does Tansley Court cost? -> 3800 euros", "What is the price of Tansley Court? -> 3800 euros"],
    );
    answers(0, "It is sold for 1480 euros.", &["What is the price of Tansley Court? -> 1480 euros"]);
    answers(0, "It runs for 240 days.", &["How long does Tansley Court run? -> 240 days"]);
}

#[test]
fn what_most_pages_measure_once_is_a_measure_of_the_page() {
    let page = |at: usize| {
        let bench = if at == 0 { " A bench by it is 2 metres long." } else { "" };
        Page { title: format!("Tree {at}"), text: format!("The stem is old. No more than {at} metres tall, it is rare.{bench}") }
    };
    let pages = Pages::new(Arc::new(Corpus::from_pages((0..6).map(page).collect()).unwrap()));
    let lexicon = Lexicon::of(&pages);
    let of =
        |sentence: &str| Reader::of(0, &pages, &lexicon).asked(sentence).into_iter().map(|one| one.around.join("it")).collect::<Vec<_>>();
    assert_eq!(of("No more than 0 metres tall, it is rare."), ["How tall is it?", "What is the height of it?"]);
    assert_eq!(of("A bench by it is 2 metres long."), [""; 0]);
}

#[test]
fn lines_without_a_verb_are_read() {
    answers(
        0,
        "Oldest office, opened 1899, 4 tracks.",
        &["When was Tansley Court opened? -> 1899", "How many tracks does Tansley Court have? -> 4"],
    );
    answers(0, "Terminus of St Osk.", &["What is Tansley Court the terminus of? -> St Osk"]);
    answers(0, "In use since 1903.", &["Since when has Tansley Court been in use? -> 1903"]);
    answers(0, "Zone C", &["What is the zone of Tansley Court? -> C"]);
    answers(0, "Takes 165 passengers.", &["How many passengers does Tansley Court take? -> 165"]);
    answers(0, "Call extension 140.", &["What is the extension of Tansley Court? -> 140"]);
}

#[test]
fn lines_with_a_key_are_read_like_sentences() {
    answers(0, "Room: C2", &["What is the room of Tansley Court? -> C2"]);
    answers(0, "Members: 56", &["How many members does Tansley Court have? -> 56"]);
    answers(1, "Hired: 2011", &["When was Ada Lind hired? -> 2011"]);
    answers(1, "Joined: 1986", &["When did Ada Lind join? -> 1986"]);
    answers(1, "Year hired: 1986", &["When was Ada Lind hired? -> 1986"]);
    answers(1, "At the college since: 2007", &["Since when has Ada Lind been at the college? -> 2007"]);
    answers(1, "Year of birth: 1955", &["When was Ada Lind born? -> 1955", "What is Ada Lind's year of birth? -> 1955"]);
    answers(0, "Number of floors: 12", &["How many floors does Tansley Court have? -> 12"]);
    answers(0, "Taught by: Ada Lind", &["Who taught Tansley Court? -> Ada Lind", "Who teaches Tansley Court? -> Ada Lind"]);
    answers(0, "Meets at: St Osk", &["Where does Tansley Court meet? -> St Osk"]);
    answers(1, "From: St Osk", &["Where does Ada Lind come from? -> St Osk"]);
    answers(1, "Faculty / institute: Faculty of Arts and Crafts", &["What is Ada Lind's faculty? -> Faculty of Arts and Crafts"]);
}

#[test]
fn a_name_stands_in_for_the_answer_in_longer_questions() {
    let pages = pages();
    let named: Vec<String> = Reader::of(0, &pages, &Lexicon::default())
        .asked("It is taught by Ada Lind.")
        .into_iter()
        .filter_map(|one| Some(one.named?.join("X")))
        .collect();
    assert_eq!(named, ["the one who teaches X", "the one who teaches X", "the teacher of X"]);
    let named: Vec<String> = Reader::of(0, &pages, &Lexicon::default())
        .asked("Its main building is St Osk.")
        .into_iter()
        .filter_map(|one| Some(one.named?.join("X")))
        .collect();
    assert_eq!(named, ["the main building of X"]);
}

#[test]
fn what_is_not_understood_is_left_alone() {
    for sentence in [
        "",
        "It.",
        "Herring hung here until 1958; on damp days you can still smell it.",
        "If you arrive by bus, you arrive at the North Gate.",
        "You will see them.",
        "Tansley Court is one of several.",
        "It is red.",
        "Is it? Was it?",
        "It was built by it.",
        "It was given to the city of Bremen.",
        "It stands for Trams and Ferries.",
        "It used to be a boatyard.",
        "Its planks were last renewed in 2016.",
        "The coffee is ground by hand.",
        "Pipes under the gratings hold the air.",
        "Dried plants outlast everyone.",
        "Salt, light, heat: whatever can be measured.",
        "No depot: nothing may be left here.",
        "Parking is tight: 22 spaces.",
        "Nobody is deputy head.",
        "It cut them to carry rain.",
        "She plans to retire.",
        "She has never lost an anchor.",
        "For 32 years she led it.",
        "Room for 38 cars.",
        "It speaks Italian, Slovene and German.",
        ": ",
    ] {
        answers(0, sentence, &[]);
    }
}

#[test]
fn a_sentence_without_an_end_is_not_read() {
    let list = "Bo Ek and Ada Lind, who has 12 floors and 4 desks, ".repeat(20_000);
    answers(0, &format!("{list} look after it."), &[]);
    answers(0, &"it is of 4 the and ".repeat(20_000), &[]);
}

/// Words of every kind that the reader tells apart, in any order: it never panics, and an answer is
/// made of the sentence's own words.
#[test]
fn answers_are_words_of_the_sentence_whatever_it_says() {
    const WORDS: [&str; 50] = [
        "Tansley",
        "Court",
        "Ada",
        "Lind",
        "Lind's",
        "The",
        "the",
        "a",
        "Its",
        "She",
        "is",
        "was",
        "has",
        "been",
        "built",
        "Built",
        "held",
        "holds",
        "by",
        "in",
        "of",
        "and",
        "since",
        "up",
        "1912",
        "11",
        "metres",
        "long",
        "credits",
        "Mondays",
        "April",
        "head:",
        "of.",
        "this,",
        "it",
        "it;",
        "four",
        "now",
        "about",
        "weighs",
        "looks",
        "after",
        "leads",
        "court",
        "extension",
        "deputy",
        "tall",
        "Zone",
        "costs",
        "called",
    ];
    let pages = pages();
    let lexicon = Lexicon::of(&pages);
    let mut rng = autoact_base::random::Rng::new(7);
    let mut understood = 0;
    for _ in 0..20_000 {
        let sentence: Vec<&str> = (0..=rng.below(8)).filter_map(|_| rng.pick(&WORDS).copied()).collect();
        let sentence = sentence.join(" ");
        for one in Reader::of(0, &pages, &lexicon).asked(&sentence) {
            understood += 1;
            assert!(one.around[1].ends_with('?'), "`{sentence}` gives {one:?}");
            let plain = autoact_score::normalize(&sentence);
            assert!(crate::filter::within(&autoact_score::normalize(&one.answer), &plain), "`{sentence}` gives {one:?}");
        }
    }
    assert!(understood > 1000, "{understood}");
}

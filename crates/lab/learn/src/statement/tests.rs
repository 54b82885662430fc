use std::sync::Arc;

use autoact_tools::{Corpus, Page};

use super::*;

fn pages() -> Pages {
    let page = |title: &str| Page { title: title.to_owned(), text: "A page.".to_owned() };
    let titles = ["Tansley Court", "Ada Lind", "Faculty of Arts and Crafts", "St Osk", "Knots"];
    Pages::new(Arc::new(Corpus::from_pages(titles.map(page).to_vec()).unwrap()))
}

/// What a sentence on the first page, or on Ada Lind's, answers: `question -> answer`.
fn of(page: usize, sentence: &str) -> Vec<String> {
    let pages = pages();
    let title = &pages.all()[page].title;
    asked(sentence, page, &pages).into_iter().map(|one| format!("{} -> {}", one.around.join(title), one.answer)).collect()
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
        &["Who teaches Tansley Court? -> Dr Minna Voss", "Who is Tansley Court taught by? -> Dr Minna Voss"],
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
    answers(0, "Bo Ek looks after it.", &[]);
    answers(1, "Speaks Low Vesk.", &["What does Ada Lind speak? -> Low Vesk"]);
    answers(0, "It earns 11 credits.", &["How many credits does Tansley Court earn? -> 11"]);
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
    let named: Vec<String> =
        asked("It is taught by Ada Lind.", 0, &pages).into_iter().filter_map(|one| Some(one.named?.join("X"))).collect();
    assert_eq!(named, ["the one who teaches X", "the one who teaches X"]);
    let named: Vec<String> =
        asked("Its main building is St Osk.", 0, &pages).into_iter().filter_map(|one| Some(one.named?.join("X"))).collect();
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
        "The roof was replaced in 1950.",
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
        ": ",
    ] {
        answers(0, sentence, &[]);
    }
}

/// Words of every kind that the reader tells apart, in any order: it never panics, and an answer is
/// made of the sentence's own words.
#[test]
fn answers_are_words_of_the_sentence_whatever_it_says() {
    const WORDS: [&str; 34] = [
        "Tansley", "Court", "Ada", "Lind", "Lind's", "The", "the", "a", "Its", "She", "is", "was", "has", "been", "built", "Built", "held",
        "holds", "by", "in", "of", "and", "since", "up", "1912", "11", "metres", "long", "credits", "Mondays", "April", "head:", "of.",
        "this,",
    ];
    let pages = pages();
    let mut rng = autoact_base::random::Rng::new(7);
    let mut understood = 0;
    for _ in 0..20_000 {
        let sentence: Vec<&str> = (0..=rng.below(8)).filter_map(|_| rng.pick(&WORDS).copied()).collect();
        let sentence = sentence.join(" ");
        for one in asked(&sentence, 0, &pages) {
            understood += 1;
            assert!(one.around[1].ends_with('?'), "`{sentence}` gives {one:?}");
            let plain = autoact_score::normalize(&sentence);
            assert!(crate::filter::within(&autoact_score::normalize(&one.answer), &plain), "`{sentence}` gives {one:?}");
        }
    }
    assert!(understood > 1000, "{understood}");
}

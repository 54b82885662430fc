use std::sync::Arc;

use autoact_tools::{Corpus, Page};

use super::*;

fn pages() -> Pages {
    let people = [("Ada Lind", "Law", "Bo Ek", "310"), ("Bo Ek", "Sales", "Cy Fox", "427"), ("Cy Fox", "Law", "Ada Lind", "598")];
    let people = people.map(|(name, department, mentor, extension)| {
        let text =
            format!("{name} works here.\nThe department is {department}.\nThe mentor is {mentor}.\nThe phone extension is {extension}.");
        Page { title: name.to_owned(), text }
    });
    let departments = [("Law", "Cy Fox", "Bergen", 1999), ("Sales", "Ada Lind", "Oslo", 2004)].map(|(name, head, town, year)| {
        let text = format!(
            "{name} is a department.\nThe head is {head}.\nThe town is {town}.\nThe yearly budget is 1200 euros.\n\
             It was set up in {year}.\nThe code is 5020.\nOld Eve chairs it."
        );
        Page { title: name.to_owned(), text }
    });
    Pages::new(Arc::new(Corpus::from_pages(people.into_iter().chain(departments).collect()).unwrap()))
}

fn example(question: &str, answer: &str) -> Example {
    Example { question: question.into(), answer: answer.into(), options: Vec::new() }
}

fn parts(question: &str, answer: &str) -> Option<Vec<Part>> {
    Form::of(&example(question, answer), &pages(), |word| word == "which").map(|form| form.parts)
}

fn text(text: &str) -> Part {
    Part::Text(text.into())
}

fn relation(words: &str) -> Part {
    Part::Relation(words.into())
}

#[test]
fn an_example_is_split_into_what_stays_names_and_relations() {
    let asked = parts("What is the phone extension of Ada Lind?", "310");
    assert_eq!(asked, Some(vec![text("What is the "), relation("phone extension"), text(" of "), Part::Name(0), text("?")]));
    // forms of a word count as the word
    let asked = parts("Who heads the department of Ada Lind, please?", "Cy Fox");
    let expected = [text("Who "), relation("heads"), text(" the "), relation("department"), text(" of "), Part::Name(0), text(", please?")];
    assert_eq!(asked, Some(expected.to_vec()));
    // what no page says stays
    let asked = parts("Which is older, Ada Lind or Bo Ek?", "Bo Ek");
    assert_eq!(asked, Some(vec![text("Which is older, "), Part::Name(0), text(" or "), Part::Name(1), text("?")]));
    assert_eq!(parts("What is the phone extension?", "310"), None, "it names no page");
}

/// Whether the grammar of some draw accepts `reply`.
fn some_draw_accepts(examples: &[Example], reply: &str) -> bool {
    some_draw_of(&pages(), examples, reply)
}

/// The same over these pages.
fn some_draw_over(pages: &[(&str, &str)], examples: &[Example], reply: &str) -> bool {
    let all = pages.iter().map(|(title, text)| Page { title: (*title).into(), text: (*text).into() }).collect();
    some_draw_of(&Pages::new(Arc::new(Corpus::from_pages(all).unwrap())), examples, reply)
}

fn some_draw_of(pages: &Pages, examples: &[Example], reply: &str) -> bool {
    some_draw_from(&Forms::of(examples, pages), pages, reply)
}

/// The same where no sentence is understood.
fn some_draw_of_untold(examples: &[Example], reply: &str) -> bool {
    let pages = pages();
    some_draw_from(&Forms::with(examples, &pages, |_, _| Stated::default()), &pages, reply)
}

fn some_draw_from(forms: &Forms, pages: &Pages, reply: &str) -> bool {
    let mut rng = Rng::new(1);
    (0..800).filter_map(|_| forms.draw(pages, |_| false, true, &mut rng)).any(|blank| {
        assert!(blank.pages.iter().all(|page| *page < pages.all().len()));
        regex::Regex::new(&format!("^{}$", blank.grammar)).unwrap().is_match(reply)
    })
}

#[test]
fn questions_have_other_names_and_other_words_of_the_pages() {
    let one = [example("What is the phone extension of Ada Lind?", "310")];
    for reply in [
        " What is the phone extension of Bo Ek?\nAnswer: 427\n",
        " What is the phone of Cy Fox?\nAnswer: 598\n",
        // `what` asks for anything
        " What is the mentor of Cy Fox?\nAnswer: Ada Lind\n",
        " What is the yearly budget of Sales?\nAnswer: 1200 euros\n",
    ] {
        assert!(some_draw_of_untold(&one, reply), "{reply}");
    }
    for reply in [
        " What is the exten of Bo Ek?\nAnswer: 427\n",
        " What is the phone extension of Bo Ek?\nAnswer: 598\n",
        " What is the mentor of Cy Fox?\nAnswer: Ada\n",
        " What is the phone extension of Dee Gray?\nAnswer: 427\n",
    ] {
        assert!(!some_draw_of_untold(&one, reply), "{reply}");
    }
    let year = [example("When was Law set up?", "1999")];
    assert!(some_draw_of_untold(&year, " When was Sales set up?\nAnswer: 2004\n"));
    assert!(!some_draw_of_untold(&year, " When was Sales code?\nAnswer: 5020\n"), "no year");
    // a name at the beginning of a sentence is a name, and whole
    let told = [example("In which town is Law?", "Bergen")];
    assert!(some_draw_of_untold(&told, " In which chairs is Sales?\nAnswer: Old Eve\n"));
    assert!(!some_draw_of_untold(&told, " In which chairs is Sales?\nAnswer: Eve\n"));
    let name = [example("Who is the mentor of Ada Lind?", "Bo Ek")];
    assert!(some_draw_of_untold(&name, " Who is the head of Sales?\nAnswer: Ada Lind\n"));
    assert!(!some_draw_of_untold(&name, " Who is the department of Bo Ek?\nAnswer: Sales\n"), "no person");
    let budget = [example("What is the budget of Law?", "1200 euros")];
    assert!(some_draw_of_untold(&budget, " What is the yearly budget of Sales?\nAnswer: 1200 euros\n"));
}

#[test]
fn in_prose_an_example_keeps_its_words() {
    let beside = "\nSo it goes.\nOn and on, from bad to worse.\nNot that anybody minds.\nAnd then the rain.";
    let prose = |page: &Page| Page { title: page.title.clone(), text: format!("{}{beside}", page.text) };
    let prose = Pages::new(Arc::new(Corpus::from_pages(pages().all().iter().map(prose).collect()).unwrap()));
    let accepts = |examples: &[Example], reply: &str| some_draw_of(&prose, examples, reply);
    let one = [example("What is the phone extension of Ada Lind?", "310")];
    assert!(accepts(&one, " What is the phone extension of Bo Ek?\nAnswer: 427\n"));
    assert!(accepts(&one, " What is Cy Fox's mentor?\nAnswer: Ada Lind\n"), "it is stated");
    assert!(!accepts(&one, " What is the phone of Cy Fox?\nAnswer: 598\n"));
    let told = [example("In which town is Law?", "Bergen")];
    assert!(accepts(&told, " In which town is Sales?\nAnswer: Oslo\n"));
    assert!(!accepts(&told, " In which chairs is Sales?\nAnswer: Old Eve\n"));
    // both have the same budget, so nothing decides which
    let compared = [example("Which has a larger budget, Law or Sales?", "Law")];
    assert!(!accepts(&compared, " Which has a larger budget, Sales or Law?\nAnswer: Sales\n"));
}

#[test]
fn an_answer_is_what_a_sentence_states() {
    let lands = [
        ("Norla", "Norla is a land. People there pay with the red crown, its currency. Its capital is Lin."),
        ("Sula", "Sula is a land. The currency is the blue crown. Its capital is Osk."),
        ("Tila", "Tila is a land. Its currency is the green crown, of old. Its capital is Arl."),
    ];
    let one = [example("Which currency has Sula?", "blue crown")];
    let asked = |answer: &str| some_draw_over(&lands, &one, &format!(" Which currency has Tila?\nAnswer: {answer}\n"));
    assert_eq!(["green crown", "of old", "green crown of old"].map(asked), [true, false, false]);
}

#[test]
fn a_month_is_asked_for_months() {
    let plants = [
        ("Weld", "Weld is a plant. It blooms in June beside Mill Gate."),
        ("Woad", "Woad is a plant. It was sown by Ada Lind. It blooms in May beside Mill Gate."),
        ("Rue", "Rue is a plant. It blooms in August."),
    ];
    let one = [example("In which month does Weld bloom?", "June")];
    let asked = |answer: &str| some_draw_over(&plants, &one, &format!(" In which month does Woad bloom?\nAnswer: {answer}\n"));
    assert_eq!(["May", "Mill Gate", "Ada Lind"].map(asked), [true, false, false]);
    // a verb in this place has no ending, and pages have few of those
    for verb in ["blooms", "sown", "beside"] {
        let any = ["May", "August", "Ada Lind", "Mill Gate"].map(|answer| format!(" In which month does Woad {verb}?\nAnswer: {answer}\n"));
        assert!(!any.iter().any(|reply| some_draw_over(&plants, &one, reply)), "{verb}");
    }
}

#[test]
fn a_form_of_our_own_asks_for_what_no_example_asks_for() {
    let one = [example("Does Ada Lind work in Law?", "yes")];
    for reply in [
        " What is the phone extension of Bo Ek?\nAnswer: 427\n",
        " What is the town of Sales?\nAnswer: Oslo\n",
        " What is the town of the department of Bo Ek?\nAnswer: Oslo\n",
    ] {
        assert!(some_draw_accepts(&one, reply), "{reply}");
    }
    assert!(!some_draw_accepts(&[], " What is the town of Sales?\nAnswer: Oslo\n"), "no example has a form");
}

#[test]
fn words_beside_a_relation_go_with_it() {
    let asked = parts("What is the internal code number of Law?", "5020");
    assert_eq!(asked, Some(vec![text("What is the "), relation("internal code number"), text(" of "), Part::Name(0), text("?")]));
    let asked = parts("What extension has the mentor of Ada Lind?", "427");
    let expected = [text("What "), relation("extension"), text(" has the "), relation("mentor"), text(" of "), Part::Name(0), text("?")];
    assert_eq!(asked, Some(expected.to_vec()));
    assert_eq!(parts("How many years after Law was Sales set up?", "5"), None, "what is on no page");
}

#[test]
fn questions_that_are_there_are_not_asked_again() {
    let pages = pages();
    let forms = Forms::of(&[example("Is Bo Ek in the department Sales?", "yes")], &pages);
    let mut rng = Rng::new(1);
    let asked = |taken: &str, rng: &mut Rng| {
        (0..400)
            .filter_map(|_| forms.draw(&pages, |question| question == taken, true, rng))
            .filter(|blank| blank.grammar.contains("Bo Ek in"))
            .count()
    };
    assert!(asked("", &mut rng) > asked("Is Bo Ek in the department Sales?", &mut rng));
}

#[test]
fn keys_and_their_values_are_read() {
    let page = |title: &str, text: &str| Page { title: title.to_owned(), text: text.to_owned() };
    let all = vec![page("Logic", "Taught by: Ann Bell\nRoom number: B12"), page("Ethics", "Taught by: Guy Dent\nRoom number: C7")];
    let pages = Pages::new(Arc::new(Corpus::from_pages(all).unwrap()));
    let forms = Forms::of(&[example("Who teaches Logic?", "Ann Bell")], &pages);
    let mut rng = Rng::new(1);
    let grammars: Vec<String> = (0..200).filter_map(|_| forms.draw(&pages, |_| false, true, &mut rng)).map(|blank| blank.grammar).collect();
    let accepts = |reply: &str| grammars.iter().any(|grammar| regex::Regex::new(&format!("^{grammar}$")).unwrap().is_match(reply));
    assert!(accepts(" Who teaches Ethics?\nAnswer: Guy Dent\n"));
    assert!(accepts(" What is the room number of Ethics?\nAnswer: C7\n"));
    assert!(!accepts(" Who teaches Ethics?\nAnswer: Taught by Guy Dent\n"));
}

#[test]
fn answers_to_the_same_relation_have_its_unit() {
    let lines = [
        ("Line 2", "From Lomgate to Pellin Hill, 8.7 km, 19 stops."),
        ("Line 7", "From Ashmoor to Quarry End, 9.8 km, 17 stops. Cars are from Fenner Road."),
        ("Line 8", "From Lomgate to Airfield, 16.9 km, 21 stops."),
    ];
    let one = [example("How long is Line 2?", "8.7 km")];
    assert!(some_draw_over(&lines, &one, " How long is Line 7?\nAnswer: 9.8 km\n"));
    assert!(some_draw_over(&lines, &one, " How long is Line 8?\nAnswer: 16.9 km\n"));
    for answer in ["17 stops", "Fenner Road", "17", "km"] {
        assert!(!some_draw_over(&lines, &one, &format!(" How long is Line 7?\nAnswer: {answer}\n")), "{answer}");
    }
}

#[test]
fn words_of_grammar_and_what_is_counted_name_no_relation() {
    let halls = [
        ("Saltmarket", "The hall is of 1959, after the fire. Opened by Ada Lind. Fare 2 crowns a person. Cost 3 million florins."),
        ("Lomgate", "The hall is of 1908, after the flood. Opened by Bo Ek. Fare 3 crowns a person. Cost 4 million florins."),
        ("Ashmoor", "The hall is of 1899, after the war. Opened by Cy Fox. Fare 5 crowns a person. Cost 9 million florins."),
    ];
    let asked = [example("What is the hall of Saltmarket?", "1959")];
    let some = |reply: &str| some_draw_over(&halls, &asked, reply);
    assert!(some(" What is the hall of Lomgate?\nAnswer: 1908\n"));
    for relation in ["after", "opened", "crowns", "florins"] {
        let asks = ["Lomgate", "Ashmoor"].iter().any(|name| {
            ["1908", "flood", "Bo Ek", "3", "3 crowns", "4", "4 million florins"]
                .iter()
                .any(|answer| some(&format!(" What is the {relation} of {name}?\nAnswer: {answer}\n")))
        });
        assert!(!asks, "{relation}");
    }
}

#[test]
fn a_longer_name_that_begins_like_the_pages_own_is_whole() {
    let page = |title: &str, text: &str| Page { title: title.to_owned(), text: text.to_owned() };
    let all = vec![page("Law", "Law belongs to the Law Office."), page("Law Office", "The Law Office was opened in 1999.")];
    let pages = Pages::new(Arc::new(Corpus::from_pages(all).unwrap()));
    let answers = Answers::Any.within("Law belongs to the Law Office.", 0, false, &pages);
    assert_eq!(answers.into_iter().collect::<Vec<_>>(), ["Law Office"]);
}

#[test]
fn two_that_are_compared_need_no_further_pages() {
    let page = |title: &str, text: &str| Page { title: title.to_owned(), text: text.to_owned() };
    // the answer stands on a page that the first one leads to
    let all = vec![page("Ada", "It is near Cem."), page("Bix", "It is near 7 hills."), page("Cem", "It is near Bix.")];
    let pages = Pages::new(Arc::new(Corpus::from_pages(all).unwrap()));
    let forms = Forms { own: Vec::new(), stated: Stated::default(), ..Forms::of(&[example("Which is near, Ada or Bix?", "Bix")], &pages) };
    let mut rng = Rng::new(1);
    let drawn: Vec<Blank> = (0..100).filter_map(|_| forms.draw(&pages, |_| false, true, &mut rng)).collect();
    assert!(!drawn.is_empty() && drawn.iter().all(|blank| blank.pages.len() == 2));
}

#[test]
fn chains_comparisons_and_claims_have_pages_and_answers_of_their_kind() {
    let chain = [example("Who is the head of the department of Ada Lind?", "Cy Fox")];
    assert!(some_draw_accepts(&chain, " Who is the head of the department of Bo Ek?\nAnswer: Ada Lind\n"));
    let compared = [example("Which has a larger budget, Law or Sales?", "Law")];
    assert!(some_draw_of_untold(&compared, " Which has a larger budget, Sales or Law?\nAnswer: Sales\n"));
    assert!(!some_draw_of_untold(&compared, " Which has a larger budget, Sales or Law?\nAnswer: 1200\n"));
    // `Law` is a page, the town is none
    let told = [example("In which town is Law?", "Bergen")];
    assert!(some_draw_accepts(&told, " In which town is Sales?\nAnswer: Oslo\n"));
    assert!(!some_draw_accepts(&told, " In which town is Sales?\nAnswer: euros\n"));
    let claimed = [example("Is Cy Fox in the department Law?", "yes")];
    assert!(some_draw_accepts(&claimed, " Is Bo Ek in the department Sales?\nAnswer: yes\n"));
    assert!(some_draw_accepts(&claimed, " Is Bo Ek in the department Law?\nAnswer: no\n"));
    assert!(!some_draw_accepts(&claimed, " Is Bo Ek in the department Law?\nAnswer: Bo Ek\n"));
}

#[test]
fn a_word_of_names_is_one_of_relations_too() {
    let page = |title: &str, text: &str| Page { title: title.to_owned(), text: text.to_owned() };
    let all = vec![
        page("Ada Lind", "She works in the Law Department.\nHer mentor is Bo Ek."),
        page("Bo Ek", "He works in the Sales Department.\nHis mentor is Cy Fox."),
        page("Cy Fox", "He works in the Law Department.\nHis mentor is Ada Lind."),
        page("Law Department", "The head is Cy Fox, who comes from the Sales Department."),
        page("Sales Department", "The head is Ada Lind, who comes from the Law Department."),
    ];
    let pages = Pages::new(Arc::new(Corpus::from_pages(all).unwrap()));
    let examples = [
        example("Who is the head of the department of Ada Lind?", "Cy Fox"),
        example("Who is the head of the Sales Department?", "Ada Lind"),
        example("Does Bo Ek work in the Sales Department?", "yes"),
    ];
    let forms = Forms::of(&examples, &pages);
    let mut rng = Rng::new(1);
    let drawn: Vec<Blank> = (0..400).filter_map(|_| forms.draw(&pages, |_| false, true, &mut rng)).collect();
    let kept: Vec<&Blank> = drawn.iter().filter(|blank| blank.grammar.contains("head of the department of")).collect();
    assert!(!kept.is_empty() && kept.iter().all(|blank| blank.pages.len() == 2 && blank.pages[1] >= 3), "by a mentor: {kept:?}");
    // the sentence also names a department
    assert!(kept.iter().all(|blank| !blank.grammar.split_once("Answer:").unwrap().1.contains("Department")), "{kept:?}");
}

#[test]
fn beside_questions_in_another_language_there_are_none_of_ours() {
    let forms = Forms::of(&[example("Wie lautet die Durchwahl von Ada Lind?", "310")], &pages());
    assert!(!forms.is_empty() && forms.own.is_empty());
    let mut rng = Rng::new(1);
    let drawn: Vec<Blank> = (0..200).filter_map(|_| forms.draw(&pages(), |_| false, true, &mut rng)).collect();
    assert!(drawn.iter().all(|blank| blank.grammar.starts_with(" Wie lautet")), "{drawn:?}");
}

#[test]
fn what_decides_a_claim_makes_others_certain() {
    let earlier = [example("Did Law begin earlier than Sales?", "yes")];
    assert!(some_draw_accepts(&earlier, " Was Sales set up before Law?\nAnswer: no\n"));
    assert!(!some_draw_accepts(&earlier, " Was Sales set up before Law?\nAnswer: yes\n"));
    // what is claimed of one page need not be what the example claims
    let town = [example("Does Ada Lind work in Law?", "yes")];
    assert!(some_draw_accepts(&town, " Was Sales set up in 1999?\nAnswer: no\n"));
    assert!(!some_draw_accepts(&town, " Was Sales set up in 1999?\nAnswer: yes\n"));
}

#[test]
fn answers_that_could_be_guessed_are_left_out_where_there_are_enough() {
    let pages = pages();
    let examples = [example("Was Law set up before Sales?", "yes"), example("Who is the mentor of Ada Lind?", "Bo Ek")];
    let forms = Forms::of(&examples, &pages);
    let mut rng = Rng::new(2);
    let drawn: Vec<Blank> = (0..400).filter_map(|_| forms.draw(&pages, |_| false, false, &mut rng)).collect();
    assert!(drawn.len() > 100);
    assert!(drawn.iter().all(|blank| blank.values.is_empty() && !blank.grammar.contains("(no|yes)")), "{drawn:#?}");
}

#[test]
fn a_link_decides_no_comparison() {
    let pages = pages();
    let of = |question: &str| {
        let example = example(question, "yes");
        Answers::of(&example, &pages.named_in(question), &pages)
    };
    assert_eq!(of("Does Ada Lind work in Law?"), Answers::Claim { linked: Some(true) });
    assert_eq!(of("Is Ada Lind older than Law?"), Answers::Claim { linked: None });
    assert_eq!(of("Have Ada Lind and Law the same code?"), Answers::Claim { linked: None });
}

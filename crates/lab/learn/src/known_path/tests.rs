use autoact_trajectory::{Step, ToolSpec, Turn};

use super::*;
use crate::relation_words::telling;

fn entry(question: &str, answer: &str, pages: &[&str]) -> QuestionRecord {
    QuestionRecord {
        attempt: Some(0),
        question: question.into(),
        answer: Some(answer.into()),
        options: Vec::new(),
        pages: pages.iter().map(|page| (*page).to_owned()).collect(),
        formed: true,
        ..QuestionRecord::default()
    }
}

fn told(entry: QuestionRecord, values: &[&str]) -> QuestionRecord {
    let stated = values.iter().map(|value| StatedRecord { value: (*value).to_owned(), words: Vec::new() });
    QuestionRecord { stated: stated.collect(), ..entry }
}

fn path(entry: &QuestionRecord) -> KnownPath {
    let usual = "need the of is done not shown that answer compute".split(' ').map(str::to_owned).collect();
    let wording = Wording { usual, ..Wording::default() };
    KnownPath::of(entry, Metric::ExactMatch, telling(&entry.question), 6.0, &Arc::new(wording)).unwrap()
}

/// A history of thoughts, each with what was read then.
fn history(steps: &[(&str, &str)]) -> Trajectory {
    let step = |(thought, read): &(&str, &str)| {
        Turn::Step(Step { thought: (*thought).into(), observation: Some((*read).into()), ..Step::default() })
    };
    let tools = ["Retrieve", "Calculate", "Finish", "NotFound"].map(ToolSpec::new).to_vec();
    Trajectory { tools, turns: steps.iter().map(step).collect(), ..Trajectory::default() }
}

/// The same, and a thought whose tool waits for its parameters.
fn open(steps: &[(&str, &str)], thought: &str) -> Trajectory {
    let mut trajectory = history(steps);
    trajectory.turns.push(Turn::Step(Step { thought: thought.into(), tool: "Retrieve".into(), ..Step::default() }));
    trajectory
}

fn thought(thought: &str, tool: &str) -> Thought {
    Thought { thought: thought.into(), tool: tool.into() }
}

#[test]
fn what_a_question_does_not_say_is_hinted_at() {
    let chain = entry("Who heads the department of Pavel Ek?", "Nadia Haddad", &["Pavel Ek", "Sales Department"]);
    let hint = |text: &str, after: &str| Hint { text: text.into(), after: after.into() };
    assert_eq!(hints(&chain), [hint("Sales Department", "Pavel Ek"), hint("Nadia Haddad", "Sales Department")]);
    assert!(hints(&entry("Does Pavel Ek work in the Sales Department?", "yes", &["Pavel Ek", "Sales Department"])).is_empty());
    let compared = entry("Which is larger, the Graz Office or the Lyon Office?", "Lyon Office", &["Graz Office", "Lyon Office"]);
    assert!(hints(&compared).is_empty());
    assert_eq!(hints(&told(compared, &["40", "25"])), [hint("40", "Graz Office"), hint("25", "Lyon Office")]);
    assert!(hints(&QuestionRecord { answer: None, ..chain }).is_empty());
}

#[test]
fn a_chain_is_followed_page_by_page() {
    let chain = path(&entry("Who is the head of the department of Pavel Ek?", "Nadia Haddad", &["Pavel Ek", "Sales Department"]));
    let start = history(&[]);
    let accepts = |at: &Trajectory, text: &str, tool: &str| chain.accepts_thought(at, &thought(text, tool));
    assert!(accepts(&start, "Need the department of Pavel Ek.", "Retrieve"));
    assert!(!accepts(&start, "Need the department of Pavel.", "Retrieve"), "another name");
    assert!(!accepts(&start, "Need the depament of Pavel Ek.", "Retrieve"), "no word");
    assert!(!accepts(&start, "Pavel Ek is not shown.", "NotFound") && !accepts(&start, "Pavel Ek is the answer.", "Finish"));
    let asking = open(&[], "Need the department of Pavel Ek.");
    assert!(chain.accepts_params(&asking, "pavel ek", Some("No such page.")));
    assert!(!chain.accepts_params(&asking, "Ek", Some("No such page.")));
    assert!(!chain.accepts_params(&open(&[], "Need the department."), "Pavel Ek", Some("No such page.")), "nobody said it");

    let first = ("Need the department of Pavel Ek.", "Pavel Ek works in the Sales Department since 2010.");
    let second = history(&[first]);
    assert!(accepts(&second, "The department of Pavel Ek is the Sales Department. Need the head of the Sales Department.", "Retrieve"));
    assert!(!accepts(&second, "The department of Pavel Ek is not shown.", "Retrieve"));
    assert!(!accepts(&second, "The department of Pavel Ek is the Sales Department. Done.", "Finish"), "there is another page");
    let asking = open(&[first], "Need the head of Sales.");
    assert!(chain.accepts_params(&asking, "Sales", Some("The head of the Sales Department is Nadia Haddad.")));

    let next = ("The department is the Sales Department. Need the head of the Sales Department.", "Its head is Nadia Haddad.");
    let last = history(&[first, next]);
    assert!(accepts(&last, "The head of the Sales Department is Nadia Haddad.", "Finish"));
    assert!(!accepts(&last, "The head of the Sales Department is Nadia Haddad.", "Retrieve"), "all is known");
    assert!(!accepts(&last, "The head of the Sales Department is Pavel Ek.", "Finish"));
    assert!(chain.accepts_params(&last, "Nadia Haddad", None) && !chain.accepts_params(&last, "Nadia", None));
}

#[test]
fn a_script_without_spaces_has_no_words_to_be_known() {
    let path = path(&entry("東京の市長は誰ですか?", "山田花子", &["東京"]));
    let read = history(&[("東京を読みます。", "市長は山田花子です。")]);
    assert!(path.accepts_thought(&history(&[]), &thought("東京を読みます。", "Retrieve")));
    assert!(!path.accepts_thought(&history(&[]), &thought("大阪を読みます。", "Retrieve")));
    assert!(path.accepts_thought(&read, &thought("市長は山田花子です。", "Finish")));
}

#[test]
fn what_decides_may_be_computed_with() {
    let entry = entry("Was the Graz Office built before the Lyon Office?", "yes", &["Graz Office", "Lyon Office"]);
    let path = path(&told(entry, &["1990", "2010"]));
    let steps = [("Need the built of the Graz Office.", "Built in 1990."), ("Its built is 1990. Need the Lyon Office.", "It is of 2010.")];
    assert!(path.accepts_thought(&history(&steps), &thought("Built is 2010. Compute 1990.", "Calculate")));
    assert!(!path.accepts_thought(&history(&steps), &thought("Compute 1990.", "Calculate")), "not all is said");
    assert!(path.accepts_params(&open(&steps, "Compute 1990 < 2010."), "1990 < 2010", Some("true")));
    // a value counts as read once its page is named
    let early = history(&[("Need the Graz Office.", "Built in 1990, enlarged in 2010.")]);
    assert_eq!((path.seen(&early), path.seen(&history(&steps))), (1, 2));
}

#[test]
fn what_decides_is_called_by_its_name() {
    let built = StatedRecord { value: "1990".into(), words: vec!["built".into()] };
    let entry = entry("Which is older, the Graz Office or the Lyon Office?", "Graz Office", &["Graz Office", "Lyon Office"]);
    let path = path(&QuestionRecord { stated: vec![built.clone(), StatedRecord { value: "2010".into(), ..built }], ..entry });
    let read = history(&[("Need the Graz Office.", "Built in 1990.")]);
    let accepts = |text: &str| path.accepts_thought(&read, &thought(text, "Retrieve"));
    assert!(accepts("Graz Office is built 1990. Need the Lyon Office.") && !accepts("Graz Office is 1990. Need the Lyon Office."));
}

#[test]
fn a_thought_has_no_foreign_words() {
    let asked = entry("How deep is Heron Pond?", "2.3 metres", &["Heron Pond"]);
    let frame = HashSet::from(["need".to_owned()]);
    let wording = Arc::new(Wording { frame, ..Wording::default() });
    let path = KnownPath::of(&asked, Metric::ExactMatch, vec!["deep".into()], 6.0, &wording).unwrap();
    let words = ["How", "deep", "is", "Heron", "Pond", "need"].map(str::to_owned);
    let read = history(&[("Need: deep of Heron Pond.", "Heron Pond, of 1,250 m², is 2.3 metres deep.")]);
    let shown = ["of", "1,250", "m²", "2.3", "metres"].map(str::to_owned);
    assert_eq!(path.limit(&history(&[])), Some(WordLimit::new(words.clone())));
    let whole = WordLimit::new(words.into_iter().chain(shown)).with_whole(["2.3 metres".to_owned()]);
    assert_eq!(path.limit(&read), Some(whole));
}

#[test]
fn a_value_stands_alone() {
    let path = path(&entry("How tall is the head?", "40 metres", &["Head"]));
    let read = history(&[("Need the head.", "Head: The head of the mast is 40 metres tall.")]);
    let accepts = |text: &str| path.accepts_thought(&read, &thought(text, "Finish"));
    assert!(accepts("Head is 40 metres. Done.") && accepts("The head: 40 metres."));
    assert!(!accepts("Head is 40 metres tall. Done."), "what follows it there");
    assert!(!accepts("Head: mast 40 metres. Done."), "what comes before");
    assert!(!accepts("Head head head head head head: 40 metres. Done."), "in circles");
}

#[test]
fn a_thought_names_what_is_asked_for() {
    let path = path(&entry("Who is the head of the Sales Department?", "Nadia Haddad", &["Sales Department"]));
    let accepts = |text: &str| path.accepts_thought(&history(&[]), &thought(text, "Retrieve"));
    assert!(accepts("Need the head of the Sales Department.") && !accepts("Need the Sales Department."));
    let wording = Arc::new(Wording { frame: HashSet::from(["need".to_owned(), "look".to_owned()]), ..(*path.wording).clone() });
    let path = KnownPath { wording, ..path };
    let accepts = |text: &str| path.accepts_thought(&history(&[]), &thought(text, "Retrieve"));
    assert!(accepts("Need the head of Sales Department.") && !accepts("Need the head, need of Sales Department."));
    assert!(!accepts("Need the head, Sales Department's need."));
}

#[test]
fn rejected_parameters_bring_a_bias_on_the_right_ones() {
    let chain = path(&entry("Who is the head of the department of Pavel Ek?", "Nadia Haddad", &["Pavel Ek", "Sales Department"]));
    let word = |at: &Trajectory, rejected| chain.params_bias(at, rejected).into_iter().map(|bias| (bias.word, bias.bias)).next();
    let first = open(&[], "Need the department of Pavel.");
    assert_eq!(
        [word(&first, 0), word(&first, 1), word(&first, 9)],
        [None, Some(("Pavel Ek".into(), 3.0)), Some(("Pavel Ek".into(), 12.0))]
    );
    let read = [("Need the department of Pavel Ek.", "Pavel Ek works in the Sales Department.")];
    assert_eq!(word(&open(&read, "Need the head of Sales."), 2), Some(("Sales Department".into(), 6.0)));
    let mut ends = open(&read, "It is Nadia.");
    if let Some(Turn::Step(step)) = ends.turns.last_mut() {
        step.tool = "Finish".into();
    }
    ends.tools.iter_mut().filter(|tool| tool.name == "Finish").for_each(|tool| tool.terminal = Some(Terminal::Answer));
    assert_eq!(word(&ends, 1), Some(("Nadia Haddad".into(), 3.0)));
}

#[test]
fn the_bias_grows_and_what_was_rejected_loses() {
    let path = path(&entry("Who is the head of the Sales Department?", "Nadia Haddad", &["Sales Department"]));
    let read = history(&[("Need the head of the Sales Department.", "Its head is Nadia Haddad.")]);
    assert!(path.bias(&read, &[]).is_empty(), "the first proposal is the model's own");
    let rejected = [thought("The head is not shown. Done.", "Finish"), thought("Not so.", "NotFound")];
    let of = |rejected: &[Thought], word: &str| path.bias(&read, rejected).into_iter().find(|bias| bias.word == word).map(|bias| bias.bias);
    assert_eq!([of(&rejected[..1], "Nadia Haddad"), of(&rejected, "Nadia Haddad")], [Some(3.0), Some(6.0)]);
    assert_eq!(of(&rejected, "Sales Department"), Some(6.0));
    assert_eq!([of(&rejected, "head"), of(&rejected, "not"), of(&rejected, "The")], [Some(6.0), Some(6.0 * REJECTED_BIAS), None]);
    assert_eq!(of(&[rejected.clone(), rejected.clone(), rejected.clone()].concat(), "Nadia Haddad"), Some(12.0));
    let start = path.bias(&history(&[]), &rejected);
    assert!(start.iter().all(|bias| bias.word != "Nadia Haddad"), "nothing has been read");
}

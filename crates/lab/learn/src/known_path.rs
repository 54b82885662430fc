//! The known path to an answer: the pages of a question in order, and what each of them leads to. It
//! chooses among what the agents propose in tries at questions that they do not answer right by
//! themselves. This is the rationalisation of STaR (Zelikman and others, 2022), step by step.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use autoact_in_process::Guide;
use autoact_model::{WordBias, WordLimit};
use autoact_score::{Metric, normalize};
use autoact_trajectory::{Terminal, Thought, Trajectory};

use crate::filter::within;
use crate::keep::{deciding_words, guessable};
use crate::misnamed::Misnamed;
use crate::records::{QuestionRecord, StatedRecord};
use crate::relation_words::{compares, is_telling, lower_words, says};

/// Maximum number of proposals of a call.
const PROPOSALS: u32 = 8;
/// Growth of the bias on hints with each rejected proposal, and its maximum, in `question_bias`. Too
/// small a bias does not change what a thought says, and too great a one breaks its sentences.
const BIAS_STEP: f32 = 0.5;
const MOST_BIAS: f32 = 2.0;
/// So many words before a value on a page are told from it.
const LEADING_WORDS: usize = 3;
/// A thought that has a word more often goes round in circles.
const MOST_TIMES: usize = 5;
/// The bias on a word of a rejected thought, for each that has it, in `question_bias`: `Done.` where
/// another page is to be read, `not shown` where the value is. Words that were read or asked have none.
const REJECTED_BIAS: f32 = -0.3;

/// A text that leads to the answer, or the answer itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Hint {
    /// The text.
    pub(crate) text: String,
    /// The name of the page that has it. A thought names the page first, and then what it says.
    pub(crate) after: String,
}

/// What the pages of a question lead to: the names of all but the first, and the answer. What the
/// question says itself is none. Of an answer that could be guessed, what decides it.
pub(crate) fn hints(entry: &QuestionRecord) -> Vec<Hint> {
    if !entry.stated.is_empty() {
        let stated = entry.pages.iter().zip(&entry.stated);
        return stated.map(|(page, told)| Hint { text: told.value.clone(), after: page.clone() }).collect();
    }
    let Some(answer) = entry.answer.as_ref().filter(|answer| !guessable(&entry.question, Some(answer.as_str()))) else {
        return Vec::new();
    };
    let question = normalize(&entry.question);
    let led_to = entry.pages.iter().zip(entry.pages.iter().skip(1).chain([answer]));
    let hints = led_to.map(|(page, text)| Hint { text: text.clone(), after: page.clone() });
    hints.filter(|hint| !within(&normalize(&hint.text), &question)).collect()
}

/// The words that all pages have beside what decides.
fn shared(entry: &QuestionRecord) -> Vec<String> {
    let Some((first, others)) = entry.stated.split_first().filter(|(_, others)| !others.is_empty()) else { return Vec::new() };
    let has = |stated: &StatedRecord, word: &str| stated.words.iter().any(|other| says(other, word));
    first.words.iter().filter(|word| others.iter().all(|other| has(other, word))).cloned().collect()
}

/// What thoughts of a round may say.
#[derive(Debug, Clone, Default)]
pub(crate) struct Wording {
    /// Words of other thoughts, and of the corpus.
    pub(crate) usual: HashSet<String>,
    /// Words that stand in the place of others.
    pub(crate) misnamed: Misnamed,
    /// Words of many thoughts that are about nothing in particular: `need`, `answer`, `done`.
    pub(crate) frame: HashSet<String>,
    /// The same, of thoughts about comparisons.
    pub(crate) frame_of_comparisons: HashSet<String>,
}

/// The known path to the answer of a question.
#[derive(Debug)]
pub(crate) struct KnownPath {
    question: String,
    answer: String,
    metric: Metric,
    hints: Vec<Hint>,
    /// Whether the answer follows from the hints, and is none of them.
    decided: bool,
    /// Words of which a thought that says what decides has to have one; empty: any will do.
    deciding: Vec<String>,
    /// The words by which the question and all pages name what it is about.
    words: Vec<String>,
    /// The bias on these.
    bias: f32,
    wording: Arc<Wording>,
}

impl KnownPath {
    /// The path of a question in the form of the examples. `None`: there is nothing to hint at.
    pub(crate) fn of(entry: &QuestionRecord, metric: Metric, words: Vec<String>, bias: f32, wording: &Arc<Wording>) -> Option<KnownPath> {
        let (hints, answer) = (hints(entry), entry.answer.clone()?);
        let words: Vec<String> = words.into_iter().filter(|word| is_telling(&word.to_lowercase())).chain(shared(entry)).collect();
        (entry.formed && !hints.is_empty()).then(|| KnownPath {
            question: entry.question.clone(),
            answer,
            metric,
            hints,
            decided: !entry.stated.is_empty(),
            deciding: if words.is_empty() { deciding_words(&entry.stated, &entry.question) } else { words.clone() },
            words,
            bias,
            wording: Arc::clone(wording),
        })
    }

    /// How many of the hints observations have, in their order: each after a thought that names its
    /// page. The first page may go by another name.
    fn seen(&self, trajectory: &Trajectory) -> usize {
        let mut seen = 0;
        let mut named: HashSet<usize> = HashSet::from([0]);
        for step in trajectory.steps() {
            named.extend((0..self.hints.len()).filter(|at| names(&step.thought, &self.hints[*at].after)));
            let Some(text) = step.observation.as_ref() else { continue };
            while self.hints.get(seen).is_some_and(|hint| named.contains(&seen) && text.contains(hint.text.as_str())) {
                seen += 1;
            }
        }
        seen
    }

    /// Whether a word of any thought stands where a thought names what it looks for: `look of Heron Pond`,
    /// `Heron Pond's so`.
    fn asks_for_nothing(&self, thought: &str) -> bool {
        let words = lower_words(thought);
        let is_frame = |at: usize| words.get(at).is_some_and(|word| self.frame().contains(word) && !says(&self.question, word));
        self.hints.iter().map(|hint| lower_words(&hint.after)).filter(|name| !name.is_empty()).any(|name| {
            let mut places = words.windows(name.len()).enumerate().filter(|(_, some)| **some == name[..]);
            places.any(|(at, _)| {
                let before = at > 1 && words[at - 1] == "of" && is_frame(at - 2);
                before || (words.get(at + name.len()).is_some_and(|word| word == "s") && is_frame(at + name.len() + 1))
            })
        })
    }

    /// The words of any thought about such a question.
    fn frame(&self) -> &HashSet<String> {
        if compares(&self.question) { &self.wording.frame_of_comparisons } else { &self.wording.frame }
    }

    /// Whether a thought says a value and no more of its sentence: neither what follows it there, as in
    /// `The depth is 40 centimetres deep.`, nor what comes before, unless it was asked for. A script
    /// without case has no words that could.
    fn is_whole(&self, trajectory: &Trajectory, thought: &str, value: &str) -> bool {
        let before = |text: &str, at: usize| lower_words(&text[..at]).into_iter().rev();
        let observations = trajectory.steps().filter_map(|step| step.observation.as_deref());
        let leading: HashSet<String> = observations
            .flat_map(|text| text.match_indices(value).flat_map(|(at, _)| before(text, at).take(LEADING_WORDS)).collect::<Vec<_>>())
            .filter(|word| is_telling(word) && !says(&self.question, word) && !self.wording.frame.contains(word))
            .filter(|word| !self.words.iter().any(|asked| says(asked, word)))
            .collect();
        let is_alone = |at: usize| {
            let rest = thought[at + value.len()..].trim_start_matches(' ');
            !rest.starts_with(char::is_alphanumeric) && before(thought, at).next().is_none_or(|word| !leading.contains(&word))
        };
        is_caseless(value) || thought.match_indices(value).any(|(at, _)| is_alone(at))
    }

    /// The words of the question, and of what was read.
    fn read(&self, trajectory: &Trajectory) -> HashSet<String> {
        let read = trajectory.steps().filter_map(|step| step.observation.as_deref());
        read.chain([self.question.as_str()]).flat_map(lower_words).collect()
    }

    /// Whether all words are known, and call what was asked for by its name. A bias makes a small model
    /// break words. Those of a script without case count as known, because what is found there between
    /// spaces is no word.
    fn is_worded(&self, trajectory: &Trajectory, thought: &str) -> bool {
        let read = self.read(trajectory);
        let known = |word: &String| read.contains(word) || self.wording.usual.contains(word) || is_caseless(word);
        lower_words(thought).iter().all(known) && !self.wording.misnamed.is_in(thought, &self.question, &read)
    }
}

impl Guide for KnownPath {
    fn proposals(&self) -> u32 {
        PROPOSALS
    }

    fn bias(&self, trajectory: &Trajectory, rejected: &[Thought]) -> Vec<WordBias> {
        let strength = (BIAS_STEP * rejected.len() as f32).min(MOST_BIAS);
        let said = |hint: &Hint| trajectory.steps().any(|step| step.thought.contains(hint.text.as_str()));
        let open = self.hints.iter().take(self.seen(trajectory)).filter(|hint| !said(hint));
        let hint = |hint: &Hint| WordBias { word: hint.text.clone(), bias: self.bias * strength, after: hint.after.clone() };
        let mut bias: Vec<WordBias> = open.clone().map(hint).collect();
        // pages do not always begin with their own names, by which a thought calls them
        bias.extend(WordBias::all(open.map(|hint| hint.after.clone()), self.bias * strength));
        // the next page comes after what has led to it
        let seen = self.seen(trajectory);
        let after = seen.checked_sub(1).map(|at| &self.hints[at]).filter(|hint| !said(hint)).map_or("", |hint| &hint.text);
        let next = self.hints.get(seen).filter(|next| !trajectory.steps().any(|step| names(&step.thought, &next.after)));
        bias.extend(next.map(|next| WordBias { word: next.after.clone(), bias: self.bias * strength, after: after.to_owned() }));
        bias.extend(WordBias::all(self.words.iter().cloned(), self.bias * strength.min(1.0)));
        let read = self.read(trajectory);
        let mut less: BTreeMap<&str, f32> = BTreeMap::new();
        for thought in rejected {
            let words = thought.thought.split(|c: char| !c.is_alphanumeric());
            let words: BTreeSet<&str> = words.filter(|word| !word.is_empty() && !read.contains(&word.to_lowercase())).collect();
            words.into_iter().for_each(|word| *less.entry(word).or_default() += self.bias * REJECTED_BIAS);
        }
        bias.extend(less.into_iter().map(|(word, bias)| WordBias { word: word.to_owned(), bias, after: String::new() }));
        bias.retain(|word| word.bias != 0.0);
        bias
    }

    /// Words of the question and of what was read, and those of any thought.
    fn limit(&self, trajectory: &Trajectory) -> Option<WordLimit> {
        let read = trajectory.steps().filter_map(|step| step.observation.as_ref());
        let named = self.words.iter().chain(&self.deciding).chain(self.hints.iter().map(|hint| &hint.after));
        let texts = read.chain([&self.question]).chain(named);
        let words = texts.flat_map(|text| spelt_words(text));
        // what was said before may be computed with: `1994 < 1998`
        let said = |hint: &&Hint| trajectory.steps().any(|step| names(&step.thought, &hint.text));
        let open = self.hints.iter().take(self.seen(trajectory)).filter(|hint| !said(hint)).map(|hint| hint.text.clone());
        Some(WordLimit::new(words.map(str::to_owned).chain(self.frame().iter().cloned())).with_whole(open))
    }

    fn params_bias(&self, trajectory: &Trajectory, rejected: usize) -> Vec<WordBias> {
        let strength = (BIAS_STEP * rejected as f32).min(MOST_BIAS);
        let ends = trajectory.open_step().and_then(|step| trajectory.tool(&step.tool)).is_some_and(|tool| tool.terminal.is_some());
        let next = self.hints.get(self.seen(trajectory)).map(|hint| &hint.after);
        let wanted = if ends { Some(&self.answer) } else { next };
        if rejected == 0 { Vec::new() } else { WordBias::all(wanted.cloned(), self.bias * strength) }
    }

    /// It says what was seen and not yet said, names the page that has the next one, and answers once
    /// all are seen.
    fn accepts_thought(&self, trajectory: &Trajectory, thought: &Thought) -> bool {
        let seen = self.seen(trajectory);
        let said_before = |hint: &Hint| trajectory.steps().any(|step| names(&step.thought, &hint.text));
        let said = |hint: &Hint| said_before(hint) || names(&thought.thought, &hint.text);
        let leads_on = match trajectory.tool(&thought.tool).and_then(|tool| tool.terminal) {
            Some(Terminal::NoAnswer) => false,
            Some(Terminal::Answer) => seen == self.hints.len(),
            None => match self.hints.get(seen) {
                Some(next) => names(&thought.thought, &next.after) || (seen == 0 && !names(&self.question, &next.after)),
                None => self.decided,
            },
        };
        let asks = self.words.is_empty() || self.words.iter().any(|word| says(&thought.thought, word) || said_word(trajectory, word));
        // what decides is called by its name, or the filter drops the try
        let named = self.deciding.is_empty()
            || self.hints[..seen].iter().all(said_before)
            || self.deciding.iter().any(|word| says(&thought.thought, word));
        let whole = self.hints[..seen].iter().all(|hint| said_before(hint) || self.is_whole(trajectory, &thought.thought, &hint.text));
        !repeats(&thought.thought)
            && !self.asks_for_nothing(&thought.thought)
            && leads_on
            && asks
            && named
            && whole
            && self.hints[..seen].iter().all(said)
            && self.is_worded(trajectory, &thought.thought)
    }

    /// They are the answer, or words of the thought that lead to the next page or to what it says.
    fn accepts_params(&self, trajectory: &Trajectory, params: &str, seen: Option<&str>) -> bool {
        let Some(text) = seen else {
            return self.metric.score(&self.question, Some(params), Some(&self.answer)).0;
        };
        let next = self.hints.get(self.seen(trajectory));
        let thought = trajectory.open_step().map(|step| step.thought.as_str()).unwrap_or_default();
        names(thought, params) && next.is_none_or(|next| text.contains(next.text.as_str()) || normalize(params) == normalize(&next.after))
    }
}

/// Whether a text has a name or a value, whatever follows it: `Car 421's length`.
fn names(text: &str, name: &str) -> bool {
    within(&lower_words(name).join(" "), &lower_words(text).join(" ")) || (is_caseless(name) && text.contains(name))
}

/// The words of a text as they are spelt, with points and commas in numbers.
fn spelt_words(text: &str) -> impl Iterator<Item = &str> {
    let parts = text.split(|c: char| !c.is_alphanumeric() && !matches!(c, '.' | ','));
    parts.flat_map(|part| {
        let part = part.trim_matches(['.', ',']);
        let is_number = part.starts_with(char::is_numeric) && part.ends_with(char::is_numeric);
        let pieces: Vec<&str> = if is_number { vec![part] } else { part.split(['.', ',']).collect() };
        pieces.into_iter().filter(|piece| !piece.is_empty())
    })
}

/// Whether an earlier thought has a word.
fn said_word(trajectory: &Trajectory, word: &str) -> bool {
    trajectory.steps().any(|step| says(&step.thought, word))
}

/// Whether a text says the same word again and again.
fn repeats(text: &str) -> bool {
    let mut counts: HashMap<String, usize> = HashMap::new();
    lower_words(text).into_iter().any(|word| {
        let count = counts.entry(word).or_default();
        *count += 1;
        *count > MOST_TIMES
    })
}

/// Whether a text has letters of a script without case, which has no spaces between words.
fn is_caseless(text: &str) -> bool {
    text.chars().any(|c| c.is_alphabetic() && !c.is_lowercase() && !c.is_uppercase())
}

#[cfg(test)]
mod tests {
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
        let steps =
            [("Need the built of the Graz Office.", "Built in 1990."), ("Its built is 1990. Need the Lyon Office.", "It is of 2010.")];
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
        let of =
            |rejected: &[Thought], word: &str| path.bias(&read, rejected).into_iter().find(|bias| bias.word == word).map(|bias| bias.bias);
        assert_eq!([of(&rejected[..1], "Nadia Haddad"), of(&rejected, "Nadia Haddad")], [Some(3.0), Some(6.0)]);
        assert_eq!(of(&rejected, "Sales Department"), Some(6.0));
        assert_eq!([of(&rejected, "head"), of(&rejected, "not"), of(&rejected, "The")], [Some(6.0), Some(6.0 * REJECTED_BIAS), None]);
        assert_eq!(of(&[rejected.clone(), rejected.clone(), rejected.clone()].concat(), "Nadia Haddad"), Some(12.0));
        let start = path.bias(&history(&[]), &rejected);
        assert!(start.iter().all(|bias| bias.word != "Nadia Haddad"), "nothing has been read");
    }
}

//! Which sentences of a page tell what is looked for, in whatever words (sentence selection).

use std::collections::HashSet;

use tantivy::tokenizer::TextAnalyzer;

use crate::text::{analyzer, fold, is_stop_word, stems_with};
use crate::word_vectors::WordVector;

/// Other words count the less: their likeness to this power.
const SHARPNESS: i32 = 2;

/// A sentence is left out that says less than this share of what the most telling one says.
const LEAST_SHARE: f32 = 0.35;

/// Words in which a thought says that something is looked for. They tell nothing of what it is.
const LOOKING: [&str; 12] = ["find", "know", "let", "look", "me", "need", "now", "see", "show", "shown", "whether", "yet"];

/// A word: how it is compared.
struct Word {
    stem: String,
    vector: Option<&'static WordVector>,
}

impl Word {
    /// How much of one word another one says, 0 to 1.
    fn said_by(&self, other: &Word) -> f32 {
        match (self.vector, other.vector) {
            _ if self.stem == other.stem => 1.0,
            (Some(ours), Some(theirs)) => ours.likeness(theirs).powi(SHARPNESS),
            _ => 0.0,
        }
    }
}

/// What is looked for on a page.
pub(crate) struct Wanted<'a> {
    /// The question.
    pub(crate) question: &'a str,
    /// What the group says that it needs now.
    pub(crate) thought: &'a str,
    /// What was read before. Where the question does not name the page, its words that were read have
    /// led here, and are not looked for any more.
    pub(crate) read: &'a str,
}

/// The positions of the sentence that says most of what is wanted, and of others that say at least
/// [`LEAST_SHARE`] of that: `most` at most, in the order of the page. The first of equals goes first. The thought counts
/// as much as the question. Words of the page's title tell nothing: the whole page is about it.
pub(crate) fn most_telling(sentences: &[&str], wanted: &Wanted<'_>, title: &str, most: usize) -> Vec<usize> {
    let mut analyzer = analyzer();
    let mut telling = |text: &str| -> Vec<Word> {
        let tells = |word: &Word| !is_stop_word(&word.stem) && !LOOKING.contains(&word.stem.as_str());
        words(&mut analyzer, text).into_iter().filter(tells).collect()
    };
    let (mut question, mut thought) = (telling(wanted.question), telling(wanted.thought));
    let stems = |words: Vec<Word>| words.into_iter().map(|word| word.stem).collect::<HashSet<String>>();
    let (title, read) = (stems(telling(title)), stems(telling(wanted.read)));
    let is_named = title.iter().all(|stem| question.iter().any(|word| word.stem == *stem));
    if !is_named && question.iter().any(|word| !read.contains(&word.stem)) {
        question.retain(|word| !read.contains(&word.stem));
    }
    question.retain(|word| !title.contains(&word.stem));
    thought.retain(|word| !title.contains(&word.stem));
    let mut score = |sentence: &str| {
        let sentence = words(&mut analyzer, sentence);
        let said = |word: &Word| sentence.iter().map(|other| word.said_by(other)).fold(0.0, f32::max);
        let share = |wanted: &[Word]| wanted.iter().map(said).sum::<f32>() / wanted.len().max(1) as f32;
        share(&question) + share(&thought)
    };
    let scores: Vec<f32> = sentences.iter().map(|sentence| score(sentence)).collect();
    let best = scores.iter().copied().fold(0.0, f32::max);
    let mut order: Vec<usize> = (0..sentences.len()).filter(|at| scores[*at] >= best * LEAST_SHARE).collect();
    // stable, and no score is NaN
    order.sort_by(|a, b| scores[*b].total_cmp(&scores[*a]));
    order.truncate(most);
    order.sort_unstable();
    order
}

fn words(analyzer: &mut TextAnalyzer, text: &str) -> Vec<Word> {
    let folded = fold(text);
    let word = |word: &str| Some(Word { stem: stems_with(analyzer, word).into_iter().next()?, vector: WordVector::of(word) });
    folded.split(' ').filter_map(word).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: [&str; 5] =
        ["Weight 41 t.", "Livery: cream and maroon.", "Takes 240 passengers.", "Corvina was built in 1962.", "Green on the map."];

    fn found(question: &str, thought: &str, read: &str, title: &str) -> Vec<&'static str> {
        most_telling(&PAGE, &Wanted { question, thought, read }, title, 2).into_iter().map(|at| PAGE[at]).collect()
    }

    #[test]
    fn the_sentence_need_not_have_the_words() {
        for (question, expected) in [
            ("how heavy is the Corvina", "Weight 41 t."),
            ("What colour does Corvina have on maps?", "Green on the map."),
            ("How many travellers can Corvina take?", "Takes 240 passengers."),
            ("When was Corvina constructed?", "Corvina was built in 1962."),
        ] {
            let found = found(question, "", "", "Corvina");
            assert!(found.contains(&expected), "{question}: {found:?}");
        }
    }

    #[test]
    fn what_was_read_is_not_looked_for_on_a_page_that_the_question_does_not_name() {
        let built = |question, read| found(question, "", read, "Corvina").contains(&"Corvina was built in 1962.");
        let question = "Which livery has the one built by Norrick Yard?";
        assert!(built(question, "") && !built(question, "Norrick Yard: Built Corvina."));
        assert!(built("Which livery has Corvina, built by Norrick Yard?", "Norrick Yard: Built Corvina."));
    }

    #[test]
    fn the_first_of_equals_wins() {
        assert_eq!(found("livery, weight", "", "", ""), PAGE[..2]);
        assert_eq!(found("livery", "I need to know the weight.", "", ""), PAGE[..2]);
        assert_eq!(found("", "Zwickel", "", ""), PAGE[..2]);
        assert!(most_telling(&[], &Wanted { question: "weight", thought: "", read: "" }, "", 2).is_empty());
    }
}

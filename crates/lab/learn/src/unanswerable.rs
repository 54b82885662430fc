//! Questions that the pages do not answer, so that a group learns to say so. They are generated
//! questions in which a name is replaced: by one that nothing has, or by that of a page of another
//! kind. Nobody has checked that they have no answer; the reward filter keeps them only where most
//! tries find none.

use autoact_base::random::Rng;
use autoact_score::normalize;

use crate::pages::Pages;
use crate::records::QuestionRecord;

/// Probability that the other name is one that nothing has.
const MADE: f64 = 0.6;

/// The number of questions without an answer that makes them this share of all, beside `answerable`
/// ones. `share` is below 1.
pub(crate) fn wanted(answerable: usize, share: f64) -> usize {
    (answerable as f64 * share / (1.0 - share)).round() as usize
}

/// The question with another name, and without an answer. `None` if it has no name that can be
/// replaced.
pub(crate) fn without_answer(pages: &Pages, entry: &QuestionRecord, rng: &mut Rng) -> Option<QuestionRecord> {
    let page = *rng.pick(&pages.named_in(&entry.question))?;
    let (before, after) = around(&entry.question, &pages.all().get(page)?.title)?;
    let other = if rng.chance(MADE) { pages.absent_name(page, rng)? } else { pages.of_another_kind(page, rng)?.to_owned() };
    let question = format!("{before}{other}{after}");
    let answer = entry.answer.as_deref().map(normalize)?;
    // a page that has the answer may answer this question, too
    let has = pages.find(&other).is_some_and(|page| format!(" {} ", normalize(&pages.line(page))).contains(&format!(" {answer} ")));
    (!has).then(|| QuestionRecord { attempt: entry.attempt, question, ..QuestionRecord::default() })
}

/// The text before and after a name that stands as words of its own.
fn around<'a>(text: &'a str, name: &str) -> Option<(&'a str, &'a str)> {
    text.match_indices(name).find_map(|(at, _)| {
        let (before, after) = (&text[..at], &text[at + name.len()..]);
        let apart = |c: Option<char>| !c.is_some_and(char::is_alphanumeric);
        (apart(before.chars().next_back()) && apart(after.chars().next())).then_some((before, after))
    })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use autoact_tools::{Corpus, Page};

    use super::*;

    fn entry(question: &str, answer: &str) -> QuestionRecord {
        QuestionRecord {
            attempt: Some(3),
            question: question.into(),
            answer: Some(answer.into()),
            options: Vec::new(),
            pages: vec!["Loire".into()],
            ..QuestionRecord::default()
        }
    }

    #[test]
    fn the_share_is_of_all_questions() {
        assert_eq!((wanted(90, 0.1), wanted(400, 0.0), wanted(9, 0.5)), (10, 0, 9));
    }

    #[test]
    fn another_name_stands_in_place_of_the_pages() {
        let page = |title: &str, text: &str| Page { title: title.to_owned(), text: text.to_owned() };
        let rivers = ["Loire", "Rhine", "Danube", "Vistula"].map(|name| page(name, &format!("The {name} is a river. It is 1006 km long.")));
        let all = rivers.into_iter().chain([page("Marie Curie", "Marie Curie was a physicist."), page("Loireville", "A town.")]);
        let pages = Pages::new(Arc::new(Corpus::from_pages(all.collect()).unwrap()));
        let mut seen = [false; 2];
        for seed in 0..40 {
            let Some(made) = without_answer(&pages, &entry("In Loireville, how long is the Rhine?", "900 km"), &mut Rng::new(seed)) else {
                continue;
            };
            assert_eq!((made.answer.as_ref(), made.attempt), (None, Some(3)));
            assert!(["Loireville", "Rhine"].iter().any(|name| around(&made.question, name).is_none()), "{}", made.question);
            let known = pages.named_in(&made.question).len() == 2;
            seen[usize::from(known)] = true;
        }
        assert_eq!(seen, [true, true], "both ways are drawn");
        // a name within a longer word is none
        assert_eq!(around("Is Loireville on the Loire?", "Loire"), Some(("Is Loireville on the ", "?")));
        assert_eq!(without_answer(&pages, &entry("How long is it?", "900 km"), &mut Rng::new(1)), None);
    }
}

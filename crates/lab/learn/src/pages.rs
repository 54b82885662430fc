//! The corpus for self-instruct: links between pages, pages of the same kind, and the pages that a
//! question is about.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use autoact_base::random::Rng;
use autoact_base::sentences::running_text;
use autoact_score::normalize;
use autoact_synthetic_kb::made_name;
use autoact_tools::{Corpus, Page};

use crate::kinds::kinds;
use crate::statement::{Lexicon, Reader};

/// Maximum number of words of a title that is found in a text.
const LONGEST_TITLE: usize = 8;
/// Fewest pages of a kind from whose titles a new name is made.
const FEWEST_ALIKE: usize = 4;
/// Pronouns for people, who may write their own pages, and for things.
const OF_PERSONS: [&str; 7] = ["he", "her", "him", "his", "i", "my", "she"];
const OF_THINGS: [&str; 2] = ["it", "its"];

/// The corpus with links and kinds. Pages are named by their index.
#[derive(Debug)]
pub(crate) struct Pages {
    corpus: Arc<Corpus>,
    /// Page by title, without punctuation around words.
    by_title: HashMap<String, usize>,
    links: Vec<Vec<usize>>,
    /// The pages of each kind.
    kinds: Vec<Vec<usize>>,
    kind_of: Vec<usize>,
    /// The words of all texts that are written in small letters.
    in_small_letters: HashSet<String>,
    /// The words of the task's description.
    described: HashSet<String>,
}

impl Pages {
    /// Builds the index from the corpus.
    pub(crate) fn new(corpus: Arc<Corpus>) -> Pages {
        let by_title: HashMap<String, usize> =
            corpus.pages().iter().enumerate().rev().map(|(at, page)| (key(&words(&page.title)), at)).collect();
        let mut links = Vec::new();
        for (at, page) in corpus.pages().iter().enumerate() {
            let mut named = mentions(&page.text, &by_title);
            named.retain(|other| *other != at);
            links.push(named);
        }
        let small = |word: &&str| word.chars().all(char::is_lowercase) && !word.is_empty();
        let in_small_letters = corpus.pages().iter().flat_map(|page| words(&page.text)).filter(small).map(str::to_owned).collect();
        let kind_of = vec![0; links.len()];
        let mut pages = Pages { corpus, by_title, links, kinds: Vec::new(), kind_of, in_small_letters, described: HashSet::new() };
        let lexicon = Lexicon::of(&pages);
        pages.kinds = kinds(pages.all(), |page| Reader::of(page, &pages, &lexicon).asked_words());
        for (number, kind) in pages.kinds.iter().enumerate() {
            kind.iter().for_each(|at| pages.kind_of[*at] = number);
        }
        pages
    }

    /// The same pages, with what the task says of them.
    pub(crate) fn described(self, description: &str) -> Pages {
        Pages { described: words(description).into_iter().map(str::to_owned).collect(), ..self }
    }

    /// Whether the task's description has a word.
    pub(crate) fn is_described(&self, word: &str) -> bool {
        self.described.contains(word)
    }

    /// Whether a page is about a person: by the pronouns in its text. `None`: there are none, or as many for
    /// things.
    pub(crate) fn is_of_person(&self, page: usize) -> Option<bool> {
        let said = words(&self.all()[page].text);
        let count = |some: &[&str]| said.iter().filter(|word| some.iter().any(|one| word.eq_ignore_ascii_case(one))).count();
        let (person, thing) = (count(&OF_PERSONS), count(&OF_THINGS));
        (person != thing).then_some(person > thing)
    }

    /// All pages.
    pub(crate) fn all(&self) -> &[Page] {
        self.corpus.pages()
    }

    /// The pages whose titles occur in a text, in order of occurrence, without duplicates.
    pub(crate) fn named_in(&self, text: &str) -> Vec<usize> {
        mentions(text, &self.by_title)
    }

    /// A random page with related ones. `shape` 0: the page alone; 1 or 2: with a chain of that
    /// many linked pages; 3: with another page of its kind. If there is no such page, there are
    /// fewer.
    pub(crate) fn draw(&self, shape: usize, rng: &mut Rng) -> Vec<usize> {
        let first = rng.below(self.links.len());
        let mut chosen = vec![first];
        if shape == 3 {
            let alike: Vec<usize> = self.kinds[self.kind_of[first]].iter().copied().filter(|other| *other != first).collect();
            chosen.extend(rng.pick(&alike));
            return chosen;
        }
        for _ in 0..shape {
            let Some(last) = chosen.last() else { break };
            let next: Vec<usize> = self.links[*last].iter().copied().filter(|other| !chosen.contains(other)).collect();
            let Some(next) = rng.pick(&next) else { break };
            chosen.push(*next);
        }
        chosen
    }

    /// The pages of the same kind, itself among them.
    pub(crate) fn of_kind(&self, page: usize) -> &[usize] {
        &self.kinds[self.kind_of[page]]
    }

    /// The pages of each kind.
    pub(crate) fn kinds(&self) -> &[Vec<usize>] {
        &self.kinds
    }

    /// The kind of a page.
    pub(crate) fn kind(&self, page: usize) -> usize {
        self.kind_of[page]
    }

    /// The pages that a page names.
    pub(crate) fn linked(&self, page: usize) -> &[usize] {
        &self.links[page]
    }

    /// The only page of a kind that a page names.
    pub(crate) fn only_linked(&self, page: usize, kind: usize) -> Option<usize> {
        let mut all = self.links[page].iter().filter(|other| self.kind_of[**other] == kind);
        let only = all.next()?;
        all.next().is_none().then_some(*only)
    }

    /// The pages that a question with this answer is about: those whose titles it contains. If none
    /// of them contains the answer, the shortest chain of one or two links to a page that does is
    /// added.
    pub(crate) fn about(&self, question: &str, answer: &str) -> Vec<usize> {
        let named = self.named_in(question);
        let plain = normalize(answer);
        let holds = |page: usize| format!(" {} ", normalize(&self.all()[page].text)).contains(&format!(" {plain} "));
        if matches!(plain.as_str(), "yes" | "no") || named.iter().any(|page| holds(*page)) || named.is_empty() {
            return named;
        }
        let chain = |from: usize| -> Option<Vec<usize>> {
            let near = self.links[from].iter().copied();
            if let Some(page) = near.clone().find(|page| holds(*page)) {
                return Some(vec![page]);
            }
            near.filter(|page| *page != from).find_map(|page| {
                let far = self.links[page].iter().copied().find(|far| *far != from && holds(*far))?;
                Some(vec![page, far])
            })
        };
        let further = named.iter().find_map(|page| chain(*page)).unwrap_or_default();
        named.into_iter().chain(further).collect()
    }

    /// The titles of other pages of the same kind; empty if no page has this title.
    pub(crate) fn alike(&self, title: &str) -> Vec<String> {
        let Some(page) = self.find(title) else { return Vec::new() };
        let others = self.kinds[self.kind_of[page]].iter().filter(|other| **other != page);
        others.map(|other| self.all()[*other].title.clone()).collect()
    }

    /// A name in the spelling of the titles of a page's kind that no page has in title or text.
    pub(crate) fn absent_name(&self, page: usize, rng: &mut Rng) -> Option<String> {
        let alike = &self.kinds[self.kind_of[page]];
        // a kind with few pages has too few spellings
        let from = |rng: &mut Rng| if alike.len() >= FEWEST_ALIKE { rng.pick(alike).copied() } else { Some(rng.below(self.all().len())) };
        let made = made_name(|rng| Some(self.all()[from(rng)?].title.as_str()), self.all().iter().map(|page| page.title.as_str()), rng)?;
        (!self.all().iter().any(|page| page.text.contains(&made))).then_some(made)
    }

    /// The title of a random page of another kind that is not linked with this one.
    pub(crate) fn of_another_kind(&self, page: usize, rng: &mut Rng) -> Option<&str> {
        let other = rng.below(self.all().len());
        let apart = self.kind_of[other] != self.kind_of[page] && !self.links[page].contains(&other) && !self.links[other].contains(&page);
        apart.then(|| self.all()[other].title.as_str())
    }

    /// The page with this title.
    pub(crate) fn find(&self, title: &str) -> Option<usize> {
        self.by_title.get(&key(&words(title))).copied()
    }

    /// Whether a text has a word in small letters: then it is no name.
    pub(crate) fn is_word(&self, word: &str) -> bool {
        self.in_small_letters.contains(word)
    }

    /// A page in the form of a prompt: one line.
    pub(crate) fn line(&self, page: usize) -> String {
        self.all().get(page).map(|page| format!("{}: {}", page.title, running_text(&page.text))).unwrap_or_default()
    }
}

/// Words without surrounding punctuation. Case is kept, because titles are names.
fn words(text: &str) -> Vec<&str> {
    text.split(|c: char| c.is_whitespace()).map(|word| word.trim_matches(|c: char| !c.is_alphanumeric())).collect()
}

/// A title's words joined by spaces, without a possessive ending.
fn key(words: &[&str]) -> String {
    let joined = words.iter().filter(|word| !word.is_empty()).copied().collect::<Vec<_>>().join(" ");
    joined.strip_suffix("'s").unwrap_or(&joined).to_owned()
}

/// The pages whose titles occur in a text, in its order. Of overlapping titles, the longest wins.
fn mentions(text: &str, by_title: &HashMap<String, usize>) -> Vec<usize> {
    let words = words(text);
    let mut found = Vec::new();
    let mut at = 0;
    while at < words.len() {
        let longest = (1..=LONGEST_TITLE.min(words.len() - at)).rev();
        let hit = longest.filter(|length| starts_name(words[at]) && !words[at + length - 1].is_empty());
        let hit = hit.map(|length| (length, key(&words[at..at + length]))).find_map(|(length, key)| Some((length, *by_title.get(&key)?)));
        match hit {
            Some((length, page)) => {
                if !found.contains(&page) {
                    found.push(page);
                }
                at += length;
            }
            None => at += 1,
        }
    }
    found
}

/// Whether a word can begin a name: with a capital letter or a digit.
fn starts_name(word: &str) -> bool {
    word.chars().next().is_some_and(|c| c.is_uppercase() || c.is_numeric())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pages() -> Pages {
        let page = |title: &str, text: &str| Page { title: title.to_owned(), text: text.to_owned() };
        let all = vec![
            page("Loire", "The Loire is a river in France."),
            page("France", "France is a country. Its capital is Paris.\nPeople there pay with the euro."),
            page("Paris", "Paris is a city. Its landmark is the Eiffel Tower."),
            page("Rhine", "The Rhine is a river. It is 1230 km long."),
            page("Eiffel Tower", "The Eiffel Tower is a landmark of 1889."),
        ];
        Pages::new(Arc::new(Corpus::from_pages(all).unwrap()))
    }

    #[test]
    fn pages_link_by_their_titles() {
        let pages = pages();
        assert_eq!(pages.links, [vec![1], vec![2], vec![4], vec![], vec![]]);
        assert_eq!(pages.named_in("Is the Eiffel Tower's city Paris, or France?"), [4, 2, 1]);
        assert_eq!(pages.find("the Rhine"), None);
        assert_eq!(pages.find("Rhine"), Some(3));
    }

    #[test]
    fn questions_find_the_pages_that_answer_them() {
        let pages = pages();
        assert_eq!(pages.about("Where is the Loire?", "France"), [0]);
        assert_eq!(pages.about("What do people pay with where the Loire flows?", "euro"), [0, 1]);
        assert_eq!(pages.about("What is the landmark of the capital of the country of the Loire?", "Eiffel Tower"), [0, 1, 2]);
        assert_eq!(pages.about("Is the Loire longer than the Rhine?", "no"), [0, 3]);
        assert!(pages.about("Who?", "he").is_empty());
    }

    #[test]
    fn shapes_are_drawn_as_asked() {
        let pages = pages();
        let mut rng = Rng::new(1);
        for _ in 0..50 {
            assert_eq!(pages.draw(0, &mut rng).len(), 1);
            let pair = pages.draw(3, &mut rng);
            assert!(pair.len() == 1 || pages.kind(pair[0]) == pages.kind(pair[1]));
            let chain = pages.draw(2, &mut rng);
            assert!(chain.windows(2).all(|link| pages.links[link[0]].contains(&link[1])));
        }
    }
}

//! Surface noise of questions: lower case, no question mark, missing articles, a typo, extra
//! spaces.

use autoact_base::random::Rng;

use crate::phrase::slip;

/// The probability of each kind of noise in a question.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Noise {
    /// Everything is in lower case, names too.
    pub lower: f64,
    /// There is no question mark or full stop.
    pub unmarked: f64,
    /// Articles are missing.
    pub bare: f64,
    /// One word, or one name, is misspelt.
    pub typo: f64,
    /// There are extra spaces.
    pub spaces: f64,
}

impl Noise {
    /// No noise.
    pub const NONE: Noise = Noise { lower: 0.0, unmarked: 0.0, bare: 0.0, typo: 0.0, spaces: 0.0 };

    /// The noise of training data: about half of the questions have some.
    pub const TYPED: Noise = Noise { lower: 0.3, unmarked: 0.25, bare: 0.08, typo: 0.14, spaces: 0.04 };
}

/// Letters that a word has at least to be misspelt.
const SHORTEST_WORD: usize = 4;
/// Letters that a name has at least to be misspelt. It must still be found by similarity.
const SHORTEST_NAME: usize = 7;
/// Fraction of typos that are in a name.
const TYPO_IN_NAME: f64 = 0.5;

/// The first private-use character. A text holds one of them in place of each name, so that noise
/// in a name is known, and names keep what only looks like an article.
const FIRST: u32 = 0xE000;

/// The character that stands for the name `index`.
pub(crate) fn placeholder(index: usize) -> String {
    char::from_u32(FIRST + index as u32).unwrap_or(char::REPLACEMENT_CHARACTER).to_string()
}

/// The name that a character stands for.
fn index_of(c: char) -> Option<usize> {
    (0xE000..=0xE0FF).contains(&u32::from(c)).then(|| (u32::from(c) - FIRST) as usize)
}

/// Puts the names into the text.
pub(crate) fn put_names(text: &str, names: &[String]) -> String {
    let mut out = String::new();
    for c in text.chars() {
        match index_of(c).and_then(|index| names.get(index)) {
            Some(name) => out.push_str(name),
            None => out.push(c),
        }
    }
    out
}

/// Adds noise to a text with placeholders, and to its names. `titles` says which names a page must
/// be found by; the others are values, which are not misspelt.
pub(crate) fn disturb(noise: &Noise, text: String, names: &mut [String], titles: &[bool], rng: &mut Rng) -> String {
    let mut text = text;
    if rng.chance(noise.bare) {
        text = without_articles(&text);
    }
    if rng.chance(noise.lower) {
        text = text.to_lowercase();
        names.iter_mut().for_each(|name| *name = name.to_lowercase());
    }
    if rng.chance(noise.unmarked) {
        text.truncate(text.trim_end_matches(['?', '.']).len());
    }
    if rng.chance(noise.typo) {
        let long = |index: &usize| titles[*index] && names[*index].chars().count() >= SHORTEST_NAME && text.contains(&placeholder(*index));
        let named: Vec<usize> = (0..names.len()).filter(long).collect();
        match rng.pick(&named).filter(|_| rng.chance(TYPO_IN_NAME)) {
            Some(index) => {
                if let Some(slipped) = slip(&names[*index], SHORTEST_NAME, rng) {
                    names[*index] = slipped;
                }
            }
            None => text = with_typo(&text, rng),
        }
    }
    if rng.chance(noise.spaces) {
        text = with_spaces(&text, rng);
    }
    text
}

fn without_articles(text: &str) -> String {
    let words: Vec<&str> = text.split(' ').collect();
    let kept: Vec<&str> = words.iter().copied().filter(|word| !matches!(*word, "the" | "a" | "an" | "The")).collect();
    kept.join(" ")
}

/// One ordinary word misspelt, if any is long enough.
fn with_typo(text: &str, rng: &mut Rng) -> String {
    let mut words: Vec<String> = text.split(' ').map(str::to_owned).collect();
    let plain = |word: &String| word.chars().count() >= SHORTEST_WORD && !word.chars().any(|c| index_of(c).is_some());
    let long: Vec<usize> = (0..words.len()).filter(|at| plain(&words[*at])).collect();
    if let Some(at) = rng.pick(&long)
        && let Some(slipped) = slip(&words[*at], SHORTEST_WORD, rng)
    {
        words[*at] = slipped;
    }
    words.join(" ")
}

fn with_spaces(text: &str, rng: &mut Rng) -> String {
    let gaps: Vec<usize> = text.match_indices(' ').map(|(at, _)| at).collect();
    let mut text = text.to_owned();
    match rng.pick(&gaps).filter(|_| rng.chance(0.7)) {
        Some(at) => text.insert(*at, ' '),
        // before the question mark
        None => text.insert(text.trim_end_matches(['?', '.']).len(), ' '),
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: Noise = Noise { lower: 1.0, unmarked: 1.0, bare: 1.0, typo: 0.0, spaces: 0.0 };

    #[test]
    fn names_keep_their_articles() {
        let text = format!("In which country is the city of {}?", placeholder(0));
        let mut names = vec!["The Hague".to_owned()];
        let text = disturb(&ALL, text, &mut names, &[true], &mut Rng::new(1));
        assert_eq!(put_names(&text, &names), "in which country is city of the hague");
    }

    #[test]
    fn a_typo_is_one_word() {
        let noise = Noise { typo: 1.0, ..Noise::default() };
        let mut rng = Rng::new(3);
        let (mut in_name, mut in_word) = (0, 0);
        for _ in 0..200 {
            let mut names = vec!["Gargantua".to_owned(), "Gargantua".to_owned()];
            let before = format!("Who is the author of {}?", placeholder(0));
            let text = disturb(&noise, before.clone(), &mut names, &[true, false], &mut rng);
            assert_eq!(names[1], "Gargantua");
            in_name += usize::from(names[0] != "Gargantua");
            in_word += usize::from(text != before);
            assert!(names[0] == "Gargantua" || text == before);
        }
        assert!(in_name > 50 && in_word > 50, "{in_name} {in_word}");
    }
}

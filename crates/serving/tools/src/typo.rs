//! Misspelt words: what may be a slip of the hand, and what is another word.

use strsim::damerau_levenshtein;

/// A word of at least so many letters may have one slip.
const ONE_SLIP: usize = 5;
/// A word of at least so many letters may have two.
const TWO_SLIPS: usize = 8;
/// So many slips a whole name may have.
const MOST_SLIPS: usize = 2;

/// The least number of slips (a letter too many, missing, another one, or two swapped) that turn
/// `word` into `written`, where it may be misspelt: people rarely miss the first letter, short words
/// are other words, and numbers are other numbers.
fn word_slips(written: &str, word: &str) -> Option<usize> {
    if written == word {
        return Some(0);
    }
    let length = word.chars().count();
    let allowed = usize::from(length >= ONE_SLIP) + usize::from(length >= TWO_SLIPS);
    let numbers = [written, word].iter().any(|text| text.chars().any(|c| c.is_numeric()));
    let near = written.chars().next() == word.chars().next() && written.chars().count().abs_diff(length) <= allowed;
    if allowed == 0 || numbers || !near {
        return None;
    }
    Some(damerau_levenshtein(written, word)).filter(|slips| *slips <= allowed)
}

/// Whether `written` misspells `word`. Both are folded.
pub(crate) fn is_typo_of(written: &str, word: &str) -> bool {
    word_slips(written, word).is_some_and(|slips| slips > 0)
}

/// How many slips turn a name into `written`, word by word; a missing space is one. `None` if it is
/// another name. Both are folded.
pub(crate) fn slips(written: &str, name: &str) -> Option<usize> {
    let (mut theirs, mut ours) = (name.split(' '), written.split(' '));
    let mut slips = 0;
    loop {
        match (ours.next(), theirs.next()) {
            (Some(written), Some(word)) => match word_slips(written, word) {
                Some(count) => slips += count,
                None => break,
            },
            (None, None) => return Some(slips).filter(|slips| *slips <= MOST_SLIPS),
            _ => break,
        }
    }
    let joined = |text: &str| text.replace(' ', "");
    (name.contains(' ') != written.contains(' ') && joined(name) == joined(written)).then_some(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slips_are_counted_word_by_word() {
        for (written, name, expected) in [
            ("golden gate brigde", "golden gate bridge", Some(1)),
            ("cornell universty", "cornell university", Some(1)),
            ("sagrada familia", "sagrada familia", Some(0)),
            ("vinsent van gogh", "vincent van gogh", Some(1)),
            ("newyork", "new york", Some(1)),
            ("vibranium", "uranium", None),
            ("weight", "height", None),
            ("oslo", "olso", None),
            ("apollo 13", "apollo 11", None),
            ("lake garda", "garda", None),
            ("pariss londno", "paris london", Some(2)),
            ("pariss londno berlim", "paris london berlin", None),
        ] {
            assert_eq!(slips(written, name), expected, "{written} / {name}");
        }
        assert!(is_typo_of("curenc", "currenc") && !is_typo_of("founder", "found") && !is_typo_of("paris", "paris"));
    }
}

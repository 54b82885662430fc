//! Names that nothing has, in the spelling of names that something has.

use autoact_base::random::Rng;
use strsim::levenshtein;

/// A made name differs from every title by at least so many letters, and by a third of its own:
/// fewer are a misspelling.
const LEAST_DISTANCE: usize = 4;
/// Lengths of a made name, in letters.
const LENGTHS: std::ops::RangeInclusive<usize> = 5..=28;
/// Attempts at a name.
const TRIES: usize = 30;

/// A name put together from the beginnings and ends of two drawn titles. It is none of the titles,
/// and misspells none. `None` if no attempt gives one.
pub fn made_name<'a>(
    mut draw: impl FnMut(&mut Rng) -> Option<&'a str>,
    titles: impl Iterator<Item = &'a str> + Clone,
    rng: &mut Rng,
) -> Option<String> {
    (0..TRIES).find_map(|_| {
        let titles_of_two: Vec<&str> = (0..2).filter_map(|_| draw(rng)).collect();
        let [first, second] = titles_of_two.as_slice() else { return None };
        let words: Vec<String> =
            first.split(' ').map(|word| joined(word, rng.pick(&second.split(' ').collect::<Vec<_>>())?, rng)).collect::<Option<_>>()?;
        let made = words.join(" ");
        let lower = made.to_lowercase();
        let letters = made.chars().count();
        let near = |title: &str| levenshtein(&title.to_lowercase(), &lower) < LEAST_DISTANCE.max(letters / 3);
        (LENGTHS.contains(&letters) && !titles.clone().any(near)).then_some(made)
    })
}

/// The beginning of one word and the end of another, or letters in their place.
fn joined(first: &str, second: &str, rng: &mut Rng) -> Option<String> {
    if first.chars().next().is_some_and(char::is_lowercase) || first.chars().count() < 3 {
        return Some(first.to_owned());
    }
    let (a, b): (Vec<char>, Vec<char>) = (first.chars().collect(), second.chars().collect());
    let head = 2 + rng.below(a.len().saturating_sub(2).clamp(1, 3));
    let tail = b.len().saturating_sub(2 + rng.below(3)).max(1).min(b.len());
    let mut made: String = a[..head.min(a.len())].iter().collect();
    if rng.chance(0.3) {
        made.push(*rng.pick(&['a', 'e', 'i', 'o', 'u'])?);
        made.push(*rng.pick(&['l', 'r', 'n', 's', 't', 'm', 'd'])?);
    }
    made.extend(b[tail.min(b.len())..].iter().flat_map(|c| c.to_lowercase()));
    if made.chars().count() < 4 {
        made.push_str(rng.pick(&["ano", "eris", "ulm", "ost"])?);
    }
    Some(made)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_made_name_is_no_title_and_misspells_none() {
        let titles = ["Loire", "Rhine", "Danube", "Marie Curie", "Lake Constance", "Niels Bohr", "Río Negro"];
        let mut rng = Rng::new(3);
        for _ in 0..200 {
            let made = made_name(|rng| rng.pick(&titles).copied(), titles.iter().copied(), &mut rng).unwrap();
            assert!(titles.iter().all(|title| levenshtein(&title.to_lowercase(), &made.to_lowercase()) >= LEAST_DISTANCE), "{made}");
            assert!(made.starts_with(char::is_uppercase), "{made}");
        }
        assert_eq!(made_name(|_| None, titles.iter().copied(), &mut rng), None);
    }
}

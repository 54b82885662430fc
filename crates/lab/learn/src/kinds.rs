//! The kinds of pages. In many corpora the first sentence says what a page is about: `Loire is a river
//! in France.` Where pages begin in other ways, those are of one kind that have many words in common,
//! because they tell the same things of different subjects.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use autoact_tools::Page;
use kodama::{Method, linkage};

/// Number of words after the title in the first sentence that identify a page's kind: `is a river`.
const KIND_WORDS: usize = 3;
/// Fewest pages that are alike by intention.
const FEWEST_ALIKE: usize = 4;
/// In a small corpus the share of the pages of which fewer are no kind is one of this many.
const FEWEST_SHARE: usize = 20;
/// First sentences name the kinds where this share of the pages begins like others.
const NAMED: f64 = 0.9;
/// Two groups of pages are of one kind if the mean cosine between their pages' words is at least this.
/// Three corpora in short sentences whose kinds are known, of 80 pages or so, are grouped exactly, with
/// 0.30, 0.23 and 0.14 where the last groups are joined. In a fourth, whose wording is free, pages of
/// two kinds fall into two and three groups; none joins different kinds.
const ALIKE: f64 = 0.12;
/// Pages that are compared with each other; further ones join the kind that is most like them.
const COMPARED: usize = 1500;
/// Words are compared by this many first letters, if they have `SHORTEST`.
const STEM: usize = 5;
const SHORTEST: usize = 3;

/// Groups the pages by kind. Every page is in one group; groups are in the order of their first pages.
/// `told`: words for what a page states.
pub(crate) fn kinds(pages: &[Page], told: impl Fn(usize) -> BTreeSet<String>) -> Vec<Vec<usize>> {
    let mut named: BTreeMap<String, Vec<usize>> = BTreeMap::new();
    pages.iter().enumerate().for_each(|(at, page)| named.entry(beginning(page)).or_default().push(at));
    let alike: usize = named.values().map(Vec::len).filter(|count| *count >= FEWEST_ALIKE).sum();
    let mut kinds = if alike as f64 >= NAMED * pages.len() as f64 { named.into_values().collect() } else { by_words(pages, told) };
    kinds.sort();
    kinds
}

/// The words after the title in the first sentence.
fn beginning(page: &Page) -> String {
    let first = page.sentences().first().map_or("", |first| *first);
    let rest = first.split_once(page.title.as_str()).map_or(first, |(_, rest)| rest);
    rest.split_whitespace().take(KIND_WORDS).collect::<Vec<_>>().join(" ").trim_end_matches(['.', ',']).to_owned()
}

/// Groups the pages by their words. In prose most pages are like few others, so those in groups of few
/// are grouped by what they state, and those that are like few then are one group.
fn by_words(pages: &[Page], told: impl Fn(usize) -> BTreeSet<String>) -> Vec<Vec<usize>> {
    let fewest = FEWEST_ALIKE.min(pages.len() / FEWEST_SHARE);
    let are_few = |group: &Vec<usize>| group.len() < fewest;
    let words: Vec<BTreeSet<String>> = pages.iter().map(words).collect();
    let (few, mut groups): (Vec<Vec<usize>>, Vec<Vec<usize>>) = clusters(&words).into_iter().partition(are_few);
    let rest = few.concat();
    let stated: Vec<BTreeSet<String>> = rest.iter().map(|page| told(*page)).collect();
    let (few, more): (Vec<Vec<usize>>, Vec<Vec<usize>>) = clusters(&stated).into_iter().partition(are_few);
    groups.extend(more.iter().chain([&few.concat()]).map(|group| group.iter().map(|at| rest[*at]).collect()));
    groups.retain(|group: &Vec<usize>| !group.is_empty());
    groups.iter_mut().for_each(|group| group.sort_unstable());
    groups
}

/// Groups what has these words: by average linkage, over the cosine of the weighted words.
fn clusters(words: &[BTreeSet<String>]) -> Vec<Vec<usize>> {
    let vectors = weighted(words);
    // evenly spread, because files are often sorted by kind
    let stride = words.len().div_ceil(COMPARED).max(1);
    let compared: Vec<usize> = (0..words.len()).step_by(stride).collect();
    let mut distances = Vec::with_capacity(compared.len() * compared.len() / 2);
    for (at, one) in compared.iter().enumerate() {
        distances.extend(compared[at + 1..].iter().map(|other| 1.0 - dot(&vectors[*one], &vectors[*other])));
    }
    let mut groups: Vec<Vec<usize>> = compared.iter().map(|at| vec![*at]).collect();
    for step in linkage(&mut distances, compared.len(), Method::Average).steps() {
        // a step joins two groups by number; one that is too wide leaves its number empty
        let wide = step.dissimilarity > 1.0 - ALIKE;
        let joined = if wide {
            Vec::new()
        } else {
            [std::mem::take(&mut groups[step.cluster1]), std::mem::take(&mut groups[step.cluster2])].concat()
        };
        groups.push(joined);
    }
    groups.retain(|group| !group.is_empty());
    let centres: Vec<Vector> = groups.iter().map(|group| mean(group, &vectors)).collect();
    for at in (0..words.len()).filter(|at| at % stride != 0) {
        let best = centres.iter().map(|centre| dot(centre, &vectors[at])).enumerate().max_by(|a, b| a.1.total_cmp(&b.1));
        match best.filter(|(_, cosine)| *cosine >= ALIKE) {
            Some((group, _)) => groups[group].push(at),
            None => groups.push(vec![at]),
        }
    }
    groups
}

/// The stems of a page's words that begin with a small letter, and of its keys (`Office number: B12`).
/// Other words with a capital letter are names, by which pages of one kind differ.
fn words(page: &Page) -> BTreeSet<String> {
    let keys = page.text.lines().filter_map(|line| line.split_once(": ")).flat_map(|(key, _)| key.split_whitespace());
    let small = page.text.split(|c: char| !c.is_alphabetic()).filter(|word| word.starts_with(char::is_lowercase));
    let all = keys.chain(small).filter(|word| word.chars().count() >= SHORTEST);
    all.map(|word| word.to_lowercase().chars().take(STEM).collect()).collect()
}

/// Weights by number of word, in ascending order of numbers.
type Vector = Vec<(usize, f64)>;

/// Vectors of length 1. A word weighs the more the fewer pages have it; what a single page has is
/// left out.
fn weighted(words: &[BTreeSet<String>]) -> Vec<Vector> {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    words.iter().flatten().for_each(|word| *counts.entry(word).or_default() += 1);
    let numbers: HashMap<&str, (usize, usize)> = counts.into_iter().enumerate().map(|(at, (word, count))| (word, (at, count))).collect();
    let weight = |count: usize| ((words.len() + 1) as f64 / count as f64).ln();
    let vector = |own: &BTreeSet<String>| {
        let known = own.iter().filter_map(|word| numbers.get(word.as_str())).filter(|(_, count)| *count > 1);
        let vector: Vector = known.map(|(at, count)| (*at, weight(*count))).collect();
        let length = vector.iter().map(|(_, weight)| weight * weight).sum::<f64>().sqrt().max(f64::MIN_POSITIVE);
        vector.into_iter().map(|(at, weight)| (at, weight / length)).collect()
    };
    words.iter().map(vector).collect()
}

fn mean(group: &[usize], vectors: &[Vector]) -> Vector {
    let mut sums: BTreeMap<usize, f64> = BTreeMap::new();
    group.iter().flat_map(|at| &vectors[*at]).for_each(|(word, weight)| *sums.entry(*word).or_default() += weight / group.len() as f64);
    sums.into_iter().collect()
}

fn dot(one: &Vector, other: &Vector) -> f64 {
    let (mut a, mut b, mut sum) = (one.iter().peekable(), other.iter().peekable(), 0.0);
    while let (Some((left, x)), Some((right, y))) = (a.peek(), b.peek()) {
        match left.cmp(right) {
            std::cmp::Ordering::Less => drop(a.next()),
            std::cmp::Ordering::Greater => drop(b.next()),
            std::cmp::Ordering::Equal => {
                sum += x * y;
                a.next();
                b.next();
            }
        }
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    fn none(_: usize) -> BTreeSet<String> {
        BTreeSet::new()
    }

    fn page(title: &str, text: &str) -> Page {
        Page { title: title.to_owned(), text: text.to_owned() }
    }

    #[test]
    fn first_sentences_name_kinds() {
        let rivers = ["Loire", "Rhine", "Elbe", "Po"].map(|name| page(name, &format!("The {name} is a river. It flows.")));
        let towns = ["Tours", "Bonn", "Pirna", "Turin"].map(|name| page(name, &format!("{name} is a town, and flows.")));
        let all: Vec<Page> = rivers.into_iter().chain(towns).collect();
        assert_eq!(kinds(&all, none), [vec![0, 1, 2, 3], vec![4, 5, 6, 7]]);
        assert!(kinds(&[], none).is_empty());
        assert_eq!(kinds(&all[..1], none), [vec![0]]);
    }

    /// Pages of two kinds that begin in many ways, and one of another.
    fn shuffled() -> Vec<Page> {
        let person = |at: usize| {
            let facts = ["Her badge is 12.", "She joined in 2001.", "Extension: 4411", "She reports to Ann."];
            page(&format!("Person {at}"), &(0..4).map(|other| facts[(at + other * 3) % 4]).collect::<Vec<_>>().join("\n"))
        };
        let office = |at: usize| {
            let facts = ["It stands in Rome.", "Opened 1990, with a warden.", "Capacity: 90", "The street is Long Row."];
            page(&format!("Office {at}"), &(0..4).map(|other| facts[(at + other * 3) % 4]).collect::<Vec<_>>().join("\n"))
        };
        (0..6).flat_map(|at| [person(at), office(at)]).chain([page("Motto", "Nothing whatever.")]).collect()
    }

    #[test]
    fn pages_that_tell_the_same_things_are_of_one_kind() {
        assert_eq!(kinds(&shuffled(), none), [vec![0, 2, 4, 6, 8, 10], vec![1, 3, 5, 7, 9, 11], vec![12]]);
    }

    /// Prose has hardly a word in common, but some of it states the same things.
    #[test]
    fn pages_whose_words_differ_are_grouped_by_what_they_state() {
        let letter = |at: usize| char::from(b'a' + at as u8);
        let text = |at: usize| [letter(at / 26), letter(at % 26), 'x'].iter().collect::<String>();
        let all: Vec<Page> = (0..90).map(|at| page(&format!("P{at}"), &text(at))).collect();
        let told = |at: usize| -> BTreeSet<String> {
            let words: &[&str] = match at % 9 {
                0 => &["extension", "join"],
                1 => &["cost", "weigh"],
                _ => &[],
            };
            words.iter().map(|word| (*word).to_owned()).collect()
        };
        let sizes: Vec<usize> = kinds(&all, told).iter().map(Vec::len).collect();
        assert_eq!(sizes, [10, 10, 70]);
    }

    #[test]
    fn a_large_corpus_is_compared_in_part() {
        let mut many: Vec<Page> = (0..300).flat_map(|_| shuffled()).collect();
        many.iter_mut().enumerate().for_each(|(at, page)| page.text = format!("{at}.\n{}", page.text));
        let kinds = kinds(&many, none);
        assert_eq!(kinds.iter().map(Vec::len).sum::<usize>(), many.len());
        assert_eq!(kinds.iter().filter(|kind| kind.len() == 1800).count(), 2);
    }
}

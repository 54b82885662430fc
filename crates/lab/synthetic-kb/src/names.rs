//! Invented names with realistic spelling. Each source of names has a Markov model of characters
//! and the templates of its real titles (`Mount X`, `The X of Y`). So all tokens of real names
//! occur in training.

use std::collections::{HashMap, HashSet};

use autoact_base::random::Rng;

use crate::base::KnowledgeBase;
use crate::text::fill;

/// Context length of the character model, in characters.
const ORDER: usize = 3;
/// A word that occurs in at least this many titles of a source, and in at least this share of
/// them ([`SHAPE_SHARE`]), belongs to a title template.
const SHAPE_COUNT: usize = 4;
/// See [`SHAPE_COUNT`].
const SHAPE_SHARE: f64 = 0.02;
/// Probability that a slot of a template with several words gets a real word of another title.
const REAL_WORD: f64 = 0.25;
/// Probability of an unusual name such as `K2` or `J. R. R. Arlen`. Real names are odd more rarely,
/// but a small model copies only what it has often copied.
const ODD: f64 = 0.08;
/// Probability of a letter with a diacritic in place of one without.
const ACCENTED: f64 = 0.04;
/// Maximum length of an invented name, in characters.
const LONGEST: usize = 28;
/// Unit of attempts: the constraints on a name are relaxed after multiples of it.
const TRIES: usize = 40;

/// The character model and the title templates of one source of names.
#[derive(Debug, Clone, Default)]
struct Spelling {
    /// The characters observed after each context, with repetitions; `\0` ends the word. The
    /// initial context depends on the position of the word in the title (first or later).
    after: HashMap<[char; ORDER], Vec<char>>,
    shapes: Vec<Vec<Piece>>,
    words: Vec<String>,
}

#[derive(Debug, Clone)]
enum Piece {
    Kept(String),
    /// An invented word: whether it is the title's first slot, and whether it has a capital.
    Slot {
        first: bool,
        capital: bool,
    },
}

/// Generates names. A name is never a real title and never contains a real title of four letters
/// or more.
#[derive(Debug, Clone, Default)]
pub struct NameMaker {
    spellings: HashMap<String, Spelling>,
    all: Spelling,
    real: HashSet<String>,
    longest_real: usize,
}

impl NameMaker {
    /// Learns the spelling of each type's titles and each relation's words. The titles of `base`
    /// are never generated.
    pub fn fit(base: &KnowledgeBase) -> NameMaker {
        let mut sources: HashMap<String, Vec<String>> = HashMap::new();
        let schema = base.schema();
        for entity in base.entities() {
            let kind = &schema.types[entity.kind];
            sources.entry(kind.name.clone()).or_default().push(entity.title.clone());
            for (relation, fact) in kind.relations.iter().zip(&entity.facts) {
                if let Some(fact) = fact.as_ref().filter(|fact| fact.target.is_none() && fact.number.is_none()) {
                    sources.entry(format!("{}.{}", kind.name, relation.name)).or_default().push(fact.text.clone());
                }
            }
        }
        let mut names: Vec<(String, Vec<String>)> = sources.into_iter().collect();
        names.sort();
        NameMaker::from_lists(names, base.entities().iter().map(|entity| entity.title.as_str()))
    }

    /// Learns from lists of names. The names in `real` are never generated.
    pub fn from_lists<'a>(lists: Vec<(String, Vec<String>)>, real: impl Iterator<Item = &'a str>) -> NameMaker {
        let titles: Vec<String> = lists.iter().filter(|(source, _)| !source.contains('.')).flat_map(|(_, names)| names.clone()).collect();
        let real: HashSet<String> = real.map(str::to_lowercase).collect();
        NameMaker {
            all: Spelling::learn(&titles),
            spellings: lists.into_iter().map(|(source, names)| (source, Spelling::learn(&names))).collect(),
            longest_real: real.iter().map(|title| title.split_whitespace().count()).max().unwrap_or(0),
            real,
        }
    }

    /// A new name in the spelling of `source` (a type, or `type.relation`). If `forms` is not
    /// empty, one of them is filled: `{n}` with an invented word, `{w}` with one of `words`. The
    /// name is added to `used` in lower case.
    pub fn invent(&self, source: &str, forms: &[String], words: &[String], used: &mut HashSet<String>, rng: &mut Rng) -> String {
        let known = self.spellings.get(source);
        let spelling = known.filter(|spelling| !spelling.shapes.is_empty()).unwrap_or(&self.all);
        let mut name;
        for attempt in 0..TRIES * 4 {
            // a source of a dozen names (planets) soon has no new ones
            let spelling = if attempt < TRIES * 2 { spelling } else { &self.all };
            name = match rng.pick(forms) {
                Some(form) => {
                    let word = rng.pick(words).cloned().unwrap_or_default();
                    let made = [spelling.word(rng.chance(0.7), true, rng), spelling.word(false, true, rng)];
                    let mut next = made.into_iter();
                    let filled: Vec<String> =
                        form.split("{n}").map(|part| fill(part, |slot| (slot == "w").then(|| word.clone()))).collect();
                    let mut out = filled.first().cloned().unwrap_or_default();
                    for part in filled.iter().skip(1) {
                        out.push_str(&next.next().unwrap_or_default());
                        out.push_str(part);
                    }
                    out
                }
                None if rng.chance(ODD) => odd(spelling, rng),
                None => spelling.title(rng),
            };
            if rng.chance(ACCENTED) {
                name = accented(&name, rng);
            }
            let length = name.chars().count();
            // short names are rare, and none ends like a sentence
            let least = if attempt < TRIES { 4 } else { 2 };
            let long_enough = length >= least || name.chars().any(|c| c.is_ascii_digit());
            if long_enough && !name.ends_with('.') && length <= LONGEST && !self.is_real(&name) && used.insert(name.to_lowercase()) {
                return name;
            }
        }
        // practically unreachable; a number is always new
        let mut number = used.len();
        loop {
            name = format!("N{number}");
            if used.insert(name.to_lowercase()) {
                return name;
            }
            number += 1;
        }
    }

    /// Whether a name is a real title, or contains one of four letters or more as whole words.
    pub fn is_real(&self, name: &str) -> bool {
        let lower = name.to_lowercase();
        if self.real.contains(&lower) {
            return true;
        }
        let words: Vec<&str> = lower.split_whitespace().collect();
        (0..words.len()).any(|from| {
            (from + 1..=words.len().min(from + self.longest_real)).any(|to| {
                let part = words[from..to].join(" ");
                part.chars().count() >= 4
                    && (self.real.contains(&part) || part.strip_suffix("'s").is_some_and(|stem| self.real.contains(stem)))
            })
        })
    }
}

/// A name with initials, capitals, figures, a hyphen or a syllable that repeats itself.
fn odd(spelling: &Spelling, rng: &mut Rng) -> String {
    let capital = |rng: &mut Rng| char::from(b'A' + rng.below(26) as u8);
    let word = |rng: &mut Rng| spelling.word(false, true, rng);
    match rng.below(10) {
        0 => format!("{}{}", capital(rng), rng.between(1, 99)),
        1 => format!("{}{}{}", capital(rng), capital(rng), rng.between(1, 999)),
        2 => (0..2 + rng.below(4)).map(|_| capital(rng)).collect(),
        3 => {
            let first = capital(rng);
            let second = if rng.chance(0.5) { first } else { capital(rng) };
            let initials = if rng.chance(0.5) { format!("{}. {first}. {second}.", capital(rng)) } else { format!("{first}. {second}.") };
            format!("{initials} {}", word(rng))
        }
        4 => {
            let syllable: String = word(rng).to_lowercase().chars().take(2 + rng.below(2)).collect();
            let repeated = capitalised(&syllable.repeat(2 + rng.below(2)));
            if rng.chance(0.5) { format!("{repeated}{}", word(rng).to_lowercase().chars().take(3).collect::<String>()) } else { repeated }
        }
        5 => format!("{}-{}", word(rng), if rng.chance(0.5) { word(rng) } else { word(rng).to_lowercase() }),
        6 => format!("{}{}", ["O'", "Mc", "D'", "L'"][rng.below(4)], word(rng)),
        7 => format!("{} {}", word(rng), ["II", "III", "IV", "7", "21", "101", "1900", "360"][rng.below(8)]),
        8 => {
            let twice = word(rng);
            format!("{twice} {twice}")
        }
        _ => format!("{}{}", word(rng), word(rng)),
    }
}

/// The name with one letter that has a diacritic.
fn accented(name: &str, rng: &mut Rng) -> String {
    const MARKED: [(char, &str); 14] = [
        ('a', "áàâãäåăąā"),
        ('e', "éèêëęěē"),
        ('i', "íìîïī"),
        ('o', "óòôõöøőō"),
        ('u', "úùûüůűū"),
        ('c', "çćč"),
        ('n', "ñńň"),
        ('s', "śšş"),
        ('z', "źżž"),
        ('l', "ł"),
        ('r', "ř"),
        ('y', "ý"),
        ('g', "ğ"),
        ('t', "ť"),
    ];
    let mut letters: Vec<char> = name.chars().collect();
    let marked = |letter: char| MARKED.iter().find(|(plain, _)| *plain == letter).map(|(_, marked)| marked.chars().collect::<Vec<_>>());
    let at: Vec<usize> = (1..letters.len()).filter(|at| marked(letters[*at]).is_some()).collect();
    if let Some(at) = rng.pick(&at)
        && let Some(letter) = marked(letters[*at]).as_deref().and_then(|marked| rng.pick(marked))
    {
        letters[*at] = *letter;
    }
    letters.into_iter().collect()
}

impl Spelling {
    fn learn(names: &[String]) -> Spelling {
        let mut counts: HashMap<&str, usize> = HashMap::new();
        for name in names {
            let distinct: HashSet<&str> = name.split(' ').collect();
            distinct.into_iter().for_each(|word| *counts.entry(word).or_default() += 1);
        }
        let least = SHAPE_COUNT.max((names.len() as f64 * SHAPE_SHARE) as usize);
        let mut spelling = Spelling::default();
        for name in names {
            let mut shape = Vec::new();
            let words: Vec<&str> = name.split(' ').filter(|word| !word.is_empty()).collect();
            let mut first = true;
            for word in &words {
                let small = word.chars().next().is_some_and(char::is_lowercase) && words.len() > 1;
                let kept = words.len() > 1 && (small || counts.get(word).copied().unwrap_or(0) >= least);
                if kept || !word.chars().any(char::is_alphabetic) {
                    shape.push(Piece::Kept((*word).to_owned()));
                } else {
                    let capital = word.chars().next().is_some_and(char::is_uppercase);
                    shape.push(Piece::Slot { first, capital });
                    spelling.learn_word(word, first);
                    first = false;
                }
            }
            if shape.iter().any(|piece| matches!(piece, Piece::Slot { .. })) {
                spelling.shapes.push(shape);
            }
        }
        spelling
    }

    fn learn_word(&mut self, word: &str, first: bool) {
        self.words.push(word.to_owned());
        let mut context = start(first);
        for c in word.chars().chain(['\0']) {
            self.after.entry(context).or_default().push(c);
            context.rotate_left(1);
            context[ORDER - 1] = c;
        }
    }

    fn title(&self, rng: &mut Rng) -> String {
        let Some(shape) = rng.pick(&self.shapes) else { return String::new() };
        let mut out = String::new();
        for piece in shape {
            if !out.is_empty() {
                out.push(' ');
            }
            match piece {
                Piece::Kept(word) => out.push_str(word),
                Piece::Slot { first, capital } => {
                    let real = shape.len() > 1 && rng.chance(REAL_WORD);
                    match self.words.get(rng.below(self.words.len())).filter(|_| real) {
                        Some(word) => out.push_str(word),
                        None => out.push_str(&self.word(*first, *capital, rng)),
                    }
                }
            }
        }
        out
    }

    fn word(&self, first: bool, capital: bool, rng: &mut Rng) -> String {
        for _ in 0..TRIES {
            let mut context = start(first && self.after.contains_key(&start(true)));
            if !self.after.contains_key(&context) {
                context = start(true);
            }
            let mut word = String::new();
            while word.len() < 24 {
                let Some(next) = self.after.get(&context).and_then(|letters| rng.pick(letters)) else { break };
                if *next == '\0' {
                    break;
                }
                word.push(*next);
                context.rotate_left(1);
                context[ORDER - 1] = *next;
            }
            let letters = word.chars().count();
            if (3..=13).contains(&letters) && word.chars().any(|c| "aeiouyáéíóúäöüAEIOUY".contains(c)) {
                return if capital { capitalised(&word) } else { word };
            }
        }
        "Or".to_owned()
    }
}

/// The initial context of a word. The first word of a title (a given name) is spelt differently
/// from later words (a family name).
fn start(first: bool) -> [char; ORDER] {
    [if first { '\u{1}' } else { '\u{2}' }; ORDER]
}

fn capitalised(word: &str) -> String {
    let mut chars = word.chars();
    chars.next().map(|first| first.to_uppercase().chain(chars).collect()).unwrap_or_default()
}

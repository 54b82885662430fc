//! Forms of English verbs, as far as a sentence needs them to be turned into a question.

/// Verbs whose past is not made with `-ed`: base form, past, past participle.
const IRREGULAR: [(&str, &str, &str); 51] = [
    ("bear", "bore", "born"),
    ("become", "became", "become"),
    ("begin", "began", "begun"),
    ("breed", "bred", "bred"),
    ("bring", "brought", "brought"),
    ("build", "built", "built"),
    ("buy", "bought", "bought"),
    ("catch", "caught", "caught"),
    ("choose", "chose", "chosen"),
    ("come", "came", "come"),
    ("cut", "cut", "cut"),
    ("draw", "drew", "drawn"),
    ("drive", "drove", "driven"),
    ("fall", "fell", "fallen"),
    ("feed", "fed", "fed"),
    ("find", "found", "found"),
    ("get", "got", "got"),
    ("give", "gave", "given"),
    ("go", "went", "gone"),
    ("grow", "grew", "grown"),
    ("hang", "hung", "hung"),
    ("have", "had", "had"),
    ("hold", "held", "held"),
    ("keep", "kept", "kept"),
    ("know", "knew", "known"),
    ("lay", "laid", "laid"),
    ("lead", "led", "led"),
    ("leave", "left", "left"),
    ("lend", "lent", "lent"),
    ("lose", "lost", "lost"),
    ("make", "made", "made"),
    ("meet", "met", "met"),
    ("pay", "paid", "paid"),
    ("put", "put", "put"),
    ("rise", "rose", "risen"),
    ("run", "ran", "run"),
    ("sell", "sold", "sold"),
    ("send", "sent", "sent"),
    ("set", "set", "set"),
    ("shut", "shut", "shut"),
    ("sing", "sang", "sung"),
    ("sink", "sank", "sunk"),
    ("speak", "spoke", "spoken"),
    ("spend", "spent", "spent"),
    ("stand", "stood", "stood"),
    ("take", "took", "taken"),
    ("teach", "taught", "taught"),
    ("wear", "wore", "worn"),
    ("weave", "wove", "woven"),
    ("win", "won", "won"),
    ("write", "wrote", "written"),
];
/// Words in `-ed` and `-s` that are no verbs, or not such as ask for what follows them.
const NO_VERBS: [&str; 16] =
    ["always", "as", "does", "has", "hundred", "indeed", "is", "its", "need", "others", "perhaps", "red", "sometimes", "this", "us", "was"];

/// Verbs without a noun for who does it.
const WITHOUT_AGENT: [&str; 17] =
    ["become", "come", "cut", "fall", "get", "go", "have", "head", "know", "leave", "meet", "put", "rise", "run", "set", "stand", "take"];
/// Ends of verbs whose agents end in `-or`, beside those in `-ate`.
const AGENT_IN_OR: [&str; 5] = ["ct", "invent", "edit", "audit", "supervise"];

/// Whether a word in small letters may be a past participle.
pub(super) fn is_participle(word: &str) -> bool {
    is_verb(word) && (word.ends_with("ed") || IRREGULAR.iter().any(|(_, _, participle)| *participle == word))
}

/// Whether a word in small letters may be the past of a verb, or a participle.
pub(crate) fn is_past(word: &str) -> bool {
    base_of_past(word).is_some()
}

/// The past of the verb with this participle: `taken` is of `took`.
pub(super) fn past_of(participle: &str) -> &str {
    IRREGULAR.iter().find(|(_, _, other)| *other == participle).map_or(participle, |(_, past, _)| past)
}

/// The base form of a word in the past, or of a participle: `taught` is of `teach`. `None`: it is
/// neither.
pub(super) fn base_of_past(word: &str) -> Option<String> {
    if let Some((base, ..)) = IRREGULAR.iter().find(|(_, past, participle)| *past == word || *participle == word) {
        return Some((*base).to_owned());
    }
    let stem = word.strip_suffix("ed").filter(|stem| stem.len() > 1 && is_verb(word))?;
    if let Some(stem) = stem.strip_suffix('i') {
        return Some(if stem.len() > 1 { format!("{stem}y") } else { format!("{stem}ie") });
    }
    let mut last = stem.chars().rev();
    let (last, before) = (last.next()?, last.next()?);
    let vowel = |c: char| "aeiou".contains(c);
    if last == before && !"lsz".contains(last) {
        return Some(stem[..stem.len() - last.len_utf8()].to_owned()); // stopped
    }
    // moved, placed, used, located; but passed, rowed, designed, joined, visited
    let silent = "vczu".contains(last)
        || (last == 's' && before != 's')
        || (last == 'g' && (before != 'n' || stem.ends_with("ang")))
        || (last == 't' && before == 'a' && (!stem.ends_with("eat") || stem.ends_with("creat")))
        || (last == 'r' && "ui".contains(before))
        || (last == 'l' && !vowel(before) && before != 'l')
        || (last == 'n' && before == 'i' && !stem.ends_with("oin") && !stem.ends_with("ain"))
        || ["ad", "ag", "ak", "ok", "id", "od", "am", "om", "ar", "ip", "yp", "ot"].iter().any(|end| {
            let onset = stem.strip_suffix(end).and_then(|onset| onset.chars().next_back());
            stem.ends_with(end) && onset.is_some_and(|c| !vowel(c))
        });
    Some(if silent { format!("{stem}e") } else { stem.to_owned() })
}

/// The past of a base form: `joined`, `took`.
pub(super) fn past_of_base(base: &str) -> String {
    if let Some((_, past, _)) = IRREGULAR.iter().find(|(other, ..)| *other == base) {
        return (*past).to_owned();
    }
    let consonant_y = base.strip_suffix('y').filter(|stem| !stem.ends_with(['a', 'e', 'i', 'o', 'u']));
    match consonant_y {
        Some(stem) => format!("{stem}ied"),
        None if base.ends_with('e') => format!("{base}d"),
        None => format!("{base}ed"),
    }
}

/// Whether a word is the base form of a verb whose past is not made with `-ed`: `get`.
pub(super) fn is_base(word: &str) -> bool {
    IRREGULAR.iter().any(|(base, ..)| *base == word)
}

/// The past participle of a base form: `joined`, `taken`. `None`: it has none.
pub(super) fn participle_of(base: &str) -> Option<String> {
    let irregular = IRREGULAR.iter().find(|(other, ..)| *other == base);
    let participle = irregular.map_or_else(|| past_of_base(base), |(_, _, participle)| (*participle).to_owned());
    is_participle(&participle).then_some(participle)
}

/// Who does what a base form says: `builder`, `inventor`. `None`: there is no such word.
pub(super) fn agent_of(base: &str) -> Option<String> {
    if WITHOUT_AGENT.contains(&base) || !base.is_ascii() {
        return None;
    }
    let vowel = |c: char| "aeiou".contains(c);
    let silent = base.strip_suffix('e');
    if base.ends_with("ate") || AGENT_IN_OR.iter().any(|end| base.ends_with(end)) {
        return Some(format!("{}or", silent.unwrap_or(base)));
    }
    let consonant_y = base.strip_suffix('y').filter(|stem| !stem.ends_with(vowel));
    let mut end = base.chars().rev();
    let (last, before, onset) = (end.next()?, end.next()?, end.next().unwrap_or('a'));
    let short = "bdgmnpt".contains(last) && vowel(before) && !vowel(onset) && base.chars().filter(|c| vowel(*c)).count() == 1;
    Some(match (consonant_y, silent) {
        (Some(stem), _) => format!("{stem}ier"),
        (_, Some(stem)) => format!("{stem}er"),
        _ if short => format!("{base}{last}er"),
        _ => format!("{base}er"),
    })
}

/// The third person of a base form: `teaches`.
pub(super) fn third_of(base: &str) -> String {
    if base == "have" {
        return "has".to_owned();
    }
    let consonant_y = base.strip_suffix('y').filter(|stem| !stem.ends_with(['a', 'e', 'i', 'o', 'u']));
    match consonant_y {
        Some(stem) => format!("{stem}ies"),
        None if ["s", "sh", "ch", "x", "z", "o"].iter().any(|end| base.ends_with(end)) => format!("{base}es"),
        None => format!("{base}s"),
    }
}

/// The base form of a word in the third person: `carries` is of `carry`. `None`: it is no such word.
pub(super) fn base_of_third(word: &str) -> Option<String> {
    let stem = word.strip_suffix('s').filter(|stem| stem.len() > 1 && !stem.ends_with(['s', 'u']) && is_verb(word))?;
    if let Some(stem) = stem.strip_suffix("ie") {
        return Some(if stem.len() > 1 { format!("{stem}y") } else { format!("{stem}ie") });
    }
    let hissing = ["sse", "she", "che", "xe", "zze", "oe"].iter().any(|end| stem.ends_with(end));
    Some(stem[..stem.len() - usize::from(hissing)].to_owned())
}

fn is_verb(word: &str) -> bool {
    word.len() > 2 && word.chars().all(|c| c.is_ascii_lowercase()) && !NO_VERBS.contains(&word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_base_form_is_found_from_past_participle_and_third_person() {
        for (past, base) in [
            ("taught", "teach"),
            ("built", "build"),
            ("taken", "take"),
            ("joined", "join"),
            ("founded", "found"),
            ("moved", "move"),
            ("located", "locate"),
            ("placed", "place"),
            ("named", "name"),
            ("used", "use"),
            ("hired", "hire"),
            ("designed", "design"),
            ("opened", "open"),
            ("visited", "visit"),
            ("studied", "study"),
            ("stopped", "stop"),
            ("passed", "pass"),
            ("called", "call"),
            ("sailed", "sail"),
            ("launched", "launch"),
            ("managed", "manage"),
            ("settled", "settle"),
            ("trained", "train"),
            ("invented", "invent"),
            ("voted", "vote"),
            ("looked", "look"),
            ("loaded", "load"),
            ("headed", "head"),
            ("owned", "own"),
            ("married", "marry"),
            ("painted", "paint"),
            ("died", "die"),
            ("shared", "share"),
            ("cleared", "clear"),
        ] {
            assert_eq!(base_of_past(past).as_deref(), Some(base), "{past}");
            assert!(past_of_base(base) == past_of(past) || past == "stopped", "{past}");
        }
        for (third, base) in [
            ("teaches", "teach"),
            ("comes", "come"),
            ("carries", "carry"),
            ("lies", "lie"),
            ("goes", "go"),
            ("passes", "pass"),
            ("uses", "use"),
            ("sails", "sail"),
            ("manages", "manage"),
            ("houses", "house"),
        ] {
            assert_eq!(base_of_third(third).as_deref(), Some(base), "{third}");
            assert_eq!(third_of(base), third);
        }
        assert_eq!([base_of_third("is"), base_of_third("this"), base_of_third("pass"), base_of_past("need")], [None, None, None, None]);
        assert_eq!([past_of("taken"), past_of("named")], ["took", "named"]);
        for (base, agent) in [
            ("build", "builder"),
            ("raise", "raiser"),
            ("breed", "breeder"),
            ("plan", "planner"),
            ("open", "opener"),
            ("supply", "supplier"),
            ("invent", "inventor"),
            ("direct", "director"),
            ("translate", "translator"),
            ("supervise", "supervisor"),
            ("found", "founder"),
        ] {
            assert_eq!(agent_of(base).as_deref(), Some(agent));
        }
        assert_eq!(agent_of("head"), None, "a header is something else");
        assert!(is_participle("held") && is_participle("based") && !is_participle("red") && !is_participle("holds"));
    }
}

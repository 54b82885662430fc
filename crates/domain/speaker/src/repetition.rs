//! Text that says the same again and again, as small models do when they lose the thread.

/// So many copies of a unit in a row are repetition.
const LEAST_COPIES: usize = 4;
/// Copies together have at least so many bytes: `hm hm hm hm` is none.
const LEAST_BYTES: usize = 32;
/// A unit has at most so many bytes.
const LONGEST_UNIT: usize = 160;

/// Whether a text repeats itself up to its end. The last copy may be a part of one.
pub(crate) fn repeats_itself(text: &str) -> bool {
    let bytes = text.as_bytes();
    let longest = LONGEST_UNIT.min(bytes.len() / LEAST_COPIES);
    (1..=longest).any(|unit| {
        let same = bytes.iter().rev().zip(bytes.iter().rev().skip(unit)).take_while(|(last, before)| last == before).count();
        same + unit >= LEAST_BYTES.max(LEAST_COPIES * unit)
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_repeats_itself() {
        for (text, expected) in [
            ("The area is 1295000000000000000000000000000000000000000000", true),
            ("It is J. R. R. R. R. R. R. R. R. R. R. R. R. R. R. R.", true),
            ("I need it. I need it. I need it. I need it. I ne", true),
            ("żółw żółw żółw żółw żółw żółw", true),
            ("I need the length of the Loire.", false),
            ("It was written by J. R. R. Tolkien.", false),
            ("no no no no", false),
            ("", false),
        ] {
            assert_eq!(repeats_itself(text), expected, "{text}");
        }
    }

    proptest! {
        #[test]
        fn a_repeated_unit_is_seen(before in "[a-z ]{0,30}", unit in "[a-zé]{3,20}", copies in 12_usize..30) {
            let text = format!("{before}{}", unit.repeat(copies));
            prop_assert!(repeats_itself(&text), "{}", text);
        }

        #[test]
        fn nothing_panics(text in any::<String>()) {
            let _ = repeats_itself(&text);
        }
    }
}

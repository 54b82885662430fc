//! Text that says the same again and again, as small models do when they lose the thread.

/// So many copies of a unit in a row are repetition.
const LEAST_COPIES: usize = 4;
/// Copies together have at least so many bytes: `hm hm hm hm` is not worth a cut.
const LEAST_BYTES: usize = 32;
/// A unit has at most so many bytes.
const LONGEST_UNIT: usize = 160;

/// Where the first copy ends of what a text repeats up to its end. `None` if it ends otherwise. The
/// last copy may be a part of one.
pub(crate) fn first_copy(text: &str) -> Option<usize> {
    let bytes = text.as_bytes();
    let longest = LONGEST_UNIT.min(bytes.len() / LEAST_COPIES);
    let end = (1..=longest).find_map(|unit| {
        let same = bytes.iter().rev().zip(bytes.iter().rev().skip(unit)).take_while(|(last, before)| last == before).count();
        let repeated = same + unit;
        (repeated >= LEAST_BYTES.max(LEAST_COPIES * unit)).then(|| bytes.len() - repeated + unit)
    })?;
    (end..=bytes.len()).find(|at| text.is_char_boundary(*at))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_first_copy_stays() {
        for (text, kept) in [
            // a copy begins where the text begins to repeat itself
            ("The area is 1295000000000000000000000000000000000000000000", Some("The area is 12950")),
            ("It is J. R. R. R. R. R. R. R. R. R. R. R. R. R. R. R.", Some("It is J. R")),
            ("I need it. I need it. I need it. I need it. I ne", Some("I need it. ")),
            ("żółw żółw żółw żółw żółw żółw", Some("żółw ")),
            ("I need the length of the Loire.", None),
            ("no no no no", None),
            ("", None),
        ] {
            assert_eq!(first_copy(text).map(|end| &text[..end]), kept, "{text}");
        }
    }

    proptest! {
        #[test]
        fn a_repeated_unit_is_found(before in "[a-z ]{0,30}", unit in "[a-zé]{3,20}", copies in 12_usize..30) {
            let text = format!("{before}{}", unit.repeat(copies));
            let end = first_copy(&text).unwrap();
            prop_assert!(text.is_char_boundary(end) && end <= before.len() + unit.len() + 3);
        }

        #[test]
        fn nothing_panics(text in any::<String>()) {
            let _ = first_copy(&text);
        }
    }
}

use proptest::prelude::*;
use serde_json::{Value, json};
use tokenizers::Tokenizer;

use super::*;

/// A `tokenizer.json` whose vocabulary has these characters and what the merges make.
fn file(characters: &str, merges: &[(usize, usize)], options: Value, lines: bool) -> String {
    let mut tokens: Vec<String> = characters.chars().map(String::from).collect();
    let mut pairs = Vec::new();
    for (left, right) in merges {
        let pair = (tokens[left % tokens.len()].clone(), tokens[right % tokens.len()].clone());
        if !tokens.contains(&[pair.0.as_str(), &pair.1].concat()) {
            tokens.push([pair.0.as_str(), &pair.1].concat());
        }
        // the same pair again has the later rank
        pairs.push(pair);
    }
    tokens.push("<unk>".to_owned());
    if options["byte_fallback"] == true {
        tokens.extend((0..=255u8).map(|byte| format!("<0x{byte:02X}>")));
    }
    // ids in an order of their own, with a gap
    let vocab: serde_json::Map<String, Value> =
        tokens.iter().rev().enumerate().map(|(at, token)| (token.clone(), json!(at + usize::from(at > 2)))).collect();
    let merges: Vec<Value> =
        pairs.iter().map(|(left, right)| if lines { json!(format!("{left} {right}")) } else { json!([left, right]) }).collect();
    let mut model = json!({"type": "BPE", "vocab": vocab, "merges": merges});
    model.as_object_mut().unwrap().extend(options.as_object().unwrap().clone());
    json!({"version": "1.0", "added_tokens": [], "model": model}).to_string()
}

fn is_small(tokenizer: &WordTokenizer) -> bool {
    matches!(tokenizer.get_model(), Words::Bpe(_))
}

proptest! {
    /// Tokens, texts and places are those of the library.
    #[test]
    fn words_have_the_librarys_tokens(
        merges in prop::collection::vec((0..40usize, 0..40usize), 0..40),
        words in prop::collection::vec("[a-dé中x<>0-9]{0,40}", 1..8),
        (fuse_unk, byte_fallback, ignore_merges, lines, unknown) in any::<(bool, bool, bool, bool, bool)>(),
    ) {
        let unk = if unknown { json!("<unk>") } else { Value::Null };
        let options = json!({
            "fuse_unk": fuse_unk, "byte_fallback": byte_fallback, "ignore_merges": ignore_merges, "unk_token": unk,
        });
        let text = file("abcdé中", &merges, options, lines);
        let (ours, reference) = (read(&text).unwrap(), text.parse::<Tokenizer>().unwrap());
        prop_assert!(is_small(&ours));
        for word in &words {
            prop_assert_eq!(ours.get_model().tokenize(word).unwrap(), reference.get_model().tokenize(word).unwrap());
        }
        for token in words.iter().map(String::as_str).chain(["a", "ab", "中", "<unk>", ""]) {
            prop_assert_eq!(ours.token_to_id(token), reference.token_to_id(token));
        }
        for id in 0..60 {
            prop_assert_eq!(ours.id_to_token(id), reference.id_to_token(id));
        }
        prop_assert_eq!(ours.get_vocab(true), reference.get_vocab(true));
    }
}

#[test]
fn a_long_word_is_merged_as_the_library_does() {
    let text = file("ab", &[(0, 0), (2, 2), (3, 3), (0, 1), (4, 4), (5, 1)], json!({}), false);
    let (ours, reference) = (read(&text).unwrap(), text.parse::<Tokenizer>().unwrap());
    let word: String = (0..5000).map(|at| if at % 7 == 3 || at % 31 == 0 { 'b' } else { 'a' }).collect();
    assert_eq!(ours.get_model().tokenize(&word).unwrap(), reference.get_model().tokenize(&word).unwrap());
}

#[test]
fn what_is_not_plain_is_the_librarys() {
    for options in [json!({"dropout": 0.5}), json!({"continuing_subword_prefix": "##"}), json!({"end_of_word_suffix": "</w>"})] {
        // a prefix is part of merged tokens, so there are no merges
        assert!(!is_small(&read(&file("ab", &[], options, false)).unwrap()));
    }
    let pieces = json!({"version": "1.0", "added_tokens": [], "model": {
        "type": "WordPiece", "unk_token": "u", "continuing_subword_prefix": "#", "max_input_chars_per_word": 9, "vocab": {"u": 0},
    }});
    assert!(!is_small(&read(&pieces.to_string()).unwrap()));
    assert!(!is_small(&read(&file("ab", &[], json!({"unk_token": "none"}), false)).unwrap()));
    assert!(is_small(&read(&file("ab", &[], json!({"dropout": null}), true)).unwrap()));
    for wrong in [json!({"merges": [["a", "z"]]}), json!({"merges": ["a"]}), json!({"vocab": 1})] {
        assert!(read(&file("ab", &[], wrong, false)).is_err());
    }
    assert!(read("{}").is_err());
}

//! The tokenizer of the bundled model: byte-level BPE. Every digit is one token, so that numbers
//! can be copied and compared digit by digit.

use std::collections::HashSet;
use std::path::Path;

use tokenizers::decoders::byte_level::ByteLevel as ByteLevelDecoder;
use tokenizers::models::TrainerWrapper;
use tokenizers::models::bpe::{BPE, BpeTrainer};
use tokenizers::pre_tokenizers::PreTokenizerWrapper;
use tokenizers::pre_tokenizers::byte_level::ByteLevel;
use tokenizers::pre_tokenizers::digits::Digits;
use tokenizers::pre_tokenizers::sequence::Sequence;
use tokenizers::{AddedToken, Tokenizer};

/// The only special token. It ends plain texts.
pub(crate) const END: &str = "<|end|>";

/// Fits a vocabulary of `size` tokens to `texts`.
pub(crate) fn fit(texts: &[String], size: usize) -> tokenizers::Result<Tokenizer> {
    let mut tokenizer = Tokenizer::new(BPE::default());
    tokenizer.with_pre_tokenizer(Some(PreTokenizerWrapper::Sequence(Sequence::new(vec![
        PreTokenizerWrapper::Digits(Digits::new(true)),
        PreTokenizerWrapper::ByteLevel(ByteLevel::new(false, false, true)),
    ]))));
    tokenizer.with_decoder(Some(ByteLevelDecoder::new(false, false, true)));
    let alphabet: HashSet<char> = ByteLevel::alphabet().into_iter().collect();
    let trainer = BpeTrainer::builder()
        .vocab_size(size)
        .show_progress(false)
        .special_tokens(vec![AddedToken::from(END, true)])
        .initial_alphabet(alphabet)
        .build();
    tokenizer.train(&mut TrainerWrapper::BpeTrainer(trainer), texts.iter())?;
    Ok(tokenizer)
}

/// Writes `tokenizer.json` and `tokenizer_config.json` in Hugging Face's format.
pub(crate) fn save(tokenizer: &Tokenizer, dir: &Path) -> std::io::Result<()> {
    tokenizer.save(dir.join("tokenizer.json"), false).map_err(std::io::Error::other)?;
    let config = serde_json::json!({
        "tokenizer_class": "PreTrainedTokenizerFast",
        "eos_token": END,
        "add_bos_token": false,
        "model_max_length": 1024,
        "clean_up_tokenization_spaces": false,
    });
    std::fs::write(dir.join("tokenizer_config.json"), format!("{config:#}\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_survives_and_digits_stand_alone() {
        let texts: Vec<String> = (0..200).map(|i| format!("The Loire is {i} km long.\nIts mouth is the São Tomé.")).collect();
        let tokenizer = fit(&texts, 400).unwrap();
        let text = "The Loire is 1006 km long.\n";
        let encoding = tokenizer.encode(text, false).unwrap();
        assert_eq!(tokenizer.decode(encoding.get_ids(), false).unwrap(), text);
        assert!(["1", "0", "6"].iter().all(|digit| encoding.get_tokens().iter().any(|token| token == digit)));
    }
}

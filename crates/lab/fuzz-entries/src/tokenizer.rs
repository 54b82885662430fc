//! A model's directory from elsewhere: its configuration, tokenizer, chat template and weights.

use autoact_model::{Message, ModelDir, Transformer};

use crate::parts::parts;
use crate::scratch::directory;

/// The files, in the order of the parts. An empty part is a file that is not there.
const FILES: [&str; 5] = ["config.json", "tokenizer.json", "tokenizer_config.json", "generation_config.json", "model.safetensors"];

/// A directory of a model: opened as an agent opens it, up to the weights' mapping.
pub fn model(data: &[u8]) {
    let Some(dir) = directory() else { return };
    let parts = parts(data, FILES.len());
    for (at, name) in FILES.iter().enumerate() {
        let path = dir.join(name);
        let written = match parts.get(at) {
            Some(bytes) if !bytes.is_empty() => std::fs::write(&path, bytes).is_ok(),
            _ => {
                let _ = std::fs::remove_file(&path);
                true
            }
        };
        if !written {
            return;
        }
    }
    let Ok(opened) = ModelDir::open(dir) else { return };
    if let Ok(Some(template)) = opened.chat_template() {
        let messages = [Message::new("system", "Be brief."), Message::new("user", "Which river?\n")];
        let _ = template.render(&messages, true);
    }
    if let Ok(tokenizer) = opened.tokenizer() {
        for text in ["Thought: Ich weiß, 東京 → </s>", ""] {
            if let Ok(tokens) = tokenizer.encode(text, None) {
                let _ = tokenizer.decode(&tokens);
            }
        }
        let _ = tokenizer.decode(&[0, u32::MAX]);
    }
    let _ = Transformer::load(&opened, None);
}

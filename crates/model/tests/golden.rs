//! Our forward pass against the reference's (`tests/golden/README.md` says how that was made).
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::result_large_err, clippy::redundant_clone, clippy::zombie_processes)] // tests

use std::path::PathBuf;

use autoact_lora::Adapter;
use autoact_model::{BoundAdapter, KvCache, Logits, ModelDir, Transformer};
use candle_core::{DType, Device, Tensor};

/// Largest difference of any logit. Both sides compute in f32, in another order.
const TOLERANCE: f32 = 1e-4;

const FIXTURES: [&str; 5] = ["llama2", "llama3", "mistral", "qwen2", "qwen3"];

struct Case {
    name: &'static str,
    dir: ModelDir,
    model: Transformer,
    adapter: BoundAdapter,
    golden: std::collections::HashMap<String, Tensor>,
}

impl Case {
    fn load(name: &'static str) -> Self {
        let path = fixture(name);
        let dir = ModelDir::open(&path).unwrap();
        let model = Transformer::load(&dir, DType::F32, &Device::Cpu).unwrap();
        let adapter = Adapter::load(path.join("adapter")).unwrap();
        let adapter = model.bind(&adapter, Some(dir.digest().unwrap())).unwrap();
        let golden = candle_core::safetensors::load(path.join("golden.safetensors"), &Device::Cpu).unwrap();
        Self { name, dir, model, adapter, golden }
    }

    fn ids(&self, key: &str) -> Vec<u32> {
        self.golden[key].to_dtype(DType::U32).unwrap().to_vec1().unwrap()
    }

    /// Base and adapter, by the golden file's names.
    fn sides(&self) -> [(&'static str, Option<&BoundAdapter>); 2] {
        [("base", None), ("adapter", Some(&self.adapter))]
    }

    fn check(&self, what: &str, side: &str, found: &Tensor) {
        let expected = &self.golden[&format!("{side}.logits")];
        let (rows, kept) = (found.dim(0).unwrap(), expected.dim(0).unwrap());
        let last = found.narrow(0, rows - kept, kept).unwrap();
        let gap: f32 = (last - expected).unwrap().abs().unwrap().max_all().unwrap().to_scalar().unwrap();
        assert!(gap <= TOLERANCE, "{} {side}, {what}: differs by {gap}", self.name);
    }
}

fn fixture(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden/fixtures").join(name)
}

fn cases() -> impl Iterator<Item = Case> {
    FIXTURES.into_iter().map(Case::load)
}

#[test]
fn one_prefill() {
    for case in cases() {
        for (side, adapter) in case.sides() {
            let mut cache = case.model.new_cache().unwrap();
            let logits = case.model.forward(&case.ids("input_ids"), &mut cache, adapter, Logits::All).unwrap();
            case.check("one prefill", side, &logits);
        }
    }
}

#[test]
fn token_by_token_with_the_cache() {
    for case in cases() {
        for (side, adapter) in case.sides() {
            let mut cache = case.model.new_cache().unwrap();
            let step = |token: &u32| case.model.forward(&[*token], &mut cache, adapter, Logits::Last).unwrap();
            let rows: Vec<Tensor> = case.ids("input_ids").iter().map(step).collect();
            case.check("token by token", side, &Tensor::cat(&rows, 0).unwrap());
        }
    }
}

#[test]
fn two_chunks() {
    for case in cases() {
        for (side, adapter) in case.sides() {
            let ids = case.ids("input_ids");
            for cut in [1, 7, ids.len() - 3] {
                let mut cache = case.model.new_cache().unwrap();
                let chunk = |ids: &[u32], cache: &mut KvCache| case.model.forward(ids, cache, adapter, Logits::All).unwrap();
                let rows = [chunk(&ids[..cut], &mut cache), chunk(&ids[cut..], &mut cache)];
                case.check("two chunks", side, &Tensor::cat(&rows, 0).unwrap());
            }
        }
    }
}

#[test]
fn a_copied_and_cut_cache_goes_on_as_if_new() {
    for case in cases() {
        let ids = case.ids("input_ids");
        let mut cache = case.model.new_cache().unwrap();
        case.model.forward(&ids, &mut cache, None, Logits::Last).unwrap();
        let mut copy = cache.copy_prefix(10).unwrap();
        cache.truncate(10);
        for cache in [&mut cache, &mut copy] {
            let logits = case.model.forward(&ids[10..], cache, None, Logits::All).unwrap();
            case.check("after a cut", "base", &logits);
        }
    }
}

#[test]
fn greedy_continuation() {
    for case in cases() {
        for (side, adapter) in case.sides() {
            let expected = case.ids(&format!("{side}.greedy"));
            let mut cache = case.model.new_cache().unwrap();
            let mut next = case.ids("input_ids");
            let mut found = Vec::new();
            while found.len() < expected.len() {
                let logits = case.model.forward(&next, &mut cache, adapter, Logits::Last).unwrap();
                let token: u32 = logits.argmax(1).unwrap().to_vec1().unwrap()[0];
                found.push(token);
                next = vec![token];
            }
            assert_eq!(found, expected, "{} {side}", case.name);
        }
    }
}

#[test]
fn tokenizers_and_templates_agree() {
    for case in cases() {
        let notes: serde_json::Value =
            serde_json::from_str(&std::fs::read_to_string(fixture(case.name).join("golden.json")).unwrap()).unwrap();
        let tokenizer = case.dir.tokenizer().unwrap();
        let ids = tokenizer.encode(notes["prompt"].as_str().unwrap(), None).unwrap();
        assert_eq!(ids, case.ids("input_ids"), "{}", case.name);
        let all: Vec<u32> = ids.into_iter().chain(case.ids("base.greedy")).collect();
        // The reference's SentencePiece decoder strips the space it put first; ours gives the tokens' bytes.
        assert_eq!(tokenizer.decode(&all).trim_start(), notes["base_text"].as_str().unwrap(), "{}", case.name);
        let messages = [autoact_model::Message::new("user", "Where is the Elbe?")];
        let chat = case.dir.chat_template().unwrap().map(|t| t.render(&messages, true).unwrap());
        assert_eq!(chat.as_deref(), notes["chat"].as_str(), "{}", case.name);
    }
}

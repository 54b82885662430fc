//! Compares the forward pass with the reference (`tests/golden/README.md` describes how it was
//! made).

use std::path::PathBuf;

use autoact_lora::Adapter;
use autoact_model::{BoundAdapter, Format, Item, KvCache, KvFormat, Logits, ModelDir, Scratch, Team, Transformer};
use safetensors::SafeTensors;

/// Maximum difference of a logit. Both sides compute in f32, in a different order.
const TOLERANCE: f32 = 1e-4;

/// The same with keys and values in bf16, whose relative error is up to 1/512. The logits' root
/// mean square is 2.3.
const TOLERANCE_BF16: f32 = 0.15;

const FIXTURES: [&str; 5] = ["llama2", "llama3", "mistral", "qwen2", "qwen3"];

struct Case {
    name: &'static str,
    dir: ModelDir,
    model: Transformer,
    adapter: BoundAdapter,
    golden: Vec<u8>,
    team: Team,
}

impl Case {
    fn load(name: &'static str) -> Self {
        let path = fixture(name);
        let dir = ModelDir::open(&path).unwrap();
        let model = Transformer::load(&dir, None).unwrap();
        assert!(model.format() == Format::F32 && model.kv_format() == KvFormat::F32 && model.mapped());
        let adapter = Adapter::load(path.join("adapter")).unwrap();
        let adapter = model.bind(&adapter, Some(dir.digest().unwrap())).unwrap();
        let golden = std::fs::read(path.join("golden.safetensors")).unwrap();
        Self { name, dir, model, adapter, golden, team: Team::new(2).unwrap() }
    }

    fn with_kv(self, kv: KvFormat) -> Self {
        Self { model: self.model.with_kv(kv), ..self }
    }

    fn ids(&self, key: &str) -> Vec<u32> {
        let tensors = SafeTensors::deserialize(&self.golden).unwrap();
        let view = tensors.tensor(key).unwrap();
        let wide = view.dtype() == safetensors::Dtype::I64;
        let size = if wide { 8 } else { 4 };
        view.data().chunks_exact(size).map(|b| u32::from_le_bytes(b[..4].try_into().unwrap())).collect()
    }

    /// Base and adapter, by their names in the golden file.
    fn sides(&self) -> [(&'static str, Option<&BoundAdapter>); 2] {
        [("base", None), ("adapter", Some(&self.adapter))]
    }

    fn forward(&self, tokens: &[u32], cache: &mut KvCache, adapter: Option<&BoundAdapter>, logits: Logits) -> Vec<f32> {
        let item = Item { tokens, cache, adapter, adapter_from: 0, logits };
        self.model.forward(&self.team, &mut [item], &mut Scratch::default()).to_vec()
    }

    /// The last rows, which the golden file contains.
    fn check(&self, what: &str, side: &str, found: &[f32]) {
        let tensors = SafeTensors::deserialize(&self.golden).unwrap();
        let view = tensors.tensor(&format!("{side}.logits")).unwrap();
        let expected: Vec<f32> = view.data().chunks_exact(4).map(|b| f32::from_le_bytes(b.try_into().unwrap())).collect();
        let last = &found[found.len() - expected.len()..];
        let gap = last.iter().zip(&expected).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
        let kv = self.model.kv_format();
        let tolerance = if kv == KvFormat::F32 { TOLERANCE } else { TOLERANCE_BF16 };
        assert!(gap <= tolerance, "{} {side}, {kv}, {what}: differs by {gap}", self.name);
    }
}

fn fixture(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../tests/golden/fixtures").join(name)
}

/// The reference, with keys and values in f32.
fn cases() -> impl Iterator<Item = Case> {
    FIXTURES.into_iter().map(Case::load)
}

/// All models with all formats of keys and values.
fn all_cases() -> impl Iterator<Item = Case> {
    cases().chain(cases().map(|case| case.with_kv(KvFormat::Bf16)))
}

#[test]
fn one_prefill() {
    for case in all_cases() {
        for (side, adapter) in case.sides() {
            let logits = case.forward(&case.ids("input_ids"), &mut case.model.new_cache(), adapter, Logits::All);
            case.check("one prefill", side, &logits);
        }
    }
}

/// Activated LoRA, for any split into chunks: the base's logits before the invocation, the
/// adapter's from there on.
#[test]
fn an_activated_adapter_acts_from_its_invocation_on() {
    let case = Case::load("llama2");
    let dir = fixture("llama2").join("activated");
    let adapter = case.model.bind(&Adapter::load(&dir).unwrap(), None).unwrap();
    let golden = std::fs::read(dir.join("golden.safetensors")).unwrap();
    let tensors = SafeTensors::deserialize(&golden).unwrap();
    let expected = tensors.tensor("logits").unwrap();
    let expected: Vec<f32> = expected.data().chunks_exact(4).map(|b| f32::from_le_bytes(b.try_into().unwrap())).collect();
    let ids = case.ids("input_ids");
    let from = adapter.acts_from(&ids).unwrap();
    assert_eq!(from, ids.len() - 5);
    assert_eq!(adapter.acts_from(&ids[..from + 2]), None, "half an invocation");
    for size in [1, 3, ids.len()] {
        let mut cache = case.model.new_cache();
        let mut rows = Vec::new();
        for ids in ids.chunks(size) {
            let adapter_from = from.saturating_sub(cache.len());
            let item = Item { tokens: ids, cache: &mut cache, adapter: Some(&adapter), adapter_from, logits: Logits::All };
            rows.extend_from_slice(case.model.forward(&case.team, &mut [item], &mut Scratch::default()));
        }
        let gap = rows[rows.len() - expected.len()..].iter().zip(&expected).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
        assert!(gap <= TOLERANCE, "chunks of {size}: differs by {gap}");
    }
}

/// Any split into chunks gives the golden logits and the same bits.
#[test]
fn chunks_give_the_same_bits() {
    for case in all_cases() {
        for (side, adapter) in case.sides() {
            let ids = case.ids("input_ids");
            let whole = case.forward(&ids, &mut case.model.new_cache(), adapter, Logits::All);
            for size in [1, 2, 7, 16, ids.len() - 3] {
                let mut cache = case.model.new_cache();
                let rows: Vec<f32> = ids.chunks(size).flat_map(|ids| case.forward(ids, &mut cache, adapter, Logits::All)).collect();
                case.check("chunks", side, &rows);
                assert!(bits(&rows) == bits(&whole), "{} {side}: chunks of {size} gave other bits", case.name);
            }
        }
    }
}

/// Sequences of different lengths with different adapters in one pass, among them one whose adapter
/// acts on none of its tokens: the base speaks, and no neighbour is touched.
#[test]
fn a_crowd_gives_the_same_bits() {
    for case in all_cases() {
        let ids = case.ids("input_ids");
        let alone = |n: usize, adapter| case.forward(&ids[..n], &mut case.model.new_cache(), adapter, Logits::Last);
        let (some, never) = (Some(&case.adapter), usize::MAX);
        let crowd = [(ids.len(), None, 0), (5, some, 0), (17, some, 0), (7, some, never), (1, None, 0), (9, some, 0), (16, None, 0)];
        let mut caches: Vec<KvCache> = crowd.iter().map(|_| case.model.new_cache()).collect();
        let mut items: Vec<Item<'_>> = crowd
            .iter()
            .zip(&mut caches)
            .map(|((n, adapter, from), cache)| Item {
                tokens: &ids[..*n],
                cache,
                adapter: *adapter,
                adapter_from: *from,
                logits: Logits::Last,
            })
            .collect();
        let together = case.model.forward(&case.team, &mut items, &mut Scratch::default()).to_vec();
        for ((n, adapter, from), row) in crowd.into_iter().zip(together.chunks_exact(case.model.config().vocab_size)) {
            let speaks = adapter.filter(|_| from == 0);
            assert!(bits(&alone(n, speaks)) == bits(row), "{}: {n} tokens", case.name);
        }
    }
}

#[test]
fn a_shared_and_cut_cache_goes_on_as_if_new() {
    for case in all_cases() {
        let ids = case.ids("input_ids");
        let mut cache = case.model.new_cache();
        let whole = case.forward(&ids, &mut cache, None, Logits::All);
        let mut other = cache.clone();
        for cache in [&mut cache, &mut other] {
            for cut in [11, 10] {
                cache.truncate(cut);
                // Tokens that another sequence adds after the common prefix have no effect here.
                case.forward(&[1, 2, 3], &mut cache.clone(), None, Logits::Last);
                let logits = case.forward(&ids[cut..], cache, None, Logits::All);
                case.check("after a cut", "base", &logits);
                assert!(bits(&logits) == bits(&whole[whole.len() - logits.len()..]), "{}: other bits after a cut", case.name);
            }
        }
    }
}

#[test]
fn greedy_continuation() {
    for case in cases() {
        for (side, adapter) in case.sides() {
            let expected = case.ids(&format!("{side}.greedy"));
            let mut cache = case.model.new_cache();
            let mut next = case.ids("input_ids");
            let mut found = Vec::new();
            while found.len() < expected.len() {
                let logits = case.forward(&next, &mut cache, adapter, Logits::Last);
                let best = (0..logits.len()).max_by(|a, b| logits[*a].total_cmp(&logits[*b]).then(b.cmp(a))).unwrap();
                found.push(best as u32);
                next = vec![best as u32];
            }
            assert_eq!(found, expected, "{} {side}", case.name);
        }
    }
}

fn bits(values: &[f32]) -> Vec<u32> {
    values.iter().map(|v| v.to_bits()).collect()
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
        // The reference's SentencePiece decoder strips the first space; this one gives the tokens'
        // bytes.
        assert_eq!(tokenizer.decode(&all).trim_start(), notes["base_text"].as_str().unwrap(), "{}", case.name);
        let messages = [autoact_model::Message::new("user", "Where is the Elbe?")];
        let chat = case.dir.chat_template().unwrap().map(|t| t.render(&messages, true).unwrap());
        assert_eq!(chat.as_deref(), notes["chat"].as_str(), "{}", case.name);
    }
}

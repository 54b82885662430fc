"""The models that the engines are compared on. `models/stem` is real; the others are of real models' shapes, with seeded random
weights: speed does not depend on what the weights are, and nothing has to be downloaded."""

import json
import shutil
from pathlib import Path

import torch
from peft import LoraConfig, get_peft_model
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import AutoModelForCausalLM, LlamaConfig, PreTrainedTokenizerFast, Qwen2Config

from harness import ROOT, WORK, say

CONTEXT = 4096
COMMON = dict(tie_word_embeddings=True, max_position_embeddings=CONTEXT, bos_token_id=None, pad_token_id=None)

SHAPES = {
    "smollm-135m": lambda: LlamaConfig(
        hidden_size=576,
        intermediate_size=1536,
        num_hidden_layers=30,
        num_attention_heads=9,
        num_key_value_heads=3,
        vocab_size=49152,
        rms_norm_eps=1e-5,
        **COMMON,
    ),
    "qwen2.5-0.5b": lambda: Qwen2Config(
        hidden_size=896,
        intermediate_size=4864,
        num_hidden_layers=24,
        num_attention_heads=14,
        num_key_value_heads=2,
        vocab_size=151936,
        rms_norm_eps=1e-6,
        rope_theta=1e6,
        use_sliding_window=False,
        **COMMON,
    ),
}
NAMES = ["stem", *SHAPES]
LETTERS = "abcdefghijklmnopqrstuvwxyz"
END = "<|end|>"


def tokenizer(size: int) -> Tokenizer:
    """A byte-level BPE of `size` tokens: the bytes, two letters, four letters; the last one is the end."""
    vocab = {c: i for i, c in enumerate(sorted(pre_tokenizers.ByteLevel.alphabet()))}
    merges = []
    pairs = [a + b for a in LETTERS for b in LETTERS]
    for pair in pairs:
        merges.append((pair[0], pair[1]))
        vocab[pair] = len(vocab)
    for a in pairs:
        for b in pairs:
            if len(vocab) < size - 1:
                merges.append((a, b))
                vocab[a + b] = len(vocab)
    tok = Tokenizer(models.BPE(vocab=vocab, merges=merges))
    tok.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tok.decoder = decoders.ByteLevel()
    tok.add_special_tokens([END])
    assert tok.get_vocab_size() == size
    return tok


def random_model(name: str, out: Path) -> None:
    torch.manual_seed(sum(name.encode()))
    config = SHAPES[name]()
    config.eos_token_id = config.vocab_size - 1
    model = AutoModelForCausalLM.from_config(config, dtype=torch.float32)
    with torch.no_grad():
        # A logit of 0, never the largest of so many: every engine writes as many tokens as it is asked for.
        model.get_input_embeddings().weight[config.eos_token_id] = 0
        for key, p in model.named_parameters():
            if key.endswith("bias"):
                p.normal_(0, 0.02)
    model.to(torch.bfloat16).save_pretrained(out)
    fast = PreTrainedTokenizerFast(tokenizer_object=tokenizer(config.vocab_size), eos_token=END, model_max_length=CONTEXT)
    fast.save_pretrained(out)
    (out / "generation_config.json").unlink(missing_ok=True)


def stem(out: Path) -> None:
    """`models/stem` with a longer context and an end that it never writes: the same weights, and every completion full length."""
    source = ROOT / "models" / "stem"
    out.mkdir(parents=True)
    for file in ("model.safetensors", "tokenizer.json"):
        shutil.copyfile(source / file, out / file)
    config = json.loads((source / "config.json").read_text())
    vocab = json.loads((source / "tokenizer.json").read_text())["model"]["vocab"]
    unused = vocab["\u0100"]  # byte 0
    config |= {"eos_token_id": unused, "max_position_embeddings": CONTEXT}
    (out / "config.json").write_text(json.dumps(config, indent=1))
    settings = {"tokenizer_class": "PreTrainedTokenizerFast", "add_bos_token": False, "model_max_length": CONTEXT}
    (out / "tokenizer_config.json").write_text(json.dumps(settings))


def adapter(model: Path, out: Path) -> None:
    """A random adapter on q and v, rank 8."""
    torch.manual_seed(8)
    base = AutoModelForCausalLM.from_pretrained(model, dtype=torch.float32)
    adapted = get_peft_model(base, LoraConfig(task_type="CAUSAL_LM", r=8, lora_alpha=16, target_modules=["q_proj", "v_proj"]))
    with torch.no_grad():
        for key, p in adapted.named_parameters():
            if "lora_" in key:
                p.normal_(0, 0.02)
    adapted.save_pretrained(out)


def ensure(name: str) -> Path:
    """The model's directory, made at the first call; its adapter is in `adapter/`."""
    out = WORK / "models" / name
    if not (out / "adapter" / "adapter_config.json").exists():
        say(f"making {name} ...")
        shutil.rmtree(out, ignore_errors=True)
        stem(out) if name == "stem" else random_model(name, out)
        adapter(out, out / "adapter")
    return out

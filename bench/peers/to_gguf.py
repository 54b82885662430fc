"""Hugging Face directories to GGUF, for llama.cpp: the same weights, exactly or in its own rounding (Q8_0)."""

import json
import re
from pathlib import Path

import gguf
import numpy as np
import torch
from safetensors import safe_open

from harness import say

TYPES = {
    "f32": (gguf.GGMLQuantizationType.F32, gguf.LlamaFileType.ALL_F32),
    "bf16": (gguf.GGMLQuantizationType.BF16, gguf.LlamaFileType.MOSTLY_BF16),
    "q8_0": (gguf.GGMLQuantizationType.Q8_0, gguf.LlamaFileType.MOSTLY_Q8_0),
}
NAMES = {
    "model.embed_tokens": "token_embd",
    "model.norm": "output_norm",
    "lm_head": "output",
}
PARTS = {
    "input_layernorm": "attn_norm",
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "post_attention_layernorm": "ffn_norm",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
}


def name_of(key: str) -> str:
    stem, kind = key.rsplit(".", 1)
    layer = re.fullmatch(r"model\.layers\.(\d+)\.(.+)", stem)
    return f"blk.{layer[1]}.{PARTS[layer[2]]}.{kind}" if layer else f"{NAMES[stem]}.{kind}"


def interleave(rows: np.ndarray, heads: int) -> np.ndarray:
    """llama.cpp rotates neighbours where Hugging Face rotates halves: the rows of q and k change places."""
    return rows.reshape(heads, 2, rows.shape[0] // heads // 2, *rows.shape[1:]).swapaxes(1, 2).reshape(rows.shape)


def heads_of(key: str, config: dict) -> int | None:
    """The heads to interleave, if this is q or k of a Llama."""
    if config["model_type"] != "llama":
        return None
    return {"q_proj": config["num_attention_heads"], "k_proj": config["num_key_value_heads"]}.get(key.split(".")[-2])


def rope_theta(config: dict) -> float:
    return config.get("rope_theta") or config["rope_parameters"]["rope_theta"]


def add_tokenizer(w: gguf.GGUFWriter, source: Path, config: dict) -> None:
    """A byte-level BPE whose digits stand alone, which llama.cpp calls `smollm`."""
    tokenizer = json.loads((source / "tokenizer.json").read_text())
    steps = tokenizer["pre_tokenizer"]["pretokenizers"]
    if [step["type"] for step in steps] != ["Digits", "ByteLevel"] or not steps[0]["individual_digits"]:
        raise ValueError(f"{source}: llama.cpp's name of this tokenizer is not known here")
    control = {token["id"] for token in tokenizer["added_tokens"] if token["special"]}
    vocab = {token["content"]: token["id"] for token in tokenizer["added_tokens"]} | tokenizer["model"]["vocab"]
    tokens = sorted(vocab, key=vocab.get)
    types = [gguf.TokenType.CONTROL if vocab[token] in control else gguf.TokenType.NORMAL for token in tokens]
    merges = [merge if isinstance(merge, str) else " ".join(merge) for merge in tokenizer["model"]["merges"]]
    w.add_tokenizer_model("gpt2")
    w.add_tokenizer_pre("smollm")
    w.add_token_list(tokens)
    w.add_token_types(types)
    w.add_token_merges(merges)
    w.add_eos_token_id(config["eos_token_id"])
    w.add_add_bos_token(False)


def model(source: Path, precision: str, tokenizer: bool = False) -> Path:
    """`tokenizer`: the file has it, for servers; without it a model is given token ids."""
    out = source / f"model.{precision}{'.tokenizer' if tokenizer else ''}.gguf"
    if out.exists():
        return out
    say(f"converting {source.name} to GGUF {precision} ...")
    config = json.loads((source / "config.json").read_text())
    kind, file_type = TYPES[precision]
    partial = out.with_suffix(".part")
    w = gguf.GGUFWriter(partial, config["model_type"])
    w.add_vocab_size(config["vocab_size"])
    w.add_context_length(config["max_position_embeddings"])
    w.add_embedding_length(config["hidden_size"])
    w.add_block_count(config["num_hidden_layers"])
    w.add_feed_forward_length(config["intermediate_size"])
    w.add_head_count(config["num_attention_heads"])
    w.add_head_count_kv(config["num_key_value_heads"])
    w.add_rope_dimension_count(config.get("head_dim") or config["hidden_size"] // config["num_attention_heads"])
    w.add_rope_freq_base(rope_theta(config))
    w.add_layer_norm_rms_eps(config["rms_norm_eps"])
    w.add_file_type(file_type)
    if tokenizer:
        add_tokenizer(w, source, config)
    else:
        w.add_tokenizer_model("no_vocab")
    with safe_open(source / "model.safetensors", "pt") as f:
        for key in f.keys():
            array = f.get_tensor(key).to(torch.float32).numpy()
            if heads := heads_of(key, config):
                array = interleave(array, heads)
            of = kind if array.ndim > 1 else gguf.GGMLQuantizationType.F32
            w.add_tensor(name_of(key), gguf.quants.quantize(np.ascontiguousarray(array), of), raw_dtype=of)
    write(w, partial, out)
    return out


def adapter(source: Path) -> Path:
    """The PEFT adapter in `source/adapter`."""
    out = source / "adapter.gguf"
    if out.exists():
        return out
    config = json.loads((source / "config.json").read_text())
    settings = json.loads((source / "adapter" / "adapter_config.json").read_text())
    partial = out.with_suffix(".part")
    w = gguf.GGUFWriter(partial, config["model_type"])
    w.add_string("general.type", "adapter")
    w.add_string("adapter.type", "lora")
    w.add_float32("adapter.lora.alpha", float(settings["lora_alpha"]))
    with safe_open(source / "adapter" / "adapter_model.safetensors", "pt") as f:
        for key in f.keys():
            target, side = re.fullmatch(r"base_model\.model\.(.+)\.lora_([AB])\.weight", key).groups()
            array = f.get_tensor(key).to(torch.float32).numpy()
            if side == "B" and (heads := heads_of(f"{target}.weight", config)):
                array = interleave(array, heads)
            w.add_tensor(f"{name_of(target + '.weight')}.lora_{side.lower()}", np.ascontiguousarray(array))
    write(w, partial, out)
    return out


def write(w: gguf.GGUFWriter, partial: Path, out: Path) -> None:
    w.write_header_to_file()
    w.write_kv_data_to_file()
    w.write_tensors_to_file()
    w.close()
    partial.rename(out)

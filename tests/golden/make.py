"""Makes the golden fixtures: tiny random checkpoints, a PEFT adapter each, and what the reference
implementation (transformers + peft, PyTorch on CPU, f32, eager attention) computes with them.

    python make.py            # writes ./fixtures/<name>/, deterministic for the pinned versions

See README.md for what each file holds.
"""

import hashlib
import json
import shutil
from pathlib import Path

import torch
from peft import LoraConfig, get_peft_model, set_peft_model_state_dict
from safetensors import safe_open
from safetensors.torch import load_file, save_file
from tokenizers import AddedToken, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers
from transformers import (
    LlamaConfig,
    LlamaForCausalLM,
    MistralConfig,
    MistralForCausalLM,
    PreTrainedTokenizerFast,
    Qwen2Config,
    Qwen2ForCausalLM,
    Qwen3Config,
    Qwen3ForCausalLM,
)

HERE = Path(__file__).resolve().parent / "fixtures"
TEXT = [
    "The river Elbe flows through Dresden and Hamburg to the sea.",
    "Thought: I should look up the author. Action: BingSearch[author of the book]",
    "Observation: the capital is on the river; the population is 1,234,567.",
] * 4
# Non-ASCII on purpose: characters whose UTF-8 bytes fall into several tokens.
PROMPT = "Thought: the río flows → 東京, Action"
NEW_TOKENS = 12
# Logits are kept for the last positions only: those see every position before them.
KEPT_POSITIONS = 8

COMMON = dict(
    hidden_size=32,
    intermediate_size=40,
    num_hidden_layers=2,
    num_attention_heads=4,
    num_key_value_heads=2,
    max_position_embeddings=256,
    rms_norm_eps=1e-5,
)

CHATML = (
    "{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>\n' }}"
    "{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)


def byte_level(specials: list[str], bos: str | None) -> Tokenizer:
    """A GPT-2 style byte-level BPE: the 256 bytes, the specials and a few merges."""
    tok = Tokenizer(models.BPE())
    tok.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tok.decoder = decoders.ByteLevel()
    tok.train_from_iterator(
        TEXT,
        trainers.BpeTrainer(
            vocab_size=256 + len(specials) + 16,
            special_tokens=specials,
            initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
            show_progress=False,
        ),
    )
    if bos is not None:
        tok.post_processor = processors.TemplateProcessing(
            single=f"{bos} $A", pair=f"{bos} $A $B", special_tokens=[(bos, tok.token_to_id(bos))]
        )
    return tok


def sentencepiece() -> Tokenizer:
    """A Llama-2 / Mistral style BPE: `▁` for the space, `<0xNN>` for bytes outside the vocabulary."""
    chars = sorted(set("".join(TEXT).replace(" ", "▁")) | {"▁"})
    vocab: dict[str, int] = {"<unk>": 0, "<s>": 1, "</s>": 2}
    for b in range(256):
        vocab[f"<0x{b:02X}>"] = len(vocab)
    for c in chars:
        vocab[c] = len(vocab)
    merges = []
    for a, b in [("▁", "t"), ("h", "e"), ("▁t", "he"), ("▁", "r"), ("i", "v"), ("e", "r"), ("▁r", "iv"), ("▁riv", "er"), ("i", "n")]:
        merges.append((a, b))
        vocab[a + b] = len(vocab)
    tok = Tokenizer(models.BPE(vocab=vocab, merges=merges, unk_token="<unk>", fuse_unk=True, byte_fallback=True))
    tok.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    tok.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)])
    tok.add_special_tokens([AddedToken(t, special=True, normalized=False) for t in ("<unk>", "<s>", "</s>")])
    tok.post_processor = processors.TemplateProcessing(single="<s> $A", pair="<s> $A $B", special_tokens=[("<s>", 1)])
    return tok


def cases():
    """name -> (tokenizer, its special tokens, chat template, model, adapter settings)"""
    llama = byte_level(["<s>", "</s>", "<pad>"], bos="<s>")
    v = llama.get_vocab_size()
    ids = dict(vocab_size=v, bos_token_id=0, eos_token_id=1, pad_token_id=None)
    sp = dict(bos_token="<s>", eos_token="</s>")
    yield (
        "llama2",
        llama,
        sp,
        None,
        lambda: LlamaForCausalLM(LlamaConfig(**COMMON, **ids, attn_implementation="eager")),
        dict(r=4, lora_alpha=8, target_modules=["q_proj", "v_proj"], lora_dropout=0.05),
    )
    yield (
        "llama3",
        llama,
        sp,
        None,
        lambda: LlamaForCausalLM(
            LlamaConfig(
                **COMMON,
                **ids,
                tie_word_embeddings=True,
                rope_theta=500.0,
                rope_scaling=dict(
                    rope_type="llama3", factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0, original_max_position_embeddings=32
                ),
                attn_implementation="eager",
            )
        ),
        dict(r=2, lora_alpha=4, target_modules="all-linear"),
    )
    spm = sentencepiece()
    yield (
        "mistral",
        spm,
        sp,
        "{{ bos_token }}{% for m in messages %}{% if m['role'] == 'user' %}{{ '[INST] ' + m['content'] + ' [/INST]' }}"
        "{% else %}{{ ' ' + m['content'] + eos_token }}{% endif %}{% endfor %}",
        lambda: MistralForCausalLM(
            MistralConfig(
                **COMMON,
                vocab_size=spm.get_vocab_size(),
                bos_token_id=1,
                eos_token_id=2,
                sliding_window=8,
                tie_word_embeddings=True,
                attn_implementation="eager",
            )
        ),
        dict(r=4, lora_alpha=8, target_modules=r".*\.self_attn\.(q|o)_proj", use_rslora=True),
    )
    qwen = byte_level(["<|endoftext|>", "<|im_start|>", "<|im_end|>"], bos=None)
    v = qwen.get_vocab_size()
    ids = dict(vocab_size=v, bos_token_id=0, eos_token_id=[2, 0], pad_token_id=0)
    sp = dict(eos_token="<|im_end|>", pad_token="<|endoftext|>")
    yield (
        "qwen2",
        qwen,
        sp,
        CHATML,
        lambda: Qwen2ForCausalLM(Qwen2Config(**COMMON, **ids, tie_word_embeddings=True, rope_theta=10000.0, attn_implementation="eager")),
        dict(
            r=3,
            lora_alpha=6,
            target_modules=["q_proj", "k_proj", "v_proj", "o_proj"],
            rank_pattern={"k_proj": 2},
            alpha_pattern={"layers.1.self_attn.v_proj": 12},
        ),
    )
    # head_dim from the config, not hidden_size / heads.
    yield (
        "qwen3",
        qwen,
        sp,
        CHATML,
        lambda: Qwen3ForCausalLM(Qwen3Config(**COMMON, **ids, head_dim=12, tie_word_embeddings=True, attn_implementation="eager")),
        dict(r=4, lora_alpha=16, target_modules=["gate_proj", "up_proj", "down_proj"]),
    )


def randomise(model: torch.nn.Module, generator: torch.Generator) -> None:
    """Weights large enough that every part matters: norms away from one, biases away from zero."""
    for name, p in model.named_parameters():
        noise = torch.randn(p.shape, generator=generator)
        with torch.no_grad():
            if "norm" in name:
                p.copy_(1.0 + 0.2 * noise)
            elif name.endswith("bias"):
                p.copy_(0.3 * noise)
            elif "embed" in name or "lm_head" in name:
                p.copy_(0.4 * noise)
            else:
                p.copy_(noise * 1.2 / p.shape[-1] ** 0.5)


@torch.no_grad()
def logits(model, ids: torch.Tensor) -> torch.Tensor:
    """[KEPT_POSITIONS, vocabulary]"""
    return model(ids[None]).logits[0, -KEPT_POSITIONS:].float().contiguous()


@torch.no_grad()
def greedy(model, ids: torch.Tensor) -> torch.Tensor:
    """Recomputed from scratch for every token: no cache whose bugs could hide here."""
    out = []
    for _ in range(NEW_TOKENS):
        out.append(int(logits(model, torch.cat([ids, torch.tensor(out, dtype=torch.int64)]))[-1].argmax()))
    return torch.tensor(out, dtype=torch.int64)


def activated(base, lora: dict, ids: torch.Tensor, out: Path) -> None:
    """Activated LoRA: the adapter's matrices again, acting only from some tokens of the prompt on."""
    tokens = ids[-5:-2].tolist()
    model = get_peft_model(base, LoraConfig(task_type="CAUSAL_LM", alora_invocation_tokens=tokens, **lora)).eval()
    set_peft_model_state_dict(model, load_file(out / "adapter" / "adapter_model.safetensors"))
    found = logits(model, ids)
    gap = (found - load_file(out / "golden.safetensors")["base.logits"]).abs().amax(dim=1)
    assert gap[: KEPT_POSITIONS - 5].max() < 1e-6 and gap[-1] > 0.05, f"activated from {tokens}: {gap}"
    model.save_pretrained(out / "activated")
    (out / "activated" / "README.md").unlink(missing_ok=True)
    tidy(out / "activated" / "adapter_config.json", out.name)
    save_file({"logits": found}, out / "activated" / "golden.safetensors")


def tidy(path: Path, base: str) -> None:
    config = json.loads(path.read_text())
    config["base_model_name_or_path"] = base
    if isinstance(config["target_modules"], list):
        config["target_modules"].sort()  # PEFT keeps a set: its order changes from run to run
    path.write_text(json.dumps(config, indent=2, sort_keys=True) + "\n")


def main() -> None:
    shutil.rmtree(HERE, ignore_errors=True)
    for seed, (name, tok, special, template, build, lora) in enumerate(cases()):
        torch.manual_seed(seed)
        generator = torch.Generator().manual_seed(1000 + seed)
        out = HERE / name
        model = build().eval()
        randomise(model, generator)
        model.save_pretrained(out)
        fast = PreTrainedTokenizerFast(tokenizer_object=tok, chat_template=template, model_max_length=256, **special)
        fast.save_pretrained(out)
        (out / "special_tokens_map.json").unlink(missing_ok=True)
        # Smaller on disk; the content is the same.
        compact = json.loads((out / "tokenizer.json").read_text())
        (out / "tokenizer.json").write_text(json.dumps(compact, ensure_ascii=False, separators=(",", ":")))
        if name == "mistral":  # the older place for the template: inside tokenizer_config.json
            config = json.loads((out / "tokenizer_config.json").read_text())
            config["chat_template"] = template
            (out / "tokenizer_config.json").write_text(json.dumps(config, indent=2, ensure_ascii=False))
            (out / "chat_template.jinja").unlink(missing_ok=True)

        ids = torch.tensor(tok.encode(PROMPT).ids, dtype=torch.int64)
        golden = {"input_ids": ids, "base.logits": logits(model, ids), "base.greedy": greedy(model, ids)}
        adapted = get_peft_model(model, LoraConfig(task_type="CAUSAL_LM", **lora)).eval()
        with torch.no_grad():
            for key, p in adapted.named_parameters():
                if "lora_" in key:
                    p.copy_(0.15 * torch.randn(p.shape, generator=generator))
        golden["adapter.logits"] = logits(adapted, ids)
        golden["adapter.greedy"] = greedy(adapted, ids)
        gap = (golden["adapter.logits"] - golden["base.logits"]).abs().max()
        assert gap > 0.1, f"{name}: the adapter changes nothing"
        adapted.save_pretrained(out / "adapter")
        (out / "adapter" / "README.md").unlink(missing_ok=True)
        tidy(out / "adapter" / "adapter_config.json", name)
        if name == "llama3":  # autoact's own metadata key: the base this adapter was trained on
            path = out / "adapter" / "adapter_model.safetensors"
            with safe_open(path, "pt") as f:
                tensors = {k: f.get_tensor(k) for k in f.keys()}
            base = hashlib.sha256((out / "model.safetensors").read_bytes()).hexdigest()
            save_file(tensors, path, {"format": "pt", "autoact.base_sha256": base})
        save_file(golden, out / "golden.safetensors")
        if name == "llama2":
            activated(adapted.unload(), lora, ids, out)
        chat = None
        if template is not None:
            messages = [{"role": "user", "content": "Where is the Elbe?"}]
            chat = fast.apply_chat_template(messages, tokenize=False, add_generation_prompt=True)
        text = tok.decode(torch.cat([ids, golden["base.greedy"]]).tolist(), skip_special_tokens=True)
        notes = {"prompt": PROMPT, "base_text": text, "chat": chat}
        (out / "golden.json").write_text(json.dumps(notes, indent=2, ensure_ascii=False) + "\n")
        for f in out.rglob("*.safetensors"):
            f.chmod(0o644)
        size = sum(f.stat().st_size for f in out.rglob("*") if f.is_file())
        print(f"{name}: {size / 1024:.0f} KiB, prompt {len(ids)} tokens, vocabulary {tok.get_vocab_size()}, adapter gap {gap:.2f}")


if __name__ == "__main__":
    main()

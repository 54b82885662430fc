"""Makes the golden vectors: a tiny random BERT with what transformers computes from it, and what it
computes from the real weights (PyTorch on CPU, f32, eager attention).

    python make.py                                  # writes ./tiny/ and ./tiny.json
    python make.py ../../../../../models/all-minilm-l6-v2   # also writes ./minilm.json

See README.md for what each file holds.
"""

import json
import shutil
import sys
from pathlib import Path

import torch
from safetensors.torch import save_file
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors
from transformers import BertConfig, BertModel, PreTrainedTokenizerFast

HERE = Path(__file__).resolve().parent
SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
CORPUS = [
    "The river Elbe flows through Dresden and Hamburg to the sea.",
    "A memory service stores what a user wrote, and finds it again by its meaning.",
    "Zürich, São Paulo and 東京 are cities; the population is 1,234,567.",
]
# Shorter than the 64 positions, and not the default of 256: the file that says it has to be read.
TINY_LENGTH = 48
# A long text is what is repeated, how often, and what comes after it.
Text = str | tuple[str, int, str]
TINY_TEXTS: list[Text] = [
    "",
    "a",
    "The river Elbe flows through Dresden.",
    "the RIVER elbe flows through dresden",
    "Zu\u0308rich, São Paulo and 東京 🙂 cafe\u0301",
    " \t\n\u00a0\u0000 ",
    "The memory [SEP] of a [MASK] user",
    ("flows ", 400, ""),
    ("x", 6000, ""),
    ("東京", 3000, ""),
    (" ", 9000, "after many blanks the river"),
    ("a user wrote: (1,234) — 'what, again?!' ", 7, ""),
]
REAL_TEXTS: list[Text] = [
    "",
    "The river Elbe flows through Dresden and Hamburg to the sea.",
    "Which towns lie on the Elbe?",
    "Der Fluss Elbe fließt durch Dresden. 東京 🙂",
    "To reset your password, open the settings and choose “Security”.",
    "I forgot my password",
    ("The quarterly report shows that revenue grew by 12% while costs fell. ", 60, ""),
    "ﬁnance\tQ3\n\nrevenue:\u00a01,234,567.89 €",
]


def vectors(model: BertModel, tokenizer: PreTrainedTokenizerFast, texts: list[Text], length: int) -> torch.Tensor:
    """Each text alone, without padding: what a batch must not change."""
    rows = []
    for text in texts:
        tokens = tokenizer(whole(text), truncation=True, max_length=length, return_tensors="pt")
        with torch.no_grad():
            states = model(**tokens).last_hidden_state
        mask = tokens["attention_mask"].unsqueeze(-1).float()
        mean = (states * mask).sum(1) / mask.sum(1)
        rows.append(torch.nn.functional.normalize(mean, dim=1)[0])
    return torch.stack(rows)


def whole(text: Text) -> str:
    return text if isinstance(text, str) else text[0] * text[1] + text[2]


def tiny_tokenizer() -> Tokenizer:
    normalizer, splitter = normalizers.BertNormalizer(lowercase=True), pre_tokenizers.BertPreTokenizer()
    words = {word for text in CORPUS for word, _ in splitter.pre_tokenize_str(normalizer.normalize_str(text))}
    letters = {letter for word in words for letter in word}
    # every other word is whole, the others are of letters; the library's trainer breaks ties at random
    pieces = dict.fromkeys(SPECIAL + sorted(letters) + ["##" + letter for letter in sorted(letters)] + sorted(words)[::2])
    tokenizer = Tokenizer(models.WordPiece({piece: number for number, piece in enumerate(pieces)}, unk_token="[UNK]"))
    tokenizer.normalizer, tokenizer.pre_tokenizer = normalizer, splitter
    cls, sep = tokenizer.token_to_id("[CLS]"), tokenizer.token_to_id("[SEP]")
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1", special_tokens=[("[CLS]", cls), ("[SEP]", sep)]
    )
    tokenizer.decoder = decoders.WordPiece()
    # as in the real file, where they are not what sentence-transformers uses
    tokenizer.enable_truncation(16)
    tokenizer.enable_padding(length=16)
    return tokenizer


def tiny() -> None:
    out = HERE / "tiny"
    shutil.rmtree(out, ignore_errors=True)
    (out / "1_Pooling").mkdir(parents=True)
    torch.manual_seed(7)
    tokenizer = tiny_tokenizer()
    tokenizer.add_special_tokens(SPECIAL)
    config = BertConfig(
        vocab_size=tokenizer.get_vocab_size(),
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=4,
        intermediate_size=40,
        max_position_embeddings=64,
        attn_implementation="eager",
    )
    model = BertModel(config, add_pooling_layer=False).eval()
    with torch.no_grad():
        for name, weight in model.named_parameters():
            # what BERT starts from is so small that every text would have nearly the same vector
            weight.copy_((torch.randn_like(weight) * 0.3 + (1.0 if name.endswith("LayerNorm.weight") else 0.0)).half().float())
    save_file({name: weight.half().contiguous() for name, weight in model.named_parameters()}, out / "model.safetensors")
    (out / "model.safetensors").chmod(0o644)
    kept = "model_type architectures vocab_size hidden_size num_hidden_layers num_attention_heads intermediate_size hidden_act".split()
    kept += "hidden_dropout_prob attention_probs_dropout_prob max_position_embeddings type_vocab_size initializer_range".split()
    kept += ["layer_norm_eps", "pad_token_id"]
    every = {**config.to_dict(), "architectures": ["BertModel"]}
    (out / "config.json").write_text(json.dumps({name: every[name] for name in kept}, indent=1) + "\n")
    (out / "sentence_bert_config.json").write_text(json.dumps({"max_seq_length": TINY_LENGTH, "do_lower_case": False}) + "\n")
    (out / "1_Pooling" / "config.json").write_text(json.dumps({"pooling_mode_cls_token": False, "pooling_mode_mean_tokens": True}) + "\n")
    tokenizer.save(str(out / "tokenizer.json"), pretty=False)
    found = vectors(model, fast(out), TINY_TEXTS, TINY_LENGTH)
    rows = [{"text": text, "vector": [round(x, 7) for x in row.tolist()]} for text, row in zip(TINY_TEXTS, found)]
    write(HERE / "tiny.json", rows)


def real(path: Path) -> None:
    model = BertModel.from_pretrained(path, attn_implementation="eager").eval()
    found = vectors(model, fast(path), REAL_TEXTS, 256)
    cosines = found @ found.T
    rows = [
        {"text": text, "first": [round(x, 6) for x in row[:8].tolist()], "cosines": [round(x, 6) for x in cosine.tolist()]}
        for text, row, cosine in zip(REAL_TEXTS, found, cosines)
    ]
    write(HERE / "minilm.json", rows)


def fast(path: Path) -> PreTrainedTokenizerFast:
    names = dict(pad_token="[PAD]", unk_token="[UNK]", cls_token="[CLS]", sep_token="[SEP]", mask_token="[MASK]")
    return PreTrainedTokenizerFast(tokenizer_file=str(path / "tokenizer.json"), **names)


def write(path: Path, rows: list[dict]) -> None:
    """One text a line."""
    path.write_text("[\n" + ",\n".join(json.dumps(row, ensure_ascii=True) for row in rows) + "\n]\n")


if __name__ == "__main__":
    torch.set_num_threads(1)
    tiny()
    for argument in sys.argv[1:]:
        real(Path(argument))

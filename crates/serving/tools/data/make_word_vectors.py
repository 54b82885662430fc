#!/usr/bin/env python3
"""Makes `word-vectors`: vectors of English words, for `src/word_vectors.rs`.

    scripts/fetch-embedder
    pip install numpy safetensors tokenizers
    crates/serving/tools/data/make_word_vectors.py models/all-minilm-l6-v2

Each word of all-MiniLM-L6-v2's vocabulary that is letters alone is read as a text of one word. Its
vector, the mean over the text's tokens, is projected on the 64 directions in which all of them differ
most, and stored in signed bytes. It takes two minutes. Signs and last bits depend on the machine's
linear algebra; the cosines of another run differ by 0.001 at most.
"""

import re
import sys
from math import sqrt
from pathlib import Path

import numpy as np
from safetensors.numpy import load_file
from tokenizers import Tokenizer

WIDTH = 64
LAYERS, HEADS = 6, 12
BATCH = 1024


def erf(x):
    """Abramowitz and Stegun 7.1.26; an error of at most 1.5e-7."""
    t = 1 / (1 + 0.3275911 * np.abs(x))
    series = ((((1.061405429 * t - 1.453152027) * t + 1.421413741) * t - 0.284496736) * t + 0.254829592) * t
    return np.sign(x) * (1 - series * np.exp(-x * x))


class Bert:
    """The forward pass of a text of a few tokens, after the paper (Devlin and others, 2018)."""

    def __init__(self, directory):
        self.weights = {name: array.astype(np.float32) for name, array in load_file(directory / "model.safetensors").items()}

    def linear(self, x, name):
        return x @ self.weights[name + ".weight"].T + self.weights[name + ".bias"]

    def norm(self, x, name):
        x = x - x.mean(-1, keepdims=True)
        x = x / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-12)
        return x * self.weights[name + ".weight"] + self.weights[name + ".bias"]

    def mean(self, ids):
        """[texts, tokens] -> [texts, width]"""
        texts, tokens = ids.shape
        x = self.weights["embeddings.word_embeddings.weight"][ids]
        x = x + self.weights["embeddings.position_embeddings.weight"][:tokens]
        x = self.norm(x + self.weights["embeddings.token_type_embeddings.weight"][0], "embeddings.LayerNorm")
        width = x.shape[-1]
        for layer in range(LAYERS):
            at = f"encoder.layer.{layer}."
            parts = [self.linear(x, at + "attention.self." + part) for part in ("query", "key", "value")]
            q, k, v = (part.reshape(texts, tokens, HEADS, width // HEADS).transpose(0, 2, 1, 3) for part in parts)
            scores = q @ k.transpose(0, 1, 3, 2) / sqrt(width // HEADS)
            scores = np.exp(scores - scores.max(-1, keepdims=True))
            mixed = (scores / scores.sum(-1, keepdims=True)) @ v
            mixed = self.linear(mixed.transpose(0, 2, 1, 3).reshape(texts, tokens, width), at + "attention.output.dense")
            x = self.norm(x + mixed, at + "attention.output.LayerNorm")
            inner = self.linear(x, at + "intermediate.dense")
            inner = self.linear(inner * 0.5 * (1 + erf(inner / sqrt(2))), at + "output.dense")
            x = self.norm(x + inner, at + "output.LayerNorm")
        return x.mean(1)


def main():
    directory = Path(sys.argv[1])
    vocabulary = Tokenizer.from_file(str(directory / "tokenizer.json")).get_vocab()
    words = sorted(word for word in vocabulary if re.fullmatch("[a-z]{2,}", word))
    begin, end = vocabulary["[CLS]"], vocabulary["[SEP]"]
    texts = np.array([[begin, vocabulary[word], end] for word in words])
    bert = Bert(directory)
    vectors = np.concatenate([bert.mean(texts[at : at + BATCH]) for at in range(0, len(texts), BATCH)])
    vectors -= vectors.mean(0)
    _, _, directions = np.linalg.svd(vectors, full_matrices=False)
    vectors = vectors @ directions[:WIDTH].T
    vectors = np.round(vectors / np.abs(vectors).max(1, keepdims=True) * 127).astype(np.int8)
    file = Path(__file__).with_name("word-vectors")
    file.write_bytes("\n".join(words).encode() + b"\n\n" + vectors.tobytes())
    print(f"{file}: {len(words)} words, {file.stat().st_size} bytes")


if __name__ == "__main__":
    main()

"""Reads and writes LoRA adapters in PEFT's format as this project does: bfloat16, with the base's digest as metadata."""

import json
import os
import struct
from pathlib import Path

import torch
from safetensors.torch import load_file

LINEARS = ["self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj", "self_attn.o_proj", "mlp.gate_proj", "mlp.up_proj", "mlp.down_proj"]


def name(layer: int, linear: str, matrix: str) -> str:
    """PEFT's name of a matrix, `A` or `B`."""
    return f"base_model.model.model.layers.{layer}.{linear}.lora_{matrix}.weight"


def load(directory: Path) -> dict:
    return load_file(Path(directory) / "adapter_model.safetensors")


def scale(directory: Path) -> float:
    """What `B A x` is multiplied with."""
    config = json.loads((Path(directory) / "adapter_config.json").read_text())
    return config["lora_alpha"] / config["r"]


def save(directory: Path, tensors: dict, like: Path, r: int) -> None:
    """Writes an adapter of rank `r` with the configuration, the order and the metadata of the adapter in `like`."""
    directory, like = Path(directory), Path(like)
    directory.mkdir(parents=True, exist_ok=True)
    config = json.loads((like / "adapter_config.json").read_text())
    config["lora_alpha"] = int(config["lora_alpha"] / config["r"] * r)
    config["r"] = r
    with open(like / "adapter_model.safetensors", "rb") as file:
        header = json.loads(file.read(struct.unpack("<Q", file.read(8))[0]))
    new, data = {"__metadata__": header.pop("__metadata__")}, b""
    for key in header:
        raw = tensors[key].detach().bfloat16().cpu().contiguous().view(torch.int16).numpy().tobytes()
        new[key] = {"dtype": "BF16", "shape": list(tensors[key].shape), "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    text = json.dumps(new, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    path = directory / "adapter_model.safetensors"
    path.with_suffix(".new").write_bytes(struct.pack("<Q", len(text)) + text + data)
    os.replace(path.with_suffix(".new"), path)
    (directory / "adapter_config.json").write_text(json.dumps(config, indent=2) + "\n")

"""LoRA training by transformers + PEFT: the loop that our trainer is compared with. One JSON object per optimiser step."""

import argparse
import json
import time
from pathlib import Path

import torch
import torch.nn.functional as F
from peft import LoraConfig, get_peft_model
from transformers import AutoModelForCausalLM


def batch(documents: list) -> tuple:
    """Inputs, attention mask, and targets (-100 where none counts); padded to the longest document."""
    longest = max(len(d["tokens"]) for d in documents) - 1
    ids = torch.zeros(len(documents), longest, dtype=torch.long)
    mask = torch.zeros_like(ids)
    targets = torch.full_like(ids, -100)
    for row, d in enumerate(documents):
        n = len(d["tokens"]) - 1
        ids[row, :n] = torch.tensor(d["tokens"][:-1])
        mask[row, :n] = 1
        targets[row, d["loss_from"] - 1 : n] = torch.tensor(d["tokens"][d["loss_from"] :])
    return ids, (None if bool(mask.all()) else mask), targets, int(mask.sum())


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--model", required=True)
    parser.add_argument("--documents", required=True)
    parser.add_argument("--rank", type=int, required=True)
    parser.add_argument("--modules", required=True)
    parser.add_argument("--rows", type=int, required=True)
    parser.add_argument("--steps", type=int, required=True)
    parser.add_argument("--threads", type=int, required=True)
    parser.add_argument("--bf16", action="store_true")
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    torch.manual_seed(0)
    documents = json.loads(Path(args.documents).read_text())
    model = AutoModelForCausalLM.from_pretrained(args.model, dtype=torch.float32)
    lora = LoraConfig(task_type="CAUSAL_LM", r=args.rank, lora_alpha=2 * args.rank, target_modules=args.modules.split(","))
    model = get_peft_model(model, lora).train()
    trained = [p for p in model.parameters() if p.requires_grad]
    optimizer = torch.optim.AdamW(trained, lr=1e-3, betas=(0.9, 0.999), weight_decay=0.01)
    count = sum(p.numel() for p in trained)
    for step in range(args.steps):
        start = time.perf_counter()
        at = step * args.rows % len(documents)
        ids, mask, targets, tokens = batch(documents[at : at + args.rows])
        with torch.autocast("cpu", torch.bfloat16, enabled=args.bf16):
            logits = model(input_ids=ids, attention_mask=mask, use_cache=False).logits
        loss = F.cross_entropy(logits.flatten(0, 1).float(), targets.flatten())
        loss.backward()
        torch.nn.utils.clip_grad_norm_(trained, 1.0)
        optimizer.step()
        optimizer.zero_grad()
        line = {"seconds": time.perf_counter() - start, "tokens": tokens, "loss": float(loss.detach()), "trained": count}
        print(json.dumps(line), flush=True)


if __name__ == "__main__":
    main()

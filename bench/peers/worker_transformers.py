"""transformers + PEFT as a worker: one JSON job per line. The loop is by hand, because `generate` adds milliseconds to every token
of a small model; caches are kept between requests only where the job says `keep`."""

import argparse
import json
import sys
import time

import torch
from peft import PeftModel
from transformers import AutoModelForCausalLM
from transformers.cache_utils import DynamicCache

TYPES = {"f32": torch.float32, "bf16": torch.bfloat16}


class Server:
    def __init__(self, args):
        self.args = args
        self.models = {}
        self.kept = None  # (tokens, cache) of the last request

    def model(self, adapter: bool):
        if adapter not in self.models:
            model = AutoModelForCausalLM.from_pretrained(self.args.model, dtype=TYPES[self.args.precision])
            if adapter:
                model = PeftModel.from_pretrained(model, self.args.adapter)
            self.models[adapter] = model.eval()
        return self.models[adapter]

    def complete(self, prompts: list, max_tokens: int, adapter: bool, keep: bool) -> dict:
        model = self.model(adapter)
        start = time.perf_counter()
        cache, cached = self.cache_for(prompts, keep)
        ids = torch.tensor(prompts)[:, cached:]
        logits = model(input_ids=ids, past_key_values=cache, use_cache=True, logits_to_keep=1).logits
        next_ids = logits[:, -1].argmax(-1, keepdim=True)
        first = time.perf_counter()
        written = [next_ids]
        while len(written) < max_tokens:
            logits = model(input_ids=next_ids, past_key_values=cache, use_cache=True).logits
            next_ids = logits[:, -1].argmax(-1, keepdim=True)
            written.append(next_ids)
        tokens = torch.cat(written, 1).tolist()
        end = time.perf_counter()
        if keep:
            self.kept = (prompts[0] + tokens[0][:-1], cache)
        return {"prefill": first - start, "decode": end - first, "cached_tokens": cached, "tokens": tokens}

    def cache_for(self, prompts: list, keep: bool):
        if not keep or self.kept is None:
            return DynamicCache(), 0
        tokens, cache = self.kept
        same = 0
        while same < min(len(tokens), len(prompts[0]) - 1) and tokens[same] == prompts[0][same]:
            same += 1
        if same < len(tokens):
            cache.crop(same - len(tokens))
        return cache, same

    def answer(self, job: dict) -> dict:
        adapter, keep = job.get("adapter", False), job.get("keep", False)
        self.kept = None
        start = time.perf_counter()
        if job.get("together"):
            prompts = [r["tokens"] for r in job["requests"]]
            done = [self.complete(prompts, job["requests"][0]["max_tokens"], adapter, False)]
        else:
            done = [self.complete([r["tokens"]], r["max_tokens"], adapter, keep) for r in job["requests"]]
        return {"wall": time.perf_counter() - start, "requests": done}


@torch.inference_mode()
def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--model", required=True)
    parser.add_argument("--adapter", required=True)
    parser.add_argument("--precision", choices=TYPES, required=True)
    parser.add_argument("--threads", type=int, required=True)
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    start = time.perf_counter()
    server = Server(args)
    server.model(False)
    print(json.dumps({"ready": True, "load_seconds": time.perf_counter() - start}), flush=True)
    for line in sys.stdin:
        print(json.dumps(server.answer(json.loads(line))), flush=True)


if __name__ == "__main__":
    main()

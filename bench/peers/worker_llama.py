"""llama.cpp as a worker: one JSON job per line. It is called at its C interface, so that nothing of the Python binding's
convenience is in the figures; a job with `keep` reuses the common prefix as llama.cpp's own server does."""

import argparse
import ctypes
import json
import sys
import time

import llama_cpp as lib
import numpy as np

CONTEXT = 4096
STREAMS = 8


@lib.llama_log_callback
def quiet(level, text, data):
    if level >= 3:  # warnings and errors
        sys.stderr.write(text.decode(errors="replace"))


class Context:
    """A context of some sequences, with a batch as large as it takes."""

    def __init__(self, model, sequences: int, threads: int):
        params = lib.llama_context_default_params()
        params.n_ctx = CONTEXT
        params.n_batch = CONTEXT
        params.n_seq_max = sequences
        params.n_threads = params.n_threads_batch = threads
        params.kv_unified = False
        params.no_perf = True
        self.ptr = lib.llama_init_from_model(model, params)
        assert self.ptr, "no context"
        self.memory = lib.llama_get_memory(self.ptr)
        self.batch = lib.llama_batch_init(CONTEXT, 0, 1)
        self.vocab = lib.llama_vocab_n_tokens(lib.llama_model_get_vocab(model))

    def run(self, rows: list) -> None:
        """`(token, position, sequence, whether its logits are wanted)` each."""
        batch = self.batch
        batch.n_tokens = len(rows)
        for i, (token, position, sequence, wanted) in enumerate(rows):
            batch.token[i] = token
            batch.pos[i] = position
            batch.n_seq_id[i] = 1
            batch.seq_id[i][0] = sequence
            batch.logits[i] = wanted
        code = lib.llama_decode(self.ptr, batch)
        assert code == 0, f"llama_decode gave {code}"

    def best(self, row: int) -> int:
        logits = np.ctypeslib.as_array(lib.llama_get_logits_ith(self.ptr, row), shape=(self.vocab,))
        return int(logits.argmax())


class Server:
    def __init__(self, args):
        lib.llama_log_set(quiet, ctypes.c_void_p(0))
        lib.llama_backend_init()
        params = lib.llama_model_default_params()
        params.n_gpu_layers = 0
        if not args.tiles:
            # llama.cpp calls them extra buffers: those of AMX, and of weights that it puts in another order
            known = [name for name, _ in lib.llama_model_params._fields_]
            assert "use_extra_bufts" in known, "this llama.cpp cannot leave its tile buffers; take the release of bench/requirements.txt"
            params.use_extra_bufts = False
        self.model = lib.llama_model_load_from_file(args.model.encode(), params)
        assert self.model, "no model"
        self.adapter = lib.llama_adapter_lora_init(self.model, args.adapter.encode()) if args.adapter else None
        assert self.adapter or not args.adapter, "no adapter"
        self.contexts = {n: Context(self.model, n, args.threads) for n in (1, STREAMS)}
        self.kept = []

    def context(self, sequences: int, adapter: bool) -> Context:
        found = self.contexts[sequences]
        assert self.adapter or not adapter, "started without an adapter"
        count = 1 if adapter else 0
        code = lib.llama_set_adapters_lora(
            found.ptr, (lib.llama_adapter_lora_p_ctypes * count)(*[self.adapter] * count), count, (ctypes.c_float * count)(*[1.0] * count)
        )
        assert code == 0, f"llama_set_adapters_lora gave {code}"
        return found

    def alone(self, prompt: list, max_tokens: int, adapter: bool, keep: bool) -> dict:
        start = time.perf_counter()
        context = self.context(1, adapter)
        same = 0
        if keep:
            while same < min(len(self.kept), len(prompt) - 1) and self.kept[same] == prompt[same]:
                same += 1
        lib.llama_memory_seq_rm(context.memory, 0, same, -1)
        last = len(prompt) - 1
        context.run([(prompt[i], i, 0, i == last) for i in range(same, len(prompt))])
        tokens = [context.best(last - same)]
        first = time.perf_counter()
        while len(tokens) < max_tokens:
            context.run([(tokens[-1], last + len(tokens), 0, True)])
            tokens.append(context.best(0))
        end = time.perf_counter()
        self.kept = prompt + tokens[:-1]
        return {"prefill": first - start, "decode": end - first, "cached_tokens": same, "tokens": [tokens]}

    def together(self, prompts: list, max_tokens: int, adapter: bool) -> dict:
        start = time.perf_counter()
        context = self.context(1 if len(prompts) == 1 else STREAMS, adapter)
        lib.llama_memory_clear(context.memory, False)
        self.kept = []
        last = len(prompts[0]) - 1
        context.run([(token, i, s, i == last) for s, prompt in enumerate(prompts) for i, token in enumerate(prompt)])
        tokens = [[context.best(s * (last + 1) + last)] for s in range(len(prompts))]
        first = time.perf_counter()
        while len(tokens[0]) < max_tokens:
            context.run([(row[-1], last + len(row), s, True) for s, row in enumerate(tokens)])
            for s, row in enumerate(tokens):
                row.append(context.best(s))
        return {"prefill": first - start, "decode": time.perf_counter() - first, "tokens": tokens}

    def answer(self, job: dict) -> dict:
        adapter, requests = job.get("adapter", False), job["requests"]
        self.kept = []
        start = time.perf_counter()
        if job.get("together"):
            done = [self.together([r["tokens"] for r in requests], requests[0]["max_tokens"], adapter)]
        else:
            done = [self.alone(r["tokens"], r["max_tokens"], adapter, job.get("keep", False)) for r in requests]
        return {"wall": time.perf_counter() - start, "requests": done}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--model", required=True)
    parser.add_argument("--adapter", help="without it, jobs with an adapter are refused")
    parser.add_argument("--no-tiles", dest="tiles", action="store_false", help="leave out buffers in the form of tile units")
    parser.add_argument("--threads", type=int, required=True)
    args = parser.parse_args()
    start = time.perf_counter()
    server = Server(args)
    print(json.dumps({"ready": True, "load_seconds": time.perf_counter() - start}), flush=True)
    for line in sys.stdin:
        print(json.dumps(server.answer(json.loads(line))), flush=True)


if __name__ == "__main__":
    main()

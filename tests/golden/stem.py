"""What PEFT computes with the adapters that this project's trainer made: `models/stem`, three adapters of it that always
act, and the three activated ones that are bundled with it, in transformers + peft (PyTorch on the CPU, f32, eager
attention), greedy from real transcripts.

    python stem.py            # writes ./stem/golden.json

Run it again when `models/stem` changes. README.md says what the file holds.
"""

import hashlib
import json
from pathlib import Path

import torch
from peft import PeftModel
from transformers import AutoModelForCausalLM, AutoTokenizer

HERE = Path(__file__).resolve().parent
MODEL = HERE.parent.parent / "models" / "stem"
OUT = HERE / "stem"
# Names that begin so are the bundled adapters: activated ones.
ACTIVATED = "activated/"
NEW_TOKENS = 40
# Two logits closer than this would make the greedy text a matter of rounding.
TIE = 1e-2

TOOLS = "Tools: Search[query] Retrieve[title] Lookup[keyword] Calculate[expression] Finish[answer] NotFound[what is missing]\n"
KABUL = (
    TOOLS + "Question: Are Kabul and Varanasi in the same country?\n"
    "Thought: I need the country of Kabul.\nAction: Retrieve\nInput: Kabul\n"
    "Observation: Kabul is a city in Afghanistan. The river of Kabul is the Kabul River.\n"
    "Thought: The country of Kabul is Afghanistan. I need the country of Varanasi.\nAction: Retrieve\nInput: Varanasi\n"
    "Observation: Varanasi is a city in India. Its river is the Ganges.\n"
)
KENYA = (
    TOOLS + "Question: What is the currency of the country of Mount Kenya?\n"
    "Thought: I need the country of Mount Kenya.\nAction: Retrieve\nInput: Mount Kenya\n"
    "Observation: Mount Kenya is a mountain in Kenya. It has a height of 5199 m. Its continent is Africa. The first ascent was made in 1899.\n"
    "Thought: The country of Mount Kenya is Kenya. I need the currency of Kenya.\nAction: Retrieve\nInput: Kenya\n"
    "Observation: Kenya is a country in Africa. Its capital is Nairobi. The highest mountain of Kenya is Mount Kenya. "
    "Its currency is the Kenyan shilling. Its calling code is +254. It has an area of 580367 km². (More: use Lookup.)\n"
)
FINISH = "Thought: The currency of Kenya is the Kenyan shilling. That is the answer.\nAction: Finish\nInput: Kenyan shilling\n"
LOIRE = TOOLS + "Question: What is the capital of the country where the Loire flows?\n"

# An adapter (None = the base alone) and the text it continues.
CASES = [
    (None, LOIRE + "Thought: I need the country of"),
    (None, KENYA + "Thought: The currency of Kenya is"),
    ("plan", LOIRE + "Thought:"),
    ("plan", KABUL + "Thought:"),
    ("plan", KENYA + "Thought:"),
    ("tool", KABUL + "Thought: The country of Varanasi is India. I need to compare Afghanistan and India.\nAction: Calculate\nInput:"),
    ("tool", LOIRE + "Thought: I need the country of the Loire.\nAction: Retrieve\nInput:"),
    ("reflect", KENYA + FINISH + "Reflection:"),
    (ACTIVATED + "plan", LOIRE + "Thought:"),
    (ACTIVATED + "plan", KABUL + "Thought:"),
    (ACTIVATED + "plan", KENYA + "Thought:"),
    (ACTIVATED + "tool", KABUL + "Thought: The country of Varanasi is India. I need to compare Afghanistan and India.\nAction: Calculate\nInput:"),
    (ACTIVATED + "tool", LOIRE + "Thought: I need the country of the Loire.\nAction: Retrieve\nInput:"),
    (ACTIVATED + "reflect", KENYA + FINISH + "Reflection:"),
]


def folder(adapter: str) -> Path:
    bundled = adapter.removeprefix(ACTIVATED)
    return OUT / "adapters" / adapter if bundled == adapter else MODEL / "adapters" / bundled


def begin(model, ids: list[int]) -> int:
    """Where the adapter begins to act: at the last of its invocations in the prompt; 0 if it always acts."""
    wanted = getattr(model, "peft_config", {}).get("default")
    wanted = wanted and wanted.alora_invocation_tokens
    if not wanted:
        return 0
    found = [at for at in range(len(ids)) if ids[at : at + len(wanted)] == wanted]
    assert found, "the prompt has no invocation: the adapter would not act"
    return found[-1]


@torch.no_grad()
def greedy(model, ids: list[int], end: int) -> dict:
    """Recomputed from scratch for every token: no cache whose bugs could hide here. Ends before a tie."""
    tokens, logprobs = [], []
    while len(tokens) < NEW_TOKENS:
        row = model(torch.tensor([ids + tokens])).logits[0, -1].float()
        best = row.topk(2).values
        if best[0] - best[1] < TIE:
            break
        token = int(row.argmax())
        logprobs.append(round(float(row.log_softmax(-1)[token]), 6))
        tokens.append(token)
        if token == end or begin(model, ids + tokens) != begin(model, ids):
            break
    return {"tokens": tokens, "logprobs": logprobs}


def main() -> None:
    torch.set_num_threads(1)
    tokenizer = AutoTokenizer.from_pretrained(MODEL)
    end = tokenizer.eos_token_id

    def load():
        return AutoModelForCausalLM.from_pretrained(MODEL, dtype=torch.float32, attn_implementation="eager").eval()

    models = {None: load()}
    cases = []
    for index, (adapter, prompt) in enumerate(CASES):
        if adapter not in models:
            models[adapter] = PeftModel.from_pretrained(load(), folder(adapter)).eval()
        ids = tokenizer(prompt)["input_ids"]
        found = greedy(models[adapter], ids, end)
        assert len(found["tokens"]) >= 8, f"case {index}: a tie after {len(found['tokens'])} tokens; take another prompt"
        written = [t for t in found["tokens"] if t != end]
        place = {"adapter_from": begin(models[adapter], ids)}
        cases.append({"adapter": adapter, **place, "prompt": prompt, "prompt_tokens": ids, "text": tokenizer.decode(written), **found})
        print(f"{index} {adapter or 'base'}: {len(written)} tokens {cases[-1]['text']!r}")
    base = hashlib.sha256((MODEL / "model.safetensors").read_bytes()).hexdigest()
    adapters = {
        name: hashlib.sha256((folder(name) / "adapter_model.safetensors").read_bytes()).hexdigest()
        for name in models
        if name is not None
    }
    OUT.mkdir(exist_ok=True)
    golden = {"base_sha256": base, "adapters_sha256": adapters, "cases": cases}
    lines = json.dumps(golden, ensure_ascii=False, indent=1)
    (OUT / "golden.json").write_text(lines + "\n")


if __name__ == "__main__":
    main()

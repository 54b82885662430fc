"""What every engine is asked to do. A workload gives the jobs of one round and the figure that comes of an answer."""

import random
from dataclasses import dataclass
from pathlib import Path
from typing import Callable

from tokenizers import Tokenizer

STEM_WORDS = (
    "Kenya is a country in Africa Its capital is Nairobi The river of Kabul is the Kabul River and it flows through a city of the "
    "north where the film was made by an author who was born in the village that lies on the coast"
).split()
LETTERS = "abcdefghijklmnopqrstuvwxyz"
# A trajectory: what the task itself takes, then eight planning loops that each add a reply and an observation.
TASK_TOKENS = 100
STEPS = 8
STEP_TOKENS = (60, 120)
REPLY_TOKENS = 20


class Text:
    """Prompts of exactly so many tokens, another one for every seed; a longer one of a seed begins with the shorter one."""

    def __init__(self, model: Path):
        self.tokenizer = Tokenizer.from_file(str(model / "tokenizer.json"))
        self.real = model.name == "stem"

    def word(self, rng: random.Random) -> str:
        if self.real:
            return " " + rng.choice(STEM_WORDS)
        return " " + "".join(rng.choice(LETTERS[:4] if i == 0 else LETTERS) for i in range(4))

    def prompts(self, seed: int, lengths: list) -> list:
        """`(text, tokens)` of each length, ascending."""
        rng = random.Random(seed)
        text, count, found = "Q", 1, []
        for length in lengths:
            while count < length:
                word = self.word(rng)
                size = len(self.tokenizer.encode(word).ids)
                # Words do not melt into each other, so counts add up; marks fill what is left.
                text, count = (text + word, count + size) if count + size <= length - 1 else (text + ".!"[count % 2], count + 1)
            ids = self.tokenizer.encode(text).ids
            assert len(ids) == length, f"{len(ids)} tokens instead of {length}"
            found.append((text, ids))
        return found


@dataclass
class Workload:
    name: str
    unit: str
    # (text, seed) -> the job, in both forms: texts for us, tokens for the others
    job: Callable
    # answer, job -> the figure
    figure: Callable
    # whether the step before may be remembered
    keep: bool = False
    # long ones are warm when the short ones have run
    warm_up: bool = True


def job(prompts: list, max_tokens: int, adapter: bool, together: bool = False) -> dict:
    requests = [{"prompt": t, "tokens": ids, "max_tokens": max_tokens, "adapter": adapter} for t, ids in prompts]
    return {"requests": requests, "together": together, "adapter": adapter}


def decode(streams: int, tokens: int, adapter: bool) -> Workload:
    """So many completions at once of short prompts; the reading of the first prompt does not count."""

    def make(text: Text, seed: int) -> dict:
        prompts = [text.prompts(seed * 1000 + at, [8])[0] for at in range(streams)]
        return job(prompts, tokens, adapter, together=True)

    def figure(answer: dict, asked: dict) -> float:
        first = min(r["prefill"] + r.get("queue", 0) for r in answer["requests"])
        return streams * (tokens - 1) / (answer["wall"] - first)

    return Workload(f"decode, {streams} at once" + suffix(adapter), "tokens/s", make, figure)


def prefill(tokens: int, adapter: bool) -> Workload:
    def make(text: Text, seed: int) -> dict:
        return job(text.prompts(seed, [tokens]), 1, adapter)

    def figure(answer: dict, asked: dict) -> float:
        return tokens / answer["requests"][0]["prefill"]

    return Workload(f"prefill, {tokens:,} tokens" + suffix(adapter), "tokens/s", make, figure, warm_up=tokens <= 512)


def trajectory(adapter: bool, keep: bool) -> Workload:
    """One task as the group runs it: every planning loop sends the whole history so far and gets a short reply."""

    def make(text: Text, seed: int) -> dict:
        rng = random.Random(seed)
        lengths = [TASK_TOKENS]
        for _ in range(STEPS - 1):
            lengths.append(lengths[-1] + rng.randint(*STEP_TOKENS))
        return job(text.prompts(seed, lengths), REPLY_TOKENS, adapter) | {"keep": keep}

    def figure(answer: dict, asked: dict) -> float:
        return STEPS / answer["wall"]

    name = f"trajectory of {STEPS} steps, {'prefix kept' if keep else 'read anew'}"
    return Workload(name + suffix(adapter), "steps/s", make, figure, keep, warm_up=False)


def suffix(adapter: bool) -> str:
    return ", adapter" if adapter else ""


def workloads(quick: bool) -> list:
    tokens = 32 if quick else 64
    found = [decode(n, tokens, False) for n in (1, 3, 8)]
    found += [decode(1, tokens, True), decode(3, tokens, True)]
    found += [prefill(tokens, adapter) for adapter in (False, True) for tokens in ((512,) if quick else (512, 2048))]
    found += [trajectory(adapter, keep) for adapter in ((True,) if quick else (False, True)) for keep in (False, True)]
    return found

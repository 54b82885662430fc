"""The scripted group: what the models would say and the tool would find, at no cost. The same script as in
`crates/lab/load/examples/step_overhead`: so many loops of plan, parameters, tool; one that finishes; a verdict."""

import json
import time
from statistics import median, quantiles


def planned(history: list, steps: int) -> tuple:
    done = len(history)
    return f"I read page {done} and see what it says.", "Retrieve" if done < steps else "Finish"


def parameters(history: list) -> str:
    return f"Page {len(history) + 1}"


def executed(params: str) -> str:
    number = int(params.split()[1])
    return f"{params} is a page of a book. It stands between page {number - 1} and page {number + 1}."


VERDICT = ("The pages say so.", "right")


class Times:
    """When every thought came, task by task."""

    def __init__(self):
        self.steps = []

    def task(self, thoughts: list) -> None:
        self.steps += [b - a for a, b in zip(thoughts, thoughts[1:])]


def tell(times: Times, saturated: dict) -> None:
    cuts = quantiles(times.steps, n=100)
    line = {"p50_us": median(times.steps) * 1e6, "p99_us": cuts[98] * 1e6, "steps_per_second": saturated}
    print(json.dumps(line), flush=True)


async def measure(ask, steps: int, tasks: int, at_once: list, seconds: float) -> None:
    """`await ask(number)` runs a task and gives the times of its thoughts."""
    import asyncio

    times, number = Times(), 0
    for index in range(tasks + max(2, tasks // 5)):
        number += 1
        thoughts = await ask(number)
        assert len(thoughts) == steps + 1, f"{len(thoughts)} thoughts"
        if index >= max(2, tasks // 5):
            times.task(thoughts)
    saturated = {}
    for count in at_once:
        begun = time.perf_counter()
        done = 0

        async def work():
            nonlocal number, done
            while time.perf_counter() < begun + seconds:
                number += 1
                thoughts = await ask(number)
                done += len(thoughts)  # not in one line: `done` must be read after the wait

        await asyncio.gather(*[work() for _ in range(count)])
        saturated[str(count)] = done / (time.perf_counter() - begun)
    tell(times, saturated)


def arguments():
    import argparse

    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, required=True)
    parser.add_argument("--tasks", type=int, required=True)
    parser.add_argument("--at-once", required=True)
    parser.add_argument("--seconds", type=float, required=True)
    parser.add_argument("--keep", choices=["memory", "sqlite"], default="memory")
    parser.add_argument("--role", help="internal: the agent that this process is")
    parser.add_argument("--host", help="internal: where the host is")
    return parser.parse_args()

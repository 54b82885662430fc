"""What the comparisons share: the virtual environment, workers that answer JSON lines, alternating rounds, tables."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from statistics import median

BENCH = Path(__file__).resolve().parent.parent
ROOT = BENCH.parent
WORK = BENCH / "work"  # made models and other bulky files; ignored by git


def in_venv() -> None:
    """Goes on inside `bench/.venv`, where the peers are."""
    python = BENCH / ".venv" / "bin" / "python"
    if not python.exists():
        sys.exit("there is no bench/.venv with the peers; make it with `bench/setup`")
    if Path(sys.prefix).resolve() != (BENCH / ".venv").resolve():
        os.execv(python, [str(python), *sys.argv])


def say(*words) -> None:
    print(*words, file=sys.stderr, flush=True)


def build(given: str | None = None) -> Path:
    """Our own side, `autoact-bench`: the given binary, or a release build of this checkout."""
    if given:
        return Path(given).resolve()
    say("building autoact-bench (release) ...")
    subprocess.run(["cargo", "build", "--release", "-p", "autoact-bench"], cwd=ROOT, check=True)
    return Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "release" / "autoact-bench"


class Worker:
    """A process that loads a model once and then answers one JSON line by one JSON line."""

    def __init__(self, name: str, command: list, threads: int):
        self.name = name
        env = dict(os.environ, OMP_NUM_THREADS=str(threads), RAYON_NUM_THREADS=str(threads), TOKENIZERS_PARALLELISM="false", HF_HUB_OFFLINE="1")
        env |= {"HF_HUB_DISABLE_PROGRESS_BARS": "1", "TRANSFORMERS_VERBOSITY": "error", "PYTHONWARNINGS": "ignore"}
        self.log = open(WORK / f"{name.replace(' ', '-')}.log", "w")
        self.process = subprocess.Popen(
            [str(c) for c in command], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.log, text=True, env=env
        )
        self.ready = self.read()

    def read(self) -> dict:
        for line in self.process.stdout:
            if line.startswith("{"):
                return json.loads(line)
        code = self.process.wait()
        how = signal.Signals(-code).name if code < 0 else f"exit code {code}"
        raise RuntimeError(f"`{self.name}` ended ({how}); its last words are in {self.log.name}")

    def ask(self, job: dict) -> dict:
        self.process.stdin.write(json.dumps(job) + "\n")
        self.process.stdin.flush()
        return self.read()

    def peak_mib(self) -> float:
        for line in Path(f"/proc/{self.process.pid}/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) / 1024
        return float("nan")

    def close(self) -> None:
        self.process.stdin.close()
        try:
            self.process.wait(timeout=20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.log.close()


def alternate(names: list, rounds: int, measure) -> dict:
    """`measure(name, round)` for all names in turn, in every round from another one on; the figures by name."""
    found = {name: [] for name in names}
    for at in range(rounds):
        start = at % len(names)
        for name in names[start:] + names[:start]:
            found[name].append(measure(name, at))
    return found


def ratio(ours: list, theirs: list) -> float:
    """The median over the rounds of ours / theirs: both sides of a round saw the same machine."""
    return median(a / b for a, b in zip(ours, theirs))


def spread(values: list) -> float:
    """How far the rounds lie apart: (highest - lowest) / median."""
    return (max(values) - min(values)) / median(values)


def number(value: float | None) -> str:
    if value is None:
        return "–"
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def table(head: list, rows: list) -> str:
    lines = ["| " + " | ".join(head) + " |", "| " + " | ".join("---" if i == 0 else "---:" for i in range(len(head))) + " |"]
    lines += ["| " + " | ".join(row) + " |" for row in rows]
    return "\n".join(lines)


def machine(binary: Path | None = None) -> dict:
    """Where figures are made. The processor, the path of our kernels and the memory's speed are what `autoact-bench machine`
    measures; without one that knows the command, the processor alone is told."""
    now = {"load": os.getloadavg(), "time": time.strftime("%Y-%m-%d %H:%M:%S")}
    binary = binary or Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "release" / "autoact-bench"
    try:
        done = subprocess.run([str(binary), "machine"], capture_output=True, text=True, timeout=120, check=True)
        return json.loads(done.stdout) | now
    except (OSError, subprocess.SubprocessError, json.JSONDecodeError):
        say(f"note: `{binary} machine` tells nothing; build `autoact-bench` to have the kernels' path and the memory's speed beside the figures")
        cpu = next((line.split(":")[1].strip() for line in open("/proc/cpuinfo") if line.startswith("model name")), "unknown")
        return {"processor": cpu, "threads": os.cpu_count()} | now


def where(machine: dict) -> str:
    """The line below every table."""
    parts = [machine["processor"], machine.get("instruction_set"), f"{machine['threads']} threads"]
    speed = machine.get("memory_bytes_per_second")
    parts.append(f"memory {speed / 1e9:.1f} GB/s" if speed else "memory speed not measured")
    return "Machine: " + ", ".join(part for part in parts if part) + ".\n"


def has_tiles() -> bool:
    """Whether the processor has tile units (AMX) with 8-bit products, as the system says."""
    return any(line.startswith("flags") and "amx_int8" in line.split() for line in open("/proc/cpuinfo"))


def warn_if_busy() -> None:
    load = os.getloadavg()[0]
    if load > 0.5:
        say(f"note: this machine is busy (load {load:.1f}); what waits for two threads at once (PyTorch, llama.cpp) suffers most. Figures need quiet.")


def finish(result: dict, path: str | None) -> None:
    """Writes the figures beside the tables that were printed."""
    if path:
        Path(path).write_text(json.dumps(result, indent=1) + "\n")
        say(f"wrote {path}")

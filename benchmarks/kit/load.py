"""Load: wrk(1), and what it cost the server."""

import re
import subprocess
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from .processes import Failure, Process, output_of

SCALES = {"us": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0}


@dataclass
class Measured:
    """One measurement. `cpu` is the seconds of processor per request of the processes that were watched."""

    rate: float
    p50: float
    p99: float
    requests: int
    cpu: float = 0.0

    @staticmethod
    def median(runs: list["Measured"]) -> "Measured":
        """The median of each figure for itself."""
        pick = lambda name: median(getattr(run, name) for run in runs)
        return Measured(pick("rate"), pick("p50"), pick("p99"), int(pick("requests")), pick("cpu"))


    @staticmethod
    def best(runs: list["Measured"]) -> "Measured":
        """The run with the highest rate, or with the least processor time where rates are not measured."""
        return max(runs, key=lambda run: (run.rate, -run.cpu))


def parse(text: str) -> Measured:
    """Reads what wrk prints."""
    if failed := re.search(r"Non-2xx.*|Socket errors.*", text):
        raise Failure(f"wrk: {failed[0].strip()}")
    seconds = lambda share: (
        lambda found: float(found[1]) * SCALES[found[2]])(re.search(rf"{share}%\s+([\d.]+)(us|ms|s|m)\b", text))
    return Measured(
        rate=float(re.search(r"Requests/sec:\s+([\d.]+)", text)[1]),
        p50=seconds(50), p99=seconds(99),
        requests=int(re.search(r"(\d+) requests in", text)[1]))


def start(url: str, connections: int, seconds: float, core: str | None = None, script: Path | None = None, env=None):
    """Starts wrk with one thread."""
    pinned = ["taskset", "-c", core] if core else []
    scripted = ["-s", str(script)] if script else []
    return subprocess.Popen(
        [*pinned, "wrk", "--latency", "-t1", f"-c{connections}", f"-d{seconds:g}s", "--timeout", "30s", *scripted, url],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=env)


def finish(wrk) -> Measured:
    """Waits for it."""
    text = wrk.communicate()[0]
    if wrk.returncode != 0:
        raise Failure(f"wrk: {text.strip()}")
    return parse(text)


def run(url: str, connections: int, seconds: float, *watched: Process, **options) -> Measured:
    """Runs wrk and tells what each request cost the processes that are watched."""
    before = sum(process.cpu() for process in watched)
    measured = finish(start(url, connections, seconds, **options))
    used = sum(process.cpu() for process in watched) - before
    measured.cpu = used / max(measured.requests, 1)
    return measured


def in_turn(rounds: int, cases: dict[str, callable], pick=Measured.median) -> dict[str, Measured]:
    """Runs all cases one after the other, several times, so that whatever drifts drifts for all; `pick` chooses."""
    runs = {name: [] for name in cases}
    for _ in range(rounds):
        for name, case in cases.items():
            runs[name].append(case())
    return {name: pick(all_) for name, all_ in runs.items()}


def version() -> str:
    text = subprocess.run(["wrk", "-v"], capture_output=True, text=True).stdout
    return text.split(" [", 1)[0].strip() or output_of("dpkg-query", "-W", "-f", "wrk ${Version}", "wrk")

"""Memory over twenty thousand misses, and a minute after."""

import time

from kit import load
from kit.report import Claim, Mark
from kit.servers import ORIGIN, PICTOR, Bench

from .beside import DISTINCT, distinct

MISSES, FIRST = 20_000, 1_000
MEMORY_LIMIT = "8MiB"
SOURCE = "800x600.jpg"


def ask(bench: Bench, until: int, done: int) -> int:
    """Asks for distinct pictures until so many were asked for; how many that were."""
    while done < until:
        measured = load.finish(load.start(
            f"http://127.0.0.1:{PICTOR}", 8, min(max((until - done) / 300, 1), 10), script=DISTINCT,
            env=distinct(SOURCE, f"memory{done}")))
        done += measured.requests
    return done


def run(bench: Bench) -> Claim:
    origin = bench.nginx("origin", ORIGIN, "/800x600.jpg")
    pictor = bench.pictor("--download.limit_per_host", 64, "--memory.limit", MEMORY_LIMIT)
    time.sleep(2)
    idle = pictor.memory()
    points = [("idle, after the start", 0, idle)]
    done = ask(bench, FIRST, 0)
    points.append(("after the first", done, first := pictor.memory()))
    for goal in range(5_000, MISSES + 1, 5_000):
        done = ask(bench, goal, done)
        points.append(("later", done, pictor.memory()))
    last = points[-1][2]
    time.sleep(60)
    points.append(("a minute later", done, rest := pictor.memory()))
    pictor.stop()
    origin.stop()
    return Claim(
        name="memory", title=f"Memory over {MISSES:,} misses",
        how=f"Distinct misses in a row ({SOURCE} to 300 px), with a memory tier of {MEMORY_LIMIT}, so that what it keeps by "
            "design hides nothing; the sum over the server and its workers, pages they share counted once (Pss).",
        columns=["", "misses so far", "MiB"],
        rows=[[name, f"{count:,}", f"{size / 2**20:.1f}"] for name, count, size in points],
        marks=[
            Mark(f"after {done:,}, of that after {points[1][1]:,}", last / first, 1.1, at_most=True),
            Mark("a minute later, of idle", rest / idle, 1.3, at_most=True),
        ],
        bars={"MiB": {f"{count:,} misses, {name}": size / 2**20 for name, count, size in points}}, unit="")

"""Memory over twenty thousand misses, and a minute after."""

import math
import time

from kit import load
from kit.report import Claim, Mark
from kit.servers import ORIGIN, PICTOR, Bench

from .beside import DISTINCT, distinct

MISSES, FIRST = 20_000, 1_000
MEMORY_LIMIT = "8MiB"
SOURCE = "800x600.jpg"


def ask(bench: Bench, until: int, done: int) -> int:
    """Asks for distinct images until so many were asked for; returns their number."""
    while done < until:
        measured = load.finish(load.start(
            f"http://127.0.0.1:{PICTOR}", 8, min(math.ceil((until - done) / 400), 10), script=DISTINCT,
            env=distinct(SOURCE, f"memory{done}")))
        done += measured.requests
    return done


def run(bench: Bench) -> Claim:
    origin = bench.nginx("origin", ORIGIN, "/800x600.jpg")
    pictor = bench.pictor("--download.limit_per_host", 64, "--memory.limit", MEMORY_LIMIT)
    points = []

    def note(when: str, done: int) -> int:
        points.append((when, done, resident := pictor.memory("Rss"), pictor.memory()))
        return resident

    time.sleep(2)
    idle = note("idle, after the start", 0)
    beginning = ask(bench, FIRST, 0)
    first, done = note("after the first", beginning), beginning
    for goal in range(5_000, MISSES + 1, 5_000):
        done = ask(bench, goal, done)
        last = note("later", done)
    time.sleep(60)
    rest = note("a minute later", done)
    pictor.stop()
    origin.stop()
    return Claim(
        name="memory", title=f"Memory over {MISSES:,} misses",
        how=f"Distinct misses ({SOURCE} to 300 px) with a memory tier of {MEMORY_LIMIT}; the server and its workers; Pss "
            "counts shared pages once.",
        columns=["", "misses so far", "RSS MiB", "Pss MiB"],
        rows=[[name, f"{count:,}", f"{rss / 2**20:.1f}", f"{pss / 2**20:.1f}"] for name, count, rss, pss in points],
        marks=[
            Mark(f"RSS after {done:,}, of that after {beginning:,}", last / first, 1.1, at_most=True),
            Mark("RSS a minute later, of idle", rest / idle, 1.3, at_most=True),
        ])

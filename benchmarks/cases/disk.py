"""Disk hits among many entries beside nginx's disk cache: the same bytes, all in the page cache."""

import os

from kit import http, load
from kit.processes import output_of, wait_until
from kit.report import Claim, Mark
from kit.servers import BENCHMARKS, CACHE, LOCAL_ORIGIN, ORIGIN, PICTOR, Bench

from .hits import WANTED, path_near, save_answer

ENTRIES = 100_000
RANDOM = BENCHMARKS / "wrk" / "random.lua"


def fill(bench: Bench) -> tuple[str, str]:
    """Makes the disk folder; the path of an entry, in two parts with room for its number."""
    origin = bench.nginx("origin", ORIGIN, "/800x600.jpg")
    pictor = bench.pictor()
    body, _ = save_answer(bench, path_near(WANTED))
    pictor.stop()
    origin.stop()
    source = f"{LOCAL_ORIGIN}/hit.jpg?"
    output_of(bench.build / "benchmark-fill", bench.disk, ENTRIES, 300, body, source)
    return http.image(source), "&w=300"


def start(bench: Bench, **options):
    """Pictor on that folder without a memory tier, once it knows what is there."""
    pictor = bench.pictor("--server.workers", 1, "--memory.limit", 0, keep=True, **options)
    wait_until(lambda: http.stats(PICTOR)["disk"]["entries"] >= ENTRIES, f"{ENTRIES} entries in the index")
    return pictor


def environment(prefix: str, suffix: str) -> dict:
    return {**os.environ, "BENCH_PREFIX": prefix, "BENCH_SUFFIX": suffix, "BENCH_COUNT": str(ENTRIES)}


def run(bench: Bench) -> Claim:
    prefix, suffix = fill(bench)
    pictor = start(bench, cores="0")
    cache = bench.nginx("cache", CACHE, f"{prefix}1{suffix}", cores="0")
    # Each server is asked for each entry once: nginx has to store it, and Pictor notes the first use after a start.
    for port in (CACHE, PICTOR):
        http.get_all(port, (f"{prefix}{number}{suffix}" for number in range(1, ENTRIES + 1)))
    before = http.stats(PICTOR)["disk"]["hits"]

    def wrk(server, port):
        return lambda: load.run(f"http://127.0.0.1:{port}", 64, bench.seconds, server, core="1", script=RANDOM,
                                env=environment(prefix, suffix))

    measured = load.in_turn(bench.rounds, {"Pictor": wrk(pictor, PICTOR), "nginx proxy_cache": wrk(cache, CACHE)})
    if http.stats(PICTOR)["disk"]["hits"] - before < measured["Pictor"].requests * bench.rounds * 0.9:
        raise SystemExit("bench: Pictor's answers did not come from disk")
    cache.stop()
    pictor.stop()
    mine, nginx = measured.values()
    return Claim(
        name="disk", title=f"Disk hits among {ENTRIES:,} entries",
        how=f"One of {ENTRIES:,} variants of {(bench.images / 'hit.jpg').stat().st_size:,} bytes by chance, all in the page cache; "
            "no memory tier; 64 kept connections, the server on core 0, wrk on core 1; in turn, medians.",
        columns=["", "requests/s", "CPU µs a hit", "p99 ms"],
        rows=[[name, f"{it.rate:,.0f}", f"{it.cpu * 1e6:.1f}", f"{it.p99 * 1e3:.2f}"] for name, it in measured.items()],
        marks=[Mark("requests/s, of nginx's", mine.rate / nginx.rate, 0.9)])

"""Hits while misses keep every core busy: what each costs the other."""

import os
import time

from kit import http, load
from kit.report import Claim, Mark
from kit.servers import BENCHMARKS, CACHE, LOCAL_ORIGIN, ORIGIN, PICTOR, Bench

from .hits import WANTED, path_near

DISTINCT = BENCHMARKS / "wrk" / "distinct.lua"


def distinct(source: str, run: str, width: int = 300) -> dict:
    """wrk's environment for requests of Pictor that are all misses."""
    path = http.image(f"{LOCAL_ORIGIN}/{source}?")
    return {**os.environ, "BENCH_PREFIX": path, "BENCH_SUFFIX": f"&w={width}", "BENCH_RUN": run}


def run(bench: Bench) -> Claim:
    origin = bench.nginx("origin", ORIGIN, "/800x600.jpg")
    pictor = bench.pictor("--download.limit_per_host", 64)
    path = path_near(WANTED)
    url = f"http://127.0.0.1:{PICTOR}"
    hit = lambda seconds: load.start(url + path, 4, seconds)
    miss = lambda seconds: load.start(
        url, 8, seconds, script=DISTINCT, env=distinct("800x600.jpg", f"beside{time.monotonic_ns()}"))

    def both():
        misses = miss(bench.seconds + 1)
        time.sleep(0.5)
        hits = load.finish(hit(bench.seconds))
        return hits, load.finish(misses)

    def nginx_beside_loops():
        # One session for both: niceness counts within one (sched(7), autogroup).
        cache = bench.nginx("cache", CACHE, path, loops=os.cpu_count())
        hits = load.finish(load.start(f"http://127.0.0.1:{CACHE}{path}", 4, bench.seconds))
        cache.stop()
        return hits

    runs = {"hits alone": [], "misses alone": [], "hits beside": [], "misses beside": [],
            "nginx's hits beside empty loops at nice 5": []}
    for _ in range(bench.rounds):
        runs["hits alone"].append(load.finish(hit(bench.seconds)))
        runs["misses alone"].append(load.finish(miss(bench.seconds)))
        hits, misses = both()
        runs["hits beside"].append(hits)
        runs["misses beside"].append(misses)
        runs["nginx's hits beside empty loops at nice 5"].append(nginx_beside_loops())
    medians = {name: load.Measured.median(all_) for name, all_ in runs.items()}
    pictor.stop()
    origin.stop()
    share = lambda kind: medians[f"{kind} beside"].rate / medians[f"{kind} alone"].rate
    return Claim(
        name="beside", title="Hits beside saturated misses",
        how="Hits on 4 connections, misses (800×600 JPEG to 300 px) on 8; server, workers, origin and both wrk share all "
            f"cores; alone, then beside each other, medians of {bench.rounds} rounds. The last row is what the scheduler lets anybody "
            "have: nginx proxy_cache beside an empty loop a core.",
        columns=["", "requests/s", "p50 ms", "p99 ms"],
        rows=[[name, f"{it.rate:,.0f}", f"{it.p50 * 1e3:.2f}", f"{it.p99 * 1e3:.2f}"] for name, it in medians.items()],
        marks=[
            Mark("p99 of hits beside misses, ms", medians["hits beside"].p99 * 1e3, 1.0, at_most=True),
            Mark("hits/s beside, of those alone", share("hits"), 0.6),
            Mark("misses/s beside, of those alone", share("misses"), 0.5),
        ],
        bars={kind: {name: medians[f"{kind} {name}"].rate for name in ("alone", "beside")} for kind in ("hits", "misses")},
        unit="requests/s")

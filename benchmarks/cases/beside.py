"""Hits while misses keep every core busy: what each costs the other, beside nginx's cache in front of imgproxy."""

import os
import time

from kit import http, load
from kit.report import Claim, Mark
from kit.servers import BENCHMARKS, CACHE, LOCAL_ORIGIN, ORIGIN, PEER, PICTOR, Bench

from .hits import SOURCE, WANTED, path_near

DISTINCT = BENCHMARKS / "wrk" / "distinct.lua"
LOOPS = "nginx's hits beside empty loops at nice 2"
PEER_HITS, PEER_MISSES = "nginx's hits beside imgproxy's misses", "imgproxy's misses beside nginx's hits"


def distinct(source: str, run: str, width: int = 300) -> dict:
    """wrk's environment for requests of Pictor that are all misses."""
    path = http.image(f"{LOCAL_ORIGIN}/{source}?")
    return {**os.environ, "BENCH_PREFIX": path, "BENCH_SUFFIX": f"&w={width}", "BENCH_RUN": run}


def peer_path(width: int, query: str = "") -> str:
    """imgproxy's path of the same."""
    return f"/insecure/rs:fit:{width}/plain/{SOURCE}{query}"


def run(bench: Bench) -> Claim:
    origin = bench.nginx("origin", ORIGIN, "/800x600.jpg")
    pictor = bench.pictor("--download.limit_per_host", 64, "--log.level", "info")
    path = path_near(WANTED)
    peers, peer_hit = [], None
    if bench.imgproxy_program():
        peers = [bench.imgproxy(peer_path(300)), bench.nginx("peer", PEER, peer_path(300))]
        peer_hit = path_near(WANTED, PEER, peer_path)
    url = f"http://127.0.0.1:{PICTOR}"
    hit = lambda seconds: load.start(url + path, 4, seconds)
    miss = lambda seconds: load.start(
        url, 8, seconds, script=DISTINCT, env=distinct("800x600.jpg", f"beside{time.monotonic_ns()}"))

    def peer_miss(seconds):
        environment = {"BENCH_PREFIX": peer_path(300, "%3F"), "BENCH_SUFFIX": "", "BENCH_RUN": f"{time.monotonic_ns()}"}
        return load.start(f"http://127.0.0.1:{PEER}", 8, seconds, script=DISTINCT, env={**os.environ, **environment})

    def both(miss, hit):
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

    runs = {"hits alone": [], "misses alone": [], "hits beside": [], "misses beside": []}
    if peers:
        runs |= {PEER_HITS: [], PEER_MISSES: []}
    runs[LOOPS] = []
    for _ in range(bench.rounds):
        runs["hits alone"].append(load.finish(hit(bench.seconds)))
        runs["misses alone"].append(load.finish(miss(bench.seconds)))
        pairs = [("hits beside", "misses beside", miss, hit)]
        if peers:
            pairs.append((PEER_HITS, PEER_MISSES, peer_miss,
                          lambda seconds: load.start(f"http://127.0.0.1:{PEER}{peer_hit}", 4, seconds)))
        for hits_name, misses_name, start_misses, start_hits in pairs:
            hits, misses = both(start_misses, start_hits)
            runs[hits_name].append(hits)
            runs[misses_name].append(misses)
        runs[LOOPS].append(nginx_beside_loops())
    medians = {name: load.Measured.median(all_) for name, all_ in runs.items()}
    for server in [*peers, pictor, origin]:
        server.stop()
    share = lambda kind: medians[f"{kind} beside"].rate / medians[f"{kind} alone"].rate
    marks = [
        Mark("p99 of hits beside misses, ms", medians["hits beside"].p99 * 1e3, 1.0, at_most=True),
        Mark("hits/s beside, of those alone", share("hits"), 0.65),
        Mark("misses/s beside, of those alone", share("misses"), 0.5),
    ]
    if peers:
        marks += [
            Mark("p99 of hits beside misses, of nginx's beside imgproxy's",
                 medians["hits beside"].p99 / medians[PEER_HITS].p99, 1.0, at_most=True),
            Mark("misses/s beside, of imgproxy's", medians["misses beside"].rate / medians[PEER_MISSES].rate, 1.0),
        ]
    return Claim(
        name="beside", title="Hits beside saturated misses",
        how="Hits on 4 connections, misses (800×600 JPEG to 300 px) on 8; server, workers, origin and clients share all "
            "cores; in turn, medians. The peer is imgproxy behind nginx's proxy_cache. The last row is the scheduler's "
            "part: nginx beside an empty loop a core.",
        columns=["", "requests/s", "p50 ms", "p99 ms"],
        rows=[[name, f"{it.rate:,.0f}", f"{it.p50 * 1e3:.2f}", f"{it.p99 * 1e3:.2f}"] for name, it in medians.items()],
        marks=marks)

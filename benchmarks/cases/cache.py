"""The cache's own promises: what the memory tier finds again, and what the disk tier costs by the number of its entries."""

import json
import os

from kit.processes import output_of
from kit.report import Claim, Mark
from kit.servers import Bench

REQUESTS, OBJECTS = 1_000_000, 100_000
MEMORY_ENTRIES = (80_000, 100_000, 131_072, 200_000)
#: In this order: the folder grows from each to the next.
ENTRIES = (1_000, 10_000, 100_000, 1_000_000)


def measure(bench: Bench, *arguments):
    # Hashes choose shards: the same in every run.
    environment = {**os.environ, "SWIFT_DETERMINISTIC_HASHING": "1"}
    return json.loads(output_of(bench.build / "benchmark-cache", *arguments, env=environment))


def ratios(bench: Bench) -> Claim:
    measured = measure(bench, "ratios", REQUESTS, OBJECTS)
    found = {(it["trace"], it["share"]): it for it in measured}
    traces, shares = (list(dict.fromkeys(key)) for key in zip(*found))
    return Claim(
        name="ratios", title="What the memory tier finds",
        how=f"Hits ÷ requests of {REQUESTS:,} requests for {OBJECTS:,} objects, where the cache has room for a share of them.",
        columns=["requests", *(f"{share:.1%}: {name}" for share in shares for name in ("memory tier", "LRU"))],
        rows=[[trace, *(f"{found[trace, share][kind]:.3f}" for share in shares for kind in ("tier", "lru"))] for trace in traces],
        marks=[
            Mark("memory tier, of LRU's, the least of all rows", min(it["tier"] / it["lru"] for it in measured), 0.95),
            Mark("memory tier, of LRU's, the least where the cache has room for 1 %",
                 min(it["tier"] / it["lru"] for it in measured if it["share"] == 0.01), 1.05),
            Mark("memory tier, less the best other's, the least of all rows",
                 min(it["tier"] - max(it["lru"], it["sieve"], it["s3fifo"]) for it in measured), -0.02),
        ])


def entries(bench: Bench) -> Claim:
    bench.new_disk()
    measured = [{"filled": measure(bench, "fill", bench.disk, count), **measure(bench, "disk", bench.disk, count)}
                for count in ENTRIES]
    # With a thousand nearly every store has to make a folder first, and the processor's own caches hold the index.
    small, large = measured[1], measured[-1]
    return Claim(
        name="entries", title="The disk tier by the number of its entries",
        how="Variants of 1,000 bytes in the kernel's caches; look-ups one after the other, stores a thousand at a time; after "
            "a start, the time to the first image and to the complete index.",
        columns=["entries", "hit µs", "miss µs", "store µs", "first image ms", "index complete ms", "index bytes an entry"],
        rows=[[f"{it['entries']:,}", f"{it['hit']:.1f}", f"{it['miss']:.2f}", f"{it['filled']['store']:.1f}",
               f"{it['firstAnswer']:.1f}", f"{it['indexed']:,.0f}", f"{it['indexBytes']:.0f}"] for it in measured],
        marks=[
            Mark(f"{what}, {large['entries']:,} entries, of {small['entries']:,}", of(large) / of(small), 2, at_most=True)
            for what, of in (("hit", lambda it: it["hit"]), ("miss", lambda it: it["miss"]),
                             ("store", lambda it: it["filled"]["store"]))
        ] + [
            Mark("ms from opening to the first image, the most", max(it["firstAnswer"] for it in measured), 20, at_most=True),
            Mark(f"index bytes an entry, {large['entries']:,} entries", large["indexBytes"], 100, at_most=True),
        ])


def overhead(bench: Bench) -> Claim:
    measured = [measure(bench, "memory", count) for count in MEMORY_ENTRIES]
    return Claim(
        name="overhead", title="What an entry of the memory tier takes beside its body and its key",
        how="Variants of 1,000 bytes with an entity tag and Last-Modified, stored in the memory tier by one thread. Bytes that "
            "malloc has handed out, less the bodies and keys. The tables double as they grow, so it depends on the number.",
        columns=["entries", "bytes an entry"],
        rows=[[f"{it['entries']:,}", f"{it['overhead']:.0f}"] for it in measured],
        marks=[Mark("bytes an entry, the most", max(it["overhead"] for it in measured), 512, at_most=True)])


def run(bench: Bench) -> list[Claim]:
    return [ratios(bench), overhead(bench), entries(bench)]

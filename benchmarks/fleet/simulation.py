"""The simulation: a trace by seed goes through machines with caches, and origin fetches and renders are counted.

Each request ends before the next one begins, so coalescing within a machine and leases play no part. A request asks for
a variant. Its machine has an LRU cache of variants and one of sources; behind them is the shared tier, if there is one,
then the origin.
"""

import hashlib
import itertools
import random
from bisect import bisect_right
from collections import OrderedDict
from dataclasses import dataclass, replace

from .page import table

SIZES = (1, 3, 10, 30, 100, 300, 1000)
STRATEGIES = {"nothing shared": (False, False), "hashing": (True, False), "shared tier": (False, True),
              "both": (True, True)}


@dataclass(frozen=True)
class Settings:
    """A trace, the limits of the caches in entries, and the churn."""

    seed: int = 17
    requests: int = 100_000
    images: int = 5_000
    #: Sizes that pages show an image at; the variants of a source.
    widths: int = 3
    #: The exponent of Zipf's law.
    skew: float = 0.9
    variants_per_machine: int = 2_000
    sources_per_machine: int = 500
    variants_shared: int = 15_000
    sources_shared: int = 5_000
    #: After so many requests one machine leaves. 0: none does.
    churn: int = 5_000
    #: After so many more, it is back, with empty caches.
    absence: int = 1_000
    #: Points of each machine in the ring.
    points: int = 100


class Cache:
    """Least recently used, with a limit of entries."""

    def __init__(self, limit):
        self.limit, self.entries = limit, OrderedDict()

    def has(self, key):
        if key not in self.entries:
            return False
        self.entries.move_to_end(key)
        return True

    def add(self, key):
        self.entries[key] = None
        self.entries.move_to_end(key)
        if len(self.entries) > self.limit:
            self.entries.popitem(last=False)


class Machine:
    """The caches of one machine."""

    def __init__(self, variants, sources):
        self.variants, self.sources = Cache(variants), Cache(sources)


def point(text):
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "big")


class Ring:
    """Consistent hashing: a source belongs to the next point of a machine that is there."""

    def __init__(self, machines, points):
        made = sorted((point(f"{machine}-{number}"), machine) for machine in range(machines) for number in range(points))
        self.places, self.machines = [place for place, _ in made], [machine for _, machine in made]
        self.starts = {}

    def owner(self, source, away=frozenset()):
        if source not in self.starts:
            self.starts[source] = bisect_right(self.places, point(f"source-{source}"))
        start = self.starts[source]
        for step in range(len(self.machines)):
            machine = self.machines[(start + step) % len(self.machines)]
            if machine not in away:
                return machine
        raise ValueError("no machine is there")


def trace(settings):
    """Pairs of a source and a width, with their number of requests by Zipf's law."""
    chance = random.Random(settings.seed)
    weights = list(itertools.accumulate(1 / rank ** settings.skew for rank in range(1, settings.images + 1)))
    sources = chance.choices(range(settings.images), cum_weights=weights, k=settings.requests)
    return [(source, chance.randrange(settings.widths)) for source in sources]


@dataclass
class Counts:
    fetches: int = 0
    renders: int = 0
    #: Look-ups in the shared tier, and those that found a variant.
    lookups: int = 0
    shared_hits: int = 0


def run(settings, requests, size, hashing, shared):
    """Sends the trace through a fleet of `size` machines."""
    new = lambda: Machine(settings.variants_per_machine, settings.sources_per_machine)
    machines = [new() for _ in range(size)]
    tier = Machine(settings.variants_shared, settings.sources_shared) if shared else None
    ring = Ring(size, settings.points) if hashing else None
    # Of its own, so that every strategy has the same absences.
    chance = random.Random(settings.seed + 1)
    turns = random.Random(settings.seed + 2)
    away, returns, counts = set(), {}, Counts()
    for number, variant in enumerate(requests):
        if number in returns:
            away.discard(returns.pop(number))
        if settings.churn and number and number % settings.churn == 0:
            leaving = chance.randrange(size)
            machines[leaving] = new()
            # The only machine restarts at once.
            if size > len(away) + 1 and leaving not in away:
                away.add(leaving)
                returns[number + settings.absence] = leaving
        source = variant[0]
        if ring:
            machine = ring.owner(source, away)
        else:
            machine = turns.randrange(size)
            while machine in away:
                machine = turns.randrange(size)
        serve(machines[machine], tier, variant, source, counts)
    return counts


def serve(machine, tier, variant, source, counts):
    """One request at its machine: memory and disk, shared tier, stored source, origin."""
    if machine.variants.has(variant):
        return
    if tier:
        counts.lookups += 1
        if tier.variants.has(variant):
            counts.shared_hits += 1
            machine.variants.add(variant)
            return
    if not machine.sources.has(source):
        if not (tier and tier.sources.has(source)):
            counts.fetches += 1
            if tier:
                tier.sources.add(source)
        machine.sources.add(source)
    counts.renders += 1
    machine.variants.add(variant)
    if tier:
        tier.variants.add(variant)


def blocks(settings):
    """The two tables: a shared tier with room for all, and one with variants alone that has to evict."""
    return {"simulation": block(settings),
            "simulation of a small tier": block(replace(settings, variants_shared=5_000, sources_shared=0))}


def block(settings):
    """Origin fetches per source and renders per variant that were asked for, by fleet size."""
    requests = trace(settings)
    sources, variants = len({source for source, _ in requests}), len(set(requests))
    rows = []
    for size in SIZES:
        found = [run(settings, requests, size, *strategy) for strategy in STRATEGIES.values()]
        rows.append([f"{size:,}", *(f"{one.fetches / sources:.2f}" for one in found),
                     *(f"{one.renders / variants:.2f}" for one in found)])
    columns = ["machines", *(f"fetches: {name}" for name in STRATEGIES), *(f"renders: {name}" for name in STRATEGIES)]
    return (f"{settings.requests:,} requests by seed {settings.seed}, Zipf {settings.skew:g}, for {sources:,} of "
            f"{settings.images:,} sources and {variants:,} variants. A machine holds {settings.variants_per_machine:,} "
            f"variants and {settings.sources_per_machine:,} sources, the shared tier {settings.variants_shared:,} and "
            f"{settings.sources_shared:,}. After every {settings.churn:,} requests a machine leaves; it is back after "
            f"{settings.absence:,}, empty. Fetches are per source, renders per variant.\n\n" + table(columns, rows))

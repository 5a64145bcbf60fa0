"""The self-check: small cases with known results, and the computed tables of docs/scaling.md."""

from dataclasses import replace

from . import needs, page, simulation
from .simulation import Counts, Ring, Settings, run

ROOMY = Settings(variants_per_machine=1_000, sources_per_machine=1_000, variants_shared=1_000, sources_shared=1_000,
                 churn=0)


def cases():
    """Names, what was found, and what is right."""
    a, b = (1, 0), (2, 0)
    for name, strategy in simulation.STRATEGIES.items():
        found = run(ROOMY, [a, b, a, (1, 1), b], 1, *strategy)
        yield f"one machine, {name}: each source and variant once", (found.fetches, found.renders), (2, 3)
    many = [a] * 500
    yield "nothing shared: each of 5 machines works", run(ROOMY, many, 5, False, False), Counts(5, 5)
    yield "hashing: one works", run(ROOMY, many, 5, True, False), Counts(1, 1)
    yield "shared tier: one works, four read", run(ROOMY, many, 5, False, True), Counts(1, 1, 5, 4)
    yield "both: one works, none reads more", run(ROOMY, many, 5, True, True), Counts(1, 1, 1, 0)
    tight = replace(ROOMY, variants_per_machine=1, sources_per_machine=1)
    yield "a full cache evicts", run(tight, [a, b, a, b], 1, False, False), Counts(4, 4)
    yield "the shared tier has what was evicted", run(tight, [a, b, a, b], 1, False, True), Counts(2, 2, 4, 2)
    yield "a stored source is rendered again", run(replace(tight, sources_per_machine=2), [a, b, a], 1, False, False), \
        Counts(2, 3)
    restarting = replace(ROOMY, churn=2)
    yield "the only machine restarts empty", run(restarting, [a] * 4, 1, True, False), Counts(2, 2)
    yield "... beside the shared tier", run(restarting, [a] * 4, 1, True, True), Counts(1, 1, 2, 1)
    ring = Ring(10, 100)
    before = {source: ring.owner(source) for source in range(1_000)}
    after = {source: ring.owner(source, {3}) for source in before}
    yield "a machine that leaves moves its sources alone", {source for source in before if before[source] != after[source]}, \
        {source for source in before if before[source] == 3}
    small = replace(Settings(), requests=2_000, images=200)
    yield "a seed gives one trace", simulation.trace(small), simulation.trace(small)
    yield "another seed another one", simulation.trace(small) == simulation.trace(replace(small, seed=18)), False
    yield "distinct: few requests are all different", round(needs.distinct(10, 10 ** 9, 0.0)), 10
    yield "distinct: many requests ask for all", round(needs.distinct(10 ** 9, 1_000, 0.9)), 1_000
    exact = sum(1 - 2.718281828459045 ** (-500 / rank ** 0.9 / sum(1 / n ** 0.9 for n in range(1, 2_001)))
                for rank in range(1, 2_001))
    yield "distinct: the sum by strata is near to the sum", abs(needs.distinct(500, 2_000, 0.9) / exact - 1) < 0.005, True


def run_cases():
    return [f"{name}: {found}, expected {wanted}" for name, found, wanted in cases() if found != wanted]


def check(blocks):
    return [f"docs/scaling.md: the table {name} is not what benchmarks/fleet-simulation --write makes"
            for name, text in blocks.items() if page.find(name) != text]


def run_all(blocks):
    problems = run_cases() + check(blocks)
    print("\n".join(f"fleet-simulation: {problem}" for problem in problems) or "fleet-simulation: all checks are met")
    return 1 if problems else 0

"""What fleets of 10, 100 and 1,000 machines need: formulas with their inputs, and no other number.

Measured inputs are read from benchmarks/results/latest.json, which docs/performance.md shows. The others are assumptions.
"""

import json
from math import ceil, exp
from pathlib import Path

from .page import table

RESULTS = Path(__file__).resolve().parents[1] / "results/latest.json"
SIZES = (10, 100, 1_000)
DAY = 86_400


def measured(case, row, column):
    """A figure of a table: the row begins with these cells."""
    entry = json.loads(RESULTS.read_text(encoding="utf-8"))[case]
    place = entry["columns"].index(column)
    found, = (line for line in entry["rows"] if line[:len(row)] == list(row))
    return float(found[place].replace(",", ""))


#: Name: value, unit, where it is from. Each formula names them.
INPUTS = {
    "hit": (measured("hits", ["Pictor"], "CPU µs a hit") / 1e6, "core·s", "measured: `make bench ONLY=hits`"),
    "miss": (measured("photos", ["2400.jpg → 800 px jpeg", "Pictor"], "CPU ms") / 1e3, "core·s",
             "measured: `make bench ONLY=photos`, 2400.jpg → 800 px jpeg"),
    "body": (measured("trace", ["AVIF and WebP", "Pictor"], "1,000,000 requests"), "bytes",
             "measured: `make bench ONLY=trace`, browsers that take AVIF"),
    "rss": (measured("memory", ["a minute later"], "Pss MiB") * 2 ** 20, "bytes",
            "measured: `make bench ONLY=memory`, without the memory tier"),
    "r": (1_000.0, "requests/s a machine", "assumed; peaks are higher"),
    "S": (1e7, "sources", "assumed"),
    "v": (3.0, "variants a source", "assumed"),
    "z": (0.9, "exponent of Zipf's law", "assumed, as in the trace"),
    "L": (float(DAY), "s of freshness", "assumed; then the origin is asked again, and all of it is sent"),
    "churn": (0.01, "machines that lose their caches in L", "assumed"),
    "source": (5e5, "bytes", "assumed"),
    "purges": (1.0, "purges/s", "assumed"),
    "memory tier": (2.0 * 2 ** 30, "bytes a machine", "assumed"),
    "overhead": (500.0, "bytes of an entry in Redis", "assumed: key, metadata, table"),
    "source entry": (1_000.0, "bytes of a source's entry in Redis", "assumed: key, metadata, table"),
    "cores": (4.0, "cores a machine", "assumed"),
    "link": (10e9, "bit/s of a machine and of Redis", "assumed"),
    "origin link": (10e9, "bit/s of all origins", "assumed"),
    "redis rate": (100_000.0, "operations/s of one Redis", "assumed: one core"),
    "redis memory": (64.0 * 2 ** 30, "bytes of one Redis", "assumed"),
    "bucket rate": (3_500.0, "requests/s of a prefix", "assumed: what AWS states for writes to one prefix"),
}


def distinct(requests, images, skew):
    """How many of the images are asked for at least once: the sum of 1 − exp(−requests · share of the rank).

    The first 1,000 ranks are summed one by one, the others in strata that grow by a hundredth."""
    strata, rank = [], 1
    while rank <= images:
        last = min(images, rank if rank <= 1_000 else rank + ceil(rank / 100))
        # The middle of a stratum stands for it.
        strata.append((last - rank + 1, ((rank + last) / 2) ** -skew))
        rank = last + 1
    total = sum(count * weight for count, weight in strata)
    return sum(count * (1 - exp(-requests * weight / total)) for count, weight in strata)


#: Formulas in the order of computation: name, text, unit. `needs` computes them.
FORMULAS = {
    "N": ("M · r · L", "requests of the fleet in L"),
    "D(n, k)": ("Σ 1 − e^(−n · p(i)), i = 1 … k, p(i) ∝ i^−z", "of k images, those that n requests ask for"),
    "loads alone": ("M · D(r · L, S)", "downloads in L, nothing shared"),
    "renders alone": ("M · D(r · L, S · v)", "renders in L, nothing shared"),
    "loads hashed": ("(1 + churn) · D(N, S)", "downloads in L, hashing"),
    "renders hashed": ("(1 + churn) · D(N, S · v)", "renders in L, hashing"),
    "loads shared": ("D(N, S)", "downloads in L, shared tier, leases"),
    "renders shared": ("D(N, S · v)", "renders in L, shared tier, leases"),
    "reads": ("renders alone", "local misses in L beside a shared tier without hashing: each is one pipeline"),
    "reads both": ("renders hashed", "the same with hashing"),
    "operations": ("(2 · reads + 2 · renders shared + 3 · (loads shared + renders shared)) ÷ L + purges · (1 + M)",
                   "a second: `GET` of variant and failure; `SET`, and `GET` of the source's entry; a lease's `SET NX`, "
                   "release and notice; `XADD` and the answers to `XREAD`"),
    "Redis traffic": ("8 · body · (reads + renders shared) ÷ L", "bit/s: each read and each write moves a body"),
    "Redis memory": ("D(N, S · v) · (body + overhead) + D(N, S) · source entry", "bytes, if every entry fits"),
    "bucket requests": ("3 · renders shared ÷ L",
                        "a second: for each variant a `GET` before it is made and a `PUT`, and for its source one of the two. Without "
                        "hashing, each local miss of what Redis has evicted adds a `GET`"),
    "bucket bytes": ("D(N, S · v) · body + D(N, S) · source", "bytes that the bucket has of one L"),
    "origin traffic": ("8 · source · loads ÷ L", "bit/s; loads of the same way to share"),
    "client traffic": ("8 · body · r", "bit/s a machine"),
    "processor": ("r · hit + miss · renders ÷ L ÷ M", "cores a machine; renders of the same way to share"),
    "disk": ("variants · body + sources · source", "bytes a machine that keeps all it has loaded in L"),
    "variants, alone or shared tier": ("D(r · L, S · v)", "on a machine's disk, without hashing"),
    "variants, hashing or both": ("renders hashed ÷ M", "the same with hashing"),
    "sources, alone": ("D(r · L, S)", "on a machine's disk"),
    "sources, hashing": ("loads hashed ÷ M", "the same"),
    "sources, shared tier or both": ("loads shared ÷ M", "the same: a machine stores what it downloaded itself"),
    "memory": ("rss + memory tier", "bytes a machine"),
}


def needs(machines):
    """The figures by formula, for each way to share where they differ."""
    x = {name: value for name, (value, _, _) in INPUTS.items()}
    one, all_ = x["r"] * x["L"], machines * x["r"] * x["L"]
    variants = x["S"] * x["v"]
    sources_all, variants_all = distinct(all_, x["S"], x["z"]), distinct(all_, variants, x["z"])
    sources_one, variants_one = distinct(one, x["S"], x["z"]), distinct(one, variants, x["z"])
    loads = {"nothing shared": machines * sources_one, "hashing": (1 + x["churn"]) * sources_all,
             "shared tier": sources_all, "both": sources_all}
    renders = {"nothing shared": machines * variants_one, "hashing": (1 + x["churn"]) * variants_all,
               "shared tier": variants_all, "both": variants_all}
    reads = {"shared tier": renders["nothing shared"], "both": renders["hashing"]}
    kept = {"nothing shared": (variants_one, sources_one), "shared tier": (variants_one, sources_all / machines),
            "hashing": (renders["hashing"] / machines, loads["hashing"] / machines),
            "both": (renders["hashing"] / machines, sources_all / machines)}
    found = {}
    for way in loads:
        found[way] = {
            "origin traffic": 8 * x["source"] * loads[way] / x["L"],
            "downloads": loads[way] / x["L"], "renders": renders[way] / x["L"],
            "processor": one / x["L"] * x["hit"] + x["miss"] * renders[way] / x["L"] / machines,
            "client traffic": 8 * x["body"] * x["r"],
            "disk": kept[way][0] * x["body"] + kept[way][1] * x["source"],
            "memory": x["rss"] + x["memory tier"],
        }
        if way in reads:
            work = loads[way] + renders[way]
            found[way] |= {
                "operations": (2 * reads[way] + 2 * renders[way] + 3 * work) / x["L"] + x["purges"] * (1 + machines),
                "Redis traffic": 8 * x["body"] * (reads[way] + renders[way]) / x["L"],
                "Redis memory": variants_all * (x["body"] + x["overhead"]) + sources_all * x["source entry"],
                "bucket requests": 3 * renders["shared tier"] / x["L"],
                "bucket bytes": variants_all * x["body"] + sources_all * x["source"],
            }
    return found


#: What each figure may be, by the input that bounds it.
BOUNDS = {"origin traffic": "origin link", "processor": "cores", "client traffic": "link", "operations": "redis rate",
          "Redis traffic": "link", "Redis memory": "redis memory",
          "bucket requests": "bucket rate"}


def scaled(value):
    """Three digits with a prefix."""
    for size, prefix in ((1e12, " T"), (1e9, " G"), (1e6, " M"), (1e3, " k")):
        if value >= size:
            return f"{value / size:.3g}{prefix}"
    return f"{value:.3g}"


def shown(value):
    return f"{value:.3g}" if value < 1_000 else f"{value:,.0f}"


def blocks():
    """The tables of the page, by name."""
    inputs = [[f"`{name}`", shown(value), unit, origin] for name, (value, unit, origin) in INPUTS.items()]
    formulas = [[f"`{name}`", f"`{text}`", meaning] for name, (text, meaning) in FORMULAS.items()]
    figures = ["downloads", "origin traffic", "renders", "processor", "operations", "Redis traffic", "Redis memory",
               "bucket requests", "bucket bytes", "client traffic", "disk", "memory"]
    units = {"downloads": "/s", "origin traffic": "bit/s", "renders": "/s", "processor": "cores a machine",
             "operations": "of Redis, /s", "Redis traffic": "bit/s", "Redis memory": "bytes",
             "bucket requests": "/s", "bucket bytes": "bytes", "client traffic": "bit/s a machine", "disk": "bytes a machine", "memory": "bytes a machine"}
    rows, breaks = [], []
    for machines in SIZES:
        for way, found in needs(machines).items():
            rows.append([f"{machines:,}", way, *(scaled(found[one]) if one in found else "–" for one in figures)])
            shares = sorted(((found[one] / INPUTS[bound][0], one) for one, bound in BOUNDS.items() if one in found),
                            reverse=True)
            breaks.append([f"{machines:,}", way, *(f"{name}: {share:.2f}" for share, name in shares[:3])])
    return {
        "inputs": table(["input", "value", "unit", "where from"], inputs),
        "formulas": table(["figure", "formula", "meaning"], formulas),
        "needs": table(["machines", "shared", *(f"{one}, {units[one]}" for one in figures)], rows),
        "breaks": table(["machines", "shared", "first", "second", "third"], breaks),
    }

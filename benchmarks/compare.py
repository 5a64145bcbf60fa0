"""Two builds in turn, a second each: fails where the working tree's is more than a tenth worse than another revision's."""

import argparse
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

from cases import beside, hits, misses
from kit import client, http, load, images
from kit.processes import Failure, Process, output_of, wait_until
from kit.servers import LOCAL_ORIGIN, ORIGIN, OTHER, PICTOR, ROOT, Bench

#: A figure may be this much worse.
TOLERANCE = 0.10
#: Source, parameters, and about how many a second there are.
MISSES = [
    ("800x600.jpg", "&w=300", 200), ("photo0-2400.jpg", "&w=300", 60), ("photo1-2400.jpg", "&w=800", 40),
    ("photo2-2400.jpg", "&w=1600", 15), ("3000x2000.jpg", "&w=300", 50), ("1000x1000.png", "&w=300", 25),
    ("480x360.gif", "&w=300", 2), ("480x360.webp", "&w=300&format=webp", 3), ("photo0-1800.webp", "&w=800", 20),
    ("photo1-800.jpg", "&w=600&format=webp", 20), ("photo0-1800.avif", "&w=800", 20),
    ("photo1-800.jpg", "&w=600&format=avif", 6),
]


def build_of(revision: str) -> Path:
    """The release build of a revision, in a work tree of its own below .build-compare."""
    commit = output_of("git", "-C", ROOT, "rev-parse", "--short=12", f"{revision}^{{commit}}").strip()
    tree = ROOT / ".build-compare" / commit
    if not tree.exists():
        output_of("git", "-C", ROOT, "worktree", "prune")
        output_of("git", "-C", ROOT, "worktree", "add", "--force", "--detach", tree, commit)
    print(f"bench: building {commit}", flush=True)
    for product in ("pictor", "pictor-imager"):
        output_of("swift", "build", "-c", "release", "--static-swift-stdlib", "--product", product, cwd=tree)
    return tree / ".build" / "release"


HIT = http.image(hits.SOURCE, w=560)


def hit(port: int, server: Process, seconds: int) -> load.Measured:
    return load.run(f"http://127.0.0.1:{port}{HIT}", 64, seconds, server, core="1")


def miss(port: int, server: Process, seconds: int, source: str, parameters: str, share: int) -> load.Measured:
    paths = misses.distinct(http.image(f"{LOCAL_ORIGIN}/{source}?"), parameters, max(round(share * seconds), 4))
    return client.fetch(port, paths, 8, server)


def hit_beside(port: int, server: Process, seconds: int) -> load.Measured:
    """Hits while all cores have misses."""
    url, run = f"http://127.0.0.1:{port}", f"{time.monotonic_ns()}"
    busy = load.start(url, 8, seconds + 1, script=beside.DISTINCT, env=beside.distinct("800x600.jpg", run))
    time.sleep(0.5)
    measured = load.finish(load.start(url + HIT, 4, seconds))
    load.finish(busy)
    return measured


def compare(bench: Bench, builds: dict[str, Path], options: list, cores: str | None, measure: Callable,
            figures: list[str]) -> dict[str, float]:
    """How many times better the build here is."""
    ports = dict(zip(builds, (PICTOR, OTHER)))
    servers = {name: bench.pictor(*options, build=build, port=ports[name], cores=cores) for name, build in builds.items()}
    for name, port in ports.items():
        http.get(port, HIT)
        wait_until(lambda: http.stats(port)["disk"]["entries"] == 2, "source and variant on disk")
    runs = {name: [] for name in builds}
    for number in range(bench.rounds):
        # The machine's speed drifts within seconds, and the first run of a pair may pay for what is cold.
        for name in list(builds)[::1 if number % 2 else -1]:
            runs[name].append(measure(ports[name], servers[name], bench.seconds))
    better = {
        "requests/s": lambda name: median(run.rate for run in runs[name]),
        "CPU": lambda name: 1 / median(run.cpu for run in runs[name]),
        "p99": lambda name: 1 / median(run.p99 for run in runs[name]),
        "memory": lambda name: 1 / servers[name].memory(),
    }
    ratios = {figure: better[figure]("here") / better[figure]("there") for figure in figures}
    for server in servers.values():
        server.stop()
    return ratios


def main() -> int:
    parser = argparse.ArgumentParser(prog="make bench-compare", description=__doc__)
    parser.add_argument("revision", help="what to compare with")
    parser.add_argument("--seconds", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=12)
    options = parser.parse_args()
    builds = {"there": build_of(options.revision), "here": ROOT / ".build" / "release"}
    bench = Bench(options.seconds, options.rounds)
    images.make(bench.images)
    images.make_photos(bench.images)
    origin = bench.nginx("origin", ORIGIN, "/800x600.jpg")
    lone, many = ["--server.workers", 1], ["--download.limit_per_host", 64]
    cases = [
        ("hits", lone, "0", hit, ["requests/s", "CPU"]),
        ("disk hits", [*lone, "--memory.limit", 0], "0", hit, ["requests/s", "CPU"]),
        ("hits beside misses", many, None, hit_beside, ["requests/s", "p99"]),
        *((f"misses, {row[0]}{row[1]}", many, None, lambda *run, row=row: miss(*run, *row), ["requests/s", "CPU", "memory"])
          for row in MISSES),
    ]
    worse = 0
    for name, settings, cores, measure, figures in cases:
        ratios = compare(bench, builds, settings, cores, measure, figures)
        worse += min(ratios.values()) < 1 - TOLERANCE
        print(f"{name:50}" + "".join(f"  {figure} {ratio:.2f}" for figure, ratio in ratios.items()), flush=True)
    origin.stop()
    print(f"bench: of {options.revision}; above 1 is better; {worse} worse by more than {TOLERANCE:.0%}")
    return 1 if worse else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except (Failure, subprocess.SubprocessError) as failure:
        sys.exit(f"bench: {failure}")

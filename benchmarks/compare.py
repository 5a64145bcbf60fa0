"""Two builds in turn: fails where the working tree's is more than a tenth worse than another revision's."""

import argparse
import subprocess
import sys
from pathlib import Path

from cases import hits, misses
from kit import client, http, load, images
from kit.processes import Failure, output_of, wait_until
from kit.servers import ORIGIN, PICTOR, ROOT, Bench

#: A figure may be this much worse.
TOLERANCE = 0.10


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


def measure_hits(bench: Bench, build: Path) -> dict[str, float]:
    pictor = bench.pictor("--server.workers", 1, cores="0", build=build)
    url = f"http://127.0.0.1:{PICTOR}{http.image(hits.SOURCE, w=560)}"
    http.get(PICTOR, http.image(hits.SOURCE, w=560))
    run = load.run(url, 64, bench.seconds, pictor, core="1")
    pictor.stop()
    return {"hits: requests/s": run.rate, "hits: CPU": 1 / run.cpu}


def measure_misses(bench: Bench, build: Path) -> dict[str, float]:
    pictor = bench.pictor("--download.limit_per_host", 64, build=build)
    figures = {}
    for source, share in (("800x600.jpg", 200), ("3000x2000.jpg", 50), ("1000x1000.png", 25), ("480x360.gif", 2)):
        _, prefix, suffix = misses.paths(source)["Pictor"]
        count = max(round(share * bench.seconds), 16)
        run = client.fetch(PICTOR, misses.distinct(prefix, suffix, count), 8, pictor)
        figures |= {f"misses, {source}: requests/s": run.rate, f"misses, {source}: CPU": 1 / run.cpu}
    figures["memory after misses"] = 1 / pictor.memory()
    pictor.stop()
    return figures


def measure_disk(bench: Bench, build: Path) -> dict[str, float]:
    pictor = bench.pictor("--server.workers", 1, "--memory.limit", 0, cores="0", build=build)
    path = http.image(hits.SOURCE, w=560)
    http.get(PICTOR, path)
    wait_until(lambda: http.stats(PICTOR)["disk"]["entries"] == 2, "source and variant on disk")
    run = load.run(f"http://127.0.0.1:{PICTOR}{path}", 64, bench.seconds, pictor, core="1")
    pictor.stop()
    return {"disk hits: requests/s": run.rate, "disk hits: CPU": 1 / run.cpu}


def main() -> int:
    parser = argparse.ArgumentParser(prog="make bench-compare", description=__doc__)
    parser.add_argument("revision", help="what to compare with")
    parser.add_argument("--seconds", type=float, default=4)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    builds = {"there": build_of(options.revision), "here": ROOT / ".build" / "release"}
    bench = Bench(options.seconds, options.rounds)
    images.make(bench.images)
    origin = bench.nginx("origin", ORIGIN, "/800x600.jpg")
    figures: dict[str, dict[str, list[float]]] = {}
    for number in range(options.rounds):
        # The other one first in each round.
        order = list(builds.items())[::1 if number % 2 else -1]
        for case in (measure_hits, measure_misses, measure_disk):
            for name, build in order:
                for figure, value in case(bench, build).items():
                    figures.setdefault(figure, {}).setdefault(name, []).append(value)
    origin.stop()
    # The best of each: what disturbs a run only makes it worse.
    worse = 0
    for figure, values in figures.items():
        ratio = max(values["here"]) / max(values["there"])
        verdict = "worse" if ratio < 1 - TOLERANCE else "better" if ratio > 1 + TOLERANCE else "same"
        worse += verdict == "worse"
        print(f"{figure:42} {ratio:5.2f}  {verdict}")
    print(f"bench: of {options.revision}; above 1 is better; {worse} worse by more than {TOLERANCE:.0%}")
    return 1 if worse else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except (Failure, subprocess.SubprocessError) as failure:
        sys.exit(f"bench: {failure}")

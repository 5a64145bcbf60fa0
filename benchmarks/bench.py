"""The benchmarks: all cases in one run, or some; printed, and with --write written down."""

import argparse
import sys

from cases import CASES, OWN_IMAGES
from kit import images, report
from kit.processes import Failure
from kit.servers import Bench


def main() -> int:
    parser = argparse.ArgumentParser(prog="make bench", description=__doc__)
    parser.add_argument("--only", default="", metavar="CASES", help=f"some of: {','.join(CASES)}")
    parser.add_argument("--write", action="store_true", help="write them to docs/performance.md")
    parser.add_argument("--seconds", type=float, default=5, help="length of each measurement")
    parser.add_argument("--rounds", type=int, default=5, help="measurements of each, in turn")
    parser.add_argument("--renders", type=int, default=600, help="images of the trace's 10,000 that are rendered")
    options = parser.parse_args()
    chosen = options.only.split(",") if options.only else list(CASES)
    if unknown := [name for name in chosen if name not in CASES]:
        parser.error(f"no case {unknown[0]}; there are {', '.join(CASES)}")

    bench = Bench(options.seconds, options.rounds, rests=options.write, renders=options.renders)
    print(report.software(), flush=True)
    if not set(chosen) <= OWN_IMAGES:
        images.make(bench.images)
    claims = []
    for name in chosen:
        made = CASES[name](bench)
        for claim in made if isinstance(made, list) else [made]:
            report.show(bench, claim)
            claims.append(claim)
            if options.write:
                report.write(bench, claim)
    missed = [f"{claim.name}: {mark}" for claim in claims for mark in claim.marks if not mark.is_met]
    print("\n".join(["", "bench: marks missed:", *missed] if missed else ["", "bench: all marks are met"]))
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except Failure as failure:
        sys.exit(f"bench: {failure}")

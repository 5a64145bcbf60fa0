"""The report: claims with their marks, tables and images, as text, as JSON, and in docs/performance.md."""

import json
import os
import re
from dataclasses import asdict, dataclass, field
from datetime import datetime, timezone
from pathlib import Path

from . import charts, overview
from .load import version as wrk_version
from .processes import output_of
from .servers import BENCHMARKS, ROOT

PAGE = ROOT / "docs" / "performance.md"
IMAGES = ROOT / "docs" / "performance"


@dataclass
class Mark:
    """What is promised, and what was measured: `value` is to be at least, or at most, `bound`."""

    what: str
    value: float
    bound: float
    at_most: bool = False

    @property
    def is_met(self) -> bool:
        return self._meets(self.value)

    @property
    def text(self) -> str:
        """The value, with so many digits that it is seen whether the mark is met."""
        least = 2 if abs(self.bound) >= 0.01 else 4
        texts = [f"{self.value:.{digits}f}" for digits in range(least, 7)]
        return next((text for text in texts if self._meets(float(text)) == self.is_met), texts[-1])

    def _meets(self, value: float) -> bool:
        return value <= self.bound if self.at_most else value >= self.bound

    def row(self) -> list[str]:
        sign = "≤" if self.at_most else "≥"
        return [self.what, f"{sign} {self.bound:g}", self.text, "yes" if self.is_met else "**no**"]


@dataclass
class Claim:
    """One case: how it was measured, in a table and bars, and the marks it is held to."""

    name: str
    title: str
    how: str
    columns: list[str]
    rows: list[list[str]]
    marks: list[Mark] = field(default_factory=list)
    #: Bars of the image, by group, then by bar; `unit` stands below them.
    bars: dict[str, dict[str, float]] = field(default_factory=dict)
    unit: str = ""
    #: Curves of the image, in place of bars: points by panel, then by curve.
    curves: dict[str, dict[str, list[tuple[float, float]]]] = field(default_factory=dict)

    def markdown(self) -> str:
        parts = [self.how, "", table(self.columns, self.rows)]
        if self.marks:
            parts += ["", table(["mark", "bound", "measured", "met"], [mark.row() for mark in self.marks])]
        return "\n".join(parts)


def table(columns: list[str], rows: list[list[str]]) -> str:
    line = lambda cells: f"| {' | '.join(cells)} |"
    return "\n".join([line(columns), line(["---"] * len(columns)), *map(line, rows)])


def machine() -> str:
    """What the run ran on, in one line."""
    processor = re.search(r"model name\s*: (.*)", Path("/proc/cpuinfo").read_text())[1]
    debian = re.search(r'PRETTY_NAME="(.*)"', Path("/etc/os-release").read_text())[1]
    library = lambda name: f"{name} {output_of('pkg-config', '--modversion', name).strip()}"
    nginx = output_of("dpkg-query", "-W", "-f", "${Version}", "nginx-light")
    swift = re.search(r"Swift version [\d.]+", output_of("swift", "--version"))[0]
    return (f"{os.cpu_count()} cores, {processor}, {debian}, Linux {os.uname().release}; {swift}, {library('vips')}, "
            f"{library('libmicrohttpd')}, {library('libcurl')}; nginx {nginx}, {wrk_version()}")


def heading(bench) -> str:
    revision = output_of("git", "-C", ROOT, "rev-parse", "--short", "HEAD").strip()
    changed = " with changes" if output_of("git", "-C", ROOT, "status", "--porcelain", "Sources").strip() else ""
    date = datetime.now(timezone.utc).strftime("%F")
    return (f"{date}, {revision}{changed}: `make bench` ({bench.rounds} rounds of {bench.seconds:g} s). {machine()}.\n"
            "Absolute figures drift from run to run; ratios are of one run.")


def show(claim: Claim) -> None:
    """Prints it, as soon as it is measured."""
    print(f"\n== {claim.title}\n{claim.markdown()}", flush=True)


def write(bench, claims: list[Claim]) -> None:
    """Writes what was measured over what was measured earlier: benchmarks/results/latest.json, the images, and the
    tables of docs/performance.md. Each claim says which run it is of."""
    results = BENCHMARKS / "results"
    results.mkdir(exist_ok=True)
    store = results / "latest.json"
    kept = json.loads(store.read_text()) if store.exists() else {}
    head = heading(bench)
    kept |= {claim.name: {"run": head, **asdict(claim)} for claim in claims}
    store.write_text(json.dumps(kept, indent=1, ensure_ascii=False) + "\n")
    blocks = {}
    for claim in claims:
        if claim.bars:
            charts.draw(claim, IMAGES / f"{claim.name}.svg")
        if claim.curves:
            charts.draw_curves(claim, IMAGES / f"{claim.name}.svg")
    for name, entry in kept.items():
        image = f"![{entry['title']}](performance/{name}.svg)\n\n" if entry["bars"] or entry.get("curves") else ""
        rebuilt = Claim(**{key: value for key, value in entry.items() if key not in ("run", "marks")},
                        marks=[Mark(**mark) for mark in entry["marks"]])
        blocks[name] = f"{image}{rebuilt.markdown()}\n\n{entry['run']}"
    fill_page(blocks | {"overview": table(*overview.table(kept))})
    print(f"\nbench: written to {store.relative_to(ROOT)} and {PAGE.relative_to(ROOT)}")


def fill_page(blocks: dict[str, str]) -> None:
    """Puts texts between the page's `<!-- bench NAME -->` and `<!-- end -->`."""
    page = PAGE.read_text()
    for name, text in blocks.items():
        pattern = rf"(<!-- bench {name} -->\n).*?(<!-- end -->)"
        page, count = re.subn(pattern, lambda found: f"{found[1]}{text}\n{found[2]}", page, flags=re.S)
        if count != 1:
            raise SystemExit(f"bench: docs/performance.md has {count} places for {name}")
    PAGE.write_text(page)

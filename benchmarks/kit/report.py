"""The report: claims with their marks, tables and charts, printed and in docs/performance.md."""

import os
import re
from dataclasses import dataclass, field
from datetime import datetime, timezone
from pathlib import Path

from . import charts, overview
from .load import version as wrk_version
from .processes import output_of
from .servers import ROOT

PAGE = ROOT / "docs" / "performance.md"
CHARTS = ROOT / "docs" / "performance"


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

    def __str__(self) -> str:
        return f"{self.what}: {self.text} ({'≤' if self.at_most else '≥'} {self.bound:g})"


@dataclass
class Claim:
    """One case: how it was measured, in a table and bars, and the marks it is held to."""

    name: str
    title: str
    how: str
    columns: list[str]
    rows: list[list[str]]
    marks: list[Mark] = field(default_factory=list)
    #: Bars of the chart, by group, then by bar; `unit` stands below them.
    bars: dict[str, dict[str, float]] = field(default_factory=dict)
    unit: str = ""
    #: Curves of the chart, in place of bars: points by panel, then by curve.
    curves: dict[str, dict[str, list[tuple[float, float]]]] = field(default_factory=dict)

    def markdown(self, run: str) -> str:
        """How it was measured and in which run, the table, and the marks that are missed."""
        missed = "; ".join(f"{mark}" for mark in self.marks if not mark.is_met)
        shown = beside(self.columns, self.rows) if "server" in self.columns else (self.columns, self.rows)
        return f"{self.how} {run}\n\n{table(*shown)}\n" + (f"\nMissed: {missed}.\n" if missed else "")


def beside(columns: list[str], rows: list[list[str]]) -> tuple[list[str], list[list[str]]]:
    """One row a kind in place of one for each kind and server: the servers' figures beside each other."""
    servers = list(dict.fromkeys(row[1] for row in rows))
    found = {(row[0], row[1]): row[2:] for row in rows}
    empty = ["–"] * len(columns[2:])
    wide = [[kind, *map(" / ".join, zip(*(found.get((kind, server), empty) for server in servers)))]
            for kind in dict.fromkeys(row[0] for row in rows)]
    return [f"{columns[0]}: {' / '.join(servers)}", *columns[2:]], wide


def table(columns: list[str], rows: list[list[str]]) -> str:
    line = lambda cells: f"| {' | '.join(cells)} |"
    return "\n".join([line(columns), line(["---"] * len(columns)), *map(line, rows)])


def run_of(bench) -> str:
    """When, of which tree, for how long, and on what."""
    revision = output_of("git", "-C", ROOT, "rev-parse", "--short", "HEAD").strip()
    changed = " with changes" if output_of("git", "-C", ROOT, "status", "--porcelain", "Sources").strip() else ""
    processor = re.search(r"model name\s*: (.*)", Path("/proc/cpuinfo").read_text())[1]
    return (f"{datetime.now(timezone.utc):%F} {revision}{changed}: {bench.rounds} rounds of {bench.seconds:g} s, "
            f"{os.cpu_count()} cores, {processor}.")


def software() -> str:
    debian = re.search(r'PRETTY_NAME="(.*)"', Path("/etc/os-release").read_text())[1]
    library = lambda name: f"{name} {output_of('pkg-config', '--modversion', name).strip()}"
    nginx = output_of("dpkg-query", "-W", "-f", "${Version}", "nginx-light")
    swift = re.search(r"Swift version [\d.]+", output_of("swift", "--version"))[0]
    return (f"{debian}, Linux {os.uname().release}; {swift}, {library('vips')}, {library('libmicrohttpd')}, "
            f"{library('libcurl')}; nginx {nginx}, {wrk_version()}")


def show(bench, claim: Claim) -> None:
    """Prints it with all its marks, as soon as it is measured."""
    print(f"\n== {claim.title}\n{claim.markdown(run_of(bench))}", *claim.marks, sep="\n", flush=True)


def write(bench, claim: Claim) -> None:
    """Writes a claim where docs/performance.md has room for it: its block, its rows of the first table, its chart."""
    chart = CHARTS / f"{claim.name}.svg"
    if chart.exists():
        (charts.draw_curves if claim.curves else charts.draw)(claim, chart)
    run = run_of(bench)
    page = fill(PAGE.read_text(), claim.name, lambda _: claim.markdown(run))
    PAGE.write_text(fill(page, "overview", lambda before: overview.merged(before, claim, run.split(":")[0])))


def fill(page: str, name: str, text) -> str:
    """The page with another text between `<!-- bench NAME -->` and `<!-- end -->`, if it has such a block."""
    pattern = rf"(<!-- bench {name} -->\n)(.*?)(?=<!-- end -->)"
    return re.sub(pattern, lambda found: found[1] + text(found[2]), page, flags=re.S)

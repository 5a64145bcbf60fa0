"""The first table of docs/performance.md: Pictor beside each peer, by kind of request; each case writes its own rows."""

from dataclasses import dataclass

PEERS = ["nginx", "imgproxy", "thumbor"]


CACHES = {"Pictor": "Pictor", "nginx": "nginx proxy_cache"}
BESIDE = {"Pictor": "hits beside", "nginx": "nginx's hits beside imgproxy's misses"}


@dataclass
class Row:
    """A kind of request: the figure of Pictor and of each peer that was measured in the same run."""

    kind: str
    figures: dict[str, float]
    #: Whether less is better.
    at_most: bool = False

    def cells(self, run: str) -> list[str]:
        own, *others = [self.figures.get(name) for name in ("Pictor", *PEERS)]
        show = lambda value: "–" if value is None else f"{value:,.0f}" if value >= 100 else f"{value:.1f}"
        peers = [value for value in others if value is not None]
        ratio = min(peers) / own if self.at_most else own / max(peers)
        return [self.kind, f"**{show(own)}**", *map(show, others), f"{ratio:.2f}", run]


def number(cell: str) -> float:
    return float(cell.replace(",", ""))


def named(claim, column: str, names: dict[str, str]) -> dict[str, float]:
    """The figures of a case with a row for each server, by the server's name in this table."""
    place = claim.columns.index(column)
    found = {row[0]: row[place] for row in claim.rows}
    return {server: number(found[row]) for server, row in names.items() if row in found}


def by_kind(claim, column: str, frames: bool = False) -> dict[str, dict[str, float]]:
    """The figures of a case with a row for each kind and server. With `frames`, without servers that leave out frames."""
    place, server = claim.columns.index(column), claim.columns.index("server")
    kinds: dict[str, dict[str, float]] = {}
    whole = {row[0]: row[-1] for row in claim.rows if row[server] == "Pictor"}
    for row in claim.rows:
        name = row[server].split()[0]
        if name in ("Pictor", *PEERS) and not (frames and row[-1] != whole[row[0]]):
            kinds.setdefault(row[0], {})[name] = number(row[place])
    return kinds


def rows(claim) -> list[Row]:
    match claim.name:
        case "hits" | "disk":
            tier = "memory" if claim.name == "hits" else "disk"
            return [Row(f"{tier} hits/s", named(claim, "requests/s", CACHES))]
        case "beside":
            return [Row("hits/s beside a flood of misses", named(claim, "requests/s", BESIDE)),
                    Row("… the slowest of a hundred, ms", named(claim, "p99 ms", BESIDE), at_most=True)]
        case "photos" | "browser":
            return [Row(f"misses/s: {kind}", figures) for kind, figures in by_kind(claim, "requests/s").items()]
        case "misses":
            return [Row(f"misses/s: painted {kind} → 300 px", figures)
                    for kind, figures in by_kind(claim, "requests/s", frames=True).items()]
        case "peak":
            return [Row(f"MiB for 16 large images at once → {kind}", figures, at_most=True)
                    for kind, figures in by_kind(claim, "peak MiB").items()]
    return []


def merged(before: str, claim, run: str) -> str:
    """The table with the claim's rows, of a run, in place of those of the same kind."""
    lines = {line.split("|")[1].strip(): line for line in before.splitlines()}
    lines |= {row.kind: f"| {' | '.join(row.cells(run))} |" for row in rows(claim) if len(row.figures) > 1}
    return "\n".join(lines.values()) + "\n"

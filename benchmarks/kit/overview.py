"""The first table of docs/performance.md: Pictor beside each peer, by kind of request, from the last run of each case."""

from dataclasses import dataclass

PEERS = ["nginx", "imgproxy", "thumbor"]


@dataclass
class Row:
    """A kind of request: the figure of Pictor and of each peer that was measured in the same run."""

    kind: str
    case: str
    figures: dict[str, float]
    #: Whether less is better.
    at_most: bool = False

    @property
    def ratio(self) -> float:
        """How many times better than the best peer Pictor is."""
        peers = [value for name, value in self.figures.items() if name != "Pictor"]
        own = self.figures["Pictor"]
        return min(peers) / own if self.at_most else own / max(peers)

    def cells(self) -> list[str]:
        own, *others = [self.figures.get(name) for name in ("Pictor", *PEERS)]
        show = lambda value: "–" if value is None else f"{value:,.0f}" if value >= 100 else f"{value:.1f}"
        return [self.kind, f"**{show(own)}**", *map(show, others), f"{self.ratio:.2f}", f"`make bench ONLY={self.case}`"]


def number(cell: str) -> float:
    return float(cell.replace(",", ""))


def named(entry: dict, column: str, names: dict[str, str]) -> dict[str, float]:
    """The figures of a case with a row for each server, by the server's name in this table."""
    place = entry["columns"].index(column)
    rows = {row[0]: row[place] for row in entry["rows"]}
    return {server: number(rows[row]) for server, row in names.items() if row in rows}


def by_kind(entry: dict, frames: bool = False) -> dict[str, dict[str, float]]:
    """The rates of a case with a row for each kind and server. With `frames`, without servers that leave out frames."""
    place = entry["columns"].index("requests/s")
    server = entry["columns"].index("server")
    kinds: dict[str, dict[str, float]] = {}
    whole = {row[0]: row[-1] for row in entry["rows"] if row[server] == "Pictor"}
    for row in entry["rows"]:
        name = row[server].split()[0]
        if name not in ("Pictor", *PEERS) or not row[place] or frames and row[-1] != whole[row[0]]:
            continue
        kinds.setdefault(row[0], {})[name] = number(row[place])
    return kinds


def rows(kept: dict[str, dict]) -> list[Row]:
    found = []
    servers = {"Pictor": "Pictor", "nginx": "nginx proxy_cache"}
    if entry := kept.get("hits"):
        found.append(Row("hits from memory, a second", "hits", named(entry, "requests/s", servers)))
    if entry := kept.get("disk"):
        found.append(Row("hits from disk, a second", "disk", named(entry, "requests/s", servers)))
    if entry := kept.get("beside"):
        servers = {"Pictor": "hits beside", "nginx": "nginx's hits beside imgproxy's misses"}
        kind = "hits beside a flood of misses"
        found.append(Row(f"{kind}, a second", "beside", named(entry, "requests/s", servers)))
        found.append(Row(f"{kind}: the slowest of a hundred, ms", "beside", named(entry, "p99 ms", servers), at_most=True))
    if entry := kept.get("photos"):
        found += [Row(f"misses a second: {kind}", "photos", figures) for kind, figures in by_kind(entry).items()]
    if entry := kept.get("misses"):
        # Photographs have a case of their own.
        found += [Row(f"misses a second: {kind} → 300 px", "misses", figures)
                  for kind, figures in by_kind(entry, frames=True).items() if not kind.endswith(".jpg")]
    return [row for row in found if len(row.figures) > 1]


def table(kept: dict[str, dict]) -> tuple[list[str], list[list[str]]]:
    """The columns and the rows."""
    columns = ["", "Pictor", *PEERS, "Pictor to the best other", "repeat"]
    return columns, [row.cells() for row in rows(kept)]

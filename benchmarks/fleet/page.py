"""docs/scaling.md: texts between `<!-- fleet NAME -->` and `<!-- end -->`."""

import re
from pathlib import Path

PAGE = Path(__file__).resolve().parents[2] / "docs/scaling.md"


def table(columns, rows):
    line = lambda cells: f"| {' | '.join(cells)} |"
    return "\n".join([line(columns), line(["---"] * len(columns)), *map(line, rows)])


def place(name):
    return re.compile(rf"(<!-- fleet {name} -->\n)(.*?)(\n<!-- end -->)", re.S)


def find(name):
    """The text that the page has, or `None`."""
    found = place(name).search(PAGE.read_text(encoding="utf-8"))
    return found and found[2]


def write(blocks):
    text = PAGE.read_text(encoding="utf-8")
    for name, block in blocks.items():
        text, count = place(name).subn(lambda found: found[1] + block + found[3], text)
        if count != 1:
            raise SystemExit(f"fleet-simulation: docs/scaling.md has {count} places for {name}")
    PAGE.write_text(text, encoding="utf-8")

"""The images of the report: horizontal bars, one colour a server, as SVG."""

from pathlib import Path

import matplotlib

matplotlib.use("svg")
matplotlib.rcParams.update({"svg.hashsalt": "pictor", "font.family": "sans-serif", "font.size": 9})
import matplotlib.pyplot as plot  # noqa: E402

COLOURS = ["#c8553d", "#6f8f9f", "#a9b8bf", "#d6c9a8", "#7b6d8d"]


def draw(claim, path: Path) -> None:
    """Draws a claim's bars; groups have axes of their own, since they may be orders of magnitude apart."""
    path.parent.mkdir(exist_ok=True)
    names = list(dict.fromkeys(bar for bars in claim.bars.values() for bar in bars))
    heights = [len(bars) for bars in claim.bars.values()]
    figure, axes = plot.subplots(
        len(heights), 1, figsize=(7.2, 0.28 * sum(heights) + 0.45 * len(heights) + 0.4), squeeze=False,
        gridspec_kw={"height_ratios": heights, "hspace": 0.7})
    for axis, (group, bars) in zip(axes[:, 0], claim.bars.items()):
        labels = list(bars)
        drawn = axis.barh(labels, list(bars.values()), color=[COLOURS[names.index(label) % 5] for label in labels])
        axis.bar_label(drawn, fmt=lambda value: f"{value:,.0f}" if value >= 100 else f"{value:.3g}", padding=3)
        axis.invert_yaxis()
        axis.set_title(group, loc="left", fontsize=9)
        axis.spines[["top", "right", "bottom"]].set_visible(False)
        axis.xaxis.set_visible(False)
        axis.set_xlim(right=max(bars.values()) * 1.15)
    figure.text(0.01, 0.0, claim.unit, fontsize=8, color="#555555")
    figure.savefig(path, bbox_inches="tight", metadata={"Date": None})
    plot.close(figure)

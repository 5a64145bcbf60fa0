"""The images of the report, as SVG: horizontal bars, one colour a server, or curves."""

from pathlib import Path

import matplotlib

matplotlib.use("svg")
matplotlib.rcParams.update({"svg.hashsalt": "pictor", "font.family": "sans-serif", "font.size": 9})
import matplotlib.pyplot as plot  # noqa: E402

COLOURS = ["#c8553d", "#6f8f9f", "#a9b8bf", "#d6c9a8", "#7b6d8d"]


def draw(claim, path: Path) -> None:
    """Draws a claim's bars; groups have axes of their own, since they may be orders of magnitude apart."""
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


def draw_curves(claim, path: Path) -> None:
    """Draws a claim's curves, a panel a group; bytes are on a logarithmic scale."""
    across = 2
    down = -(-len(claim.curves) // across)
    figure, axes = plot.subplots(down, across, figsize=(7.6, 3 * down), squeeze=False, gridspec_kw={"hspace": 0.4, "wspace": 0.25})
    for axis, (group, curves) in zip(axes.flat, claim.curves.items()):
        for number, (label, points) in enumerate(curves.items()):
            xs, ys = zip(*points)
            axis.plot(xs, ys, label=label, color=COLOURS[number % 5], marker="o", markersize=2.5, linewidth=1.2)
        axis.set_xscale("log")
        axis.set_title(group, loc="left", fontsize=9)
        axis.spines[["top", "right"]].set_visible(False)
        axis.tick_params(labelsize=7, which="both")
        axis.xaxis.set_major_formatter(lambda value, _: f"{value / 1000:g}k")
        axis.xaxis.set_minor_formatter(lambda value, _: "")
        axis.legend(fontsize=7, frameon=False)
    for axis in list(axes.flat)[len(claim.curves):]:
        axis.set_visible(False)
    figure.text(0.01, 0.0, claim.unit, fontsize=8, color="#555555")
    figure.savefig(path, bbox_inches="tight", metadata={"Date": None})
    plot.close(figure)

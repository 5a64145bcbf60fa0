"""Rate-distortion curves of the encoders: bytes, likeness and processor time by setting and quality."""

import multiprocessing
import os
from collections import defaultdict
from concurrent.futures import ProcessPoolExecutor
from math import exp, log
from pathlib import Path
from statistics import mean

from kit import drawings, encoders, images
from kit.encoders import DEFAULTS, QUALITIES, Curve, Point
from kit.likeness import Wanted
from kit.report import Claim, Mark
from kit.servers import Bench

WIDTHS = (300, 800)
MEASURES = {"ssim": "SSIM", "gradients": "gradients"}
NAMES = {"jpeg": "JPEG", "webp": "WebP", "avif": "AVIF", "jxl": "JPEG XL"}
#: AVIF's higher efforts take seconds, so they have three photographs.
SLOW = (3, 4)
SLOW_SOURCES = [f"photo{number}" for number in (0, 4, 9)]

#: Points by format, setting, source and width.
Points = dict[tuple[str, str, str, int], list[Point]]


def measure(name: str, path: str, width: int) -> tuple[Points, list[tuple]]:
    """All curves of one source at one width, and what PNG makes of it; in a process of its own."""
    image = encoders.opened(path, width)
    wanted, seen, points = Wanted(image.numpy()), {}, {}
    for format_, qualities in QUALITIES.items():
        settings = encoders.settings(format_)
        if format_ == "avif" and name in SLOW_SOURCES:
            settings += [encoders.by_effort("avif", effort) for effort in SLOW]
        for setting in settings:
            points[format_, setting.name, name, width] = [
                encoders.measure(image, wanted, setting, quality, seen) for quality in qualities]
    lossless = [(label, name, width, *encoders.lossless(image, options)) for label, options in encoders.PNG.items()]
    return points, lossless


def sources(folder: Path) -> dict[str, str]:
    """The photographs where they are, and the drawings, made now."""
    made = {f"photo{number}": str(path) for number, path in enumerate(images.VARIED)}
    for name, draw in drawings.DRAWINGS.items():
        draw().save(folder / f"{name}.png", compress_level=1)
        made[name] = str(folder / f"{name}.png")
    return made


def gain(points: Points, format_: str, setting: str, measure_: str, width: int, names) -> float | None:
    """Bytes at equal likeness over those of the default setting, as a geometric mean over sources."""
    logs = []
    for name in names:
        if (format_, setting, name, width) not in points:
            continue
        default = Curve(points[format_, DEFAULTS[format_][1], name, width], measure_)
        difference = Curve(points[format_, setting, name, width], measure_).over(default)
        if difference is not None:
            logs.append(difference)
    return exp(mean(logs)) if logs else None


def at_default(points: Points, format_: str, setting: str, name: str, width: int) -> Point:
    """The point of the default quality."""
    return next(point for point in points[format_, setting, name, width] if point.quality == DEFAULTS[format_][0])


def percent(ratio: float | None) -> str:
    return "–" if ratio is None else f"{(ratio - 1) * 100:+.1f} %"


def is_drawn(format_: str, setting: str) -> bool:
    """Whether a setting is in the chart. The chart has five colours, and the slow settings few photographs."""
    is_slow = format_ == "avif" and setting in [f"effort {effort}" for effort in SLOW]
    return not is_slow and not setting.startswith("lib")


def settings_claim(points: Points, photos, drawn) -> Claim:
    rows, curves = [], defaultdict(dict)
    order = list(dict.fromkeys((format_, setting) for format_, setting, _, _ in points))
    for format_, setting in sorted(order, key=lambda pair: list(NAMES).index(pair[0])):
        is_default = setting == DEFAULTS[format_][1]
        for width in WIDTHS:
            known = [name for name in photos if (format_, setting, name, width) in points]
            if not known:
                continue
            cells = [percent(gain(points, format_, setting, measure_, width, names))
                     for names in (photos, drawn) for measure_ in MEASURES]
            all_points = [at_default(points, format_, setting, name, width) for name in known]
            of_default = [at_default(points, format_, DEFAULTS[format_][1], name, width) for name in known]
            cpu = mean(point.cpu for point in all_points)
            rows.append([
                NAMES[format_], f"**{setting}**" if is_default else setting, str(width), *cells,
                f"{mean(point.bytes for point in all_points):,.0f}",
                # A library's time is no comparison with a job's.
                *(["–", "–"] if setting.startswith("lib") else
                  [f"{cpu * 1e3:.1f}", f"{cpu / mean(point.cpu for point in of_default):.2f}"])])
        if is_drawn(format_, setting):
            # What is sent at each quality, over the photographs at 800 px.
            columns = zip(*(points[format_, setting, name, 800] for name in photos))
            curves[f"{NAMES[format_]}, SSIM over bytes"][setting] = [
                (exp(mean(log(point.bytes) for point in column)), mean(point.ssim for point in column)) for column in columns]
    return Claim(
        name="curves", title="Encoders by their settings",
        how=f"{len(photos)} photographs (Debian's lomiri-wallpapers and mate-backgrounds) and {len(drawn)} drawings; "
            f"{len(QUALITIES['jpeg'])} qualities of each. A percentage is bytes at equal likeness over those of the default "
            "(bold), mean over the likenesses that both reach (Bjøntegaard), by SSIM and by gradients. Bytes and processor "
            "time of encoding are of the photographs at the default quality. JPEG by Pillow, efforts by Pictor's pipeline "
            "(whose time includes reading a BMP), what is compared with them by pyvips. The chart: means at 800 px.",
        columns=["format", "setting", "px", "photographs, SSIM", "gradients", "drawings, SSIM", "gradients", "bytes",
                 "CPU ms", "of the default's"],
        rows=rows, curves=dict(curves), unit="bytes (geometric mean), logarithmic")


def qualities_claim(points: Points, photos) -> Claim:
    rows, marks = [], []
    for format_ in ("webp", "avif", "jxl"):
        quality, setting = DEFAULTS[format_]
        for width in WIDTHS:
            cells = []
            for measure_ in MEASURES:
                same, defaults = [], []
                for name in photos:
                    jpeg = Curve(points["jpeg", DEFAULTS["jpeg"][1], name, width], measure_)
                    target = encoders.scale(getattr(at_default(points, "jpeg", "optimized", name, width), measure_))
                    curve = Curve(points[format_, setting, name, width], measure_)
                    if curve.holds(target):
                        same.append(log(curve.bytes_at(target) / jpeg.bytes_at(target)))
                    sent = at_default(points, format_, setting, name, width)
                    if jpeg.holds(encoders.scale(getattr(sent, measure_))):
                        defaults.append(sent.bytes / jpeg.bytes_at(encoders.scale(getattr(sent, measure_))))
                cells.append(percent(exp(mean(same)) if same else None))
                if format_ != "jxl":
                    marks.append(Mark(f"{NAMES[format_]}, {width} px: bytes of JPEG's at equal {MEASURES[measure_]}, the mean",
                                      mean(defaults), 1.0, at_most=True))
            mine = [at_default(points, format_, setting, name, width) for name in photos]
            jpegs = [at_default(points, "jpeg", "optimized", name, width) for name in photos]
            rows.append([
                f"{NAMES[format_]} {quality}", str(width),
                percent(sum(point.bytes for point in mine) / sum(point.bytes for point in jpegs)),
                f"{mean(a.ssim - b.ssim for a, b in zip(mine, jpegs)):+.3f}", *cells])
    return Claim(
        name="qualities", title="Formats beside JPEG at their default qualities",
        how=f"{len(photos)} photographs. Each format at its default quality beside JPEG 80: bytes and SSIM; then bytes at the "
            "likeness of JPEG 80, by SSIM and by gradients.",
        columns=["format", "px", "bytes", "SSIM", "bytes at equal SSIM", "at equal gradients"], rows=rows, marks=marks)


def png_claim(lossless: list[tuple], photos, drawn) -> Claim:
    rows = []
    for label in encoders.PNG:
        cells = []
        for names, width in ((drawn, 300), (drawn, 800), (photos, 800)):
            found = [(size, cpu) for label_, name, width_, size, cpu in lossless
                     if label_ == label and name in names and width_ == width]
            cells += [f"{mean(size for size, _ in found):,.0f}", f"{mean(cpu for _, cpu in found) * 1e3:.1f}"]
        rows.append([f"**{label}**" if label == encoders.PNG_DEFAULT else label, *cells])
    return Claim(
        name="png", title="PNG by filters and levels",
        how="The same images as PNG. The filter is libspng's choice among those named, the level is zlib's. A palette changes "
            "the pixels of what has more than 256 colours.",
        columns=["setting", "drawings 300 px, bytes", "CPU ms", "drawings 800 px, bytes", "CPU ms",
                 "photographs 800 px, bytes", "CPU ms"],
        rows=rows)


def run(bench: Bench) -> list[Claim]:
    made = sources(bench.images)
    photos = [name for name in made if name.startswith("photo")]
    drawn = [name for name in made if name not in photos]
    points, lossless = {}, []
    # Processes that start anew: libvips does not survive fork(2).
    with ProcessPoolExecutor(os.cpu_count(), multiprocessing.get_context("spawn")) as pool:
        tasks = [pool.submit(measure, name, path, width) for width in sorted(WIDTHS, reverse=True) for name, path in made.items()]
        for task in tasks:
            found, rows = task.result()
            points |= found
            lossless += rows
    return [settings_claim(points, photos, drawn), qualities_claim(points, photos), png_claim(lossless, photos, drawn)]

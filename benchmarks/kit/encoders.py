"""Encoders and their curves: JPEG by Pillow with Pictor's tables, others by Pictor's own pipeline, and by pyvips what the
pipeline is compared with."""

import io
import json
import os
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import numpy
from PIL import Image

# One thread for libvips's own work, as in a worker (Sources/ImagingPool/WorkerSpawn.swift). The libraries read these
# while they are loaded; the servers that are measured do not get them.
given = dict(os.environ)
os.environ |= {"VIPS_CONCURRENCY": "1", "OMP_NUM_THREADS": "1", "VIPS_WARNING": "0"}
import pyvips  # noqa: E402

os.environ.clear()
os.environ.update(given)

from .likeness import Wanted  # noqa: E402
from .processes import WORKER_ENVIRONMENT, output_of  # noqa: E402

AVIF = {"compression": "av1", "bitdepth": 8}
PIPELINE = Path(__file__).parents[2] / ".build" / "release" / "benchmark-pipeline"


@dataclass(frozen=True)
class Setting:
    """One way to call an encoder."""

    format: str
    name: str
    options: tuple[tuple[str, object], ...] = ()
    #: Pictor's effort, if its pipeline encodes.
    effort: int | None = None

    def encode(self, image: pyvips.Image, quality: int) -> tuple[bytes, float]:
        """The encoded image, and seconds of processor time: those of Pictor's job, or the least of three calls of a library
        if a call takes less than 30 ms."""
        if self.effort is not None:
            return by_pictor(image, self.format, quality, self.effort)
        body, cpu = b"", float("inf")
        for _ in range(3):
            start = time.process_time()
            body = self.by_library(image, quality)
            cpu = min(cpu, time.process_time() - start)
            if cpu > 0.03:
                break
        return body, cpu

    def by_library(self, image: pyvips.Image, quality: int) -> bytes:
        if self.format == "jpeg":
            return jpeg(image, quality, dict(self.options))
        save, fixed = SAVERS[self.format]
        body = getattr(image, save)(Q=quality, strip=True, **fixed, **dict(self.options))
        return without_metadata(body) if self.format == "webp" else body


SAVERS = {"webp": ("webpsave_buffer", {}), "avif": ("heifsave_buffer", AVIF),
          "jxl": ("jxlsave_buffer", {})}
#: Pictor's (Sources/ImagingPipeline/JPEG/JPEGEncoder.swift), by the square of the distance from the lowest frequency.
LUMA, CHROMA = (
    [round(step(place // 8 * (place // 8) + place % 8 * (place % 8))) for place in range(64)]
    for step in (lambda square: 14 + square, lambda square: 20 + 8 * square ** 0.5))
#: The qualities of a curve.
QUALITIES = {"jpeg": (55, 68, 75, 80, 88), "webp": (55, 70, 79, 86, 93), "avif": (42, 54, 63, 70, 80),
             "jxl": (50, 66, 77, 84, 91)}
#: Pictor's qualities (Sources/Model/Image/ImageFormat.swift) and efforts (EncoderEfforts), which others are compared with.
DEFAULTS = {"jpeg": (80, "optimized"), "webp": (79, "effort 3"), "avif": (63, "effort 1"), "jxl": (77, "libvips, effort 5")}


def settings(format_: str) -> list[Setting]:
    make = lambda name, **options: Setting(format_, name, tuple(options.items()))
    if format_ == "jpeg":
        annex = {"annex": True, "subsampling": 2}
        return [make("annex K's tables, plain", **annex, optimize=False), make("annex K's tables", **annex),
                make("optimized", subsampling=2), make("progressive", subsampling=2, progressive=True),
                make("4:4:4", subsampling=0)]
    efforts = {"webp": (0, 2, 3, 4, 6), "avif": (0, 1, 2), "jxl": ()}[format_]
    others = {"webp": [make("libvips, effort 3", effort=3), make("libvips, effort 3, sharp", effort=3, smart_subsample=True)],
              "avif": [make("libheif, effort 1", effort=1),
                       make("libheif, effort 1, 4:4:4", effort=1, subsample_mode="off")],
              "jxl": [make(f"libvips, effort {effort}", effort=effort) for effort in (3, 4, 5, 6, 7)]}[format_]
    return [*(by_effort(format_, effort) for effort in efforts), *others]


def by_effort(format_: str, effort: int) -> Setting:
    return Setting(format_, f"effort {effort}", effort=effort)


@dataclass
class Point:
    """What one encoding brings."""

    quality: int
    bytes: int
    ssim: float
    gradients: float
    #: Seconds of processor time.
    cpu: float


def from_pixels(pixels: numpy.ndarray) -> pyvips.Image:
    """An image in sRGB, in memory, of pixels and nothing else."""
    height, width, bands = pixels.shape
    return pyvips.Image.new_from_memory(pixels.tobytes(), width, height, bands, "uchar").copy(interpretation="srgb")


def opened(path: str, width: int) -> pyvips.Image:
    """A source at a width, in memory, in sRGB and without metadata."""
    return from_pixels(pyvips.Image.thumbnail(path, width, size="down", export_profile="srgb").numpy())


def by_pictor(image: pyvips.Image, format_: str, quality: int, effort: int) -> tuple[bytes, float]:
    """What Pictor's pipeline makes of an image, and its seconds of processor time, with those of reading a BMP and the
    result's header."""
    with tempfile.TemporaryDirectory() as folder:
        source, out = Path(folder, "source.bmp"), Path(folder, "out")
        Image.fromarray(image.numpy()).save(source)
        command = [PIPELINE, source, image.width, 0.1, "--format", format_, "--quality", quality, "--effort", effort, "--out", out]
        line = output_of(*command, env={**os.environ, **WORKER_ENVIRONMENT})
        return out.read_bytes(), json.loads(line)["cpu_ms"] / 1e3


def without_metadata(body: bytes) -> bytes:
    """A WebP without the chunks that libvips 8.14 writes in spite of `strip`, and Pictor drops
    (Sources/ImagingPipeline/Save/Stripping.swift)."""
    kept, start = b"", 12
    while start < len(body):
        end = start + 8 + (int.from_bytes(body[start + 4:start + 8], "little") + 1) // 2 * 2
        if body[start:start + 4] in (b"VP8 ", b"VP8L"):
            kept += body[start:end]
        start = end
    return b"RIFF" + (len(kept) + 4).to_bytes(4, "little") + b"WEBP" + kept


def jpeg(image: pyvips.Image, quality: int, options: dict) -> bytes:
    """A JPEG as Pictor encodes it, without the segment of JFIF; with annex K's tables if `annex` is set."""
    percent = 5000 // quality if quality < 50 else 200 - 2 * quality
    if "annex" in options:
        tables = {"quality": quality}
        options = {name: value for name, value in options.items() if name != "annex"}
    else:
        tables = {"qtables": [[min(255, max(1, (step * percent + 50) // 100)) for step in table] for table in (LUMA, CHROMA)]}
    made = io.BytesIO()
    Image.fromarray(image.numpy()).save(made, "JPEG", **{"optimize": True, **tables, **options})
    body = made.getvalue()
    return body[:2] + body[4 + int.from_bytes(body[4:6], "big"):]


def pixels_of(body: bytes) -> numpy.ndarray:
    """The decoded image, height × width × RGB."""
    image = pyvips.Image.new_from_buffer(body, "")
    return (image.flatten(background=255) if image.hasalpha() else image).colourspace("srgb").numpy()


def measure(image: pyvips.Image, wanted: Wanted, setting: Setting, quality: int, seen: dict | None = None) -> Point:
    """Encodes an image that is in memory.

    `seen` are likenesses by result: coding alone, as of a progressive JPEG, changes no pixel."""
    body, cpu = setting.encode(image, quality)
    made = pixels_of(body)
    seen = {} if seen is None else seen
    key = hash(made.tobytes())
    if key not in seen:
        seen[key] = wanted.ssim(made), wanted.gradients(made)
    return Point(quality, len(body), *seen[key], cpu)


def scale(value: float) -> float:
    """A likeness on a scale on which the logarithm of the bytes is nearly a straight line."""
    return -float(numpy.log(max(1 - value, 1e-6)))


class Curve:
    """Bytes over likeness, for one image and one setting."""

    def __init__(self, points: list[Point], measure_: str):
        pairs = sorted((scale(getattr(point, measure_)), point.bytes) for point in points)
        self.likeness = numpy.array([pair[0] for pair in pairs])
        self.bytes = numpy.log([pair[1] for pair in pairs])

    def holds(self, likeness: float) -> bool:
        return self.likeness[0] <= likeness <= self.likeness[-1]

    def bytes_at(self, likeness: float) -> float:
        return float(numpy.exp(numpy.interp(likeness, self.likeness, self.bytes)))

    def over(self, other: "Curve") -> float | None:
        """The logarithm of its bytes over the other's, mean over the likenesses that both reach (Bjøntegaard)."""
        low, high = max(self.likeness[0], other.likeness[0]), min(self.likeness[-1], other.likeness[-1])
        if high - low < 1e-3:
            return None
        at = numpy.linspace(low, high, 50)
        return float(numpy.mean(numpy.interp(at, self.likeness, self.bytes) - numpy.interp(at, other.likeness, other.bytes)))


#: What PNG is called with; the first part of a name is the filters.
PNG = {
    **{f"all filters, level {level}": {"filter": "all", "compression": level} for level in (1, 4, 6, 9)},
    "no filter, level 4": {"filter": "none", "compression": 4}, "sub, level 4": {"filter": "sub", "compression": 4},
    "paeth, level 4": {"filter": "paeth", "compression": 4},
    "palette, level 4": {"filter": "none", "compression": 4, "palette": True},
}
PNG_DEFAULT = "all filters, level 4"


def lossless(image: pyvips.Image, options: dict) -> tuple[int, float]:
    """Bytes and seconds of processor time of a PNG."""
    start = time.process_time()
    body = image.pngsave_buffer(strip=True, **options)
    return len(body), time.process_time() - start

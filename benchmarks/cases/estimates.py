"""What jobs are estimated to take beside what they take: each kind of source, result and effect, and sources made to cost."""

import base64
import io
import json
import os
import struct
from pathlib import Path
from subprocess import run as call

from PIL import Image

from kit.processes import WORKER_ENVIRONMENT, Failure, output_of
from kit.report import Claim, Mark
from kit.servers import ROOT, Bench

#: Shorter jobs are within what every job takes.
LEAST = 0.05
#: Other ratios have no row.
CLOSE = 0.6, 1.7
EFFECTS = ["blur=0.5", "blur=2.5", "blur=100", "sharpen=0.5", "sharpen=10", "saturation=2", "radius", "tint", "grayscale"]
ALL_EFFECTS = ["blur=2.5", "sharpen=10", "saturation=2", "radius"]
OUTPUTS = ["jpeg", "png", "webp", "avif", "jxl", "gif", "tiff"]
#: By name: operation of libvips, ending, options.
SAVED = {
    "jpeg": ("jpeg", "jpg", "--Q=85"), "progressive": ("jpeg", "jpg", "--Q=85", "--interlace"),
    "4:4:4": ("jpeg", "jpg", "--Q=95", "--subsample-mode=off"),
    "png": ("png", "png"), "interlaced": ("png", "png", "--interlace"), "palette": ("png", "png", "--palette"),
    "webp": ("webp", "webp", "--Q=80"), "lossless webp": ("webp", "webp", "--lossless", "--effort=1"),
    "avif": ("heif", "avif", "--compression=av1", "--effort=1", "--Q=60"),
    "lossless avif": ("heif", "avif", "--compression=av1", "--effort=1", "--lossless"),
    "heic": ("heif", "heic", "--compression=hevc", "--Q=60"), "fine heic": ("heif", "heic", "--compression=hevc", "--Q=95"),
    "jxl": ("jxl", "jxl", "--Q=80", "--effort=3"), "lossless jxl": ("jxl", "jxl", "--lossless", "--effort=3"),
    "jp2": ("jp2k", "jp2", "--Q=60"), "lossless jp2": ("jp2k", "jp2", "--lossless"),
    "tiff": ("tiff", "tif"), "tiff lzw": ("tiff", "tif", "--compression=lzw"),
    "tiff deflate": ("tiff", "tif", "--compression=deflate", "--tile"),
    "tiff jpeg": ("tiff", "tif", "--compression=jpeg", "--tile"), "tiff webp": ("tiff", "tif", "--compression=webp", "--tile"),
    "tiff zstd": ("tiff", "tif", "--compression=zstd"),
}


def vips(operation, *arguments) -> None:
    output_of("vips", operation, *arguments)


def photo(folder: Path, width: int, height: int, sigma: float) -> Path:
    """A photograph of a size, with a camera's noise; `sigma` 0: one colour."""
    parts = {name: folder / f"{name}.v" for name in ("big", "noise", "sum", f"{width}-{sigma}")}
    big, noise, total, made = parts.values()
    if sigma:
        vips("thumbnail", ROOT / "samples" / "hills.jpg", big, width, "--height", height, "--size", "force")
        vips("gaussnoise", noise, width, height, "--sigma", sigma, "--mean", 0)
        vips("add", big, noise, total)
    else:
        vips("black", noise, width, height)
        vips("bandjoin_const", noise, big, "60 90")
        vips("copy", big, total, "--interpretation", "srgb")
    vips("cast", total, made, "uchar")
    return made


def sources(folder: Path):
    """Makes all sources: names and files."""
    for size, pixels in [("photo", photo(folder, 3000, 2000, 4)), ("flat", photo(folder, 5000, 5000, 0))]:
        for name, (operation, ending, *options) in SAVED.items():
            file = folder / f"{name}, {size}.{ending}"
            vips(f"{operation}save", pixels, file, *options)
            yield file
        for name, change in {
            "rgba.png": ("bandjoin_const", "200"), "deep.png": ("colourspace", "rgb16"), "grey.png": ("colourspace", "b-w"),
            "alpha.webp": ("bandjoin_const", "200"), "cmyk.jpg": ("colourspace", "cmyk"), "deep.tif": ("colourspace", "rgb16"),
            "grey.tif": ("colourspace", "b-w"), "alpha.heic": ("bandjoin_const", "200"),
        }.items():
            file = folder / f"{size}, {name}"
            vips(change[0], pixels, folder / "changed.v", change[1])
            vips("copy", folder / "changed.v", file)
            yield file
        jpeg = folder / f"jpeg, {size}.jpg"
        for name, options in {"arithmetic": ["-arithmetic"], "arithmetic progressive": ["-arithmetic", "-progressive"]}.items():
            file = folder / f"{name}, {size}.jpg"
            output_of("jpegtran", *options, "-outfile", file, jpeg)
            yield file
        with Image.open(folder / f"png, {size}.png") as image:
            for ending in ("bmp", "gif"):
                file = folder / f"{size}.{ending}"
                (image.quantize(256) if ending == "gif" else image).save(file)
                yield file
            file = folder / f"one tile, {size}.jp2"
            image.save(file, irreversible=True, quality_mode="rates", quality_layers=[10])
            yield file
    for name, sigma in (("jp2", 4), ("flat jp2", 0)):
        for megapixels, (width, height) in {48: (8000, 6000), 24: (6000, 4000)}.items():
            file = folder / f"{name} of {megapixels} MP.jp2"
            vips("jp2ksave", photo(folder, width, height, sigma), file, *SAVED["jp2"][2:])
            yield file
    yield from animations(folder)
    yield from hostile(folder)


def animations(folder: Path):
    """Animations of frames that differ, that are equal, and that change in a corner."""
    with Image.open(folder / "png, photo.png") as image:
        film = [image.crop((8 * i, 5 * i, 8 * i + 480, 5 * i + 360)) for i in range(60)]
    small = [film[0].copy() for _ in range(60)]
    for i, frame in enumerate(small):
        frame.putpixel((i, 0), (i, 255, 0))
    for name, frames in {"film": film, "equal": film[:1] * 60, "corner": small}.items():
        for ending, options in {"gif": {}, "webp": {"quality": 80, "method": 2}, "lossless.webp": {"lossless": True, "method": 1},
                                "mixed.webp": {"allow_mixed": True, "method": 1, "kmax": 1}}.items():
            file = folder / f"60 frames, {name}.{ending}"
            frames[0].save(file, save_all=True, append_images=frames[1:], duration=[80 + i % 2 for i in range(60)], loop=0, **options)
            yield file


def hostile(folder: Path):
    """Sources that cost most for their bytes."""
    def write(name, content):
        (folder / name).write_bytes(content)
        return folder / name

    side = 12000
    palette = b"".join(bytes([i, 0, 0, 0]) for i in range(256))
    head = struct.pack("<IiiHHIIiiII", 40, side, side, 1, 8, 1, 2, 0, 0, 256, 0)
    yield write("runs.bmp", b"BM" + struct.pack("<IHHI", 1080, 0, 0, 1078) + head + palette + bytes([0, 1]))
    small = io.BytesIO()
    Image.new("RGB", (860, 860)).save(small, "PNG")
    image = f"<image width='40' height='40' href='data:image/png;base64,{base64.b64encode(small.getvalue()).decode()}'/>"
    yield write("200 images.svg", (f"<svg xmlns='http://www.w3.org/2000/svg' width='40' height='40'>{image * 200}</svg>").encode())
    jpeg = (folder / "jpeg, photo.jpg").read_bytes()
    for count in (4_900, 5_000_000):
        yield write(f"{count} comments.jpg", jpeg[:2] + b"\xff\xfe\0\2" * count + jpeg[2:])
    Image.new("RGB", (5000, 5000)).save(folder / "5000 black.png")
    yield folder / "5000 black.png"
    frames = [Image.new("P", (1000, 1000), i % 2) for i in range(100)]
    for frame in frames:
        frame.putpalette([0, 0, 0, 255, 255, 255])
    frames[0].save(folder / "100 frames.gif", save_all=True, append_images=frames[1:], loop=0, optimize=False)
    yield folder / "100 frames.gif"


def jobs(file: Path):
    """Width, format and effects of the jobs of a source."""
    if file.name == "jpeg, photo.jpg":
        for format_ in OUTPUTS:
            yield 3000, format_, []
            yield 800, format_, []
        for effect in EFFECTS:
            yield 2000, "jpeg", [effect]
    elif file.name == "jpeg, flat.jpg":
        for format_ in OUTPUTS:
            yield 3000, format_, []
    elif "frames" in file.name:
        width = 1000 if "100" in file.name else 480
        for format_ in ("webp", "gif"):
            yield width, format_, []
            yield width // 2, format_, []
        yield width, "webp", ALL_EFFECTS
        yield width, "webp", ["blur=2.5"]
        return
    elif file.name == "photo, rgba.png":
        yield 2000, "webp", ["sharpen=10"]
    elif file.name == "5000 black.png":
        yield 5000, "jpeg", ALL_EFFECTS
    yield 300, "jpeg", []
    if file.suffix not in (".svg", ".bmp"):
        yield 3000, "jpeg", []


def measure(bench: Bench, file: Path, width: int, format_: str, effects: list[str]) -> dict | None:
    """What `benchmark-pipeline` says; `None` where the source is refused for its structure."""
    options = [word for effect in effects for word in ("--effect", effect)]
    command = [bench.build / "benchmark-pipeline", file, width, 0, "--format", format_, *options]
    done = call(list(map(str, command)), capture_output=True, text=True, env={**os.environ, **WORKER_ENVIRONMENT})
    if done.returncode == 0:
        return json.loads(done.stdout)
    if "at most" in done.stderr or "more than" in done.stderr:
        return None
    raise Failure(f"{file.name}: {done.stderr.strip()}")


def run(bench: Bench) -> Claim:
    rows, ratios = [], []
    for file in sources(bench.images):
        for width, format_, effects in jobs(file):
            name = [file.name, f"{width} px {format_} {' '.join(effects)}".strip(), f"{file.stat().st_size:,}"]
            found = measure(bench, file, width, format_, effects)
            if found is None:
                rows.append([*name, "–", "–", "–", "for its structure"])
                continue
            estimated, taken = found["estimated_ms"] / 1e3, found["cpu_ms"] / 1e3
            if taken >= LEAST:
                ratios.append(estimated / taken)
            if taken < LEAST or CLOSE[0] < estimated / taken < CLOSE[1] and not found["refused"]:
                continue
            rows.append([*name, f"{estimated:.3f}", f"{taken:.3f}", f"{estimated / taken:.2f}", "yes" if found["refused"] else ""])
    return Claim(
        name="estimates", title="What jobs are estimated to take",
        how="`benchmark-pipeline` with the limits of time lifted: the estimate and the processor time of a job, in seconds, "
            f"and whether a worker refuses it. Of {len(ratios)} jobs of {LEAST} s and more, those that it refuses or whose ratio is "
            f"not between {CLOSE[0]} and {CLOSE[1]}.",
        columns=["source", "result", "bytes", "estimated s", "measured s", "ratio", "refused"], rows=rows,
        marks=[Mark("least ratio", min(ratios), 0.5), Mark("greatest ratio", max(ratios), 2, at_most=True)])

"""Misses beside imgproxy, thumbor and nginx's image_filter, beside the pipeline alone, and what the images are worth."""

import json
import os
import time
from concurrent.futures import ThreadPoolExecutor
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy
from PIL import Image, ImageSequence, UnidentifiedImageError
from skimage.metrics import structural_similarity

from kit import client, http, load
from kit.processes import WORKER_ENVIRONMENT, output_of
from kit.report import Claim, Mark
from kit.servers import FILTER, IMGPROXY, LOCAL_ORIGIN, ORIGIN, PICTOR, THUMBOR, Bench

WIDTH = 300
#: Differences of SSIM below this are rounding and invisible.
SEEN = 0.001
#: Source, and what Pictor's requests per second are to be of the best of the others'.
SOURCES = {"800x600.jpg": 1.1, "3000x2000.jpg": 1.25, "12000x9000.jpg": 1.25, "1000x1000.png": 1.25,
           "480x360.gif": 1.25, "480x360.webp": 1.25}


def paths(source: str) -> dict[str, tuple[int, str, str]]:
    """Where each server has the image: port, and the path in two parts with room for what makes it another one."""
    return {
        # A client that names no format gets a GIF of an animated WebP.
        "Pictor": (PICTOR, http.image(f"{LOCAL_ORIGIN}/{source}?"), f"&w={WIDTH}" + "&format=webp" * source.endswith(".webp")),
        "thumbor": (THUMBOR, f"/unsafe/{WIDTH}x0/http%3A%2F%2F127.0.0.1%3A{ORIGIN}%2F{source}%3F", ""),
        "imgproxy": (IMGPROXY, f"/insecure/rs:fit:{WIDTH}/f:{source[source.index('.') + 1:]}/plain/{LOCAL_ORIGIN}/{source}%3F", ""),
        "nginx image_filter": (FILTER, f"/{source}?", ""),
    }


#: The largest of the sources is what Pillow takes for an attack.
Image.MAX_IMAGE_PIXELS = None


def frames_of(body: bytes) -> list[numpy.ndarray]:
    """All frames, as arrays of height × width × RGB between 0 and 255, on white where they are transparent."""
    try:
        with Image.open(BytesIO(body)) as image:
            return [on_white(frame) for frame in ImageSequence.Iterator(image)]
    except UnidentifiedImageError:
        # Pillow knows neither HEIC nor JPEG XL.
        with TemporaryDirectory() as folder:
            source, png = Path(folder) / "source", Path(folder) / "result.png"
            source.write_bytes(body)
            output_of("vips", "copy", source, png)
            return frames_of(png.read_bytes())


def on_white(frame: Image.Image) -> numpy.ndarray:
    if not frame.has_transparency_data:
        return numpy.asarray(frame.convert("RGB"))
    pixels = numpy.asarray(frame.convert("RGBA"), dtype=numpy.float32)
    alpha = pixels[..., 3:] / 255
    return pixels[..., :3] * alpha + 255 * (1 - alpha)


def lanczos(pixels: numpy.ndarray, width: int, height: int) -> numpy.ndarray:
    """Resized with Lanczos in floating point, each channel by itself."""
    channels = [Image.fromarray(pixels[..., index].astype(numpy.float32)) for index in range(3)]
    resized = [channel.resize((width, height), Image.Resampling.LANCZOS) for channel in channels]
    return numpy.stack([numpy.asarray(channel) for channel in resized], axis=-1)


def likeness(body: bytes, source: bytes) -> float:
    """The mean SSIM, over frames and channels, with what Lanczos makes of the source as it is seen on white."""
    values = []
    for made, original in zip(frames_of(body), frames_of(source)):
        wanted = lanczos(original, made.shape[1], made.shape[0])
        values.append(structural_similarity(
            wanted, made.astype(numpy.float32), data_range=255, channel_axis=2, gaussian_weights=True, sigma=1.5,
            use_sample_covariance=False))
    return float(sum(values) / len(values))


def pipeline_alone(bench: Bench, source: str, seconds: float) -> float:
    """Seconds of processor per job of the imaging pipeline in a loop of its own, one loop a core as there are workers."""
    command = [bench.build / "benchmark-pipeline", bench.images / source, WIDTH, seconds,
               *(["--format", "webp"] if source.endswith(".webp") else [])]
    with ThreadPoolExecutor() as pool:
        runs = list(pool.map(
            lambda _: json.loads(output_of(*command, env={**os.environ, **WORKER_ENVIRONMENT})), range(os.cpu_count())))
    return sum(run["cpu_ms"] * run["jobs"] for run in runs) / sum(run["jobs"] for run in runs) / 1e3


def distinct(prefix: str, suffix: str, count: int) -> list[str]:
    """So many paths that were never asked for."""
    run = time.monotonic_ns()
    return [f"{prefix}{run}-{number}{suffix}" for number in range(count)]


def requests_in(seconds: float, port: int, prefix: str, suffix: str, accept: str | None = None) -> tuple[int, int]:
    """About how many requests such a server answers in that time, and over how many connections they are sent.

    Over few, one of thumbor's processes may get all of them while the other has nothing to do."""
    rate = client.fetch(port, distinct(prefix, suffix, 8), 8, accept=accept).rate
    return max(round(rate * seconds), 16), 32 if rate > 20 else 8


def run(bench: Bench) -> Claim:
    origin = bench.nginx("origin", ORIGIN, "/800x600.jpg")
    servers = {
        "Pictor": bench.pictor("--download.limit_per_host", 64),
        "thumbor": bench.thumbor(paths("800x600.jpg")["thumbor"][1] + "0"),
        "nginx image_filter": bench.nginx("filter", FILTER, "/800x600.jpg"),
    }
    if bench.imgproxy_program():
        # Its defaults refuse the largest source, and leave out frames.
        servers["imgproxy"] = bench.imgproxy(
            paths("800x600.jpg")["imgproxy"][1] + "0", IMGPROXY_MAX_SRC_RESOLUTION="120", IMGPROXY_MAX_ANIMATION_FRAMES="256")
    else:
        print("bench: imgproxy is missing (IMGPROXY names it), so it is left out", flush=True)
    rows, marks = [], []
    rounds = max(bench.rounds // 2, 1)
    for source, bound in SOURCES.items():
        original = (bench.images / source).read_bytes()
        measured, quality, frames = {}, {}, {}
        able = {}
        for name, (port, prefix, suffix) in paths(source).items():
            if name not in servers:
                continue
            status, _, body = http.get(port, f"{prefix}0{suffix}", timeout=120)
            if status == 200:
                quality[name], frames[name] = likeness(body, original), len(frames_of(body))
                able[name] = (port, prefix, suffix, len(body))
        count = {name: requests_in(bench.seconds, *where[:3]) for name, where in able.items()}

        def ask(name):
            port, prefix, suffix, _ = able[name]
            number, connections = count[name]
            return lambda: client.fetch(port, distinct(prefix, suffix, number), connections, servers[name])

        cases = {name: ask(name) for name in able}
        cases["pipeline"] = lambda: load.Measured(0, 0, 0, 0, pipeline_alone(bench, source, bench.seconds))
        measured = load.in_turn(rounds, cases, load.Measured.best)
        floor = measured.pop("pipeline").cpu
        for name, it in measured.items():
            rows.append([
                source, name, f"{it.rate:,.1f}", f"{it.cpu * 1e3:.1f}", f"{quality[name]:.3f}", f"{able[name][3]:,}",
                str(frames[name])])
        rows.append([source, "pipeline alone", "", f"{floor * 1e3:.1f}", "", "", ""])
        # A server that leaves out frames does less work.
        others = [name for name in measured if name != "Pictor" and frames[name] == frames["Pictor"]]
        if others:
            best = max(measured[name].rate for name in others)
            marks.append(Mark(f"{source}: requests/s, of the best other's", measured["Pictor"].rate / best, bound))
            marks.append(Mark(
                f"{source}: SSIM, less the best other's", quality["Pictor"] - max(quality[name] for name in others), -SEEN))
        marks.append(Mark(f"{source}: CPU, of the pipeline alone", measured["Pictor"].cpu / floor, 1.08, at_most=True))
    for server in [*servers.values(), origin]:
        server.stop()
    return Claim(
        name="misses", title="Misses",
        how=f"Painted images to {WIDTH} px; in turn, the best of {rounds}. “Pipeline alone” is `benchmark-pipeline`, the same work in "
            "a loop without a server. Servers that leave out frames are not compared; imgproxy is told to keep them, and "
            "to take the largest source.",
        columns=["source", "server", "requests/s", "CPU ms", "SSIM", "bytes", "frames"], rows=rows, marks=marks)

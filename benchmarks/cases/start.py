"""From the start of the program to its first answers."""

import http.client
import time
from statistics import median

from kit import http as client
from kit.processes import Process
from kit.report import Claim, Mark
from kit.servers import PICTOR, Bench

from . import disk

ROUNDS = 9


def first_answer(port: int, path: str) -> float:
    """The moment of the first answer 200."""
    while True:
        try:
            if client.get(port, path)[0] == 200:
                return time.monotonic()
        except (OSError, http.client.HTTPException):
            time.sleep(0.001)


def starts(bench: Bench, fresh: bool) -> tuple[float, float]:
    """Median seconds to the first answer of /stats and to the first image."""
    stats, images = [], []
    for _ in range(ROUNDS):
        if fresh:
            bench.new_disk()
        begin = time.monotonic()
        server = Process(
            [bench.build / "pictor", "--server.port", PICTOR, "--disk.path", bench.disk, "--log.level", "warning",
             "--sources.local_root", bench.images], bench.work / "pictor.log")
        stats.append(first_answer(PICTOR, "/stats") - begin)
        images.append(first_answer(PICTOR, client.image("local:///320x240.jpg", w=100)) - begin)
        server.stop()
    return median(stats), median(images)


def run(bench: Bench) -> Claim:
    rows, marks = [], []
    for name, fresh in (("empty folder", True), (f"{disk.ENTRIES:,} entries", False)):
        if not fresh:
            disk.fill(bench)
        stats, image = starts(bench, fresh)
        rows.append([name, f"{stats * 1e3:.0f}", f"{image * 1e3:.0f}"])
        marks.append(Mark(f"{name}: ms to the first image", image * 1e3, 100, at_most=True))
    return Claim(
        name="start", title="From start to first answer",
        how=f"Milliseconds from starting the program, medians of {ROUNDS} starts; the image is a local file, "
            "320×240 to 100 px.",
        columns=["disk folder", "/stats ms", "first image ms"], rows=rows, marks=marks)

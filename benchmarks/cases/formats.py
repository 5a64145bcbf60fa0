"""What each format costs, in and out: processor time and the most memory, of the whole server."""

import threading

from kit import http, images
from kit.processes import Failure, Process
from kit.report import Claim, Mark
from kit.servers import PICTOR, Bench

#: The issue's own bound for the first row, in MB.
MOST_MEMORY = 120
LARGE = "12000x9000.jpg"
#: Every format in, at one size; the vector is nothing but text.
SOURCES = [LARGE, *(f"3000x2000.{ending}" for ending in (
    "jpg", "progressive.jpg", "png", "webp", "gif", "tif", "heic", "avif", "jxl", "jp2", "bmp", "svg"))]
#: Every format out, of one source.
OUTPUTS = ["jpeg", "png", "webp", "avif", "gif", "jxl", "tiff"]


class Watch(threading.Thread):
    """Looks at a server's memory as often as it can, until it is stopped."""

    def __init__(self, server: Process):
        super().__init__(daemon=True)
        self.server, self.peak, self.is_done = server, 0, threading.Event()
        self.start()

    def run(self) -> None:
        while not self.is_done.is_set():
            self.peak = max(self.peak, self.server.memory())
            self.is_done.wait(0.002)

    def stop(self) -> int:
        self.is_done.set()
        self.join()
        return self.peak


def measure(bench: Bench, source: str, **parameters):
    """One image after the other on a fresh server: (bytes, CPU seconds an image, peak Pss)."""
    server = bench.pictor()
    watch = Watch(server)
    size = 0
    for number in range(-1, bench.rounds):
        # Each is another variant of the same source: the box is wider than the image is let be high.
        path = http.image(f"local:///{source}", w=4000 + number, **parameters)
        status, _, body = http.get(PICTOR, path, timeout=120)
        if status != 200:
            raise Failure(f"{path}: {status} {body[:200]!r}")
        # The first loads what is loaded when it is needed.
        if number < 0:
            before, size = server.cpu(), len(body)
    cpu = (server.cpu() - before) / bench.rounds
    peak = watch.stop()
    server.stop()
    return size, cpu, peak


def row(source: str, result: str, measured) -> list[str]:
    size, cpu, peak = measured
    return [source, result, f"{size:,}", f"{cpu * 1e3:.0f}", f"{peak / 1e6:.0f}"]


def run(bench: Bench) -> Claim:
    images.make_formats(bench.images)
    made = {source: measure(bench, source, h=300 if source == LARGE else 200, format="jpeg") for source in SOURCES}
    rows = [
        row(source, "JPEG, 400×300" if source == LARGE else "JPEG, 300×200", it) for source, it in made.items()]
    for format_ in OUTPUTS:
        measured = measure(bench, "3000x2000.jpg", h=533, format=format_)
        rows.append(row("3000x2000.jpg", f"{format_}, 800×533", measured))
    return Claim(
        name="formats", title="What each format costs",
        how="A fresh server, one image after the other; CPU is told in ticks of 10 ms, the peak is the Pss of the server and "
            "its workers.",
        columns=["source", "result", "bytes", "CPU ms", "peak MB"], rows=rows,
        marks=[Mark(f"{LARGE} to 300 px: peak MB", made[LARGE][2] / 1e6, MOST_MEMORY, at_most=True)])

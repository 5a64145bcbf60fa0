"""What each format costs, in and out: processor time and the most memory, of the whole server."""

import threading
from pathlib import Path

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


def high_water(server: Process) -> int:
    """The sum of what each process had at its most (VmHWM, proc(5)); pages they share count once for each."""
    lines = [line for pid in server.tree() for line in Path(f"/proc/{pid}/status").read_text().splitlines()]
    return sum(int(line.split()[1]) << 10 for line in lines if line.startswith("VmHWM:"))


def measure(bench: Bench, source: str, **parameters):
    """One image after the other on a fresh server: (bytes, CPU seconds an image, peak Pss, sum of VmHWM)."""
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
    peak, sum_of_peaks = watch.stop(), high_water(server)
    server.stop()
    return size, cpu, peak, sum_of_peaks


def row(source: str, result: str, measured) -> list[str]:
    size, cpu, peak, sum_of_peaks = measured
    return [source, result, f"{size:,}", f"{cpu * 1e3:.0f}", f"{peak / 1e6:.0f}", f"{sum_of_peaks / 1e6:.0f}"]


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
        how=f"A fresh server at its defaults, one image after the other, {bench.rounds} of each kind after one that is not "
            "counted; sums over the server and its workers. Processor time is told in ticks of 10 ms, here divided by the "
            "number of images. The peak is of resident pages with those that they share counted once (Pss), looked at "
            "about every 4 ms; VmHWM misses nothing, and counts shared pages for each process.",
        columns=["source", "result", "bytes", "CPU ms", "peak MB", "sum of VmHWM MB"], rows=rows,
        marks=[Mark(f"{LARGE} to 300 px: peak MB", made[LARGE][2] / 1e6, MOST_MEMORY, at_most=True)],
        bars={"CPU ms an image, 3000×2000 to 300×200":
              {source.removeprefix("3000x2000."): it[1] * 1e3 for source, it in made.items() if source != LARGE}})

"""Where the processor time of a miss goes: in the library that all servers have, or in what is around it."""

import re
import shutil
import subprocess
import time
from collections import Counter
from pathlib import Path

from kit import client, images
from kit.processes import Failure, Process, output_of
from kit.report import Claim
from kit.servers import IMGPROXY, ORIGIN, PICTOR, Bench

from .misses import requests_in
from .photos import paths, places

#: Source, width and format of the result, and the library that decodes or encodes for all servers. Pictor reads ordinary
#: JPEGs itself.
KINDS = [
    ("2400.jpg", 300, "jpeg", "libjpeg"), ("1800.webp", 300, "jpeg", "libwebp"), ("1800.webp", 800, "jpeg", "libwebp"),
    ("2400.jpg", 800, "webp", "libwebp"), ("2400.jpg", 800, "avif", "libaom"), ("1800.heic", 300, "jpeg", "libde265"),
    ("800.jpg", 300, "webp", "libwebp"), ("800.jpg", 300, "avif", "libaom"), ("800.jpg", 300, "jxl", "libjxl"),
]
#: A sample of perf: its weight and the file that the code is from.
LINE = re.compile(r"^\s*([\d.]+)%\s+(\S+)")


def part_of(file: str, library: str) -> str:
    """The part of the table that code of a file belongs to."""
    if file.startswith("[kernel") or file == "[vdso]":
        return "kernel"
    if file.startswith(library):
        return "library"
    # libvips compiles its loops by liborc.
    if file.startswith(("pictor-imager", "libvips", "liborc", "[JIT]", "perf-")):
        return "own"
    return "rest"


def profile(server: Process, run, file: Path):
    """Runs while perf(1) takes samples of a server and its workers; the result, and the share of each file."""
    # A worker that was replaced meanwhile is none that perf can follow.
    for _ in range(3):
        perf = subprocess.Popen(
            ["perf", "record", "--quiet", "--freq", "499", "--output", file, "--pid", ",".join(map(str, server.tree()))],
            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        time.sleep(0.3)
        if perf.poll() is None:
            break
    measured = run()
    perf.terminate()
    _, trouble = perf.communicate(timeout=60)
    report = output_of("perf", "report", "--input", file, "--stdio", "--sort", "dso", "--quiet")
    shares = {match[2]: float(match[1]) / 100 for line in report.splitlines() if (match := LINE.match(line))}
    if not shares:
        raise Failure(f"perf has no samples: {trouble.strip()[-200:]}")
    return measured, shares


def run(bench: Bench) -> Claim | list[Claim]:
    if not shutil.which("perf"):
        print("bench: perf is missing (apt-get install linux-perf), so the time of a miss is not divided", flush=True)
        return []
    images.make_photos(bench.images)
    images.make_other_photos(bench.images)
    origin = bench.nginx("origin", ORIGIN, "/photo0-800.jpg")
    servers = {"Pictor": (PICTOR, bench.pictor("--download.limit_per_host", 64))}
    if bench.imgproxy_program():
        servers["imgproxy"] = (IMGPROXY, bench.imgproxy(places("photo0-800.jpg", 300, "jpeg")["imgproxy"][1] + "0"))
    rows = []
    for *kind, library in KINDS:
        costs = {}
        for name, (port, server) in servers.items():
            _, prefix, suffix = places(f"photo0-{kind[0]}", kind[1], kind[2])[name]
            count, connections = requests_in(bench.seconds, port, prefix, suffix)
            measured, shares = profile(
                server, lambda: client.fetch(port, paths(name, tuple(kind), count), connections, server),
                bench.work / "perf.data")
            parts = Counter()
            for file, share in shares.items():
                parts[part_of(file, library)] += share * measured.cpu * 1e3
            costs[name] = (measured.cpu * 1e3, parts)
        for name, (cpu, parts) in costs.items():
            own, least = costs["Pictor"][0], costs["Pictor"][1]["library"]
            # Where Pictor uses other code, the library says nothing.
            bound = f"{cpu / least:.2f}" if name != "Pictor" and least > own / 3 else ""
            rows.append([f"{kind[0]} → {kind[1]} px {kind[2]}", name, f"{cpu:.1f}", f"{library} {parts['library']:.1f}",
                         *(f"{parts[part]:.1f}" for part in ("own", "kernel", "rest")), bound])
    for _, server in servers.values():
        server.stop()
    origin.stop()
    return Claim(
        name="shares", title="Where the time of a miss goes",
        how="Processor time of a miss of the photographs, ms, of the server and its workers, divided by perf by the file that "
            "the code is from: the library that all servers decode or encode with, libvips with Pictor's own code, the "
            "kernel, the rest (Swift, Go, libc, curl, other codecs). The last column is the server's time over that of the "
            "library alone in Pictor: the most that Pictor's rate can be of its, as long as the library is the same.",
        columns=["kind", "server", "CPU ms", "library", "libvips and own code", "kernel", "rest", "most"], rows=rows)

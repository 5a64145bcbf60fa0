"""The peak of memory while sixteen large images are rendered at once, beside imgproxy."""

import threading
from concurrent.futures import ThreadPoolExecutor
from statistics import median

from kit import http
from kit.report import Claim, Mark
from kit.servers import IMGPROXY, LOCAL_ORIGIN, ORIGIN, PICTOR, Bench

AT_ONCE, ROUNDS = 16, 3
SOURCE = "3000x2000.jpg"
WIDTHS = (300, 800)


def paths(server: str, width: int, round_: int) -> list[str]:
    """Images that were never asked for."""
    of = lambda number: f"{LOCAL_ORIGIN}/{SOURCE}?peak{width}-{round_}-{number}"
    if server == "Pictor":
        return [http.image(of(number), w=width) for number in range(AT_ONCE)]
    return [f"/insecure/rs:fit:{width}/plain/{of(number).replace('?', '%3F')}" for number in range(AT_ONCE)]


def peak(server, port: int, asked: list[str]) -> int:
    """The most bytes (Pss) of a server and its workers while it answers so many requests at once."""
    samples, is_over = [server.memory()], threading.Event()

    def sample():
        while not is_over.wait(0.005):
            samples.append(server.memory())

    sampler = threading.Thread(target=sample)
    sampler.start()
    with ThreadPoolExecutor(AT_ONCE) as clients:
        statuses = [answer[0] for answer in clients.map(lambda path: http.get(port, path, timeout=120), asked)]
    is_over.set()
    sampler.join()
    if set(statuses) != {200}:
        raise SystemExit(f"bench: answers of {sorted(set(statuses))}, not 200")
    return max(samples)


def run(bench: Bench) -> Claim | list[Claim]:
    if not bench.imgproxy_program():
        print("bench: imgproxy is missing (IMGPROXY names it), so its peak of memory is not compared", flush=True)
        return []
    origin = bench.nginx("origin", ORIGIN, f"/{SOURCE}")
    peaks = {(name, width): [] for width in WIDTHS for name in ("Pictor", "imgproxy")}
    rests = {"Pictor": [], "imgproxy": []}
    for round_ in range(ROUNDS):
        for name, port in (("Pictor", PICTOR), ("imgproxy", IMGPROXY)):
            # New processes, so that a peak is not what an earlier one left.
            server = bench.pictor() if name == "Pictor" else bench.imgproxy(paths(name, 300, -1)[0])
            for width in WIDTHS:
                http.get(port, paths(name, width, ROUNDS + round_)[0], timeout=120)
                if width == WIDTHS[0]:
                    rests[name].append(server.memory())
                peaks[name, width].append(peak(server, port, paths(name, width, round_)))
            server.stop()
    origin.stop()
    middle = {key: median(values) for key, values in peaks.items()}
    mib = lambda value: f"{value / 2**20:.1f}"
    return Claim(
        name="peak", title=f"Memory of {AT_ONCE} large images at once",
        how=f"{AT_ONCE} different {SOURCE} at once; the most memory (Pss) of the server and its workers; medians of "
            f"{ROUNDS} starts.",
        columns=["to", "server", "after one image, MiB", "peak MiB"],
        rows=[[f"{width} px", name, mib(median(rests[name])) if width == WIDTHS[0] else "–", mib(middle[name, width])]
              for width in WIDTHS for name in ("Pictor", "imgproxy")],
        marks=[Mark(f"peak to {width} px, of imgproxy's", middle["Pictor", width] / middle["imgproxy", width], 1.0,
                    at_most=True) for width in WIDTHS])

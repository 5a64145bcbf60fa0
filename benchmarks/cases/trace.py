"""A Zipf trace of 10,000 images as browsers ask: bytes sent, beside imgproxy and thumbor, at equal likeness."""

import http.client
import random
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from math import exp, log
from pathlib import Path
from statistics import mean

import numpy

from kit import encoders, http as plain, images
from kit.encoders import DEFAULTS, QUALITIES, Curve, Point
from kit.likeness import Wanted
from kit.processes import Failure, Process, wait_until
from kit.report import Claim, Mark
from kit.servers import IMGPROXY, LOCAL_ORIGIN, ORIGIN, PICTOR, THUMBOR, Bench

from .misses import frames_of, lanczos

IMAGES, SKEW, SEED = 10_000, 0.9, 16
REQUESTS = 1_000_000
#: What a browser sends, and the format that it gets.
BROWSERS = {"AVIF and WebP": "image/avif,image/webp,*/*", "WebP": "image/webp,*/*", "neither": "*/*"}
FORMATS = {"AVIF and WebP": "avif", "WebP": "webp", "neither": "jpeg"}
#: Hits after which Pictor recompresses (imaging.recompress_after), and variants that its queue holds.
POPULAR, QUEUE = 20, 256
#: Images whose likeness is measured.
SAMPLE = 24
LEAST_GAIN = 0.93


@dataclass
class Sent:
    """Bytes of one image for one browser: the first answer, the next ones, and those after it became popular."""

    first: int
    next: int
    popular: int

    def total(self, counts: numpy.ndarray) -> int:
        """The bytes of images that are asked for so often."""
        asked = counts[counts > 0]
        hits = asked - 1
        return int(len(asked) * self.first + numpy.minimum(hits, POPULAR).sum() * self.next
                   + numpy.maximum(hits - POPULAR, 0).sum() * self.popular)


def strata(count: int) -> list[numpy.ndarray]:
    """The ranks that each rendered image stands for: the first half of them for themselves, the others for a part of the
    rest each."""
    if count >= IMAGES:
        return [numpy.array([rank]) for rank in range(IMAGES)]
    head = count // 2
    return [*(numpy.array([rank]) for rank in range(head)), *numpy.array_split(numpy.arange(head, IMAGES), count - head)]


def counts_of(requests: int) -> numpy.ndarray:
    """How often each rank is asked for."""
    weights = 1 / numpy.arange(1, IMAGES + 1) ** SKEW
    return numpy.random.default_rng(SEED).multinomial(requests, weights / weights.sum())


def make_sources(folder: Path, count: int) -> list[tuple[str, int]]:
    """Windows of the photographs by seed, 1,000 pixels wide, each with the width that pages show it at."""
    chance = random.Random(SEED)
    decoded = [encoders.opened(str(path), 2400) for path in images.VARIED]
    made = []

    def make(number: int, photo: int, share: float, x: float, y: float) -> None:
        source = decoded[photo]
        width, height = int(source.width * share), int(source.width * share * 2 / 3)
        height = min(height, source.height)
        window = source.crop(int((source.width - width) * x), int((source.height - height) * y), width, height)
        window.thumbnail_image(1000).jpegsave(str(folder / f"trace{number}.jpg"), Q=90)

    with ThreadPoolExecutor() as pool:
        for number in range(count):
            pool.submit(make, number, chance.randrange(len(decoded)), chance.uniform(0.45, 1), chance.random(), chance.random())
            made.append((f"trace{number}.jpg", chance.choice((300, 800))))
    return made


def path_of(server: str, source: str, width: int) -> str:
    at = f"127.0.0.1:{ORIGIN}"
    return {
        "Pictor": plain.image(f"{LOCAL_ORIGIN}/{source}", w=width),
        "imgproxy": f"/insecure/rs:fit:{width}/plain/http://{at}/{source}",
        "thumbor": f"/unsafe/{width}x0/http%3A%2F%2F{at}%2F{source}",
    }[server]


def ask(port: int, paths: list[str], accept: str, times: int = 1) -> list[bytes]:
    """The last answer of each path, asked for so many times in turn over a few connections."""
    answers: list[bytes] = [b""] * len(paths)

    def part(start: int) -> None:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
        for number in range(start, len(paths), 4):
            for _ in range(times):
                connection.request("GET", paths[number], headers={"Accept": accept})
                response = connection.getresponse()
                answers[number] = response.read()
                if response.status != 200:
                    raise Failure(f"{paths[number]}: {response.status}")
        connection.close()

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(part, range(4)))
    return answers


def is_idle() -> bool:
    """Whether Pictor renders and recompresses nothing."""
    stats = plain.stats(PICTOR)
    return not (stats["flights"]["avifs_waiting"] or stats["recompression"]["waiting"] or stats["imaging"]["running"] or stats["imaging"]["waiting"])


def drive(made: list[tuple[str, int]], accept: str) -> list[tuple[bytes, bytes, bytes]]:
    """Pictor's answers to the first request, to the second, and after the variant became popular and was recompressed."""
    answers = []
    for start in range(0, len(made), QUEUE // 2):
        paths = [path_of("Pictor", *one) for one in made[start:start + QUEUE // 2]]
        first = ask(PICTOR, paths, accept)
        wait_until(is_idle, "Pictor to be idle", patience=300, pause=0.2)
        second = ask(PICTOR, paths, accept)
        ask(PICTOR, paths, accept, times=POPULAR + 2)
        wait_until(is_idle, "Pictor to be idle", patience=300, pause=0.2)
        answers += zip(first, second, ask(PICTOR, paths, accept))
    return answers


class Sample:
    """One image whose likeness is measured, and how many bytes Pictor's own encoder needs for a likeness."""

    def __init__(self, source: bytes, size: tuple[int, int]):
        pixels = lanczos(frames_of(source)[0], *size)
        self.wanted = Wanted(pixels)
        self.image = encoders.from_pixels(pixels.clip(0, 255).round().astype("uint8"))
        self.curves: dict[str, list[Point]] = {}

    def ssim(self, body: bytes) -> float:
        return self.wanted.ssim(encoders.pixels_of(body))

    def curve(self, format_: str) -> Curve:
        if format_ not in self.curves:
            setting = next(one for one in encoders.settings(format_) if one.name == DEFAULTS[format_][1])
            self.curves[format_] = [encoders.measure(self.image, self.wanted, setting, quality) for quality in QUALITIES[format_]]
        return Curve(self.curves[format_], "ssim")


def correction(samples: list[Sample], format_: str, mine: list[bytes], others: list[bytes]) -> float:
    """What the other's bytes are to be multiplied with to have the likeness of mine: on the curve of each image, from one
    likeness to the other."""
    logs = []
    for sample, own, other in zip(samples, mine, others):
        curve = sample.curve(format_)
        at = lambda body: log(curve.bytes_at(encoders.scale(sample.ssim(body))))
        logs.append(at(own) - at(other))
    return exp(mean(logs))


def sizes(answers: list[tuple[bytes, bytes, bytes]]) -> list[Sent]:
    return [Sent(*map(len, each)) for each in answers]


def start(bench: Bench) -> dict[str, Process]:
    servers = {"Pictor": bench.pictor("--download.limit_per_host", 64, "--imaging.recompress_after", POPULAR),
               "thumbor": bench.thumbor(path_of("thumbor", "trace0.jpg", 300), AUTO_WEBP="True", AUTO_AVIF="True")}
    if bench.imgproxy_program():
        servers["imgproxy"] = bench.imgproxy(
            path_of("imgproxy", "trace0.jpg", 300), IMGPROXY_AUTO_WEBP="true", IMGPROXY_AUTO_AVIF="true")
    else:
        print("bench: imgproxy is missing (IMGPROXY names it), so it is left out", flush=True)
    return servers


def run(bench: Bench) -> Claim:
    made = make_sources(bench.images, bench.renders)
    origin = bench.nginx("origin", ORIGIN, "/trace0.jpg")
    servers = start(bench)
    parts = strata(bench.renders)
    counts = counts_of(REQUESTS)
    chosen = [round(number * (len(made) - 1) / (SAMPLE - 1)) for number in range(SAMPLE)]
    samples: list[Sample] = []
    rows, marks = [], []
    for browser, accept in BROWSERS.items():
        answers = {"Pictor": drive(made, accept)}
        for name, port in (("imgproxy", IMGPROXY), ("thumbor", THUMBOR)):
            if name in servers:
                answers[name] = [(body,) * 3 for body in ask(port, [path_of(name, *one) for one in made], accept)]
        if not samples:
            for number in chosen:
                last = encoders.pixels_of(answers["Pictor"][number][2])
                samples.append(Sample((bench.images / made[number][0]).read_bytes(), (last.shape[1], last.shape[0])))
        last_of = lambda name: [answers[name][number][2] for number in chosen]
        equal = {}
        for name in ("Pictor", "imgproxy", "thumbor"):
            if name not in answers:
                continue
            sent = sizes(answers[name])
            total = sum(one.total(counts[part]) for one, part in zip(sent, parts))
            factor = correction(samples, FORMATS[browser], last_of("Pictor"), last_of(name))
            equal[name] = total * factor
            rows.append([browser, name, f"{mean(sample.ssim(body) for sample, body in zip(samples, last_of(name))):.4f}",
                         f"{total / REQUESTS:,.0f}", f"{equal[name] / REQUESTS:,.0f}"])
        marks += [Mark(f"{browser}: bytes at equal SSIM, of {name}'s", equal["Pictor"] / equal[name], LEAST_GAIN, at_most=True)
                  for name in equal if name != "Pictor"]
    for server in [*servers.values(), origin]:
        server.stop()
    return Claim(
        name="trace", title="Bytes of a trace, beside imgproxy and thumbor",
        how=f"{REQUESTS:,} requests for {IMAGES:,} images (Zipf {SKEW}), {bench.renders:,} of them rendered. Servers choose the "
            "format by `Accept`; Pictor recompresses popular images. Bytes are the mean of a request; at equal SSIM "
            "along the curve of Pictor's encoder.",
        columns=["browser takes", "server", "SSIM", "bytes", "bytes at equal SSIM"], rows=rows, marks=marks)

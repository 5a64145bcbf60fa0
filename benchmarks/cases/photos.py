"""Misses of photographs beside imgproxy and thumbor, at the sizes and formats that pages use."""

from itertools import cycle

from kit import client, http, images, load
from kit.processes import wait_until
from kit.report import Claim, Mark
from kit.servers import IMGPROXY, LOCAL_ORIGIN, ORIGIN, PICTOR, THUMBOR, Bench

from .trace import is_idle
from .misses import distinct, likeness, requests_in

#: Each server's own choice of format.
AUTO = "auto"
#: Source, width and format of the result, and what Pictor's requests per second are to be of the best of the others'.
KINDS = [
    ("800.jpg", 300, "jpeg", 1.5), ("2400.jpg", 300, "jpeg", 1.5), ("2400.jpg", 800, "jpeg", 1.25),
    ("2400.jpg", 1600, "jpeg", 1.25), ("progressive.jpg", 800, "jpeg", 1.25), ("1800.webp", 300, "jpeg", 1.25),
    ("1800.webp", 800, "jpeg", 1.25), ("1800.avif", 800, "jpeg", 1.25), ("2400.jpg", 800, "webp", 1.25),
    ("2400.jpg", 800, "avif", 2.0),
]
#: The same of sources that pages have less often. Servers that do not know a format are left out.
OTHER_KINDS = [
    ("alpha.png", 300, "png", 1.25), ("palette.png", 300, "png", 1.25), ("deep.png", 300, "jpeg", 1.25),
    ("1800.heic", 300, "jpeg", 1.25), ("1800.avif", 300, "jpeg", 1.25), ("800.jpg", 300, "webp", 1.25),
    ("800.jpg", 300, "avif", 2.0), ("800.jpg", 300, "jxl", 1.25),
]
#: What a browser takes, which chooses the format itself.
BROWSER_KINDS = [("800.jpg", 300, AUTO, 1.25), ("2400.jpg", 300, AUTO, 1.25), ("2400.jpg", 800, AUTO, 1.25)]
BROWSER = "image/avif,image/webp,image/apng,image/svg+xml,image/*,*/*;q=0.8"
#: No worse likeness than this less than the best other's.
SEEN = 0.003


def places(source: str, width: int, format_: str) -> dict[str, tuple[int, str, str]]:
    """Where each server has a photo: port, and the path in two parts with room for what makes it another one."""
    at = f"127.0.0.1:{ORIGIN}"
    own, filters = ("", "") if format_ == AUTO else (f"/f:{format_}", f"/filters:format({format_})")
    return {
        "Pictor": (PICTOR, http.image(f"{LOCAL_ORIGIN}/{source}?"), f"&w={width}&format={format_}"),
        "imgproxy": (IMGPROXY, f"/insecure/rs:fit:{width}{own}/plain/http://{at}/{source}%3F", ""),
        "thumbor": (THUMBOR, f"/unsafe/{width}x0{filters}/http%3A%2F%2F{at}%2F{source}%3F", ""),
    }


def paths(name: str, kind: tuple[str, int, str], count: int) -> list[str]:
    """So many requests for the photos in turn, each for a source that was never asked for."""
    source, width, format_ = kind
    lists = []
    for photo in range(images.PHOTOS):
        _, prefix, suffix = places(f"photo{photo}-{source}", width, format_)[name]
        lists.append(distinct(prefix, suffix, count))
    return [lists[photo][number] for number, photo in zip(range(count), cycle(range(images.PHOTOS)))]


def looks(name: str, kind: tuple[str, int, str], port: int, folder, accept: str | None) -> tuple[float, float, str] | None:
    """The mean likeness and bytes over the photos, and the format; None where the server cannot."""
    values, format_ = [], kind[2]
    for photo, path in zip(range(images.PHOTOS), paths(name, kind, images.PHOTOS)):
        status, fields, body = http.get(port, path, timeout=120, accept=accept)
        # thumbor answers formats that it does not know with a JPEG.
        found = fields.get("content-type", "").split(";")[0].removeprefix("image/")
        if status != 200 or kind[2] not in (found, AUTO):
            return None
        format_ = found
        values.append((likeness(body, (folder / f"photo{photo}-{kind[0]}").read_bytes()), len(body)))
    return *(sum(column) / len(values) for column in zip(*values)), format_


def run(bench: Bench) -> Claim:
    images.make_photos(bench.images)
    return measure(bench, "photos", "Photographs, beside imgproxy and thumbor", KINDS)


def run_others(bench: Bench) -> Claim:
    images.make_photos(bench.images)
    images.make_other_photos(bench.images)
    return measure(bench, "sources", "Other sources and results, beside imgproxy and thumbor", OTHER_KINDS)


def run_browser(bench: Bench) -> Claim:
    images.make_photos(bench.images)
    return measure(bench, "browser", "What a browser is sent, beside imgproxy and thumbor", BROWSER_KINDS, BROWSER)


def measure(bench: Bench, claim: str, title: str, kinds, accept: str | None = None) -> Claim:
    """With `accept`, peers choose the format by it, too."""
    imgproxy, thumbor = ({"IMGPROXY_AUTO_WEBP": "true", "IMGPROXY_AUTO_AVIF": "true"},
                         {"AUTO_WEBP": "True", "AUTO_AVIF": "True"}) if accept else ({}, {})
    origin = bench.nginx("origin", ORIGIN, "/photo0-800.jpg")
    ports = {"Pictor": PICTOR, "imgproxy": IMGPROXY, "thumbor": THUMBOR}
    servers = {
        "Pictor": bench.pictor("--download.limit_per_host", 64),
        "thumbor": bench.thumbor(places("photo0-800.jpg", 300, "jpeg")["thumbor"][1] + "0", **thumbor),
    }
    if bench.imgproxy_program():
        servers["imgproxy"] = bench.imgproxy(places("photo0-800.jpg", 300, "jpeg")["imgproxy"][1] + "0", **imgproxy)
    else:
        print("bench: imgproxy is missing (IMGPROXY names it), so it is left out", flush=True)

    def rest(name):
        if name == "Pictor" and accept:
            wait_until(is_idle, "Pictor to have made its AVIFs", patience=300)

    rows, marks, bars = [], [], {}
    for *kind, bound in kinds:
        seen = {}
        for name in servers:
            seen[name] = looks(name, kind, ports[name], bench.images, accept)
            rest(name)
        able = [name for name in ports if seen.get(name)]
        plans = {}
        for name in able:
            _, prefix, suffix = places(f"photo0-{kind[0]}", kind[1], kind[2])[name]
            plans[name] = requests_in(bench.seconds, ports[name], prefix, suffix, accept)
            rest(name)

        def ask(name):
            count, connections = plans[name]

            def run():
                measured = client.fetch(
                    ports[name], paths(name, kind, count), connections, servers[name], accept=accept)
                rest(name)
                return measured
            return run

        measured = load.in_turn(bench.rounds, {name: ask(name) for name in able})
        label = f"{kind[0]} → {kind[1]} px {kind[2]}"
        for name in able:
            it, (likeness_, size, format_) = measured[name], seen[name]
            rows.append([label, name, f"{it.rate:,.1f}", f"{it.cpu * 1e3:.1f}", f"{likeness_:.3f}", f"{size:,.0f}",
                         *([format_] if accept else [])])
        others = [name for name in able if name != "Pictor"]
        if others:
            marks += [
                Mark(f"{label}: requests/s, of the best other's",
                     measured["Pictor"].rate / max(measured[name].rate for name in others), bound),
                Mark(f"{label}: SSIM, less the best other's",
                     seen["Pictor"][0] - max(seen[name][0] for name in others), -SEEN),
                Mark(f"{label}: bytes, of the fewest", seen["Pictor"][1] / min(seen[name][1] for name in others), 1.0,
                     at_most=True),
            ]
        bars[label] = {name: measured[name].rate for name in able}
    for server in [*servers.values(), origin]:
        server.stop()
    return Claim(
        name=claim, title=title,
        how=f"{images.PHOTOS} photographs of Debian's mate-backgrounds; in turn, medians; SSIM and bytes are means."
            + (" All servers choose the format by `Accept`; CPU includes AVIFs that Pictor makes later." if accept else ""),
        columns=["kind", "server", "requests/s", "CPU ms", "SSIM", "bytes", *(["format"] if accept else [])], rows=rows,
        marks=marks, bars=bars, unit="requests/s")

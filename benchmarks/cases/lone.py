"""One miss at a time beside imgproxy and thumbor: how long a client waits while nothing else happens."""

from statistics import median, quantiles

from kit import images
from kit.fleet import Line
from kit.report import Claim, Mark
from kit.servers import IMGPROXY, ORIGIN, PICTOR, THUMBOR, Bench

from .photos import places

#: Source, width and format of the result, and the most that Pictor's time is to be of imgproxy's.
KINDS = [("800.jpg", 300, "jpeg", 0.7), ("2400.jpg", 300, "jpeg", 0.7), ("2400.jpg", 800, "jpeg", 0.7),
         ("1800.webp", 300, "jpeg", 1.0), ("800.jpg", 300, "avif", 1.0)]
#: Misses of each kind and server, and those before that are not counted.
ASKED, WARM = 200, 10


def run(bench: Bench) -> Claim:
    images.make_photos(bench.images)
    origin = bench.nginx("origin", ORIGIN, "/photo0-800.jpg")
    first = places("photo0-800.jpg", 300, "jpeg")
    servers = {"Pictor": bench.pictor(), "thumbor": bench.thumbor(first["thumbor"][1] + "0")}
    if bench.imgproxy_program():
        servers["imgproxy"] = bench.imgproxy(first["imgproxy"][1] + "0")
    else:
        print("bench: imgproxy is missing (IMGPROXY names it), so it is left out", flush=True)
    ports = {"Pictor": PICTOR, "imgproxy": IMGPROXY, "thumbor": THUMBOR}
    names = [name for name in ports if name in servers]
    lines = {name: Line(ports[name]) for name in names}
    rows, marks = [], []
    for source, width, format_, bound in KINDS:
        times = {name: [] for name in names}
        for number in range(WARM + ASKED):
            # Another one begins each time, so that none always follows the same.
            for name in names[number % len(names):] + names[:number % len(names)]:
                _, prefix, suffix = places(f"photo{number % images.PHOTOS}-{source}", width, format_)[name]
                elapsed = lines[name].ask(f"{prefix}lone{width}{format_}{number}{suffix}")
                if number >= WARM:
                    times[name].append(elapsed * 1e3)
        label = f"{source} → {width} px {format_}"
        shares = {name: (median(all_), quantiles(all_, n=100, method="inclusive")[98]) for name, all_ in times.items()}
        for name in names:
            rows.append([label, name, f"{shares[name][0]:.1f}", f"{shares[name][1]:.1f}"])
        if "imgproxy" in shares:
            for place, what in enumerate(("p50", "p99")):
                marks.append(Mark(f"{label}: {what}, of imgproxy's", shares["Pictor"][place] / shares["imgproxy"][place],
                                  bound, at_most=True))
    for server in [*servers.values(), origin]:
        server.stop()
    return Claim(
        name="lone", title="One miss at a time",
        how=f"{images.PHOTOS} photographs in turn, {ASKED} misses of each kind over a kept connection, one request at a time, the "
            "servers in turn; client, origin and server on one machine.",
        columns=["kind", "server", "p50 ms", "p99 ms"], rows=rows, marks=marks)

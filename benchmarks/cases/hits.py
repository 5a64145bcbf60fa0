"""Memory hits beside nginx's proxy_cache, nginx's files, and a bare libmicrohttpd program, all sending the same."""

from kit import http, load
from kit.report import Claim, Mark
from kit.servers import CACHE, FILES, FLOOR, LOCAL_ORIGIN, ORIGIN, PICTOR, Bench

#: Bytes of the body, about.
WANTED = 18_000
#: Fields that the servers write themselves.
OWN_FIELDS = {"date", "content-length", "connection"}
SOURCE = f"{LOCAL_ORIGIN}/800x600.jpg"


def path_near(wanted: int, port: int = PICTOR, path=lambda width: http.image(SOURCE, w=width)) -> str:
    """The path of a variant of about so many bytes, of all `path` has by width."""
    paths = [path(width) for width in range(300, 800, 20)]
    return min(paths, key=lambda path: abs(len(http.get(port, path)[2]) - wanted))


def save_answer(bench: Bench, path: str):
    """What is sent for `path`: the file of its body and the file of its fields."""
    http.get(PICTOR, path)
    _, fields, body = http.get(PICTOR, path)
    (bench.images / "hit.jpg").write_bytes(body)
    head = bench.work / "hit.head"
    head.write_text("".join(f"{name}: {value}\n" for name, value in fields.items() if name not in OWN_FIELDS))
    return bench.images / "hit.jpg", head


def run(bench: Bench) -> Claim:
    origin = bench.nginx("origin", ORIGIN, "/800x600.jpg", cores="1")
    pictor = bench.pictor("--server.workers", 1, cores="0")
    path = path_near(WANTED)
    body, head = save_answer(bench, path)
    cache = bench.nginx("cache", CACHE, path, cores="0")
    files = bench.nginx("files", FILES, "/hit.jpg", cores="0")
    floor = bench.floor(body, head, cores="0")
    if http.get(CACHE, path)[2] != body.read_bytes() or http.get(FLOOR, "/")[2] != body.read_bytes():
        raise SystemExit("bench: the servers do not send the same bytes")

    def wrk(server, port, target):
        return lambda: load.run(f"http://127.0.0.1:{port}{target}", 64, bench.seconds, server, core="1")

    measured = load.in_turn(bench.rounds, {
        "Pictor": wrk(pictor, PICTOR, path),
        "nginx proxy_cache": wrk(cache, CACHE, path),
        "nginx, a file": wrk(files, FILES, "/hit.jpg"),
        "bare libmicrohttpd": wrk(floor, FLOOR, "/"),
    })
    for server in (floor, files, cache, pictor, origin):
        server.stop()
    mine, nginx, bare = (measured[name] for name in ("Pictor", "nginx proxy_cache", "bare libmicrohttpd"))
    return Claim(
        name="hits", title="Memory hits",
        how=f"{body.stat().st_size:,} bytes, 64 kept connections; the server on core 0, wrk on core 1; in turn, medians.",
        columns=["", "requests/s", "CPU µs a hit", "p99 ms"],
        rows=[[name, f"{it.rate:,.0f}", f"{it.cpu * 1e6:.2f}", f"{it.p99 * 1e3:.2f}"] for name, it in measured.items()],
        marks=[
            Mark("requests/s, of nginx proxy_cache's", mine.rate / nginx.rate, 1.2),
            Mark("CPU a hit, of nginx proxy_cache's", mine.cpu / nginx.cpu, 1.0, at_most=True),
            Mark("requests/s, of bare libmicrohttpd's", mine.rate / bare.rate, 0.95),
        ],
        bars={"requests/s": {name: it.rate for name, it in measured.items()},
              "CPU µs a hit": {name: it.cpu * 1e6 for name, it in measured.items()}},
        unit="one core")

"""What the layers of security cost a hit: signatures, limits per client, the pace of readers."""

import base64
import hashlib
import hmac
import time
from statistics import median
from urllib.parse import parse_qsl, quote

from kit import http, load
from kit.report import Claim
from kit.servers import LOCAL_ORIGIN, ORIGIN, PICTOR, Bench

KEY = "a-secret-of-the-benchmark-that-is-long-enough"
#: Four times as many targets as an event loop remembers, so that each is parsed, and its signature verified, again.
TARGETS = 4_096
SOURCE = "800x600.jpg"
SIGNING = ("--signing.keys", f"main:{KEY}", "--signing.mode")
FIELD = "X-Forwarded-For: 203.0.113.7\\r\\n"


def signed(path: str) -> str:
    """The path with its signature (docs/signing.md)."""
    place, query = path.split("?", 1)
    encoded = sorted(f"{quote(name, safe='-._~')}={quote(value, safe='-._~')}"
                     for name, value in parse_qsl(query, keep_blank_values=True))
    text = f"{place}?{'&'.join(encoded)}"
    digest = hmac.new(KEY.encode(), text.encode(), hashlib.sha256).digest()
    return f"{path}&sig=main.{base64.urlsafe_b64encode(digest).decode().rstrip('=')}"


def script(bench: Bench, name: str, paths: list[str], fields: str = ""):
    """A script for wrk that asks for the paths in turn."""
    file = bench.work / f"{name}.lua"
    requests = ",\n".join(f'"GET {path} HTTP/1.1\\r\\nHost: bench\\r\\n{fields}\\r\\n"' for path in paths)
    file.write_text(f"local all, at = {{\n{requests}\n}}, 0\n"
                    "function request() at = at % #all + 1 return all[at] end\n")
    return file


def run(bench: Bench) -> Claim:
    origin = bench.nginx("origin", ORIGIN, f"/{SOURCE}")
    image = http.image(f"{LOCAL_ORIGIN}/{SOURCE}", w=300)
    later = int(time.time()) + 86_400
    many = [signed(f"{image}&exp={later + number}") for number in range(TARGETS)]
    one, all_ = script(bench, "one", many[:1]), script(bench, "many", many)
    named = script(bench, "named", many[:1], FIELD)
    proxies = ("--server.trusted_proxies", "127.0.0.0/8")
    # Options of the server, and the requests: each pair differs in one layer.
    kinds = {
        "one URL": (("--signing.mode", "off", "--server.minimum_rate", 0), one),
        "one URL, signed": ((*SIGNING, "required", "--server.minimum_rate", 0), one),
        f"{TARGETS:,} URLs": (("--signing.mode", "off", "--server.minimum_rate", 0), all_),
        f"{TARGETS:,} URLs, signed": ((*SIGNING, "required", "--server.minimum_rate", 0), all_),
        "one URL, pace of readers": (("--signing.mode", "off"), one),
        "one URL, client named by a proxy": ((*proxies, "--server.minimum_rate", 0), named),
        "one URL, client named, requests counted": (
            (*proxies, "--server.minimum_rate", 0, "--server.requests_per_second", 1_000_000), named),
    }
    costs = {name: [] for name in kinds}
    for _ in range(bench.rounds):
        for name, (options, requests) in kinds.items():
            server = bench.pictor("--server.workers", 1, *options)
            http.get(PICTOR, many[0])
            url = f"http://127.0.0.1:{PICTOR}"
            load.run(url, 1, 1, server, script=requests)
            costs[name].append(load.run(url, 1, bench.seconds, server, script=requests).cpu * 1e6)
            server.stop()
    origin.stop()
    return Claim(
        name="layers", title="What layers of security cost a hit",
        how=f"Processor time of a hit, one connection, all threads of the server; started anew for each of {bench.rounds} "
            "rounds, in turn; medians.",
        columns=["", "CPU µs a hit", "of all rounds"],
        rows=[[name, f"{median(values):.2f}", " · ".join(f"{value:.1f}" for value in values)]
              for name, values in costs.items()])

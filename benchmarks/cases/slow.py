"""Two thousand clients that read slowly: what they cost, and what the others notice."""

import resource
import selectors

from kit import http, load
from kit.processes import wait_until
from kit.report import Claim, Mark
from kit.servers import LOCAL_ORIGIN, ORIGIN, PICTOR, Bench

from .hits import WANTED, path_near

CLIENTS = 2_000


def run(bench: Bench) -> Claim:
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 65_536), hard))
    origin = bench.nginx("origin", ORIGIN, "/800x600.jpg")
    pictor = bench.pictor("--server.connections", 4_096, "--server.answer_timeout", "10m", "--imaging.workers", 1)
    path = path_near(WANTED)
    large = http.image(f"{LOCAL_ORIGIN}/3000x2000.jpg")
    size = len(http.get(PICTOR, large)[2])
    url = f"http://127.0.0.1:{PICTOR}{path}"
    alone = load.run(url, 4, bench.seconds, pictor)
    before = pictor.memory()

    clients = []
    for _ in range(CLIENTS):
        client = http.connect(PICTOR, receive_buffer=4_096)
        client.sendall(http.request_bytes(large))
        clients.append(client)
    wait_until(lambda: http.stats(PICTOR)["requests"]["connections"] >= CLIENTS, f"{CLIENTS} connections")
    for client in clients:
        client.recv(1)
    during = pictor.memory()
    beside = load.run(url, 4, bench.seconds, pictor)
    for client in clients:
        client.recv(1)
    whole = read_all(clients, size)
    for client in clients:
        client.close()
    wait_until(lambda: http.stats(PICTOR)["requests"]["connections"] < 10, "the clients to be gone")
    after = pictor.memory()
    pictor.stop()
    origin.stop()
    mebibytes = lambda count: f"{count / 2**20:.1f}"
    return Claim(
        name="slow", title=f"{CLIENTS:,} slow clients",
        how=f"{CLIENTS:,} clients ask for an image of {size:,} bytes, read a byte and wait, while others hit on 4 connections; "
            "in the end they read the rest.",
        columns=["", "memory MiB", "hits/s for the others", "p99 ms"],
        rows=[["before", mebibytes(before), f"{alone.rate:,.0f}", f"{alone.p99 * 1e3:.2f}"],
              ["while they wait", mebibytes(during), f"{beside.rate:,.0f}", f"{beside.p99 * 1e3:.2f}"],
              ["after", mebibytes(after), "", ""]],
        marks=[
            Mark("clients that got all of it, of all", whole / CLIENTS, 1.0),
            Mark("memory a slow client, KiB", (during - before) / CLIENTS / 1024, 48, at_most=True),
            Mark("hits/s beside them, of those before", beside.rate / alone.rate, 0.8),
        ])


def read_all(clients, size: int) -> int:
    """Reads what is left for each; how many got a whole answer."""
    left = dict.fromkeys(clients, size)
    selector = selectors.DefaultSelector()
    for client in clients:
        client.setblocking(False)
        selector.register(client, selectors.EVENT_READ)
    whole = 0
    while selector.get_map():
        ready = selector.select(timeout=30)
        if not ready:
            break
        for key, _ in ready:
            data = key.fileobj.recv(1 << 20)
            left[key.fileobj] -= len(data)
            # The head came first, and two bytes of it were read before.
            if not data or left[key.fileobj] <= 0:
                whole += bool(data)
                selector.unregister(key.fileobj)
    return whole

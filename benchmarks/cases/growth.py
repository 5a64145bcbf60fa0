"""Growth: memory hits by the number of connections and of cores, and what a connection costs."""

import os
import resource
import shutil
import time

from kit import http, load
from kit.report import Claim
from kit.servers import PICTOR, ROOT, Bench

CONNECTIONS = (1, 10, 100, 1_000, 10_000)
#: Descriptors that the server needs beside two for each connection (docs/configuration.md).
RESERVE = 512
#: Connections of the benchmark itself.
SPARE = 64


def raise_limit() -> int:
    """Raises the limit of open files as far as it may; returns how many connections it lets a server have."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return CONNECTIONS[-1] if hard == resource.RLIM_INFINITY else min(CONNECTIONS[-1], (hard - RESERVE) // 2 - SPARE)


def measure(bench: Bench, server, path: str, connections: int):
    """One load: the measurement, and the server's memory in bytes while all are connected."""
    before = server.cpu()
    wrk = load.start(f"http://127.0.0.1:{PICTOR}{path}", connections, bench.seconds)
    time.sleep(bench.seconds * 0.7)
    memory = server.memory()
    measured = load.finish(wrk)
    measured.cpu = (server.cpu() - before) / measured.requests
    return measured, memory


def run(bench: Bench) -> Claim:
    most = raise_limit()
    shutil.copy(ROOT / "samples" / "hills.jpg", bench.images)
    path = http.image("local:///hills.jpg", w=300)
    rows = []
    for cores in range(1, os.cpu_count() + 1):
        server = bench.pictor(
            "--server.workers", cores, "--server.connections", most + SPARE, cores=f"0-{cores - 1}")
        http.get(PICTOR, path)
        label = f"{cores} core{'s' if cores > 1 else ''}"
        first = None
        for connections in sorted({min(count, most) for count in CONNECTIONS}):
            measured, memory = measure(bench, server, path, connections)
            first = first or memory
            each = (memory - first) / connections if connections >= 100 else None
            rows.append([
                label, f"{connections:,}", f"{measured.rate:,.0f}", f"{measured.cpu * 1e6:.1f}", f"{measured.p99 * 1e3:.1f}",
                f"{memory / 1e6:.0f}", "–" if each is None else f"{each / 1e3:.1f}"])
        server.stop()
    return Claim(
        name="growth", title="Memory hits by connections and cores",
        how=f"One variant of 300 px; the server on so many cores with as many event loops; wrk with one thread, on any core; "
            f"{bench.seconds:g} s each. Memory is the server's and its workers' (Pss) while all are connected; a connection's is "
            "what is more than with one, without the kernel's buffers.",
        columns=["server on", "connections", "requests/s", "CPU µs a hit", "p99 ms", "memory MB", "KB a connection"],
        rows=rows)

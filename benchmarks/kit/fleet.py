"""A fleet for the benchmarks: real Pictors, Redis, an origin that counts, and the proxies of config/ in front."""

import asyncio
import random
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections import Counter

from . import http
from .processes import Failure, output_of
from .servers import ROOT, Bench

sys.path.append(str(ROOT / "scripts"))

from deployments.proxies import HAProxy, Nginx  # noqa: E402
from fleet.processes import Machine, Origin, Redis  # noqa: E402

LENGTH = re.compile(rb"\r\nContent-Length: (\d+)\r\n", re.I)
#: All clients come from one address here. Popular images would be encoded twice on each machine.
SETTINGS = ["--server.shutdown_delay", "4s", "--server.active_requests_per_client", "0",
            "--server.imaging_time_per_client", "0", "--imaging.recompress_after", "0"]


class BareNginx(Nginx):
    """config/nginx-fleet.conf without its cache, so that each request reaches a Pictor."""

    def adapted(self, text):
        text = super().adapted(text).replace("proxy_cache pictor;", "proxy_cache off;")
        path = self.folder / "nginx.conf"
        path.write_text(path.read_text().replace("events {}", "events { worker_connections 4096; }"))
        return text


class Fleet:
    """Three Pictors, and what stands behind and in front of them. A `with` ends them."""

    def __init__(self, bench: Bench, name: str, options, proxy=None, has_redis=True, count=3, own=()):
        """`own` has further options of single machines."""
        self.folder = bench.work / f"fleet-{name}"
        self.folder.mkdir()
        source = bench.work / "fleet.jpg"
        if not source.exists():
            output_of("vips", "thumbnail", ROOT / "samples" / "hills.jpg", f"{source}[Q=85]", 800, "--height", 600,
                      "--size", "force")
        self.origin = Origin(bodies={"a.jpg": source.read_bytes()})
        self.redis, self.machines, self.proxy, self.ended = None, [], None, 0
        try:
            self.redis = Redis(self.folder) if has_redis else None
            shared = ["--fleet.redis", self.redis.address] if has_redis else []
            for number in range(count):
                more = own[number] if number < len(own) else []
                self.machines.append(Machine(bench.build / "pictor", self.folder, f"machine{number}",
                                             [*SETTINGS, *(shared if "alone" not in more else []), *options,
                                              *(option for option in more if option != "alone")]))
            self.proxy = proxy(self.folder, self.machines) if proxy else None
        except BaseException:
            self.__exit__()
            raise

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.proxy:
            self.proxy.stop()
        for machine in self.machines:
            machine.process.kill()
            machine.process.wait()
        if self.redis:
            self.redis.kill()
        self.origin.server.shutdown()

    def path(self, number, **parameters) -> str:
        return http.image(self.origin.url(f"a.jpg?{number}"), **(parameters or {"w": 300, "format": "jpeg"}))

    def renders(self) -> int:
        """Of all machines, those that ended included."""
        return self.ended + sum(machine.stats()["imaging"]["succeeded"] for machine in self.machines if machine.is_up)

    def served(self) -> list[int]:
        """Requests for images that each machine has answered."""
        return [sum(sum(tiers.values()) for tiers in machine.stats()["requests"]["by_outcome"].values())
                for machine in self.machines]

    def start(self, number: int, empty: bool = False) -> None:
        """Starts a machine that has ended; `empty`: without its disk, as a new one."""
        if empty:
            shutil.rmtree(self.machines[number].folder / self.machines[number].name)
        self.machines[number].start()

    def end(self, number: int, with_signal: signal.Signals) -> None:
        """Ends a machine. Work that begins in its last moments is not counted."""
        machine = self.machines[number]
        self.ended += machine.stats()["imaging"]["succeeded"]
        machine.end(with_signal)

    def ports(self) -> list[int]:
        return [self.proxy.port] if self.proxy else [machine.port for machine in self.machines if machine.is_up]


class Clients:
    """Clients that ask over kept connections, each for a list of paths, and what they got."""

    def __init__(self, ports, lists, is_repeated=False):
        """Round robin over the ports: a client asks the next one if one is gone, as a load balancer does."""
        self.ports, self.lists, self.is_repeated = ports, lists, is_repeated
        self.count, self.failures, self.is_over = 0, Counter(), False

    async def one(self, place: int, paths) -> None:
        open_ = {}
        while not self.is_over:
            for path in paths:
                ports = self.ports()
                place += 1
                result = None
                for attempt in range(len(ports)):
                    port = ports[(place + attempt) % len(ports)]
                    try:
                        result = await asyncio.wait_for(self.ask(open_, port, path), 40)
                        break
                    except (OSError, asyncio.IncompleteReadError, asyncio.TimeoutError, ValueError) as error:
                        if port in open_:
                            open_.pop(port)[1].close()
                        result = repr(error)
                self.count += 1
                if result != 200:
                    self.failures[result] += 1
                if self.is_over:
                    break
            if not self.is_repeated:
                break
        for _, out in open_.values():
            out.close()

    async def ask(self, open_, port, path) -> int:
        is_kept = port in open_
        try:
            return await self.exchange(open_, port, path)
        except (OSError, asyncio.IncompleteReadError):
            # A kept connection may end before the request arrives (RFC 9112, 9.3.1): once more on a new one.
            if not is_kept:
                raise
            open_.pop(port)[1].close()
            return await self.exchange(open_, port, path)

    async def exchange(self, open_, port, path) -> int:
        if port not in open_:
            open_[port] = await asyncio.open_connection("127.0.0.1", port, limit=1 << 20)
        source, out = open_[port]
        out.write(http.request_bytes(path))
        head = await source.readuntil(b"\r\n\r\n")
        await source.readexactly(int(LENGTH.search(head)[1]))
        if b"\r\nconnection: close" in head.lower():
            open_.pop(port)[1].close()
        return int(head[9:12])

    async def run(self, meanwhile=None):
        tasks = [asyncio.create_task(self.one(place, paths)) for place, paths in enumerate(self.lists)]
        if meanwhile:
            try:
                await asyncio.to_thread(meanwhile)
            finally:
                self.is_over = True
        await asyncio.gather(*tasks)

    def ask_all(self, meanwhile=None) -> "Clients":
        """Asks for all of them, or, while `meanwhile` runs, again and again."""
        asyncio.run(self.run(meanwhile))
        return self


def shuffled(paths, count, seed=17):
    """A list for each of so many clients, each in its own order."""
    return [random.Random(f"{seed} {number}").sample(paths, len(paths)) for number in range(count)]


class Line:
    """One kept connection, for latencies: with as little of Python as possible."""

    def __init__(self, port: int):
        self.port = port
        self.socket = http.connect(port)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.socket.settimeout(20)

    def ask(self, path: str, wanted: str = "", status: int = 200) -> float:
        """Seconds until the whole answer is there, which must have `wanted` in its Cache-Status."""
        begin = time.perf_counter()
        found, head = self.exchange(path)
        elapsed = time.perf_counter() - begin
        if found != status or wanted not in head:
            raise Failure(f"{path}: not {status} and {wanted}: {head}")
        return elapsed

    def exchange(self, path: str) -> tuple[int, str]:
        self.socket.sendall(http.request_bytes(path))
        data = b""
        while (end := data.find(b"\r\n\r\n")) < 0:
            data += self.receive()
        head = data[:end + 2]
        missing = end + 4 + int(LENGTH.search(head)[1]) - len(data)
        while missing > 0:
            missing -= len(self.receive())
        return int(head[9:12]), head.decode("latin-1")

    def receive(self) -> bytes:
        data = self.socket.recv(1 << 18)
        if not data:
            raise Failure("a connection was closed in the middle of an answer")
        return data


def pin(machine, core: str) -> None:
    """Keeps a machine and all its threads on a core."""
    subprocess.run(["taskset", "-acp", core, str(machine.process.pid)], check=True, capture_output=True)


__all__ = ["BareNginx", "Clients", "Fleet", "HAProxy", "Line", "pin", "shuffled"]

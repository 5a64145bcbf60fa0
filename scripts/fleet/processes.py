"""The processes of a fleet: Redis, Pictors that share it, and an origin whose images tell their version."""

import http.client
import json
import shutil
import signal
import socket
import struct
import subprocess
import threading
import time
import zlib
from collections import Counter

from deployments.machines import Pictor
from support import Handler, Listener, ask, await_that, free_ports, png

SIDE = 64


def flat(image, version):
    """A PNG of one colour: red is the image, from 128 on; green and blue are the version."""
    return png(SIDE, SIDE, [bytes([128 + image, version >> 8, version & 255]) * SIDE] * SIDE)


def read_flat(body):
    """(image, version) of a PNG of one colour: its first pixel, whose predictors are all zero."""
    if body[:8] != b"\x89PNG\r\n\x1a\n":
        raise ValueError(f"no PNG: {body[:60]!r}")
    at, parts = 8, {}
    while at < len(body):
        length, kind = struct.unpack(">I4s", body[at:at + 8])
        parts[kind] = parts.get(kind, b"") + body[at + 8:at + 8 + length]
        at += 12 + length
    depth, colour = parts[b"IHDR"][8:10]
    pixel = zlib.decompress(parts[b"IDAT"])[1:7]
    if colour == 3:
        index = pixel[0] >> (8 - depth)
        pixel = parts[b"PLTE"][3 * index:3 * index + 3]
    elif colour in (0, 4):
        pixel = pixel[:1] * 3
    red, green, blue = pixel[:3]
    return red - 128, green << 8 | blue


class Origin:
    """Serves /NUMBER.png in its version of now, after a pause by chance, and counts requests by path."""

    def __init__(self, images=0, bodies=None, pause=lambda: 0.0):
        origin = self
        self.versions, self.requests, self.lock = [1] * images, Counter(), threading.Lock()
        bodies = bodies or {}

        class Images(Handler):
            def do_GET(self):
                with origin.lock:
                    origin.requests[self.path] += 1
                name = self.path.partition("?")[0].strip("/")
                image = int(name.partition(".")[0]) if name not in bodies else None
                body = bodies[name] if name in bodies else flat(image, origin.versions[image])
                time.sleep(pause())
                self.answer(200, body, Cache_Control="max-age=86400", Connection="close")

        self.server = Listener(Images)

    def url(self, name):
        return f"{self.server.base}/{name}"

    def count(self):
        with self.lock:
            return self.requests.total()


class Redis:
    """A redis-server whose data can be kept, lost, or lost in part."""

    def __init__(self, folder):
        self.folder, self.port = folder / "redis", free_ports(1)[0]
        self.folder.mkdir()
        self.log = folder / "redis.log"
        self.start()

    @property
    def address(self):
        return f"redis://127.0.0.1:{self.port}"

    def start(self):
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(
                ["redis-server", "--port", str(self.port), "--bind", "127.0.0.1", "--dir", str(self.folder), "--save", "",
                 "--appendonly", "yes", "--appendfsync", "everysec", "--maxmemory", "256mb", "--maxmemory-policy",
                 "volatile-lfu", "--tcp-backlog", "128"], stdout=log, stderr=log)
        await_that(f"Redis answers: {self.log}", self.answers)

    def answers(self):
        if self.process.poll() is not None:
            raise RuntimeError(f"redis-server ended: {self.log.read_text()[-500:]}")
        try:
            with socket.create_connection(("127.0.0.1", self.port), timeout=2) as one:
                one.sendall(b"PING\r\n")
                return one.recv(16).startswith(b"+PONG")
        except OSError:
            return False

    def kill(self):
        self.process.kill()
        self.process.wait()

    @property
    def data(self):
        return self.folder / "appendonlydir"

    def wipe(self):
        shutil.rmtree(self.data, ignore_errors=True)

    def keep_copy(self):
        """Notes what a file system would have after a power failure: the data of now. It is append-only."""
        shutil.rmtree(self.folder / "copy", ignore_errors=True)
        try:
            shutil.copytree(self.data, self.folder / "copy")
        except (OSError, shutil.Error):
            return False  # rewritten meanwhile
        return True

    def restore_copy(self):
        self.wipe()
        shutil.copytree(self.folder / "copy", self.data)


class Machine(Pictor):
    """A Pictor of the fleet. `term` changes before and after each moment in which it may cut connections."""

    logged = "errors"

    def __init__(self, program, folder, name, settings):
        self.term, self.is_up, self.is_stopped = 0, False, False
        super().__init__(program, folder, name, settings)

    def start(self):
        super().start()
        self.term, self.is_up = self.term + 1, True

    def end(self, with_signal):
        """Ends it by SIGKILL or SIGTERM, with its workers."""
        self.term, self.is_up, self.is_stopped = self.term + 1, False, False
        self.process.send_signal(with_signal)
        self.process.wait(timeout=40)

    def pause(self):
        self.is_stopped = True
        self.process.send_signal(signal.SIGSTOP)

    def resume(self):
        self.process.send_signal(signal.SIGCONT)
        self.is_stopped = False

    def get(self, path, timeout=20):
        """(status, Cache-Status, body)."""
        answer = ask(self.port, path, timeout=timeout)
        return answer.status, answer.headers.get("Cache-Status", ""), answer.body

    def fleet(self):
        """The fleet's figures at /stats."""
        return self.stats()["fleet"]

    def is_caught_up(self, since):
        """Whether it has read the purge stream to its end after `since`, and no purge of it waits."""
        try:
            asked = time.monotonic()
            figures = self.fleet()
        except (OSError, http.client.HTTPException, json.JSONDecodeError):
            return False
        age = figures["position_age_seconds"]
        return figures["connected"] and figures["purges_waiting"] == 0 and 0 <= age < asked - since

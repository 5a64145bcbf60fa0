"""The processes of a fleet: Redis, Pictors that share it, and an origin whose images tell their version."""

import http.client
import http.server
import json
import shutil
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
import urllib.parse
import zlib
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "deployments"))

from machines import TOKEN, Pictor, await_that, free_ports, target  # noqa: E402, F401

SIDE = 64


def chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def flat(image, version, side=SIDE):
    """A PNG of one colour: red is the image, from 128 on; green and blue are the version."""
    row = b"\0" + bytes([128 + image, version >> 8, version & 255]) * side
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", side, side, 8, 2, 0, 0, 0))
            + chunk(b"IDAT", zlib.compress(row * side)) + chunk(b"IEND", b""))


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
        self.versions, self.bodies, self.pause = [1] * images, bodies or {}, pause
        self.requests, self.lock = Counter(), threading.Lock()

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                with origin.lock:
                    origin.requests[self.path] += 1
                body = origin.body(self.path)
                time.sleep(origin.pause())
                head = (f"HTTP/1.1 200 OK\r\nContent-Length: {len(body)}\r\nCache-Control: max-age=86400\r\n"
                        "Connection: close\r\n\r\n")
                try:
                    self.wfile.write(head.encode() + body)
                except OSError:
                    pass  # Pictor was killed

            def log_message(self, *_):
                pass

        class Server(http.server.ThreadingHTTPServer):
            request_queue_size = 512
            daemon_threads = True

            def handle_error(self, *_):
                pass  # a client that was killed

        self.server = Server(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def body(self, path):
        name = path.partition("?")[0].strip("/")
        if name in self.bodies:
            return self.bodies[name]
        image = int(name.partition(".")[0])
        return flat(image, self.versions[image])

    def url(self, name):
        return f"http://127.0.0.1:{self.server.server_port}/{name}"

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

    def get(self, path, method="GET", timeout=20):
        """(status, Cache-Status, body)."""
        port, headers = self.port, {}
        if path.startswith("/admin/"):
            port, headers = self.operator_port, {"Authorization": f"Bearer {TOKEN}"}
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=timeout)
        try:
            connection.request(method, path, headers=headers)
            response = connection.getresponse()
            return response.status, response.headers.get("Cache-Status", ""), response.read()
        finally:
            connection.close()

    def purge_url(self, url):
        return self.get("/admin/cache?url=" + urllib.parse.quote(url, safe=""), "DELETE")[0]

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

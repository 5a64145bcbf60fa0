"""What stands behind the proxies of check-deployments: an origin and Pictors; and the client that asks them."""

import http.client
import http.server
import json
import os
import re
import socket
import struct
import subprocess
import threading
import time
import urllib.parse
import zlib
from collections import Counter
from pathlib import Path

TOKEN = "a-token-for-the-deployments"
SECRET = "a-secret-of-the-deployments-0123456789"
CHROME = "image/avif,image/webp,image/apng,image/svg+xml,image/*,*/*;q=0.8"


def free_ports(number):
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(number)]
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports


def await_that(what, condition, seconds=20):
    """Waits until the condition holds, and returns its value."""
    end = time.monotonic() + seconds
    while not (value := condition()):
        if time.monotonic() > end:
            raise TimeoutError(f"not within {seconds} s: {what}")
        time.sleep(0.05)
    return value


def drawing(number):
    """A PNG of 96×64 pixels, which differs with the number."""
    rows = b"".join(b"\0" + bytes(part for x in range(96) for part in (x * 2, y * 3, number % 256))
                    for y in range(64))

    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", 96, 64, 8, 2, 0, 0, 0))
            + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))


class Origin:
    """Serves a drawing at each path /NUMBER.png, counts its requests, and can change what it serves."""

    def __init__(self):
        origin = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                origin.requests[self.path] += 1
                body = drawing(int(re.sub(r"\D", "", self.path) or 0) + origin.edition)
                self.send_response(200)
                self.send_header("Content-Length", str(len(body)))
                self.send_header("Cache-Control", "max-age=3600")
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_):
                pass

        self.requests = Counter()
        self.edition = 0
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def url(self, name):
        return f"http://127.0.0.1:{self.server.server_port}/{name}.png"


def target(url, **parameters):
    """The path and query for an image."""
    return "/image?" + urllib.parse.urlencode({"url": url, **parameters}, quote_via=urllib.parse.quote, safe="")


class Answer:
    def __init__(self, status, headers, body):
        self.status, self.headers, self.body = status, headers, body

    @property
    def type(self):
        return self.headers.get("Content-Type")

    @property
    def caches(self):
        """The members of Cache-Status: the cache nearest to the client is the last one."""
        return ", ".join(self.headers.get_all("Cache-Status") or []).split(", ")


def connect(port, client=None, tls=None):
    """A connection, from the address `client` and with the context `tls` if they are given."""
    options = {"timeout": 40, "source_address": (client, 0) if client else None}
    if tls:
        return http.client.HTTPSConnection("localhost", port, context=tls, **options)
    return http.client.HTTPConnection("127.0.0.1", port, **options)


def ask(port, path, method="GET", client=None, tls=None, **headers):
    connection = connect(port, client, tls)
    try:
        connection.request(method, path, headers={name.replace("_", "-"): value for name, value in headers.items()})
        response = connection.getresponse()
        return Answer(response.status, response.headers, response.read())
    finally:
        connection.close()


class Pictor:
    """The program, with the settings that the files in config/ ask for."""

    #: Which requests are in the log.
    logged = "all"

    def __init__(self, program, folder, name, settings=()):
        self.program, self.folder, self.name, self.settings = program, folder, name, list(settings)
        self.port, self.operator_port = free_ports(2)
        self.log = folder / f"{name}.log"
        self.start()

    def start(self):
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(
                [self.program, "--server.port", str(self.port), "--server.operator_address",
                 f"127.0.0.1:{self.operator_port}", "--disk.path", self.folder / self.name, "--log.format", "json",
                 "--log.requests", self.logged, "--download.allow_networks", "127.0.0.0/8", "--server.stats_lifetime", "0s",
                 "--server.trusted_proxies", "127.0.0.1/32", "--server.forwarded_header", "x-forwarded-for",
                 "--signing.keys", f"main:{SECRET}", *self.settings],
                stderr=log, env=os.environ | {"PICTOR_ADMIN_TOKENS": TOKEN})
        await_that(f"{self.name} serves: {self.log}", lambda: self.is_ready())

    def is_ready(self):
        try:
            return ask(self.port, "/readyz").status == 200
        except OSError:
            return False

    def stats(self):
        return json.loads(ask(self.operator_port, "/stats").body)

    def downloads(self):
        return self.stats()["downloads"]["succeeded"]

    def purge(self, url):
        path = "/admin/cache?url=" + urllib.parse.quote(url, safe="")
        return ask(self.operator_port, path, "DELETE", Authorization=f"Bearer {TOKEN}").status

    def requests(self):
        """The log lines of requests. A thread of the server writes them, so the last ones may be missing or cut."""
        lines = self.log.read_text(encoding="utf-8", errors="replace").split("\n")[:-1]
        return [line for line in map(json.loads, lines) if line["message"] == "request"]

    def sign(self, path):
        return subprocess.check_output([self.program, "sign", path, "--signing.keys", f"main:{SECRET}"],
                                       text=True).strip()

    def terminate(self):
        self.process.terminate()

    def stop(self):
        if self.process.poll() is None:
            self.process.terminate()
            # A second signal ends server.shutdown_delay.
            time.sleep(0.1)
            self.process.terminate()
        try:
            return self.process.wait(timeout=40)
        except subprocess.TimeoutExpired:
            self.process.kill()
            return self.process.wait()


class Load:
    """Clients that ask without a pause, and what they got other than 200."""

    def __init__(self, proxy, paths):
        self.proxy, self.paths = proxy, paths
        self.failures, self.count = Counter(), 0
        self.lock = threading.Lock()
        self.ended = threading.Event()
        self.threads = [threading.Thread(target=self.run, args=(number,)) for number in range(8)]
        for thread in self.threads:
            thread.start()

    def run(self, number):
        connection = None
        while not self.ended.is_set():
            number += 8
            try:
                connection = connection or connect(self.proxy.port, tls=self.proxy.tls)
                connection.request("GET", self.paths(number))
                response = connection.getresponse()
                response.read()
                result = response.status
                if response.will_close:
                    connection.close()
            except (OSError, http.client.HTTPException) as error:
                result = repr(error)
                connection.close()
                connection = None
            with self.lock:
                self.count += 1
                if result != 200:
                    self.failures[result] += 1

    def end(self):
        self.ended.set()
        for thread in self.threads:
            thread.join()

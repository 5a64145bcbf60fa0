"""What stands behind the proxies of check-deployments: an origin and Pictors; and the load that asks them."""

import http.client
import re
import subprocess
import threading
import time
import urllib.parse
from collections import Counter

from support import Handler, Listener, Server, ask, connect, png, stop

TOKEN = "a-token-for-the-deployments"
SECRET = "a-secret-of-the-deployments-0123456789"
CHROME = "image/avif,image/webp,image/apng,image/svg+xml,image/*,*/*;q=0.8"


def drawing(number):
    """A PNG of 96×64 pixels, which differs with the number."""
    return png(96, 64, (bytes(part for x in range(96) for part in (x * 2, y * 3, number % 256)) for y in range(64)))


class Origin:
    """Serves a drawing at each path /NUMBER.png, counts its requests, and can change what it serves."""

    def __init__(self):
        origin = self

        class Drawings(Handler):
            def do_GET(self):
                origin.requests[self.path] += 1
                body = drawing(int(re.sub(r"\D", "", self.path) or 0) + origin.edition)
                self.answer(200, body, Cache_Control="max-age=3600")

        self.requests = Counter()
        self.edition = 0
        self.server = Listener(Drawings)

    def url(self, name):
        return f"{self.server.base}/{name}.png"


def target(url, **parameters):
    """The path and query for an image."""
    return "/image?" + urllib.parse.urlencode({"url": url, **parameters}, quote_via=urllib.parse.quote, safe="")


class Pictor(Server):
    """The program, with the settings that the files in config/ ask for."""

    #: Which requests are in the log.
    logged = "all"

    def __init__(self, program, folder, name, settings=()):
        super().__init__(
            program, folder, "--log.requests", self.logged, "--download.allow_networks", "127.0.0.0/8",
            "--server.stats_lifetime", "0s", "--server.trusted_proxies", "127.0.0.1/32", "--server.forwarded_header",
            "x-forwarded-for", "--signing.keys", f"main:{SECRET}", *settings, name=name, operators=True,
            PICTOR_ADMIN_TOKENS=TOKEN)

    def downloads(self):
        return self.stats()["downloads"]["succeeded"]

    def purge(self, url):
        path = "/admin/cache?url=" + urllib.parse.quote(url, safe="")
        return ask(self.operator_port, path, "DELETE", timeout=20, Authorization=f"Bearer {TOKEN}").status

    def requests(self):
        return self.lines("request")

    def sign(self, path):
        return subprocess.check_output([self.program, "sign", path, "--signing.keys", f"main:{SECRET}"],
                                       text=True).strip()

    def stop(self):
        """Returns its status."""
        if self.process.poll() is None:
            self.process.terminate()
            # A second signal ends server.shutdown_delay.
            time.sleep(0.1)
        return stop(self.process)


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

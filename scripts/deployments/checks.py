"""The checks of check-deployments: what clients and operators see of Pictors behind each proxy."""

import contextlib
import itertools
import subprocess
import time
import traceback
import urllib.parse
from pathlib import Path

from deployments.machines import CHROME, Load, Origin, Pictor, target
from deployments.proxies import CDN, Caddy, HAProxy, Nginx, Varnish
from support import ask, await_that

SOURCES = 24
#: The format that each Accept has to get.
ACCEPTS = {CHROME: "image/avif", "image/webp,*/*;q=0.8": "image/webp", "*/*": "image/jpeg",
           "image/avif;q=0, image/webp": "image/webp", "image/*": "image/jpeg", "text/html": "image/jpeg"}


class Report:
    """Writes a line for each check, and counts them."""

    def __init__(self):
        self.part, self.count, self.failed = "", 0, 0

    def check(self, what, found, wanted=True):
        self.count += 1
        if found == wanted:
            print(f"{self.part}: ok: {what}", flush=True)
        else:
            self.failed += 1
            print(f"{self.part}: FAILED: {what}: {found}, expected {wanted}", flush=True)

    def guard(self, checks):
        """Runs checks. An exception is a failure, too."""
        try:
            checks()
        except Exception:  # any fault of a proxy, a server or this script
            self.check(traceback.format_exc().strip(), False)


class Setup:
    """An origin, three Pictors and a proxy."""

    def __init__(self, program, folder, kind, more):
        self.origin = Origin()
        # An AVIF that is encoded after the response would make the format depend on the time.
        settings = ["--imaging.avif_later", "false", "--signing.mode", "options", "--server.shutdown_delay", "4s",
                    *more]
        self.pictors = []
        self.proxy = None
        try:
            for name in ("one", "two", "three"):
                self.pictors.append(Pictor(program, folder, name, settings))
            self.proxy = kind(folder, self.pictors)
        except BaseException:
            self.end()
            raise
        self.urls = [self.origin.url(number) for number in range(SOURCES)]

    def end(self):
        """Stops all, and returns how the Pictors ended."""
        if self.proxy:
            self.proxy.stop()
        self.origin.server.shutdown()
        return [pictor.stop() for pictor in self.pictors]

    def is_served(self):
        try:
            return self.proxy.ask(target(self.origin.url("900"), w=16, format="png")).status == 200
        except OSError:
            return False

    def purge(self, url):
        return [pictor.purge(url) for pictor in self.pictors]

    def owners(self, **parameters):
        """Asks for each source. Returns the names of the Pictors that served it, by its URL."""
        before = [len(pictor.requests()) for pictor in self.pictors]
        for url in self.urls:
            if self.proxy.ask(target(url, **parameters)).status != 200:
                return {}
        found = {url: set() for url in self.urls}

        def all_seen():
            for pictor, start in zip(self.pictors, before):
                for line in pictor.requests()[start:]:
                    if line.get("url") in found:
                        found[line["url"]].add(pictor.name)
            return all(found.values())

        await_that("each source is in a log", all_seen)
        return found


@contextlib.contextmanager
def setup(report, program, folder, kind, *more):
    it = Setup(program, folder, kind, more)
    try:
        # From the first good answer on, the proxy knows that the Pictors are ready, and Caddy has its certificate.
        await_that("the proxy serves", it.is_served)
        yield it
    finally:
        ends = it.end()
    report.check("the Pictors ended cleanly", ends, [0, 0, 0])


def check_shares(report, it):
    """One source, one Pictor, and what clients may reach."""
    before = [pictor.downloads() for pictor in it.pictors]
    first, second = it.owners(w=40), it.owners(w=30)
    after = [pictor.downloads() for pictor in it.pictors]
    report.check(f"{SOURCES} sources in two sizes are {SOURCES} downloads of three Pictors", sum(after) - sum(before),
                 SOURCES)
    report.check("each Pictor has a share", all(end > start for start, end in zip(before, after)))
    report.check("each source has one Pictor, for both sizes",
                 [url for url in it.urls if len(first[url] | second[url]) != 1], [])
    owner = {pictor.name: pictor for pictor in it.pictors}
    wrong = [url for url in it.urls
             if it.proxy.ask(target(url, w=40)).body != ask(owner[next(iter(first[url]))].port, target(url, w=40)).body]
    report.check("the bytes are those of the Pictor", wrong, [])
    report.check("clients reach neither figures nor operators' paths",
                 [it.proxy.ask(path).status for path in ("/stats", "/metrics", "/admin/failed", "/readyz")], [404] * 4)
    report.check("an error has its status", it.proxy.ask(target(it.urls[0], w=0)).status, 400)
    long = target(it.urls[0] + "?" + "x" * 7900, w=40)
    report.check("a target of 8,000 bytes reaches Pictor", it.proxy.ask(long).status, 200)
    it.proxy.ask(target(it.origin.url("901"), w=40), client="127.0.0.2", X_Forwarded_For="198.51.100.1",
                 traceparent=f"00-{'ab' * 16}-{'cd' * 8}-01", tracestate="a=b")
    lines = await_that("the log has the client's request", lambda: [
        line for pictor in it.pictors for line in pictor.requests() if "901.png" in line.get("url", "")])
    report.check("the log has the client's address, not what it claims", {line["client"] for line in lines},
                 {"127.0.0.2"})
    report.check("the client's trace is not passed on", {line.get("trace_id") for line in lines}, {None})
    return first


def check_spellings(report, it):
    """One source in several spellings is one download of the fleet."""
    before = sum(pictor.downloads() for pictor in it.pictors)
    for number, url in enumerate(it.urls):
        # New to Pictor, so that each source is downloaded once more.
        url += "?again"
        encoded = urllib.parse.quote(url, safe="")
        for query in (f"url={encoded}&w=33", f"w=33&url={encoded}", f"w=33&url={url}&h=500",
                      f"url={encoded.replace('%3A', '%3a').replace('%2F', '%2f')}&w=33&h=501"):
            if it.proxy.ask("/image?" + query).status != 200:
                report.check(f"a spelling of source {number} is served", query, "200")
    after = sum(pictor.downloads() for pictor in it.pictors)
    report.check("four spellings of each source are one download", after - before, len(it.urls))


def check_death(report, it):
    """A Pictor is killed while nothing else runs: the next requests lose nothing, and the rest of the fleet serves."""
    dead = it.pictors[1]
    dead.process.kill()
    dead.process.wait()
    report.check("a Pictor is killed, and each source is served",
                 [it.proxy.ask(target(url, w=22)).status for url in it.urls], [200] * len(it.urls))
    before = {pictor.name: pictor.downloads() for pictor in it.pictors if pictor is not dead}
    report.check("... also at the next turn",
                 [it.proxy.ask(target(url, w=23)).status for url in it.urls], [200] * len(it.urls))
    after = {pictor.name: pictor.downloads() for pictor in it.pictors if pictor is not dead}
    report.check("... without a further download", after, before)
    dead.start()


def check_fleet_purge(report, it):
    """A purge of each machine, as docs/deployments.md has it, holds for the fleet; clients cannot reach it."""
    url = it.origin.url("907")
    old = it.proxy.ask(target(url, w=52)).body
    it.origin.edition += 1
    report.check("clients cannot purge through the proxy",
                 it.proxy.ask("/admin/cache?url=" + urllib.parse.quote(url, safe=""), "DELETE").status, 404)
    report.check("a purge of each machine", it.purge(url), [200] * 3)
    # Another height is new to a cache in front, and the same image to Pictor.
    report.check("... and the fleet serves the new image", it.proxy.ask(target(url, w=52, h=777)).body != old)


def check_drain(report, it, owners):
    """A Pictor stops under load, and comes back."""
    leaving = it.pictors[0]
    # Each path is new to the proxy's cache, and the same few pixels to Pictor.
    load = Load(it.proxy, lambda number: target(it.urls[number % SOURCES], w=20, h=1000 + number % 60000))
    try:
        await_that("there is load", lambda: load.count > 200)
        leaving.process.terminate()
        status = leaving.process.wait(timeout=40)
        at_end = load.count
        await_that("there is load after the end", lambda: load.count > at_end + 200)
    finally:
        load.end()
    report.check("a Pictor stops under load, and no request fails", (status, dict(load.failures)), (0, {}))
    left = it.owners(w=21)
    moved = {url for url in it.urls if left[url] != owners[url]}
    report.check("its share alone moves to the others",
                 moved, {url for url in it.urls if owners[url] == {leaving.name}})
    leaving.start()
    # What is new to the caches reaches the Pictors.
    heights = itertools.count(100)
    await_that("the Pictor has its share again", lambda: it.owners(w=20, h=next(heights)) == owners, 30)
    report.check("it comes back, and has its share again", True)


def check_cache(report, it, name):
    """What a cache in front has to do."""
    path = target(it.origin.url("902"), w=48)

    def asked():
        return sum("902.png" in line.get("url", "") for pictor in it.pictors for line in pictor.requests())

    first, second = it.proxy.ask(path), it.proxy.ask(path)
    await_that("the first request is in a log", asked)
    report.check("the second request is served by the cache, with the same bytes",
                 (asked(), second.caches[-1], second.body == first.body),
                 (1, f"{name}; hit", True))
    path = target(it.origin.url("903"), w=48)
    for turn in ("first", "second"):
        report.check(f"each Accept gets its own format, at its {turn} request",
                     [it.proxy.ask(path, Accept=accept).type for accept in ACCEPTS], list(ACCEPTS.values()))
    fresh = it.proxy.ask(path, If_None_Match=it.proxy.ask(path).headers["ETag"])
    report.check("the cache answers 304", (fresh.status, fresh.body), (304, b""))
    check_expiry(report, it)


def check_expiry(report, it):
    """A signed URL ends at its time, although Pictor has the image for longer."""
    url = it.origin.url("904")
    it.proxy.ask(target(url, w=44))
    # Older than the time that the signed URL has: caches that forget Age would keep it for twice as long.
    await_that("the image has an age", lambda: any(
        int(ask(pictor.port, target(url, w=44, cache="only")).headers.get("Age") or 0) >= 3 for pictor in it.pictors))
    expiry = int(time.time()) + 3
    signed = it.pictors[0].sign(target(url, w=44, exp=expiry))
    before = it.proxy.ask(signed).status
    await_that("the time is over", lambda: time.time() > expiry + 0.1)
    report.check("a signed URL ends at its time", (before, it.proxy.ask(signed).status), (200, 403))


def check_nginx(report, program, folder, _):
    with setup(report, program, folder, Nginx) as it:
        owners = check_shares(report, it)
        check_spellings(report, it)
        check_cache(report, it, "nginx")
        check_fleet_purge(report, it)
        check_drain(report, it, owners)
        check_death(report, it)


def check_cdn(report, program, folder, _):
    """A cache that ignores Vary needs server.redirect_auto."""
    for redirects in ("false", "true"):
        inner = folder / redirects
        inner.mkdir()
        with setup(report, program, inner, CDN, "--server.redirect_auto", redirects) as it:
            path = target(it.origin.url("906"), w=48)
            if redirects == "false":
                found = [it.proxy.ask(path, Accept=accept).type for accept in ACCEPTS]
                report.check("without server.redirect_auto each Accept gets the first one's format", found,
                             ["image/avif"] * len(ACCEPTS))
                continue
            for turn in ("first", "second"):
                answers = [it.proxy.ask(path, Accept=accept) for accept in ACCEPTS]
                report.check(f"each Accept is redirected, at its {turn} request",
                             [answer.status for answer in answers], [302] * len(ACCEPTS))
                images = [it.proxy.ask("/" + answer.headers["Location"]) for answer in answers]
                report.check("... to its own format", [image.type for image in images], list(ACCEPTS.values()))
            report.check("... which is then in the cache", {image.caches[-1] for image in images}, {"nginx; hit"})


def check_haproxy(report, program, folder, _):
    with setup(report, program, folder, HAProxy) as it:
        owners = check_shares(report, it)
        check_spellings(report, it)
        check_fleet_purge(report, it)
        check_drain(report, it, owners)
        check_death(report, it)


def check_varnish(report, program, folder, _):
    with setup(report, program, folder, Varnish) as it:
        owners = check_shares(report, it)
        check_cache(report, it, "varnish")
        check_purges(report, it)
        check_drain(report, it, owners)


def check_purges(report, it):
    """The order of purges: Pictor first, then what is in front of it."""
    url = it.origin.url("905")
    path = target(url, w=48)
    source = path.partition("url=")[2].partition("&")[0]
    old = it.proxy.ask(path).body
    it.origin.edition += 1
    report.check("a changed image is served from the caches", it.proxy.ask(path).body == old)
    report.check("clients may not ban", it.proxy.ask("/", "BAN", client="127.0.0.2", X_Source=source).status, 403)
    report.check("a purge of each Pictor", it.purge(url), [200] * 3)
    report.check("... leaves the old image in front of them", it.proxy.ask(path).body == old)
    report.check("then a ban in Varnish", it.proxy.ask("/", "BAN", X_Source=source).status, 200)
    new = it.proxy.ask(path).body
    report.check("... and the new image is served", new != old)
    it.origin.edition += 1
    it.proxy.ask("/", "BAN", X_Source=source)
    between = it.proxy.ask(path).body
    it.purge(url)
    report.check("in the other order, a request in between brings the old image back",
                 between == new and it.proxy.ask(path).body == new)
    prefix = source[:source.rindex("%2F") + 3]
    report.check("a ban of a prefix", it.proxy.ask("/", "BAN", X_Source_Prefix=prefix).status, 200)
    report.check("... removes it", it.proxy.ask(path).body != new)


def check_caddy(report, program, folder, tools):
    with setup(report, program, folder, Caddy) as it:
        owners = check_shares(report, it)
        address = f"https://localhost:{it.proxy.port}" + target(it.urls[0], w=40)
        body = it.proxy.ask(target(it.urls[0], w=40)).body
        done = subprocess.run(["curl", "-s", "--http2", "--cacert", it.proxy.authority, "-o", folder / "image", "-w",
                               "%{http_version} %{http_code}", address], text=True, capture_output=True, timeout=60)
        report.check("HTTP/2, by curl", (done.stdout, (folder / "image").read_bytes() == body), ("2 200", True))
        done = subprocess.run([tools / "python", Path(__file__).with_name("http3.py"), address, it.proxy.authority,
                               folder / "image3"], text=True, capture_output=True, timeout=60)
        report.check("HTTP/3, by aioquic", (done.stdout.strip() or done.stderr, (folder / "image3").is_file()
                                            and (folder / "image3").read_bytes() == body), ("h3 200", True))
        offered = it.proxy.ask(target(it.urls[0], w=40)).headers.get("Alt-Svc") or ""
        report.check("clients are told of HTTP/3", "h3=" in offered)
        check_drain(report, it, owners)

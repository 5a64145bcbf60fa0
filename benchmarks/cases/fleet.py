"""Three machines behind round robin and behind consistent hashing, alone and with Redis: work, latencies, purges."""

import random
import signal
import time
from statistics import median, quantiles

from kit import http, load
from kit.fleet import BareNginx, Clients, Fleet, HAProxy, Line, pin, shuffled
from kit.processes import Failure, wait_until
from kit.report import Claim, Mark
from kit.servers import BUCKET, Bench

CLIENTS, IMAGES = 300, 50
#: Of each latency, of purges, and of purges while a machine is stopped.
ASKED, PURGES, STOPS = 200, 300, 50
#: Clients after a machine has left or come back.
LATER_CLIENTS = 60
#: Seconds after which HAProxy gives a machine that is back its whole share (rise 2, slowstart 10s), and nginx forgets
#: that it failed (fail_timeout 5s).
WHOLE_SHARE = {HAProxy: 13, BareNginx: 6}


def ways() -> dict[str, tuple[list, object, bool]]:
    """Options of the machines, the proxy in front, and whether there is Redis, by name."""
    return {
        "round robin, nothing shared": ([], None, False),
        "round robin, Redis": ([], None, True),
        "nginx hashes, nothing shared": ([], BareNginx, False),
        "nginx hashes, Redis": ([], BareNginx, True),
        "HAProxy hashes with bounded loads, Redis": ([], HAProxy, True),
    }


class Counting:
    """Downloads and renders since the last look, per image."""

    def __init__(self, fleet: Fleet):
        self.fleet = fleet
        self.look()

    def look(self) -> tuple[float, float]:
        now = (self.fleet.origin.count(), self.fleet.renders())
        before, self.before = getattr(self, "before", now), now
        return tuple((new - old) / IMAGES for new, old in zip(now, before))


def departures(fleet: Fleet, paths: list[str], counting: Counting, failures: list) -> dict[str, float]:
    """What it costs when a machine stops or is killed under load, and when it is back, per image."""
    found = {}
    # Another machine each time: the others have the images of one that left before.
    for name, number, with_signal in (("stops", 1, signal.SIGTERM), ("is killed", 2, signal.SIGKILL)):
        background = Clients(fleet.ports, shuffled(paths, 20), is_repeated=True)

        def leave():
            time.sleep(0.5)
            fleet.end(number, with_signal)
            time.sleep(1.5)

        failures.append(background.ask_all(leave).failures)
        failures.append(Clients(fleet.ports, shuffled(paths, LATER_CLIENTS)).ask_all().failures)
        found[name] = counting.look()
        fleet.start(number, empty=with_signal == signal.SIGKILL)
        if fleet.proxy:
            time.sleep(WHOLE_SHARE[type(fleet.proxy)])
        failures.append(Clients(fleet.ports, shuffled(paths, LATER_CLIENTS)).ask_all().failures)
        found[name + ", back"] = counting.look()  # the second one without its disk
    return found


def busiest(fleet: Fleet, paths: list[str], failures: list) -> float:
    """The share of the machine with the most requests when nine of ten are for one image."""
    chance = random.Random(17)
    lists = [[paths[0] if chance.random() < 0.9 else chance.choice(paths) for _ in range(100)] for _ in range(CLIENTS)]
    before = fleet.served()
    failures.append(Clients(fleet.ports, lists).ask_all().failures)
    served = [new - old for new, old in zip(fleet.served(), before)]
    return max(served) / sum(served)


def work(bench: Bench) -> Claim:
    """Downloads and renders of each way to share."""
    rows, loads, most_failed = [], {}, 0
    for number, (name, (options, proxy, has_redis)) in enumerate(ways().items()):
        with Fleet(bench, f"work-{number}", options, proxy, has_redis) as fleet:
            paths, failures = [fleet.path(number) for number in range(IMAGES)], []
            if proxy:
                wait_until(lambda: http.answers(fleet.proxy.port, fleet.path(1000)), "the proxy serves")
                if proxy is HAProxy:
                    time.sleep(3)  # its checks
            counting = Counting(fleet)
            failures.append(Clients(fleet.ports, shuffled(paths, CLIENTS)).ask_all().failures)
            first = counting.look()
            gone = departures(fleet, paths, counting, failures)
            share = busiest(fleet, paths, failures)
            failed = sum(sum(found.values()) for found in failures)
            if failed:
                print(f"bench: {name}: {[dict(found) for found in failures if found]}", flush=True)
        loads[name], most_failed = first, max(most_failed, failed)
        show = lambda pair: f"{pair[0]:.2f}, {pair[1]:.2f}"
        rows.append([name, f"{first[0]:.2f}", f"{first[1]:.2f}", *map(show, gone.values()), f"{share:.0%}", f"{failed}"])
    once = {name: max(pair) for name, pair in loads.items() if "nginx hashes" in name}
    return Claim(
        name="fleet", title="Three machines: downloads and renders",
        how=f"{CLIENTS} clients ask three machines for {IMAGES} images at once. Then one machine stops and comes back, another is "
            "killed and comes back empty: further downloads and renders per image. At last nine of ten requests are for one image.",
        columns=["", "downloads per image", "renders per image", "one stops", "… is back", "one is killed", "an empty one joins",
                 "the busiest's share of a hot image", "requests failed"],
        rows=rows,
        marks=[*(Mark(f"downloads and renders per image: {name}", most, 1, at_most=True) for name, most in once.items()),
               Mark("requests failed, the most", most_failed, 0, at_most=True)])


def latencies(bench: Bench) -> Claim:
    """Each tier beside the others, one request at a time, in turn."""
    figures: dict[str, list[float]] = {}
    take = lambda name, seconds: figures.setdefault(name, []).append(seconds * 1e3)
    bucket = bench.nginx("bucket", BUCKET, "")
    in_bucket = ["--fleet.key_prefix", "bucket:", "--fleet.variant_limit", "0", "--fleet.s3.bucket", "shared",
                 "--fleet.s3.endpoint", f"http://127.0.0.1:{BUCKET}"]
    # The third has no memory tier, the fourth no fleet, the others share by the bucket.
    own = ([], [], ["--memory.limit", "0"], ["alone"], in_bucket, in_bucket)
    with Fleet(bench, "latencies", [], count=6, own=own) as fleet:
        lines = [Line(machine.port) for machine in fleet.machines]
        stores = lambda machine: fleet.machines[machine].fleet()["stores"]
        for number in range(20 + ASKED):
            if number == 20:
                figures.clear()  # the first ones warm up
            path, before = fleet.path(number), stores(0)
            turn = [("origin miss", lines[0], path), ("origin miss without fleet.redis", lines[3], fleet.path(10_000 + number))]
            for name, line, wanted in turn if number % 2 else reversed(turn):
                take(name, line.ask(wanted, "fwd=uri-miss"))
            take("memory hit", lines[0].ask(path, "detail=memory"))
            take("memory hit without fleet.redis", lines[3].ask(fleet.path(10_000 + number), "detail=memory"))
            wait_until(lambda: stores(0) > before, "the variant is in Redis", pause=0.002)
            take("shared hit: another machine has rendered it", lines[1].ask(path, "detail=shared"))
            lines[2].ask(path, "detail=shared")
            wait_until(lambda: "detail=disk" in lines[2].exchange(path + "&cache=only")[1], "it is on disk", pause=0.002)
            take("disk hit", lines[2].ask(path, "detail=disk"))
            elsewhere, before = fleet.path(20_000 + number), stores(4)
            lines[4].ask(elsewhere, "fwd=uri-miss")
            wait_until(lambda: stores(4) > before, "the variant is in the bucket", pause=0.002)
            take("shared hit, from a bucket", lines[5].ask(elsewhere, "detail=shared"))
    bucket.stop()
    shown = ["memory hit", "memory hit without fleet.redis", "disk hit", "shared hit: another machine has rendered it",
             "shared hit, from a bucket", "origin miss", "origin miss without fleet.redis"]
    middle = {name: median(figures[name]) for name in shown}
    return Claim(
        name="fleet-latency", title="Three machines: latencies",
        how=f"{ASKED} images, 800×600 to 300 px, one request at a time; origin, Redis and bucket are on the same machine.",
        columns=["", "p50 ms", "p90 ms"],
        rows=[[name, f"{middle[name]:.2f}", f"{quantiles(figures[name], n=10)[8]:.2f}"] for name in shown],
        marks=[Mark("shared hit, of an origin miss (p50)", middle[shown[3]] / middle[shown[5]], 1, at_most=True),
               Mark("miss with fleet.redis, more than without (p50, ms)", middle[shown[5]] - middle[shown[6]], 0.5, at_most=True)])


def hits(bench: Bench) -> Claim:
    """Memory hits of a machine with and without Redis, in turn."""
    one_loop = ["--server.workers", "1"]
    with Fleet(bench, "hits", one_loop, count=2, own=([], ["alone"])) as fleet:
        cases = {}
        for name, machine in zip(("with fleet.redis", "without"), fleet.machines):
            path = fleet.path(0)
            Line(machine.port).ask(path)
            pin(machine, "0")
            url = f"http://127.0.0.1:{machine.port}{path}"
            cases[name] = lambda url=url: load.run(url, 64, bench.seconds, core="1")
        measured = load.in_turn(bench.rounds, cases)
    rates = {name: it.rate for name, it in measured.items()}
    return Claim(
        name="fleet-hits", title="Three machines: memory hits with and without Redis",
        how=f"64 kept connections, the server on core 0, wrk on core 1; in turn, medians of {bench.rounds} rounds of {bench.seconds:g} s.",
        columns=["", "requests/s", "p99 ms"],
        rows=[[name, f"{it.rate:,.0f}", f"{it.p99 * 1e3:.2f}"] for name, it in measured.items()],
        marks=[Mark("requests/s, of those without", rates["with fleet.redis"] / rates["without"], 0.97)])


def held(lines: list[Line], path: str, since: float) -> float:
    """Seconds since `since` until none of them has the image any more."""
    left, end = list(lines), since + 20
    while left:
        left = [line for line in left if line.exchange(path + "&cache=only")[0] == 200]
        if time.perf_counter() > end:
            raise Failure(f"a purge does not hold after 20 s: {path}")
    return time.perf_counter() - since


def purges(bench: Bench) -> Claim:
    """The time until a purge holds on the other machines, awake or frozen before."""
    holds, answered, frozen = [], [], []
    with Fleet(bench, "purges", []) as fleet:
        first, *others = fleet.machines
        lines = [Line(machine.port) for machine in fleet.machines]
        for number in range(PURGES + STOPS):
            path, url = fleet.path(number), fleet.origin.url(f"a.jpg?{number}")
            for line in lines:
                line.ask(path)
            stops = number >= PURGES
            if stops:
                others[1].pause()
            begin = time.perf_counter()
            if first.purge(url) != 200:
                raise Failure("a purge failed")
            if stops:
                others[1].resume()
                frozen.append(held(lines[2:], path, time.perf_counter()) * 1e3)
            else:
                answered.append((time.perf_counter() - begin) * 1e3)
                holds.append(held(lines[1:], path, begin) * 1e3)
    rows = []
    for name, all_ in (("answered", answered), ("holds on both other machines", holds),
                       ("holds on a machine that was frozen meanwhile, from its SIGCONT", frozen)):
        rows.append([name, f"{len(all_)}", f"{median(all_):.2f}", f"{quantiles(all_, n=100, method='inclusive')[98]:.2f}",
                     f"{max(all_):.2f}"])
    slowest = max(quantiles(all_, n=100, method="inclusive")[98] for all_ in (holds, frozen))
    return Claim(
        name="fleet-purges", title="Three machines: purges",
        how="A machine purges a URL that all three have in memory; the others are asked until they no longer have it.",
        columns=["", "purges", "p50 ms", "p99 ms", "maximum"], rows=rows,
        marks=[Mark("a purge holds everywhere (p99, ms)", slowest, 100, at_most=True)])


def run(bench: Bench) -> list[Claim]:
    return [work(bench), latencies(bench), hits(bench), purges(bench)]

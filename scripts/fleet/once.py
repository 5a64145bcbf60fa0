"""The calm part of check-fleet: 300 clients ask for the same 50 images, each of which is downloaded and rendered once."""

import http.client
import random
import sys
import threading
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "deployments"))

from processes import Machine, Origin, Redis, await_that, target  # noqa: E402
from proxies import HAProxy  # noqa: E402

CLIENTS, IMAGES = 300, 50
#: All clients have one address here, and a busy machine needs time: what is counted must not depend on it.
SETTINGS = ["--server.shutdown_delay", "0s", "--server.active_requests_per_client", "0",
            "--server.imaging_time_per_client", "0", "--imaging.recompress_after", "0",
            "--fleet.lease_wait", "60s", "--log.level", "warning"]


def ask(port, paths, statuses):
    """One client: asks for each path over a kept connection."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    for path in paths:
        try:
            connection.request("GET", path)
            response = connection.getresponse()
            response.read()
            statuses[response.status] += 1
        except (OSError, http.client.HTTPException) as error:
            statuses[repr(error)] += 1
            connection.close()
    connection.close()


def figures(machines):
    """Sums over the machines: (renders, leases lost before the work ended)."""
    stats = [machine.stats() for machine in machines]
    return (sum(one["imaging"]["succeeded"] for one in stats), sum(one["fleet"]["leases_lost"] for one in stats))


def check(program, folder, proxy=None):
    """Asks three machines in turn, or a proxy in front of them. Returns the problems."""
    name = f"300 clients through {proxy.__name__}" if proxy else "300 clients in turn"
    folder.mkdir()
    # A pause, so that other machines are asked meanwhile.
    origin, redis = Origin(IMAGES, pause=lambda: 0.05), Redis(folder)
    machines, front = [], None
    try:
        for number in range(3):
            machines.append(Machine(program, folder, f"machine{number}", ["--fleet.redis", redis.address, *SETTINGS]))
        await_that("the machines share", lambda: all(machine.fleet()["position_age_seconds"] >= 0 for machine in machines))
        front = proxy(folder, machines) if proxy else None
        ports = [front.port] if front else [machine.port for machine in machines]
        paths = [target(origin.url(f"{image}.png"), w=16, format="png") for image in range(IMAGES)]
        statuses = [Counter() for _ in range(CLIENTS)]
        clients = [threading.Thread(target=ask, args=(ports[number % len(ports)],
                                                      random.Random(number).sample(paths, IMAGES), statuses[number]))
                   for number in range(CLIENTS)]
        for client in clients:
            client.start()
        for client in clients:
            client.join()
        total, downloads, (renders, lost) = sum(statuses, Counter()), origin.count(), figures(machines)
    finally:
        if front:
            front.stop()
        for machine in machines:
            machine.stop()
        redis.kill()
        origin.server.shutdown()
    print(f"check-fleet: {name}: {downloads} downloads and {renders} renders of {IMAGES} images, {lost} leases lost", flush=True)
    problems = []
    if total != {200: CLIENTS * IMAGES}:
        problems.append(f"{name}: answers {dict(total)}")
    # A machine that gets no processor for seconds loses its leases. Each may cost one download and one render.
    for what, count in (("downloads", downloads), ("renders", renders)):
        if not IMAGES <= count <= IMAGES + lost:
            problems.append(f"{name}: {count} {what} of {IMAGES} images, {lost} leases lost")
    return problems


def check_both(program, folder):
    """With and without hashing in front."""
    return [problem for number, proxy in enumerate((None, HAProxy))
            for problem in check(program, folder / f"once{number}", proxy)]

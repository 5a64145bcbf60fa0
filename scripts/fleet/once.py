"""The calm part of check-fleet: 300 clients ask a proxy that hashes for the same 50 images, each of which is downloaded and
rendered once."""

import http.client
import random
import threading
from collections import Counter

from deployments.machines import target
from deployments.proxies import HAProxy
from fleet.processes import Machine, Origin, Redis
from support import await_that

CLIENTS, IMAGES = 300, 50
#: All clients have one address here, and a busy machine needs time: what is counted must not depend on it.
SETTINGS = ["--server.shutdown_delay", "0s", "--server.active_requests_per_client", "0",
            "--server.imaging_time_per_client", "0", "--imaging.recompress_after", "0"]


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


class Hashing(HAProxy):
    """Without bounded loads, which pass some misses of a burst on to a second machine."""

    def adapted(self, text):
        return super().adapted(text).replace("hash-balance-factor 200", "")


def check(program, folder):
    """Asks three machines behind the proxy. Returns the problems."""
    folder.mkdir()
    # A pause, so that other requests for the image arrive meanwhile.
    origin, redis = Origin(IMAGES, pause=lambda: 0.05), Redis(folder)
    machines, front = [], None
    try:
        for number in range(3):
            machines.append(Machine(program, folder, f"machine{number}", ["--fleet.redis", redis.address, *SETTINGS]))
        await_that("the machines share", lambda: all(machine.fleet()["position_age_seconds"] >= 0 for machine in machines))
        front = Hashing(folder, machines)
        paths = [target(origin.url(f"{image}.png"), w=16, format="png") for image in range(IMAGES)]
        statuses = [Counter() for _ in range(CLIENTS)]
        clients = [threading.Thread(target=ask, args=(front.port, random.Random(number).sample(paths, IMAGES),
                                                      statuses[number]))
                   for number in range(CLIENTS)]
        for client in clients:
            client.start()
        for client in clients:
            client.join()
        total, downloads = sum(statuses, Counter()), origin.count()
        renders = sum(machine.stats()["imaging"]["succeeded"] for machine in machines)
    finally:
        if front:
            front.stop()
        for machine in machines:
            machine.stop()
        redis.kill()
        origin.server.shutdown()
    print(f"check-fleet: {CLIENTS} clients: {downloads} downloads and {renders} renders of {IMAGES} images", flush=True)
    found = {"answers": dict(total), "downloads": downloads, "renders": renders}
    wanted = {"answers": {200: CLIENTS * IMAGES}, "downloads": IMAGES, "renders": IMAGES}
    return [f"{what}: {found[what]}, expected {wanted[what]}" for what in wanted if found[what] != wanted[what]]

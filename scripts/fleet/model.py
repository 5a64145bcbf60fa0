"""The model of check-fleet: what each machine must serve, clients that watch it, and actions by chance that disturb it."""

import http.client
import random
import threading
import time
import traceback
from collections import Counter

from deployments.machines import target
from fleet.disturbances import Disturbances
from fleet.processes import Machine, Origin, Redis, read_flat
from fleet.store import Store
from support import await_that

IMAGES, WIDTHS, CLIENTS = 10, (16, 24, 32), 4
#: Seconds in which a request must be served by some machine, and in which a fleet that is whole must have caught up.
DEADLINE, CATCH_UP = 15, 20
SETTINGS = ["--server.shutdown_delay", "0s", "--fleet.retry_interval", "100ms", "--log.level", "info",
            "--imaging.workers", "1", "--server.workers", "1",
            # Variants of the two larger widths go to S3.
            "--fleet.variant_limit", "80", "--fleet.timeout", "200ms"]


class Wrong(Exception):
    """The fleet did what the model rules out."""


class Model(Disturbances):
    """Three machines, and for each the oldest version of each image that it may serve."""

    def __init__(self, program, folder, break_it=False):
        self.folder = folder
        self.origin = Origin(IMAGES, pause=lambda: random.random() * 0.01)
        self.redis, self.store = Redis(folder), Store(folder)
        self.machines = []
        for number in range(3):
            # A machine with another prefix shares nothing: the model has to notice.
            prefix = "other:" if break_it and number == 2 else "pictor:"
            self.machines.append(Machine(program, folder, f"machine{number}", [
                "--fleet.redis", self.redis.address, "--fleet.key_prefix", prefix, *self.store.settings, *SETTINGS]))
        self.lock = threading.Lock()
        self.floors = [[1] * IMAGES for _ in self.machines]
        self.purging = [threading.Lock() for _ in range(IMAGES)]
        self.counts, self.faults, self.trace = Counter(), [], []
        self.is_over, self.rests, self.is_redis_up = False, threading.Event(), True
        #: Purges since the last copy of Redis' data: (machine, its term, image).
        self.since_copy, self.has_copy, self.excused = [], False, set()
        self.settle()

    def end(self):
        self.is_over = True
        for machine in self.machines:
            machine.resume()
            machine.stop()
        self.redis.kill()
        self.store.kill()
        self.origin.server.shutdown()

    def note(self, what):
        self.trace.append(f"{time.time():.3f} {what}")

    def fault(self, what):
        self.note("FAULT " + what)
        self.faults.append(what)

    # Clients

    def client(self, chance):
        """Asks for images by chance until the phase ends."""
        while not self.rests.is_set():
            try:
                self.request(chance, chance.randrange(IMAGES), chance.choice(WIDTHS))
            except Wrong as wrong:
                self.fault(str(wrong))
            except Exception:  # a fault of the model ends the run, too
                self.fault(traceback.format_exc())

    def living(self, chance, awake_only=0.9):
        """A machine that is up, and seldom one that is frozen; None if all are gone."""
        up = [machine for machine in self.machines if machine.is_up]
        awake = [machine for machine in up if not machine.is_stopped]
        choice = awake if awake and chance.random() < awake_only else up
        return chance.choice(choice) if choice else None

    def request(self, chance, image, width):
        """One request of a client, which asks another machine if the one it asked ends."""
        end = time.monotonic() + DEADLINE
        while time.monotonic() < end:
            machine = self.living(chance)
            if not machine:
                time.sleep(0.02)
                continue
            term = machine.term
            try:
                self.check(machine, image, width)
                return
            except (OSError, http.client.HTTPException) as error:
                if machine.term == term and machine.is_up:
                    raise Wrong(f"{machine.name} lives and fails image {image}: {error!r}") from error
                self.counts["requests cut by an end"] += 1
        raise Wrong(f"no machine served image {image} within {DEADLINE} s")

    def check(self, machine, image, width):
        """Asks a machine, and compares what it serves with what it may serve."""
        number = self.machines.index(machine)
        term, floor = machine.term, self.floors[number][image]
        status, cache, body = machine.get(target(self.origin.url(f"{image}.png"), w=width, format="png"))
        if status != 200:
            if machine.term != term or not machine.is_up:
                raise ConnectionError(f"{status} of a machine that ends")
            raise Wrong(f"{machine.name}: {status} for image {image}: {body[:200]!r}")
        found, version = read_flat(body)
        self.counts["requests"] += 1
        self.counts["hits of the shared tier"] += "detail=shared" in cache
        if found != image or version < floor or version > self.origin.versions[image]:
            raise Wrong(f"{machine.name} serves image {found}, version {version}, for image {image} at width {width}, "
                        f"of which {floor} or later is right ({cache})")

    # Actions

    def purge(self, chance):
        """Changes an image at the origin, then purges it on a machine; on another one if that ends."""
        image = chance.randrange(IMAGES)
        if all(machine.is_stopped or not machine.is_up for machine in self.machines):
            self.thaw_machines(chance)
        with self.purging[image]:
            self.origin.versions[image] += 1
            version = self.origin.versions[image]
            end = time.monotonic() + DEADLINE
            while time.monotonic() < end:
                machine = self.living(chance, awake_only=1)
                if not machine:
                    time.sleep(0.02)
                    continue
                term = machine.term
                with self.lock:
                    purge = (machine, term, image)
                    self.since_copy.append(purge)
                try:
                    status = machine.purge(self.origin.url(f"{image}.png"))
                except (OSError, http.client.HTTPException) as error:
                    status = repr(error)
                if status != 200:
                    if machine.term == term and machine.is_up:
                        raise Wrong(f"{machine.name} lives and fails a purge: {status}")
                    with self.lock:
                        self.since_copy = [other for other in self.since_copy if other is not purge]
                    self.counts["purges cut by an end"] += 1
                    continue
                with self.lock:
                    self.floors[self.machines.index(machine)][image] = version
                self.note(f"{machine.name} purged image {image}, version {version}")
                return
        raise Wrong(f"no machine purged image {image} within {DEADLINE} s")

    def disturb_purge(self, chance):
        """A purge during which a machine or Redis is killed or frozen."""
        faults = []

        def purge():
            try:
                self.purge(random.Random(seed))
            except Wrong as wrong:
                faults.append(wrong)

        seed, action = chance.random(), chance.choice([
            self.kill_machine, self.kill_machine, self.kill_redis, self.freeze_redis, self.freeze_machine])
        thread = threading.Thread(target=purge)
        thread.start()
        time.sleep(chance.random() * 0.004)
        action(chance)
        time.sleep(chance.random() * 0.05)
        self.thaw_machines(chance)
        thread.join()
        if faults:
            raise faults[0]

    ACTIONS = {
        "purge": 34, "disturb_purge": 8, "kill_machine": 6, "stop_machine": 2, "start_machine": 10,
        "freeze_machine": 5, "thaw_machines": 8, "kill_redis": 5, "start_redis": 8, "wipe_redis": 2, "copy_redis": 4,
        "truncate_redis": 4, "freeze_redis": 4, "kill_store": 2, "start_store": 4, "freeze_store": 3,
    }

    # A run

    def run(self, seed, actions):
        """One phase: actions by chance under load, then all is whole again, and every machine is asked for every image.

        Returns the faults."""
        chance = random.Random(seed)
        self.faults, self.trace, self.excused, self.has_copy = [], [], set(), False
        self.since_copy, self.rests = [], threading.Event()
        clients = [threading.Thread(target=self.client, args=(random.Random(f"{seed} {number}"),), daemon=True)
                   for number in range(CLIENTS)]
        for client in clients:
            client.start()
        try:
            for action in chance.choices(list(self.ACTIONS), list(self.ACTIONS.values()), k=actions):
                before = len(self.trace)
                getattr(self, action)(chance)
                # An action that is not possible now notes nothing.
                self.counts[action.replace("_", " ")] += len(self.trace) > before
                if action != "purge" or chance.random() < 0.3:
                    time.sleep(chance.random() * 0.08)
            self.repair()
            self.settle(nudged=chance.random() < 0.8)
        except Wrong as wrong:
            self.fault(str(wrong))
        except Exception:  # a fault of the model ends the run, too
            self.fault(traceback.format_exc())
        finally:
            self.rests.set()
            for client in clients:
                client.join(DEADLINE + 30)
        if not self.faults:
            try:
                self.check_all()
            except (Wrong, OSError, http.client.HTTPException) as wrong:
                self.fault(repr(wrong))
        return self.faults

    def repair(self):
        self.thaw_machines(None)
        self.start_redis(None)
        self.start_store(None)
        for machine in self.machines:
            if not machine.is_up:
                machine.start()
                self.note(f"{machine.name} started again")

    def settle(self, nudged=True):
        """Waits until each machine has read the stream to its end twice: the second time, it has what others delivered
        again. From then on, no purged version is right on any machine. A purge of another URL ends the waits for the
        stream early, and is an entry after those that Redis may have lost."""
        for _ in range(2):
            since = time.monotonic()
            if nudged:
                self.machines[0].purge(self.origin.url("none.png"))
            for machine in self.machines:
                await_that(f"{machine.name} has caught up: {machine.fleet()}", lambda: machine.is_caught_up(since), CATCH_UP)
        with self.lock:
            lost = {image for machine, term, image in self.excused if machine.term != term}
            self.counts["purges that the known limit may have lost"] += len(lost)
            for image in range(IMAGES):
                if image not in lost:
                    for floors in self.floors:
                        floors[image] = max(floors[image], *(other[image] for other in self.floors))
        self.note("the fleet has caught up")

    def check_all(self):
        """Every machine serves every image in the version that is right, in each size."""
        for machine in self.machines:
            for image in range(IMAGES):
                for width in WIDTHS:
                    try:
                        self.check(machine, image, width)
                    except OSError as error:
                        raise Wrong(f"{machine.name} fails image {image} at the end: {error!r}") from error
        # What the known limit may have lost is purged once more, so that it is right in the next run.
        lost = {image for machine, term, image in self.excused if machine.term != term}
        if lost:
            for image in lost:
                if self.machines[0].purge(self.origin.url(f"{image}.png")) != 200:
                    raise Wrong(f"a purge of image {image} at the end")
                self.floors[0][image] = self.origin.versions[image]
            self.excused = set()
            self.settle()

"""What disturbs the fleet of the model: ends and pauses of machines, of Redis and of S3."""

import signal
import time


class Disturbances:
    """Actions of `Model`. One that is not possible now notes nothing."""

    def kill_machine(self, chance):
        machine = chance.choice(self.machines)
        others = [other for other in self.machines if other.is_up and other is not machine]
        if machine.is_up and others:
            self.note(f"SIGKILL of {machine.name}")
            machine.end(signal.SIGKILL)

    def stop_machine(self, chance):
        machine = chance.choice(self.machines)
        others = [other for other in self.machines if other.is_up and other is not machine]
        if machine.is_up and others:
            machine.resume()
            self.note(f"SIGTERM of {machine.name}")
            machine.end(signal.SIGTERM)

    def start_machine(self, chance):
        down = [machine for machine in self.machines if not machine.is_up]
        if down:
            machine = chance.choice(down)
            machine.start()
            self.note(f"{machine.name} started again")

    def freeze_machine(self, chance):
        machine = chance.choice(self.machines)
        others = [other for other in self.machines if other.is_up and not other.is_stopped and other is not machine]
        if machine.is_up and others:
            self.note(f"SIGSTOP of {machine.name}")
            machine.pause()

    def thaw_machines(self, _):
        for machine in self.machines:
            if machine.is_stopped:
                machine.resume()
                self.note(f"SIGCONT of {machine.name}")

    def kill_redis(self, _):
        if self.is_redis_up:
            self.is_redis_up = False
            self.redis.kill()
            self.note("SIGKILL of Redis")

    def start_redis(self, _):
        if not self.is_redis_up:
            self.redis.start()
            self.is_redis_up = True
            self.note("Redis started again")

    def wipe_redis(self, chance):
        """Redis loses everything: the next epoch makes every machine purge everything, so no purge is lost."""
        self.kill_redis(chance)
        self.redis.wipe()
        self.note("Redis' data removed")

    def copy_redis(self, _):
        if self.is_redis_up:
            with self.lock:
                self.since_copy = []
            self.has_copy = self.redis.keep_copy()
            self.note("Redis' data copied")

    def truncate_redis(self, chance):
        """Redis loses power, and with it what it acknowledged since the copy.

        The known limit: if the machine of such a purge ends before it has read the stream again, the purge is lost."""
        if not self.has_copy:
            return
        self.kill_redis(chance)
        self.redis.restore_copy()
        # The same copy may come back again, after other epochs.
        self.has_copy = chance.random() < 0.5
        with self.lock:
            self.excused |= set(self.since_copy)
        self.note("Redis' data set back to the copy")

    def freeze_redis(self, chance):
        if self.is_redis_up:
            self.note("SIGSTOP of Redis")
            self.redis.process.send_signal(signal.SIGSTOP)
            time.sleep(chance.random() * 0.3)
            self.redis.process.send_signal(signal.SIGCONT)
            self.note("SIGCONT of Redis")

    def kill_store(self, _):
        if self.store.is_up:
            self.store.kill()
            self.note("SIGKILL of S3, which loses its objects")

    def start_store(self, _):
        if not self.store.is_up:
            self.store.start()
            self.note("S3 started again")

    def freeze_store(self, chance):
        if self.store.is_up:
            self.note("SIGSTOP of S3")
            self.store.process.send_signal(signal.SIGSTOP)
            time.sleep(chance.random() * 0.5)
            self.store.process.send_signal(signal.SIGCONT)
            self.note("SIGCONT of S3")

"""Processes: started, pinned, measured and ended; nothing that is started outlives the run."""

import atexit
import os
import signal
import subprocess
import time
from pathlib import Path

#: What workers are started with (Sources/ImagingPool/WorkerSpawn.swift), as far as it changes their time.
WORKER_ENVIRONMENT = {"MALLOC_ARENA_MAX": "1", "OMP_NUM_THREADS": "1"}

TICKS = os.sysconf("SC_CLK_TCK")


class Failure(Exception):
    """The run cannot continue; one line says why."""


class Process:
    """A child process with all it starts itself."""

    _running: list["Process"] = []

    def __init__(self, arguments, log: Path, cores: str | None = None, cwd: Path | None = None, env=None):
        """Starts it; its output goes to `log`, `cores` is a list for taskset(1)."""
        pinned = ["taskset", "-c", cores] if cores else []
        self.name = Path(str(arguments[0])).name
        self.log = log
        with open(log, "ab") as output:
            self._child = subprocess.Popen(
                [*pinned, *map(str, arguments)],
                stdout=output, stderr=output, cwd=cwd, env=env, start_new_session=True,
            )
        self.pid = self._child.pid
        Process._running.append(self)

    def is_running(self) -> bool:
        return self._child.poll() is None

    def tree(self) -> list[int]:
        """It and its descendants that live now."""
        found, open_ = [], [self.pid]
        while open_:
            pid = open_.pop()
            found.append(pid)
            for task in Path(f"/proc/{pid}/task").glob("*/children"):
                try:
                    open_ += map(int, task.read_text().split())
                except OSError:
                    pass
        return found

    def cpu(self) -> float:
        """Seconds of processor time it and its descendants have used, those that have ended included."""
        ticks = 0
        for pid in self.tree():
            try:
                fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
            except OSError:
                continue
            ticks += sum(int(field) for field in fields[11:15])
        return ticks / TICKS

    def memory(self, field: str = "Pss") -> int:
        """Bytes in use by it and its descendants; pages they share are counted once, with `Rss` each time (proc(5))."""
        total = 0
        for pid in self.tree():
            try:
                text = Path(f"/proc/{pid}/smaps_rollup").read_text()
            except OSError:
                continue
            total += sum(int(line.split()[1]) << 10 for line in text.splitlines() if line.startswith(f"{field}:"))
        return total

    def stop(self, patience: float = 15) -> None:
        """Ends it: SIGTERM, then, after `patience` seconds, SIGKILL for its whole session."""
        if self._child.poll() is None:
            self._child.terminate()
            try:
                self._child.wait(patience)
            except subprocess.TimeoutExpired:
                pass
        try:
            os.killpg(self.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self._child.wait()
        if self in Process._running:
            Process._running.remove(self)

    @staticmethod
    def stop_all() -> None:
        for process in reversed(Process._running[:]):
            process.stop(patience=3)


atexit.register(Process.stop_all)


def output_of(*arguments, **options) -> str:
    """What a command prints; its failure is the run's."""
    done = subprocess.run(list(map(str, arguments)), capture_output=True, text=True, **options)
    if done.returncode != 0:
        raise Failure(f"{arguments[0]}: exit {done.returncode}: {(done.stderr or done.stdout).strip()[-500:]}")
    return done.stdout


def wait_until(condition, what: str, patience: float = 20, pause: float = 0.02) -> None:
    """Waits until `condition()` is true."""
    end = time.monotonic() + patience
    while not condition():
        if time.monotonic() > end:
            raise Failure(f"waited {patience:g} s for {what}")
        time.sleep(pause)

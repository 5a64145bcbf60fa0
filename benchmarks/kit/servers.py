"""The servers that are measured, each started with what its users would give it."""

import os
import shlex
import shutil
import time
import sys
from pathlib import Path

from . import http
from .processes import Process, wait_until

ROOT = Path(__file__).resolve().parents[2]
BENCHMARKS = ROOT / "benchmarks"
# Ports as they stand in benchmarks/nginx/*.conf.
PICTOR, ORIGIN, CACHE, FILTER, FLOOR, THUMBOR, FILES, IMGPROXY, PEER, BUCKET, OTHER = range(18080, 18091)
LOCAL_ORIGIN = f"http://127.0.0.1:{ORIGIN}"


class Bench:
    """Where a run works, and how long."""

    #: For so many seconds after files were removed, making new ones takes ext4 without a journal several times as long
    #: (fs/ext4/ialloc.c, `recently_deleted`: 60, and 300 for inodes not yet written).
    REST = 300

    def __init__(self, seconds: float, rounds: int, build: Path | None = None, rests: bool = False, renders: int = 600):
        self.work = BENCHMARKS / ".work"
        self.seconds, self.rounds, self.renders = seconds, rounds, renders
        self.build = build or ROOT / ".build" / "release"
        if self.work.exists():
            shutil.rmtree(self.work)
            if rests:
                print(f"bench: waiting {self.REST} s for the file system to forget the files of the last run", flush=True)
                time.sleep(self.REST)
        self.images = self.work / "images"
        self.images.mkdir(parents=True)
        self.disks = 0
        self.new_disk()

    def new_disk(self) -> None:
        """An empty folder for the disk tier. Those before it stay until the next run: see `REST`."""
        self.disks += 1
        self.disk = self.work / f"disk-{self.disks}"

    def pictor(self, *options, cores: str | None = None, keep: bool = False, build: Path | None = None,
               port: int = PICTOR) -> Process:
        """Pictor with an empty disk tier (or, with `keep`, the last one's), ready to answer."""
        if not keep:
            self.new_disk()
        server = Process(
            # Cases compare figures of successive moments. A variable, because builds without this key only warn of it.
            ["env", "PICTOR_SERVER_STATS_LIFETIME=0s", (build or self.build) / "pictor", "--server.port", port,
             "--disk.path", self.disk, "--log.level", "warning", "--download.allow_networks", "127.0.0.0/8",
             "--sources.local_root", self.images, *options],
            self.work / "pictor.log", cores)
        self._ready(server, port, "/stats")
        return server

    def nginx(self, role: str, port: int, path: str, cores: str | None = None, loops: int = 0) -> Process:
        """nginx with one of the configurations in benchmarks/nginx; `loops` processes beside it do nothing, at the workers' niceness, 2."""
        folder = self.work / f"nginx-{role}"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        (folder / "images").symlink_to(self.images)
        (folder / "objects").mkdir()
        command = ["nginx", "-p", folder, "-c", BENCHMARKS / "nginx" / f"{role}.conf", "-e", folder / "error.log"]
        if loops:
            loop = "nice -n 2 sh -c 'while :; do :; done' & " * loops
            command = ["sh", "-c", f"{loop} exec {shlex.join(map(str, command))}"]
        server = Process(command, self.work / f"nginx-{role}.log", cores)
        if path:
            self._ready(server, port, path)
        return server

    def floor(self, body: Path, head: Path, cores: str | None = None, crowd: int = 0) -> Process:
        """The bare libmicrohttpd program. With `crowd`, requests wait until there are so many."""
        log = self.work / "floor.log"
        log.unlink(missing_ok=True)
        server = Process([self.build / "benchmark-floor", FLOOR, body, head, *([crowd] if crowd else [])], log, cores)
        if crowd:
            # A request of this process would be one of the crowd.
            wait_until(lambda: b"listening" in log.read_bytes(), f"{server.name} on port {FLOOR}, see {log}")
        else:
            self._ready(server, FLOOR, "/")
        return server

    def thumbor(self, path: str, **settings: str) -> Process:
        """thumbor with a process a core, keeping nothing, so that each request is a miss; `settings` as in its file."""
        program = Path(sys.executable).parent / "thumbor"
        configuration = self.work / "thumbor.conf"
        configuration.write_text("\n".join(
            [(BENCHMARKS / "thumbor.conf").read_text(), *(f"{name} = {value}" for name, value in settings.items())]))
        server = Process(
            [program, "--port", THUMBOR, "--ip", "127.0.0.1", "--conf", configuration, "--processes",
             os.cpu_count(), "--log-level", "error"],
            self.work / "thumbor.log")
        self._ready(server, THUMBOR, path)
        return server

    @staticmethod
    def imgproxy_program() -> Path | None:
        """imgproxy, where there is one: in no package registry, it is named by IMGPROXY, on the path, or beside the tree."""
        places = [os.environ.get("IMGPROXY"), shutil.which("imgproxy"), ROOT.parent / "shared" / "peers" / "imgproxy"]
        return next((Path(place) for place in places if place and os.access(place, os.X_OK)), None)

    def imgproxy(self, path: str, **settings: str) -> Process:
        """imgproxy, which keeps nothing, so that each request is a miss; at its defaults but for `settings`."""
        server = Process(
            [self.imgproxy_program()], self.work / "imgproxy.log",
            env={"PATH": "/usr/bin:/bin", "IMGPROXY_BIND": f"127.0.0.1:{IMGPROXY}",
                 "IMGPROXY_ALLOW_LOOPBACK_SOURCE_ADDRESSES": "true", "VIPS_WARNING": "0", "MALLOC_ARENA_MAX": "2", **settings})
        self._ready(server, IMGPROXY, path)
        return server

    @staticmethod
    def _ready(server: Process, port: int, path: str) -> None:
        def ready():
            if not server.is_running():
                tail = server.log.read_text(errors="replace").strip()[-500:]
                raise SystemExit(f"bench: {server.name} ended: {tail}")
            return http.answers(port, path)
        wait_until(ready, f"{server.name} on port {port}, see {server.log}")

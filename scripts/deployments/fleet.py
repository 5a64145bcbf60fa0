"""The checks of check-deployments for Redis: TLS by config/stunnel.conf, and every form of address that the table in
docs/operations.md lists. Each server is a real one of Debian's redis-server."""

import contextlib
import re
import select
import shutil
import socket
import subprocess
import threading
import time

from deployments.machines import Origin, Pictor, target
from support import ROOT, ask, await_that, free_ports, listens, stop


class Running:
    """A program that ends with its block."""

    def __init__(self, folder, name, command):
        self.log = folder / f"{name}.log"
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen([str(part) for part in command], stdout=log, stderr=log, cwd=folder)

    def stop(self):
        stop(self.process)


class Redis(Running):
    """A redis-server in a folder of its own."""

    def __init__(self, folder, name, *options, tls=False):
        self.folder = folder / name
        self.folder.mkdir()
        self.port, = free_ports(1)
        ports = ["--port", "0", "--tls-port", self.port] if tls else ["--port", self.port]
        super().__init__(self.folder, "log", ["redis-server", *ports, "--bind", "127.0.0.1", "--dir", self.folder,
                                              "--save", "", "--maxmemory-policy", "volatile-lfu", *options])
        await_that(f"{name} listens: {self.log}", lambda: listens(self.port))

    def command(self, *parts):
        return subprocess.check_output(["redis-cli", "-p", str(self.port), *map(str, parts)], text=True,
                                       timeout=20).strip()


class Relay:
    """A fixed address whose connections go to a port that may change, as a name or a proxy that follows the primary."""

    def __init__(self, port):
        self.target = port
        self.sockets = set()
        self.server = socket.create_server(("127.0.0.1", 0))
        self.port = self.server.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        with contextlib.suppress(OSError):
            while True:
                client, _ = self.server.accept()
                try:
                    other = socket.create_connection(("127.0.0.1", self.target), timeout=5)
                except OSError:
                    client.close()
                    continue
                threading.Thread(target=self.copy, args=(client, other), daemon=True).start()

    def copy(self, client, other):
        self.sockets |= {client, other}
        with contextlib.suppress(OSError, ValueError), client, other:
            while True:
                for one in select.select([client, other], [], [])[0]:
                    data = one.recv(65_536)
                    if not data:
                        return
                    (other if one is client else client).sendall(data)

    def move(self, port):
        """New connections go to another port. Those that are there end, as those to a server that is gone."""
        self.target = port
        for one in self.sockets:
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
        self.sockets = set()

    def stop(self):
        self.server.close()


class Fleet:
    """Two Pictors with one address of Redis, and an origin."""

    def __init__(self, program, folder, stack, address, *settings):
        self.origin = Origin()
        stack.callback(self.origin.server.shutdown)
        secret = folder / "address"
        secret.write_text(address)
        self.pictors = []
        for name in ("one", "two"):
            pictor = Pictor(program, folder, name, ["--fleet.redis", f"file:{secret}", "--fleet.timeout", "2s",
                                                    "--fleet.retry_interval", "50ms", *settings])
            stack.callback(pictor.stop)
            self.pictors.append(pictor)
        self.number = 0

    def figures(self):
        return [pictor.stats()["fleet"] for pictor in self.pictors]

    def is_ready(self):
        return all(one["connected"] and one["position_age_seconds"] >= 0 for one in self.figures())

    def connect(self):
        await_that(f"the fleet shares: {self.pictors[0].log}", self.is_ready)

    def shares(self):
        """Whether the second machine has the first one's variant, and none any more after the first one's purge."""
        one, two = self.pictors
        self.number += 1
        url = self.origin.url(self.number)
        path = target(url, w=16, format="png")
        stores = one.stats()["fleet"]["stores"]
        rendered = ask(one.port, path)
        await_that("the variant is written", lambda: one.stats()["fleet"]["stores"] > stores)
        shared = ask(two.port, path)
        applied = two.stats()["fleet"]["purges_applied"]
        purged = one.purge(url)
        await_that("the purge is applied", lambda: two.stats()["fleet"]["purges_applied"] > applied)
        again = ask(two.port, path)
        return (rendered.status, "detail=shared" in shared.caches[0], purged, "fwd=uri-miss" in again.caches[0])

    def serves(self):
        """Whether both machines serve a new image."""
        self.number += 1
        path = target(self.origin.url(self.number), w=16, format="png")
        return [ask(pictor.port, path).status for pictor in self.pictors]


SHARED = (200, True, 200, True)


def certificates(folder, name="redis.internal"):
    """An authority, and a certificate of the server. Returns their folder."""
    folder.mkdir()

    def openssl(*parts):
        subprocess.run(["openssl", *parts], cwd=folder, check=True, capture_output=True, timeout=60)

    openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", "ca.key",
            "-out", "ca.crt", "-subj", "/CN=authority", "-days", "2")
    openssl("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", "server.key", "-out",
            "server.csr", "-subj", f"/CN={name}")
    (folder / "names").write_text(f"subjectAltName=DNS:{name}\n")
    openssl("x509", "-req", "-in", "server.csr", "-CA", "ca.crt", "-CAkey", "ca.key", "-CAcreateserial", "-days", "2",
            "-extfile", "names", "-out", "server.crt")
    return folder


def stunnel(folder, name, redis_port, authority):
    """config/stunnel.conf with other addresses and another authority. Returns the running program and its port."""
    port, = free_ports(1)
    text = (ROOT / "config/stunnel.conf").read_text(encoding="utf-8")
    for old, new in [("accept = 127.0.0.1:6379", f"accept = 127.0.0.1:{port}"),
                     ("connect = redis.internal:6380", f"connect = 127.0.0.1:{redis_port}"),
                     ("CAfile = /etc/ssl/certs/ca-certificates.crt", f"CAfile = {authority}")]:
        if text.count(old) != 1:
            raise ValueError(f"config/stunnel.conf has no line: {old}")
        text = text.replace(old, new)
    path = folder / f"{name}.conf"
    path.write_text(text)
    return Running(folder, name, [shutil.which("stunnel4"), path]), port


def check_tls(report, program, folder):
    """TLS by stunnel, with the name and the authority checked."""
    right, wrong = certificates(folder / "right"), certificates(folder / "wrong", "other.internal")
    acl = re.search(r"^user pictor on .*$", (ROOT / "docs/operations.md").read_text(encoding="utf-8"), re.M)[0]
    with contextlib.ExitStack() as stack:
        (folder / "users").write_text("user default off\n" + acl.replace(">PASSWORD", ">p%ss") + "\n")
        redis = Redis(folder, "redis-tls", "--tls-cert-file", right / "server.crt", "--tls-key-file",
                      right / "server.key", "--tls-ca-cert-file", right / "ca.crt", "--tls-auth-clients", "no",
                      "--aclfile", folder / "users", tls=True)
        stack.callback(redis.stop)
        tunnel, port = stunnel(folder, "tunnel", redis.port, right / "ca.crt")
        stack.callback(tunnel.stop)
        fleet = Fleet(program, folder, stack, f"redis://pictor:p%25ss@127.0.0.1:{port}")
        fleet.connect()
        report.check("variants and purges are shared over TLS, by the user with least rights", fleet.shares(), SHARED)
        report.check("no command of Pictor was refused", [one["errors"] for one in fleet.figures()], [0, 0])
        plain = socket.create_connection(("127.0.0.1", redis.port), timeout=5)
        stack.callback(plain.close)
        plain.sendall(b"PING\r\n")
        with contextlib.suppress(OSError):
            report.check("Redis speaks TLS alone", b"PONG" in plain.recv(100), False)
    for name, authority, redis_keys in [("a server of another authority", wrong / "ca.crt", right),
                                        ("a server of another name", wrong / "ca.crt", wrong)]:
        place = folder / name.replace(" ", "-")
        place.mkdir()
        with contextlib.ExitStack() as stack:
            redis = Redis(place, "redis", "--tls-cert-file", redis_keys / "server.crt", "--tls-key-file",
                          redis_keys / "server.key", "--tls-ca-cert-file", redis_keys / "ca.crt", "--tls-auth-clients",
                          "no", tls=True)
            stack.callback(redis.stop)
            tunnel, port = stunnel(place, "tunnel", redis.port, authority)
            stack.callback(tunnel.stop)
            fleet = Fleet(program, place, stack, f"redis://127.0.0.1:{port}")
            await_that("Pictor has tried", lambda: all(one["failures"] > 2 for one in fleet.figures()))
            report.check(f"{name} is not used, and images are served",
                         ([one["connected"] for one in fleet.figures()], fleet.serves()), ([False] * 2, [200] * 2))


def check_addresses(report, program, folder):
    """Addresses that work."""
    with contextlib.ExitStack() as stack:
        redis = Redis(folder, "redis", "--unixsocket", folder / "socket", "--requirepass", "all")
        stack.callback(redis.stop)
        subprocess.run(["redis-cli", "-p", str(redis.port), "-a", "all", "--no-auth-warning", "ACL", "SETUSER", "pictor",
                        "on", ">secret", "~*", "+@all"], check=True, capture_output=True, timeout=20)
        forms = [("a password", f"redis://:all@127.0.0.1:{redis.port}", []),
                 ("an ACL user", f"redis://pictor:secret@127.0.0.1:{redis.port}", []),
                 ("a database", f"redis://:all@127.0.0.1:{redis.port}/3", []),
                 ("another prefix", f"redis://:all@127.0.0.1:{redis.port}/3", ["--fleet.key_prefix", "other:"]),
                 ("a name", f"redis://:all@localhost:{redis.port}", [])]
        for number, (name, address, settings) in enumerate(forms):
            place = folder / str(number)
            place.mkdir()
            with contextlib.ExitStack() as inner:
                fleet = Fleet(program, place, inner, address, *settings)
                fleet.connect()
                report.check(f"{name} works", fleet.shares(), SHARED)
        found = subprocess.check_output(["redis-cli", "-p", str(redis.port), "-a", "all", "--no-auth-warning", "-n", "3",
                                         "KEYS", "*:purges"], text=True, timeout=20).split()
        report.check("two fleets share one database", sorted(found), ["other:purges", "pictor:purges"])
        place = folder / "wrong"
        place.mkdir()
        with contextlib.ExitStack() as inner:
            fleet = Fleet(program, place, inner, f"redis://:wrong@127.0.0.1:{redis.port}")
            await_that("Pictor has tried", lambda: all(one["failures"] > 2 for one in fleet.figures()))
            report.check("with a wrong password nothing is shared, and images are served",
                         ([one["connected"] for one in fleet.figures()], fleet.serves()), ([False] * 2, [200] * 2))


def check_socket(report, program, folder):
    with contextlib.ExitStack() as stack:
        stack.callback(Redis(folder, "redis", "--unixsocket", folder / "socket").stop)
        fleet = Fleet(program, folder, stack, f"unix:{folder}/socket")
        fleet.connect()
        report.check("a unix socket works", fleet.shares(), SHARED)


def check_failover(report, program, folder):
    """A replica is promoted by hand, as Sentinel does it: with an address that stays, and with one that follows."""
    with contextlib.ExitStack() as stack:
        first, second = Redis(folder, "first"), Redis(folder, "second")
        for one in (first, second):
            stack.callback(one.stop)
        second.command("REPLICAOF", "127.0.0.1", first.port)
        await_that("the replica follows", lambda: "master_link_status:up" in second.command("INFO", "replication"))
        relay = Relay(first.port)
        stack.callback(relay.stop)
        fleet = Fleet(program, folder, stack, f"redis://127.0.0.1:{relay.port}")
        fleet.connect()
        report.check("the primary is used", fleet.shares(), SHARED)
        await_that("the replica has all", lambda: first.command("XLEN", "pictor:purges")
                   == second.command("XLEN", "pictor:purges"))
        epoch = first.command("GET", "pictor:epoch")
        second.command("REPLICAOF", "NO", "ONE")
        first.command("REPLICAOF", "127.0.0.1", second.port)
        # Reads of a replica succeed; the first write finds out.
        url = fleet.origin.url("failover")
        report.check("images are served by a fleet whose Redis became a replica", fleet.serves(), [200, 200])
        report.check("a purge is taken meanwhile", fleet.pictors[0].purge(url), 200)
        await_that("it waits", lambda: fleet.figures()[0]["purges_waiting"] == 1)
        relay.move(second.port)
        await_that("the purge is delivered", lambda: fleet.figures()[0]["purges_waiting"] == 0)
        fleet.connect()
        report.check("an address that moves to the new primary is used", fleet.shares(), SHARED)
        report.check("it has the old epoch, so nothing was purged needlessly", second.command("GET", "pictor:epoch"), epoch)


def check_cluster(report, program, folder):
    """A cluster of two servers: keys of one fleet have to be in one slot."""
    with contextlib.ExitStack() as stack:
        servers = [Redis(folder, name, "--cluster-enabled", "yes", "--cluster-port",
                         str(free_ports(1)[0])) for name in ("low", "high")]
        for one in servers:
            stack.callback(one.stop)
        servers[0].command("CLUSTER", "ADDSLOTSRANGE", 0, 8191)
        servers[1].command("CLUSTER", "ADDSLOTSRANGE", 8192, 16383)
        bus = re.search(r"127\.0\.0\.1:\d+@(\d+)|:\d+@(\d+)", servers[1].command("CLUSTER", "NODES"))
        servers[0].command("CLUSTER", "MEET", "127.0.0.1", servers[1].port, bus[1] or bus[2])
        await_that("the cluster is whole", lambda: all("cluster_state:ok" in one.command("CLUSTER", "INFO")
                                                       for one in servers))
        slot = int(servers[0].command("CLUSTER", "KEYSLOT", "{pictor}:purges"))
        owner = servers[slot > 8191]
        for name, prefix, server, wanted in [("the prefix {pictor}: at the server of its slot", "{pictor}:", owner, True),
                                             ("it at another server", "{pictor}:", servers[slot <= 8191], False),
                                             ("a prefix without a hash tag", "pictor:", owner, False)]:
            place = folder / name.replace(" ", "-")
            place.mkdir()
            with contextlib.ExitStack() as inner:
                fleet = Fleet(program, place, inner, f"redis://127.0.0.1:{server.port}", "--fleet.key_prefix", prefix)
                if wanted:
                    fleet.connect()
                    report.check(f"cluster: {name} works", fleet.shares(), SHARED)
                else:
                    time.sleep(1)
                    report.check(f"cluster: {name} shares nothing, and images are served",
                                 (fleet.is_ready(), fleet.serves()), (False, [200, 200]))


def check_redis(report, program, folder, _):
    for number, check in enumerate([check_tls, check_socket, check_addresses, check_failover, check_cluster]):
        place = folder / str(number)
        place.mkdir()
        report.guard(lambda: check(report, program, place))

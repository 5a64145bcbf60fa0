"""What the scripts share: problems and their report, environments of PyPI's packages, HTTP, PNGs, and the program."""

import atexit
import http.client
import http.server
import json
import os
import socket
import struct
import subprocess
import sys
import threading
import time
import typing
import zlib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]

problems = []


def expect(what, found, wanted=True):
    """Notes a problem unless both values are equal."""
    if found != wanted:
        problems.append(f"{what}: {found!r}, expected {wanted!r}")


def report(summary):
    """Prints the problems, and the summary with their number. Returns the exit status."""
    name = Path(sys.argv[0]).name
    sys.stderr.writelines(f"{name}: {problem}\n" for problem in problems)
    print(f"{name}: {summary}, {len(problems)} problems")
    return 1 if problems else 0


def program(arguments=None):
    """Returns the path of the program: the first argument that is no option, by default the release build."""
    named = [one for one in (sys.argv[1:] if arguments is None else arguments) if not one.startswith("--")]
    return Path(named[0] if named else ROOT / ".build/release/pictor").resolve()


def environment(name, *packages):
    """Returns the folder of the programs of these PyPI packages. A virtual environment, .build/NAME, has them."""
    folder = ROOT / ".build" / name
    installed = folder / "packages"
    # Debian's own Python, for which Debian has venv. Another release's has its packages elsewhere.
    def wanted():
        return "\n".join([os.path.realpath("/usr/bin/python3"), *packages])

    if not installed.is_file() or installed.read_text() != wanted():
        subprocess.run([ROOT / "scripts/set-up", "python3-venv"], check=True)
        subprocess.run(["/usr/bin/python3", "-m", "venv", "--clear", folder], check=True)
        pip = [folder / "bin/pip", "install", "--quiet", "--disable-pip-version-check"]
        subprocess.run([*pip, *packages], check=True)
        installed.write_text(wanted())
    return folder / "bin"


def enter(name, *packages):
    """Continues the script by the Python of an environment."""
    python = environment(name, *packages) / "python3"
    if Path(sys.prefix) != python.parents[1]:
        os.execv(python, [python, *sys.argv])


def free_ports(number):
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(number)]
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports


def await_that(what, condition, seconds=60):
    """Waits until the condition holds. Returns its value."""
    end = time.monotonic() + seconds
    while not (value := condition()):
        if time.monotonic() > end:
            raise TimeoutError(f"not within {seconds} s: {what}")
        time.sleep(0.05)
    return value


def listens(port):
    """Returns whether a process listens at a port of the loopback."""
    with socket.socket() as one:
        return one.connect_ex(("127.0.0.1", port)) == 0


def stop(process, seconds=40):
    """Ends a process, by force after these seconds. Returns its status."""
    process.terminate()
    try:
        return process.wait(timeout=seconds)
    except subprocess.TimeoutExpired:
        process.kill()
        return process.wait()


class Answer(typing.NamedTuple):
    status: int
    headers: http.client.HTTPMessage
    body: bytes

    @property
    def type(self):
        return self.headers.get("Content-Type")

    @property
    def caches(self):
        """The members of Cache-Status: the cache nearest to the client is the last one."""
        return ", ".join(self.headers.get_all("Cache-Status") or []).split(", ")

    @property
    def code(self):
        """The code of an error of Pictor."""
        return json.loads(self.body)["error"]["code"] if self.status >= 400 else ""


def connect(port, client=None, tls=None, timeout=60):
    """Returns a connection, from the address `client` and with the context `tls` if they are given."""
    options = {"timeout": timeout, "source_address": (client, 0) if client else None}
    if tls:
        return http.client.HTTPSConnection("localhost", port, context=tls, **options)
    return http.client.HTTPConnection("127.0.0.1", port, **options)


def ask(port, path, method="GET", client=None, tls=None, timeout=60, **headers):
    """Sends a request to a port of the loopback. Header names have `_` for `-`."""
    connection = connect(port, client, tls, timeout)
    try:
        connection.request(method, path, headers={name.replace("_", "-"): value for name, value in headers.items()})
        response = connection.getresponse()
        return Answer(response.status, response.headers, response.read())
    finally:
        connection.close()


class Handler(http.server.BaseHTTPRequestHandler):
    """Answers requests to a `Listener`, without a log."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def answer(self, status, body=b"", **headers):
        self.send_response(status)
        for name, value in {"Content_Length": len(body), **headers}.items():
            self.send_header(name.replace("_", "-"), str(value))
        self.end_headers()
        try:
            self.wfile.write(body)
        except OSError:
            pass  # The client has left.

    def log_message(self, *_):
        pass


class Listener(http.server.ThreadingHTTPServer):
    """An HTTP server at a free port, until the script ends."""

    request_queue_size = 512

    def __init__(self, handler, host="127.0.0.1"):
        self.address_family = socket.AF_INET6 if ":" in host else socket.AF_INET
        super().__init__((host, 0), handler)
        self.base = f"http://{f'[{host}]' if ':' in host else host}:{self.server_port}"
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def handle_error(self, *connection):
        # Clients may leave. Faults of a handler are shown.
        if not isinstance(sys.exc_info()[1], ConnectionError):
            super().handle_error(*connection)


class Server:
    """The program at free ports, with a disk tier and a log of its own in a folder. It ends with its block."""

    def __init__(self, program, folder, *options, name="pictor", operators=False, **environment):
        self.program, self.folder, self.name = program, Path(folder), name
        self.options, self.environment = options, {name: value for name, value in os.environ.items() if not name.startswith("PICTOR_")} | environment
        self.log = self.folder / f"{name}.log"
        self.port, self.operator_port = 0, 0 if operators else None
        self.start()

    def start(self):
        """Starts it, also again: at the same ports, with the same disk tier."""
        own = ["--server.port", self.port, "--disk.path", self.folder / self.name, "--log.format", "json",
               "--server.shutdown_delay", "0s"]
        if self.operator_port is not None:
            own += ["--server.operator_address", f"127.0.0.1:{self.operator_port}"]
        with open(self.log, "ab") as log:
            self.began = log.tell()
            self.process = subprocess.Popen([str(word) for word in (self.program, *own, *self.options)], stderr=log,
                                            cwd=ROOT, env=self.environment)
        atexit.register(self.process.kill)  # Whatever ends the script.
        addresses = await_that(f"{self.name} serves: {self.log}", self.addresses)
        self.port, self.base = int(addresses["serving"].rpartition(":")[2]), f"http://{addresses['serving']}"
        if self.operator_port is not None:
            self.operator_port = int(addresses["serving operators"].rpartition(":")[2])

    def addresses(self):
        found = {line["message"]: line["address"] for line in self.lines() if "address" in line}
        if self.process.poll() is not None:
            raise RuntimeError(f"the program ended with {self.process.returncode}:\n{self.log.read_text()}")
        return found if "serving" in found else None

    def lines(self, message=None):
        """Returns the lines of the log since the start, or those with a message. The last one may be cut."""
        with open(self.log, "rb") as log:
            log.seek(self.began)
            lines = log.read().decode(errors="replace").split("\n")[:-1]
        return [line for line in map(json.loads, (one for one in lines if one.startswith("{")))
                if message in (None, line["message"])]

    def ask(self, path, method="GET", **options):
        return ask(self.port, path, method, **options)

    def stats(self):
        return json.loads(ask(self.operator_port or self.port, "/stats").body)

    def stop(self):
        expect(f"the exit status of {self.name}", stop(self.process), 0)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()


def png(width, height, rows):
    """Returns a PNG of rows of red, green and blue: fewer than its height claims, if it has to be damaged."""
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    pack = zlib.compressobj(1)
    pixels = b"".join(pack.compress(b"\0" + row) for row in rows) + pack.flush()
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0))
            + chunk(b"IDAT", pixels) + chunk(b"IEND", b""))

"""What check-page drives the page with: an origin, the program, Chromium, and axe-core."""

import base64
import http.server
import json
import os
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.parse
import urllib.request
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
OUTPUT = ROOT / ".build/page"
TOKEN = "a-token-for-the-page"
AXE = "axe-playwright-python==0.1.8"
HOSTILE = "<img src=x onerror=document.title='taken'>"
#: A name of this machine that is no secure context: pages of it have no clipboard.
PLAIN_HOST = "pictor.test"
ENTER, TAB, ESCAPE, UP, RIGHT = "\ue007", "\ue004", "\ue00c", "\ue013", "\ue014"

problems = []


def expect(what, holds, detail=""):
    if not holds:
        problems.append(f"{what}: {detail}" if detail != "" else what)


class Origin(http.server.BaseHTTPRequestHandler):
    """Serves a sample at /hills.jpg, keeps /slow and /held waiting until they are released, and says 404 elsewhere."""

    released = {"/slow": threading.Event(), "/held": threading.Event()}

    def do_GET(self):
        if self.path in self.released:
            self.released[self.path].wait(60)
        body = (ROOT / "samples/hills.jpg").read_bytes() if self.path in ("/hills.jpg", *self.released) else b""
        self.send_response(200 if body else 404)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        try:
            self.wfile.write(body)
        except OSError:
            pass

    def log_message(self, *_):
        pass


class Server:
    """The program with the samples, an operator and arguments."""

    def __init__(self, program, folder, *arguments):
        log = Path(folder) / f"log-{len(list(Path(folder).iterdir()))}"
        with open(log, "w", encoding="utf-8") as output:
            self.process = subprocess.Popen(
                [program, "--config", "samples/pictor.json5", "--server.port", "0", "--disk.path", f"{log}-cache",
                 "--download.allow_networks", "127.0.0.0/8", "--log.format", "json", *arguments],
                stderr=output, cwd=ROOT, env=os.environ | {"PICTOR_ADMIN_TOKENS": TOKEN})
        for _ in range(300):
            lines = [json.loads(line) for line in log.read_text(encoding="utf-8").splitlines() if line[:1] == "{"]
            addresses = {line["message"]: line["address"] for line in lines if "address" in line}
            if "serving" in addresses:
                self.base = f"http://{addresses['serving']}/"
                self.operators = f"http://{addresses.get('serving operators', addresses['serving'])}/"
                return
            if self.process.poll() is not None:
                break
            time.sleep(0.1)
        self.stop()
        sys.exit(f"check-page: the server did not start: {log.read_text(encoding='utf-8')}")

    def stop(self):
        self.process.terminate()
        try:
            self.process.wait(timeout=30)
        except subprocess.TimeoutExpired:
            self.process.kill()


class Browser:
    """Headless Chromium, by the WebDriver protocol (W3C) and Chromium's own commands."""

    def __init__(self):
        with socket.create_server(("127.0.0.1", 0)) as one:
            port = one.getsockname()[1]
        self.driver = subprocess.Popen(["chromedriver", f"--port={port}", "--log-level=SEVERE"],
                                       stdout=subprocess.DEVNULL)
        self.base = f"http://127.0.0.1:{port}"
        self.session = ""
        options = {"args": ["--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--hide-scrollbars",
                            "--disable-gpu", "--lang=en", f"--host-resolver-rules=MAP {PLAIN_HOST} 127.0.0.1"]}
        wanted = {"browserName": "chrome", "goog:chromeOptions": options, "goog:loggingPrefs": {"browser": "ALL"},
                  "unhandledPromptBehavior": "ignore"}
        for _ in range(100):
            try:
                made = self.ask("POST", "/session", {"capabilities": {"alwaysMatch": wanted}})
                break
            except urllib.error.URLError as error:
                if isinstance(error, urllib.error.HTTPError):
                    sys.exit(f"check-page: no browser: {error.read().decode()[:600]}")
                time.sleep(0.1)
        else:
            sys.exit("check-page: chromedriver did not start")
        self.session = f"/session/{made['sessionId']}"
        self.ask("POST", "/timeouts", {"script": 60000})

    def ask(self, method, path, body=None):
        data = json.dumps(body).encode() if body is not None else None
        request = urllib.request.Request(self.base + self.session + path, data, {"Content-Type": "application/json"},
                                         method=method)
        with urllib.request.urlopen(request, timeout=90) as answer:
            return json.load(answer)["value"]

    def close(self):
        try:
            self.ask("DELETE", "")
        finally:
            self.driver.terminate()
            self.driver.wait(timeout=10)

    def open(self, url):
        # Another hash alone would not load the page.
        self.ask("POST", "/url", {"url": "about:blank"})
        self.ask("POST", "/url", {"url": url})

    def run(self, script, *arguments):
        return self.ask("POST", "/execute/sync", {"script": script, "args": arguments})

    def value(self, expression):
        return self.run(f"return {expression}")

    def text(self, selector):
        return self.run("return document.querySelector(arguments[0])?.innerText ?? ''", selector)

    def until(self, what, expression, seconds=20):
        """Waits until an expression of JavaScript is true."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if self.value(expression):
                return True
            time.sleep(0.05)
        problems.append(f"{what}: not within {seconds} s: {expression}")
        return False

    def keys(self, text):
        """Presses keys, one after the other, where the focus is."""
        actions = [{"type": kind, "value": key} for key in text for kind in ("keyDown", "keyUp")]
        self.ask("POST", "/actions", {"actions": [{"type": "key", "id": "keys", "actions": actions}]})

    def point(self, *steps):
        """Moves the mouse: each step is an x, a y and what follows there, "pointerDown", "pointerUp" or None."""
        actions = []
        for x, y, then in steps:
            actions.append({"type": "pointerMove", "duration": 20, "x": round(x), "y": round(y)})
            if then:
                actions.append({"type": then, "button": 0})
        self.ask("POST", "/actions", {"actions": [{"type": "pointer", "id": "mouse", "actions": actions}]})

    def box(self, selector):
        """The place of an element in the window: x, y, width and height."""
        return self.run("const { x, y, width, height } = document.querySelector(arguments[0]).getBoundingClientRect();"
                        "return [x, y, width, height]", selector)

    def click(self, selector):
        """Scrolls an element into sight, and clicks on its middle with the mouse."""
        self.run("document.querySelector(arguments[0]).scrollIntoView({ block: 'nearest' })", selector)
        x, y, width, height = self.box(selector)
        self.point((x + width / 2, y + height / 2, "pointerDown"), (x + width / 2, y + height / 2, "pointerUp"))

    def focus(self, selector):
        self.run("const one = document.querySelector(arguments[0]); one.closest('details')?.setAttribute('open', '');"
                 "one.focus(); one.select?.()", selector)

    def type(self, selector, text):
        self.focus(selector)
        self.keys("\ue017" + text)

    def command(self, name, **parameters):
        return self.ask("POST", "/goog/cdp/execute", {"cmd": name, "params": parameters})

    def show_as(self, width, height, scheme):
        self.command("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1,
                     mobile=width < 500)
        self.command("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])

    def capture(self, name, whole=True, **parameters):
        if whole:
            self.run("scrollTo(0, 0)")
            width, height = self.value("[innerWidth, document.documentElement.scrollHeight]")
            parameters["clip"] = {"x": 0, "y": 0, "width": width, "height": height, "scale": 1}
        screenshot = self.command("Page.captureScreenshot", captureBeyondViewport=whole, **parameters)["data"]
        path = name if isinstance(name, Path) else OUTPUT / f"{name}.png"
        path.write_bytes(base64.b64decode(screenshot))

    def messages(self):
        """What the console said since the last look, without the statuses that this script provokes."""
        return [entry["message"] for entry in self.ask("POST", "/se/log", {"type": "browser"})
                if "Failed to load resource: the server responded" not in entry["message"]]


def axe():
    """The source of axe-core."""
    cached = OUTPUT / "axe.min.js"
    if not cached.exists():
        with tempfile.TemporaryDirectory() as folder:
            subprocess.run([sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", folder, AXE],
                           check=True)
            with zipfile.ZipFile(next(Path(folder).glob("*.whl"))) as wheel:
                name = next(name for name in wheel.namelist() if name.endswith("axe.min.js"))
                cached.write_bytes(wheel.read(name))
    return cached.read_text(encoding="utf-8")


def look_for_barriers(browser, source, state):
    browser.run(source + "; window.axe = axe")
    found = browser.ask("POST", "/execute/async", {"script": """
        const done = arguments[arguments.length - 1];
        axe.run(document).then(({ violations, passes }) => done({ passes: passes.length, violations:
            violations.map(({ id, nodes }) => id + ": " + nodes.map((node) => node.target + " " +
            node.failureSummary).join(" | ")) }), (error) => done({ passes: 0, violations: [String(error)] }))""",
        "args": []})
    expect(f"axe, {state}, looked", found["passes"] > 10, found)
    for violation in found["violations"]:
        problems.append(f"axe, {state}: {violation[:600]}")


def status_of(url):
    try:
        with urllib.request.urlopen(url, timeout=30) as answer:
            return answer.status
    except urllib.error.HTTPError as error:
        return error.code


IS_SHOWN = "document.getElementById('stage').getAttribute('aria-busy') === 'false' && " \
           "document.body.classList.contains('filled')"



"""What check-page drives the page with: an origin, Chromium, and axe-core."""

import base64
import json
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from pathlib import Path

from support import ROOT, Handler, await_that, environment, free_ports, listens, problems, stop

TOKEN = "a-token-for-the-page"
HOSTILE = "<img src=x onerror=document.title='taken'>"
#: A name of this machine that is no secure context: pages of it have no clipboard.
PLAIN_HOST = "pictor.test"
ENTER, TAB, ESCAPE, UP, RIGHT = "\ue007", "\ue004", "\ue00c", "\ue013", "\ue014"


def require(what, holds, detail=""):
    if not holds:
        problems.append(f"{what}: {detail}" if detail != "" else what)


class Origin(Handler):
    """Serves a sample at /hills.jpg, and at others once they are released, and says 404 elsewhere."""

    released = {path: threading.Event() for path in ("/slow", "/held", "/late")}

    def do_GET(self):
        if self.path in self.released:
            self.released[self.path].wait(60)
        body = (ROOT / "samples/hills.jpg").read_bytes() if self.path in ("/hills.jpg", *self.released) else b""
        self.answer(200 if body else 404, body)


class Browser:
    """Headless Chromium, by the WebDriver protocol (W3C) and Chromium's own commands."""

    def __init__(self, output):
        self.output, port = output, free_ports(1)[0]
        self.output.mkdir(parents=True, exist_ok=True)
        self.driver = subprocess.Popen(["chromedriver", f"--port={port}", "--log-level=SEVERE"],
                                       stdout=subprocess.DEVNULL)
        self.base = f"http://127.0.0.1:{port}"
        self.session = ""
        options = {"args": ["--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--hide-scrollbars",
                            "--disable-gpu", "--lang=en", f"--host-resolver-rules=MAP {PLAIN_HOST} 127.0.0.1"]}
        wanted = {"browserName": "chrome", "goog:chromeOptions": options, "goog:loggingPrefs": {"browser": "ALL"},
                  "unhandledPromptBehavior": "ignore"}
        await_that("chromedriver listens", lambda: listens(port))
        try:
            made = self.ask("POST", "/session", {"capabilities": {"alwaysMatch": wanted}})
        except urllib.error.HTTPError as error:
            sys.exit(f"no browser: {error.read().decode()[:600]}")
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
            stop(self.driver)

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
        path = name if isinstance(name, Path) else self.output / f"{name}.png"
        path.write_bytes(base64.b64decode(screenshot))

    def messages(self):
        """What the console said since the last look, without the statuses that this script provokes."""
        return [entry["message"] for entry in self.ask("POST", "/se/log", {"type": "browser"})
                if "Failed to load resource: the server responded" not in entry["message"]]


def axe():
    """The source of axe-core."""
    path = next(environment("axe", "--no-deps", "axe-playwright-python==0.1.8").parent.rglob("axe.min.js"))
    return path.read_text(encoding="utf-8")


def look_for_barriers(browser, source, state):
    browser.run(source + "; window.axe = axe")
    found = browser.ask("POST", "/execute/async", {"script": """
        const done = arguments[arguments.length - 1];
        axe.run(document).then(({ violations, passes }) => done({ passes: passes.length, violations:
            violations.map(({ id, nodes }) => id + ": " + nodes.map((node) => node.target + " " +
            node.failureSummary).join(" | ")) }), (error) => done({ passes: 0, violations: [String(error)] }))""",
        "args": []})
    require(f"axe, {state}, looked", found["passes"] > 10, found)
    for violation in found["violations"]:
        problems.append(f"axe, {state}: {violation[:600]}")


IS_SHOWN = "document.getElementById('stage').getAttribute('aria-busy') === 'false' && " \
           "document.body.classList.contains('filled')"



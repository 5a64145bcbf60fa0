"""What check-clients and check-recipes share: the URL builders of docs/clients/README.md, an origin, and the program."""

import json
import os
import re
import subprocess

from support import ROOT, Handler, Server

CLIENTS = ROOT / "docs/clients"
SIGNING = json.loads(re.search(r"^```json\n(.*?)^```", (ROOT / "docs/signing.md").read_text(encoding="utf-8"),
                               re.M | re.S)[1])
KEYS = SIGNING["keys"]


def run(command, folder, **options):
    environment = os.environ | {"GOCACHE": str(folder / "cache"), "GOPATH": str(folder / "go"), "GO111MODULE": "off",
                                "HOME": str(folder), "LC_ALL": "C.UTF-8"}
    return subprocess.run(command, cwd=folder, text=True, capture_output=True, timeout=300, env=environment, **options)


def extract(name, folder):
    """Writes the page's blocks of a language whose first line names their file."""
    page = (CLIENTS / "README.md").read_text(encoding="utf-8")
    tag = "js" if name == "javascript" else name
    for block in re.findall(rf"^```{tag}\n(.*?)^```", page, re.M | re.S):
        file = re.match(r"(?:<\?php )?(?://|#) ([\w.-]+\.\w+)\n", block)
        if file:
            path = folder / ("go/src/pictor" if file[1].endswith(".go") else "") / file[1]
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(block, encoding="utf-8")


class Origin(Handler):
    """Serves a sample at every path."""

    sample = "logo@2x.png"

    def do_GET(self):
        self.answer(200, (ROOT / "samples" / self.sample).read_bytes())


class Signing(Server):
    """The program, which knows the vectors' keys."""

    def __init__(self, program, folder, mode="required"):
        super().__init__(
            program, folder, "--signing.mode", mode, "--sources.local_root", ROOT / "samples",
            "--download.allow_networks", "127.0.0.0/8,::1/128", PICTOR_PRESETS="thumb=w=30&h=20",
            PICTOR_SIGNING_KEYS=",".join(f"{name}:{secret}" for name, secret in KEYS.items()))

"""A stand-in for S3: moto's server (PyPI's moto, in .build/s3), which has its objects in memory."""

import http.client
import signal
import subprocess
import sys
from pathlib import Path

from processes import await_that, free_ports

PACKAGES = Path(__file__).resolve().parents[2] / ".build/s3"
BUCKET = "fleet"


def install():
    """Installs moto, unless it is there."""
    python = PACKAGES / "bin/python3"
    if python.exists() and subprocess.run([python, "-c", "import moto.server"], capture_output=True).returncode == 0:
        return
    subprocess.run([sys.executable, "-m", "venv", PACKAGES], check=True)
    subprocess.run([PACKAGES / "bin/pip", "install", "--quiet", "moto[s3,server]"], check=True)


class Store:
    """moto's server with a bucket. Killed, it loses all objects."""

    def __init__(self, folder):
        self.log, self.port, self.is_up = folder / "store.log", free_ports(1)[0], False
        self.secret = folder / "store-secret"
        self.secret.write_text("a-secret-of-the-store")
        self.start()

    @property
    def settings(self):
        """What a machine needs to use it."""
        return ["--fleet.s3.endpoint", f"http://127.0.0.1:{self.port}", "--fleet.s3.bucket", BUCKET,
                "--fleet.s3.access_key", "AKIDEXAMPLE", "--fleet.s3.secret_key", f"file:{self.secret}",
                "--fleet.s3.region", "eu-west-3"]

    def start(self):
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(
                [PACKAGES / "bin/moto_server", "-H", "127.0.0.1", "-p", str(self.port)], stdout=log, stderr=log)
        await_that(f"moto has a bucket: {self.log}", self.makes_bucket, 60)
        self.is_up = True

    def makes_bucket(self):
        if self.process.poll() is not None:
            raise RuntimeError(f"moto_server ended: {self.log.read_text()[-500:]}")
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=5)
        try:
            connection.request("PUT", f"/{BUCKET}", headers={
                "Authorization": "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20260101/us-east-1/s3/aws4_request"})
            return connection.getresponse().status in (200, 409)
        except OSError:
            return False
        finally:
            connection.close()

    def kill(self):
        self.is_up = False
        self.process.kill()
        self.process.wait()

    def freeze(self):
        self.process.send_signal(signal.SIGSTOP)

    def thaw(self):
        self.process.send_signal(signal.SIGCONT)

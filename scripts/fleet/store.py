"""A stand-in for S3: moto's server (PyPI's moto), which has its objects in memory."""

import subprocess

from support import ask, await_that, environment, free_ports

PACKAGES = ["moto[s3,server]==5.2.5"]
BUCKET = "fleet"
CREDENTIAL = "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20260101/us-east-1/s3/aws4_request"


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
        server = environment("s3", *PACKAGES) / "moto_server"
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen([server, "-H", "127.0.0.1", "-p", str(self.port)], stdout=log, stderr=log)
        await_that(f"moto has a bucket: {self.log}", self.makes_bucket, 60)
        self.is_up = True

    def makes_bucket(self):
        if self.process.poll() is not None:
            raise RuntimeError(f"moto_server ended: {self.log.read_text()[-500:]}")
        try:
            return ask(self.port, f"/{BUCKET}", "PUT", timeout=5, Authorization=CREDENTIAL).status in (200, 409)
        except OSError:
            return False

    def kill(self):
        self.is_up = False
        self.process.kill()
        self.process.wait()

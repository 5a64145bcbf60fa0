"""The proxies of check-deployments: each runs its file of config/ with addresses, ports and folders of this machine."""

import functools
import os
import re
import shutil
import ssl
import subprocess
from pathlib import Path

from support import ROOT, ask, await_that, free_ports, listens, stop

CONFIG = ROOT / "config"
#: Where Debian's packages put modules of nginx.
MODULES = "/usr/lib/nginx/modules"


def find(program):
    """The path of a program, also in the folders that are not on the path of every user."""
    return shutil.which(program, path=os.environ["PATH"] + ":/usr/sbin:/sbin") or program


class Proxy:
    """A proxy in front of Pictors. Subclasses know its file, how it differs here, and its command."""

    def __init__(self, folder, pictors):
        self.folder = folder / type(self).__name__.lower()
        self.folder.mkdir()
        self.port = free_ports(1)[0]
        text = (CONFIG / self.file).read_text(encoding="utf-8")
        for number, pictor in enumerate(pictors, 11):
            text = text.replace(f"10.0.0.{number}:8080", f"127.0.0.1:{pictor.port}")
            text = text.replace(f".host = \"10.0.0.{number}\"; .port = \"8080\"",
                                f".host = \"127.0.0.1\"; .port = \"{pictor.port}\"")
        if re.search(r"^[^#\n]*10\.0\.0\.", text, re.M):
            raise ValueError(f"config/{self.file} has an address that was not replaced")
        self.path = self.folder / Path(self.file).name
        self.path.write_text(self.adapted(text), encoding="utf-8")
        self.log = self.folder / "log"
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen(self.command(), cwd=self.folder, stdout=log, stderr=log,
                                            env=os.environ | {"XDG_DATA_HOME": str(self.folder),
                                                              "XDG_CONFIG_HOME": str(self.folder)})
        await_that(f"{self.file} serves: {self.log.read_text()}", self.is_listening)

    def is_listening(self):
        if self.process.poll() is not None:
            raise RuntimeError(f"{self.command()[0]} ended: {self.log.read_text()}")
        return listens(self.port)

    def adapted(self, text):
        return text

    #: The context for connections to it, if it speaks TLS.
    tls = None

    def ask(self, path, method="GET", client=None, **headers):
        return ask(self.port, path, method, client, self.tls, **headers)

    def stop(self):
        stop(self.process)


class Nginx(Proxy):
    file = "nginx-fleet.conf"

    def adapted(self, text):
        text = text.replace("listen 80;", f"listen 127.0.0.1:{self.port};")
        text = text.replace("/var/cache/nginx/pictor", str(self.folder / "cache"))
        folders = "".join(f"{kind}_temp_path {self.folder}/{kind};\n"
                          for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"))
        user = "user root;\n" if os.getuid() == 0 else ""
        (self.folder / "nginx.conf").write_text(
            f"load_module {MODULES}/ndk_http_module.so;\nload_module {MODULES}/ngx_http_set_misc_module.so;\n"
            f"{user}daemon off;\npid {self.folder}/pid;\nerror_log stderr warn;\nevents {{}}\n"
            f"http {{\naccess_log off;\n{folders}include {self.path};\n}}\n")
        return text

    def command(self):
        return [find("nginx"), "-c", str(self.folder / "nginx.conf"), "-e", "stderr"]


class CDN(Nginx):
    """A cache that ignores Vary, as some CDNs do."""

    def adapted(self, text):
        return super().adapted(text).replace("proxy_cache pictor;", "proxy_cache pictor; proxy_ignore_headers Vary;")


class HAProxy(Proxy):
    file = "haproxy-fleet.cfg"

    def adapted(self, text):
        return text.replace("bind :80\n", f"bind 127.0.0.1:{self.port}\n")

    def command(self):
        return [find("haproxy"), "-db", "-f", str(self.path)]


class Varnish(Proxy):
    file = "varnish/pictor.vcl"

    def command(self):
        # The port of the options in the file; none for its terminal.
        return [find("varnishd"), "-F", "-n", str(self.folder / "work"), "-a", f"127.0.0.1:{self.port}", "-f",
                str(self.path), "-s", "malloc,64M", "-p", "http_req_hdr_len=16k", "-T", "none"]


class Caddy(Proxy):
    file = "caddy/Caddyfile"

    def adapted(self, text):
        text = text.replace("images.example.com {",
                            f"https://localhost:{self.port} {{\n\tbind 127.0.0.1\n\ttls internal", 1)
        return "{\n\tadmin off\n\tskip_install_trust\n\tauto_https disable_redirects\n}\n" + text

    def command(self):
        return [find("caddy"), "run", "--adapter", "caddyfile", "--config", str(self.path)]

    @property
    def authority(self):
        """The certificate by which its own ones are verified."""
        return self.folder / "caddy/pki/authorities/local/root.crt"

    @functools.cached_property
    def tls(self):
        await_that("the certificate of Caddy", self.authority.is_file)
        return ssl.create_default_context(cafile=self.authority)

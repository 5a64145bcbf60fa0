"""HTTP as far as the benchmarks speak it themselves; load is wrk's."""

import http.client
import json
import socket
from urllib.parse import quote

from .processes import Failure


def get(port: int, path: str, timeout: float = 60, accept: str | None = None):
    """(status, headers in small letters, body); a connection of its own."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=timeout)
    try:
        connection.request("GET", path, headers={"Accept": accept} if accept else {})
        response = connection.getresponse()
        return response.status, {name.lower(): value for name, value in response.getheaders()}, response.read()
    finally:
        connection.close()


def get_all(port: int, paths) -> None:
    """Asks for all of them, one after the other, on one connection."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    for path in paths:
        connection.request("GET", path)
        response = connection.getresponse()
        response.read()
        if response.status != 200:
            raise Failure(f"{path}: {response.status}")
    connection.close()


def answers(port: int, path: str) -> bool:
    """Whether it answers 200."""
    try:
        return get(port, path)[0] == 200
    except (OSError, http.client.HTTPException):
        return False


def stats(port: int) -> dict:
    """Pictor's /stats."""
    return json.loads(get(port, "/stats")[2])


def image(source: str, **parameters) -> str:
    """The path of an image of Pictor's."""
    rest = "".join(f"&{name}={value}" for name, value in parameters.items())
    return f"/image?url={quote(source, safe='')}{rest}"


def request_bytes(path: str, close: bool = False, accept: str | None = None) -> bytes:
    """A request as it is sent."""
    end = ("Connection: close\r\n" if close else "") + (f"Accept: {accept}\r\n" if accept else "")
    return f"GET {path} HTTP/1.1\r\nHost: bench\r\n{end}\r\n".encode()


def connect(port: int, receive_buffer: int | None = None) -> socket.socket:
    """A connected socket; `receive_buffer` is its SO_RCVBUF, in bytes."""
    client = socket.socket()
    if receive_buffer:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
    client.connect(("127.0.0.1", port))
    return client

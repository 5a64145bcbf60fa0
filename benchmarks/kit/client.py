"""A client of few moving parts, for what wrk cannot do: a fixed number of requests, and many at once."""

import re
import select
import socket
import time
from collections.abc import Iterable
from statistics import quantiles

from . import http
from .load import Measured
from .processes import Failure, Process

LENGTH = re.compile(rb"\r\nContent-Length: (\d+)\r\n", re.I)


class Connection:
    """One connection with at most one request under way."""

    def __init__(self, port: int, accept: str | None = None):
        self.accept = accept
        self.socket = http.connect(port)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.received, self.expected, self.sent_at = b"", None, 0.0

    def send(self, path: str) -> None:
        self.received, self.expected = b"", None
        self.sent_at = time.monotonic()
        self.socket.sendall(http.request_bytes(path, accept=self.accept))

    def receive(self) -> bool:
        """Reads what is there; whether the answer is whole."""
        data = self.socket.recv(1 << 20)
        if not data:
            raise Failure("a connection was closed in the middle of an answer")
        self.received += data
        if self.expected is None and (end := self.received.find(b"\r\n\r\n")) >= 0:
            head = self.received[:end + 2]
            if not head.startswith(b"HTTP/1.1 200 "):
                raise Failure(f"an answer of {head.splitlines()[0].decode()}")
            self.expected = end + 4 + int(LENGTH.search(head)[1])
        return self.expected is not None and len(self.received) >= self.expected


def fetch(port: int, paths: Iterable[str], connections: int, *watched: Process, accept: str | None = None) -> Measured:
    """Asks for all paths over so many connections: every request that is paid for is also counted."""
    before = sum(process.cpu() for process in watched)
    todo, durations = iter(paths), []
    poll = select.epoll()
    begin = time.monotonic()
    open_ = {}
    for path in todo:
        connection = Connection(port, accept)
        open_[connection.socket.fileno()] = connection
        poll.register(connection.socket, select.EPOLLIN)
        connection.send(path)
        if len(open_) == connections:
            break
    busy = len(open_)
    while busy:
        ready = poll.poll(60)
        if not ready:
            raise Failure("no answer for a minute")
        for descriptor, _ in ready:
            connection = open_[descriptor]
            if not connection.receive():
                continue
            durations.append(time.monotonic() - connection.sent_at)
            if (path := next(todo, None)) is not None:
                connection.send(path)
            else:
                busy -= 1
    elapsed = time.monotonic() - begin
    for connection in open_.values():
        connection.socket.close()
    used = sum(process.cpu() for process in watched) - before
    shares = quantiles(durations, n=100, method="inclusive") if len(durations) > 1 else durations * 99
    return Measured(len(durations) / elapsed, shares[49], shares[98], len(durations), used / len(durations))


def at_once(port: int, path: str, count: int) -> tuple[float, float]:
    """Asks `count` times at once; seconds from the first request to the first and to the last whole answer.

    All bodies are the same, so once one answer is whole the others are known by their end: what this client spends on
    an answer is part of what it measures."""
    clients = {}
    poll = select.epoll()
    for _ in range(count):
        connection = Connection(port)
        clients[connection.socket.fileno()] = connection
        poll.register(connection.socket, select.EPOLLIN)
    request = http.request_bytes(path)
    begin = time.monotonic()
    for connection in clients.values():
        connection.socket.sendall(request)
    # An object for each answer would cost this client more than a server needs to send it.
    buffer = memoryview(bytearray(1 << 20))
    first, end, left = 0.0, b"", count
    while left:
        ready = poll.poll(60, count)
        if not ready:
            raise Failure("no answer for a minute")
        for descriptor, _ in ready:
            connection = clients[descriptor]
            if not end:
                if connection.receive():
                    first, end, left = time.monotonic(), connection.received[-64:], left - 1
                continue
            length = connection.socket.recv_into(buffer)
            if not length:
                raise Failure("a connection was closed in the middle of an answer")
            tail = bytes(buffer[max(length - len(end), 0):length])
            connection.received = (connection.received + tail)[-len(end):]
            left -= connection.received == end
    last = time.monotonic()
    for connection in clients.values():
        connection.socket.close()
    return first - begin, last - begin

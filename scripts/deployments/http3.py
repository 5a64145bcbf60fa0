"""Asks for a URL by HTTP/3. Arguments: the URL, the certificate of the authority, the file for the body.

It writes `h3` and the status.
"""

import asyncio
import sys
from urllib.parse import urlsplit

from aioquic.asyncio.client import connect
from aioquic.asyncio.protocol import QuicConnectionProtocol
from aioquic.h3.connection import H3_ALPN, H3Connection
from aioquic.h3.events import DataReceived, HeadersReceived
from aioquic.quic.configuration import QuicConfiguration


class Client(QuicConnectionProtocol):
    """A connection for one request."""

    def __init__(self, *arguments, **options):
        super().__init__(*arguments, **options)
        self.http = H3Connection(self._quic)
        self.ended = asyncio.get_running_loop().create_future()
        self.status, self.body = "", b""

    async def get(self, url):
        parts = urlsplit(url)
        stream = self._quic.get_next_available_stream_id()
        self.http.send_headers(stream, [
            (b":method", b"GET"), (b":scheme", b"https"), (b":authority", parts.netloc.encode()),
            (b":path", f"{parts.path}?{parts.query}".encode())], end_stream=True)
        self.transmit()
        await asyncio.wait_for(self.ended, 30)

    def quic_event_received(self, event):
        for part in self.http.handle_event(event):
            if isinstance(part, HeadersReceived):
                self.status = dict(part.headers)[b":status"].decode()
            elif isinstance(part, DataReceived):
                self.body += part.data
            if getattr(part, "stream_ended", False) and not self.ended.done():
                self.ended.set_result(None)


async def main():
    url, authority, file = sys.argv[1:]
    configuration = QuicConfiguration(is_client=True, alpn_protocols=H3_ALPN)
    configuration.load_verify_locations(authority)
    parts = urlsplit(url)
    # By address: a resolver may name ::1 first.
    configuration.server_name = parts.hostname
    async with connect("127.0.0.1", parts.port, configuration=configuration, create_protocol=Client) as client:
        await client.get(url)
    with open(file, "wb") as output:
        output.write(client.body)
    print("h3", client.status)


asyncio.run(main())

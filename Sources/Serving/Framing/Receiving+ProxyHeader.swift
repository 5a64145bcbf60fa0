// Receiving+ProxyHeader: takes the PROXY header off a connection before its requests are read.

import Glibc
import Platform

extension RequestPolicy {
  /// Whether a connection begins with a PROXY header: only trusted proxies may and must send one.
  func expectsProxyHeader(from peer: IPAddress?) -> Bool {
    configuration.proxyProtocol && trustedProxies.trusts(peer?.unmapped)
  }
}

extension RequestHandler {
  /// Takes the header off the received bytes, and counts the connection as its client's. Returns
  /// the number of bytes behind it, moved to the beginning; 0 while it is incomplete.
  ///
  /// - Throws: `malformed` without a header, `tooManyConnections` if the client has its share.
  func takeProxyHeader(
    off buffer: UnsafeMutableRawBufferPointer, of client: Connection
  ) throws(FramingFault) -> Int {
    let earlier = client.proxyHeader ?? []
    let bytes = earlier + UnsafeRawBufferPointer(buffer)
    switch ProxyHeader.read(bytes) {
    case .invalid: throw .malformed("the connection does not begin with a PROXY header")
    case .incomplete:
      client.proxyHeader = bytes
      return 0
    case .header(let header):
      client.proxyHeader = nil
      if let named = header.client {
        client.peer = named
        guard monitor.connections.assign(client.watch, to: named) else {
          throw .tooManyConnections
        }
      }
      let taken = header.length - earlier.count
      let rest = buffer.count - taken
      guard let start = buffer.baseAddress else { return 0 }
      memmove(start, start + taken, rest)
      // libmicrohttpd takes a count below its buffer's length for the end, and would wait for more.
      let more = recvfrom(client.watch.descriptor, start + rest, taken, 0, nil, nil)
      return rest + max(more, 0)
    }
  }

  /// Logs an unexpected PROXY header in the first bytes of a refused connection.
  func noteProxyHeader(in bytes: UnsafeRawBufferPointer, of client: Connection) {
    guard client.framing.wholeRequests == 0, client.endedRequests == 0,
      ProxyHeader.isBegun(by: bytes)
    else { return }
    unlistedProxies.noteProxyHeader(
      from: client.peer,
      key: client.policy.configuration.proxyProtocol
        ? "server.trusted_proxies" : "server.proxy_protocol",
      log: log)
  }
}

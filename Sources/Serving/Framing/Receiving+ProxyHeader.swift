// Receiving+ProxyHeader: takes the PROXY header off a connection before its requests are read.

import Glibc
import Platform

extension RequestHandler {
  /// Whether a connection begins with a PROXY header. Only trusted proxies may send one, and they have to.
  func expectsProxyHeader(from peer: IPAddress?) -> Bool {
    guard takesProxyHeaders, let peer = peer?.unmapped else { return false }
    return configuration.trustedProxies.trusts(peer)
  }

  /// Takes the header off the received bytes. Returns the number of bytes behind it, which are moved to the beginning;
  /// 0 while the header is incomplete, and `nil` if there is none.
  func takeProxyHeader(
    off buffer: UnsafeMutableRawBufferPointer, of client: Connection
  ) -> Int? {
    let earlier = client.proxyHeader ?? []
    let bytes = earlier + UnsafeRawBufferPointer(buffer)
    switch ProxyHeader.read(bytes) {
    case .invalid: return nil
    case .incomplete:
      client.proxyHeader = bytes
      return 0
    case .header(let header):
      client.proxyHeader = nil
      if let named = header.client { client.peer = named }
      let taken = header.length - earlier.count
      let rest = buffer.count - taken
      guard let start = buffer.baseAddress else { return 0 }
      memmove(start, start + taken, rest)
      // libmicrohttpd takes a count below the length of its buffer for the end of the input, and would wait for more.
      let more = recvfrom(client.watch.descriptor, start + rest, taken, 0, nil, nil)
      return rest + max(more, 0)
    }
  }
}

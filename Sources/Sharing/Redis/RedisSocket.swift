// RedisSocket: the addresses of a Redis server, and non-blocking connections to them.

import Glibc
import Model
import Platform

/// The address of a socket as bytes, for connect(2).
struct RedisSocket: Sendable {
  private let family: CInt
  private let address: [UInt8]

  /// Returns the addresses of a place. Blocks while a name is resolved, unless `numeric`.
  ///
  /// - Parameter numeric: whether only IP addresses and paths have a result.
  /// - Throws: the reason in words.
  static func all(of place: RedisAddress.Place, numeric: Bool) throws(RedisError) -> [RedisSocket] {
    switch place {
    case .unix(let path):
      guard let address = UnixAddress(path) else { throw RedisError("the path is too long".utf8) }
      return [
        address.withSocketAddress { pointer, length in
          RedisSocket(
            family: AF_UNIX,
            address: Array(UnsafeRawBufferPointer(start: pointer, count: Int(length))))
        }
      ]
    case .host(let host, let port):
      var hints = addrinfo()
      hints.ai_socktype = CInt(SOCK_STREAM.rawValue)
      hints.ai_flags = AI_NUMERICSERV | (numeric ? AI_NUMERICHOST : AI_ADDRCONFIG)
      var list: UnsafeMutablePointer<addrinfo>?
      let status = getaddrinfo(host, "\(port)", &hints, &list)
      guard status == 0 else { throw RedisError(String(cString: gai_strerror(status)).utf8) }
      defer { freeaddrinfo(list) }
      var found: [RedisSocket] = []
      var next = list
      while let entry = next, found.count < 8 {
        found.append(
          RedisSocket(
            family: entry.pointee.ai_family,
            address: Array(
              UnsafeRawBufferPointer(
                start: entry.pointee.ai_addr, count: Int(entry.pointee.ai_addrlen)))))
        next = entry.pointee.ai_next
      }
      return found
    }
  }

  /// Begins to connect. The descriptor is writable once the connection is there or has failed.
  func connect() throws(SystemError) -> OwnedDescriptor {
    let kind = CInt(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue | SOCK_NONBLOCK.rawValue)
    let socket = OwnedDescriptor(owning: Glibc.socket(family, kind, 0))
    guard socket.value >= 0 else { throw SystemError() }
    if family != AF_UNIX {
      var one: CInt = 1
      setsockopt(
        socket.value, CInt(IPPROTO_TCP), TCP_NODELAY, &one, socklen_t(MemoryLayout<CInt>.size))
    }
    let descriptor = socket.value
    let status = address.withUnsafeBytes { bytes -> CInt in
      guard let start = bytes.baseAddress else { return -1 }
      return Glibc.connect(
        descriptor, start.assumingMemoryBound(to: sockaddr.self), socklen_t(bytes.count))
    }
    guard status == 0 || errno == EINPROGRESS else { throw SystemError() }
    return socket
  }

  /// Throws the reason for which a connection could not be made.
  static func check(_ descriptor: CInt) throws(SystemError) {
    var code: CInt = 0
    var length = socklen_t(MemoryLayout<CInt>.size)
    guard getsockopt(descriptor, SOL_SOCKET, SO_ERROR, &code, &length) == 0 else {
      throw SystemError()
    }
    guard code == 0 else { throw SystemError(code) }
  }
}

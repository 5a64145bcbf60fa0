// SupersededRequests: which running request a later one of the same client takes the place of.

import CMicrohttpd
import Glibc
import Model
import Platform
import Synchronization

/// Requests with an `X-Operation-Key`, by client and key (SDWebImage's SetImageOperationKey): a list that scrolls fast
/// asks for the next image of a row while the last is under way, and only the next one matters.
///
/// A client is an address, without the port: its requests may come on several connections. Behind a proxy all clients
/// are one, so keys have to be told apart there by whoever chooses them.
final class SupersededRequests: Sendable {
  private struct Name: Hashable {
    let client: [UInt8]
    let key: String
  }

  private struct Table {
    var running: [Name: any Suspended] = [:]
    var names: [UInt64: Name] = [:]
  }

  /// Longest key that counts, in bytes.
  private static let longestKey = 128

  private let table = Lock(Table())
  /// How many run. A hit asks this before it looks for the field.
  private let count = Atomic<Int>(0)

  /// Whether a request has the place of another to take.
  func mayConcern(_ connection: OpaquePointer) -> Bool {
    count.load(ordering: .relaxed) > 0
      && RequestHandler.header("X-Operation-Key", of: connection) != nil
  }

  /// A request came, which may be answered on the spot: the one that runs under its name is superseded.
  func supersede(by connection: OpaquePointer) {
    guard count.load(ordering: .relaxed) > 0, let name = name(of: connection) else { return }
    let older = table.withLock { table in
      let older = table.running.removeValue(forKey: name)
      if let older { table.names[older.number] = nil }
      count.store(table.running.count, ordering: .relaxed)
      return older
    }
    older?.interrupt(.failure(.superseded))
  }

  /// A request begins to run, to be superseded in its turn; as is the one that began under its name since it came.
  /// From here on it may be resumed, so it is to be suspended and watched already.
  func begin(_ exchange: SuspendedRequest, on connection: OpaquePointer) {
    guard let name = name(of: connection) else { return }
    let older = table.withLock { table in
      let older = table.running.updateValue(exchange, forKey: name)
      if let older { table.names[older.number] = nil }
      table.names[exchange.number] = name
      count.store(table.running.count, ordering: .relaxed)
      return older
    }
    older?.interrupt(.failure(.superseded))
  }

  /// A request's answer begins to be sent while it comes in, and may be superseded as the request might have been;
  /// `false`: it was, since the work was done.
  func pass(_ exchange: SuspendedRequest, to stream: BodyStream, on connection: OpaquePointer)
    -> Bool
  {
    guard name(of: connection) != nil else { return true }
    return table.withLock { table in
      guard let name = table.names.removeValue(forKey: exchange.number) else { return false }
      table.names[stream.number] = name
      table.running[name] = stream
      return true
    }
  }

  /// A request has ended, or the stream that answered it.
  func end(_ request: any Suspended) {
    table.withLock { table in
      guard let name = table.names.removeValue(forKey: request.number) else { return }
      table.running[name] = nil
      count.store(table.running.count, ordering: .relaxed)
    }
  }

  private func name(of connection: OpaquePointer) -> Name? {
    guard
      let value = RequestHandler.header("X-Operation-Key", of: connection),
      strlen(value) <= Self.longestKey, let address = pictor_mhd_client_address(connection)
    else { return nil }
    return Name(client: Self.bytes(of: address), key: String(cString: value))
  }

  private static func bytes(of address: UnsafePointer<sockaddr>) -> [UInt8] {
    let raw = UnsafeRawPointer(address)
    let (offset, count) =
      address.pointee.sa_family == sa_family_t(AF_INET6)
      ? (MemoryLayout<sockaddr_in6>.offset(of: \.sin6_addr) ?? 0, 16)
      : (MemoryLayout<sockaddr_in>.offset(of: \.sin_addr) ?? 0, 4)
    return Array(UnsafeRawBufferPointer(start: raw + offset, count: count))
  }
}

// SupersededRequests: cancels a client's running request when a later one replaces it.

import CMicrohttpd
import Glibc
import Model
import Platform
import Synchronization

/// The running requests with an `X-Operation-Key`, by client and key (SDWebImage's
/// SetImageOperationKey). When a fast scrolling list requests the next image for a row, the row's
/// previous request is superseded.
///
/// A client is identified by its address without the port, because it may use several connections.
/// All clients behind a proxy share an address, so their keys must be unique.
final class SupersededRequests: Sendable {
  private struct Name: Hashable {
    let client: [UInt8]
    let key: String
  }

  private struct Table {
    var running: [Name: any Suspended] = [:]
    var names: [UInt64: Name] = [:]
  }

  /// Maximum length of a key, in bytes; requests with longer keys are not tracked.
  private static let longestKey = 128

  private let table = Lock(Table())
  /// The number of running requests with a key. Read by each hit before it looks for the field.
  private let count = Atomic<Int>(0)

  /// Whether the request may supersede another.
  func mayInclude(_ connection: OpaquePointer) -> Bool {
    count.load(ordering: .relaxed) > 0
      && RequestHandler.field("X-Operation-Key", on: connection) != nil
  }

  /// Ends the running request with the same key. Called before the new request is answered.
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

  /// Registers a suspended request, and ends one with the same key that began in the meantime. The
  /// request may be resumed from here on, so it must already be suspended and watched.
  func begin(_ request: SuspendedRequest, on connection: OpaquePointer) {
    guard let name = name(of: connection) else { return }
    let older = table.withLock { table in
      let older = table.running.updateValue(request, forKey: name)
      if let older { table.names[older.number] = nil }
      table.names[request.number] = name
      count.store(table.running.count, ordering: .relaxed)
      return older
    }
    older?.interrupt(.failure(.superseded))
  }

  /// Replaces a suspended request with the stream that answers it. Returns `false` if the request
  /// was superseded after its work ended.
  func replace(
    _ request: SuspendedRequest, with stream: BodyStream, on connection: OpaquePointer
  ) -> Bool {
    guard name(of: connection) != nil else { return true }
    return table.withLock { table in
      guard let name = table.names.removeValue(forKey: request.number) else { return false }
      table.names[stream.number] = name
      table.running[name] = stream
      return true
    }
  }

  /// Removes a request, or the stream that answers it.
  func end(_ request: any Suspended) {
    table.withLock { table in
      guard let name = table.names.removeValue(forKey: request.number) else { return }
      table.running[name] = nil
      count.store(table.running.count, ordering: .relaxed)
    }
  }

  private func name(of connection: OpaquePointer) -> Name? {
    guard
      let value = RequestHandler.field("X-Operation-Key", on: connection),
      strlen(value) <= Self.longestKey, let address = pictor_mhd_client_address(connection)
    else { return nil }
    return Name(client: Self.bytes(of: address), key: String(cString: value))
  }

  private static func bytes(of address: UnsafePointer<sockaddr>) -> [UInt8] {
    let raw = UnsafeRawPointer(address)
    let isIPv6 = address.pointee.sa_family == sa_family_t(AF_INET6)
    let offset =
      isIPv6
      ? MemoryLayout<sockaddr_in6>.offset(of: \.sin6_addr)
      : MemoryLayout<sockaddr_in>.offset(of: \.sin_addr)
    return Array(UnsafeRawBufferPointer(start: raw + (offset ?? 0), count: isIPv6 ? 16 : 4))
  }
}

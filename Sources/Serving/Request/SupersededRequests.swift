// SupersededRequests: cancels a client's running request when a later one replaces it.

import CMicrohttpd
import Core
import Glibc
import Synchronization

/// The running requests with an `X-Operation-Key`, by client and key (SDWebImage's
/// SetImageOperationKey). When a fast scrolling list requests the next image for a row, the row's
/// previous request is superseded.
///
/// A client is its address, which trusted proxies name: it may use several connections. Clients
/// behind another proxy share an address, so their keys must be unique.
final class SupersededRequests: Sendable {
  /// What a later request of the same client replaces.
  struct Operation: Hashable {
    fileprivate let client: IPAddress
    fileprivate let key: String
  }

  private struct Table {
    var running: [Operation: any Suspended] = [:]
    var names: [UInt64: Operation] = [:]
  }

  /// Maximum length of a key, in bytes; requests with longer keys are not tracked.
  fileprivate static let longestKey = 128

  private let table = Lock(Table())
  /// The number of running requests with a key. Read by each hit before it looks for the field.
  private let count = Atomic<Int>(0)

  /// Whether the request may supersede another.
  func mayInclude(_ connection: OpaquePointer) -> Bool {
    count.load(ordering: .relaxed) > 0
      && RequestHandler.field("X-Operation-Key", on: connection) != nil
  }

  /// Ends the running request with the same key. Called before the new request is answered.
  func supersede(by operation: @autoclosure () -> Operation?) {
    guard count.load(ordering: .relaxed) > 0, let name = operation() else { return }
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
  func begin(_ request: SuspendedRequest, as operation: Operation?) {
    guard let name = operation else { return }
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
    _ request: SuspendedRequest, with stream: BodyStream, as operation: Operation?
  ) -> Bool {
    guard operation != nil else { return true }
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
}

extension RequestHandler {
  /// Returns the operation of a request with a key; `nil` without one, and for a client that only
  /// shares a proxy's address with others.
  func operation(
    of client: Connection, on connection: OpaquePointer
  ) -> SupersededRequests.Operation? {
    guard let key = Self.field("X-Operation-Key", on: connection),
      strlen(key) <= SupersededRequests.longestKey
    else { return nil }
    let named = named(client, on: connection)
    guard !named.isDisputed, let address = named.address,
      !client.policy.trustedProxies.trusts(address)
    else { return nil }
    return SupersededRequests.Operation(client: address, key: String(cString: key))
  }
}

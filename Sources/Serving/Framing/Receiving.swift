// Receiving: checks received bytes before libmicrohttpd parses them, and rejects invalid requests.

import CMicrohttpd
import CReceiving
import Core
import Glibc

/// The connections of one event loop, indexed by descriptor. Belongs to the loop's thread.
final class ClientTable {
  private var places = UnsafeMutableBufferPointer<Unmanaged<Connection>?>.allocate(capacity: 0)

  deinit { places.deallocate() }

  /// Returns the connection with this descriptor. Neither allocates nor retains.
  subscript(_ descriptor: CInt) -> Unmanaged<Connection>? {
    places.indices.contains(Int(descriptor)) ? places[Int(descriptor)] : nil
  }

  /// Adds a connection, unless it has no socket. The caller removes the connection before releasing
  /// it.
  func add(_ client: Connection) {
    let index = Int(client.watch.descriptor)
    guard index >= 0 else { return }
    if index >= places.count { grow(to: max(index + 1, places.count * 2, 64)) }
    places[index] = Unmanaged.passUnretained(client)
  }

  /// Removes a connection. Called before its descriptor is closed.
  func remove(_ client: Connection) {
    let index = Int(client.watch.descriptor)
    if places.indices.contains(index) { places[index] = nil }
  }

  private func grow(to count: Int) {
    let larger = UnsafeMutableBufferPointer<Unmanaged<Connection>?>.allocate(capacity: count)
    larger.initialize(repeating: nil)
    for (index, place) in places.enumerated() { larger[index] = place }
    places.deallocate()
    places = larger
  }
}

/// Routes libmicrohttpd's recv(2) calls through the request framing.
enum Receiving {
  /// Whether libmicrohttpd's recv(2) calls reach this program's replacement.
  static var isPossible: Bool { pictor_can_watch_receiving() == 1 }

  /// Starts checking what the calling thread receives. The caller is the loop's thread and keeps
  /// `context` alive.
  static func begin(for context: EventLoop.Context) {
    pictor_watch_receiving(received, Unmanaged.passUnretained(context).toOpaque())
  }

  private static let received: pictor_received = { context, descriptor, bytes, count in
    guard let context else { return count }
    return Unmanaged<EventLoop.Context>.fromOpaque(context)._withUnsafeGuaranteedRef { loop in
      // Descriptors other than a connection's are not checked.
      guard let client = loop.state.clients[descriptor] else { return count }
      return client._withUnsafeGuaranteedRef { client in
        loop.handler.received(
          UnsafeMutableRawBufferPointer(start: bytes, count: count), on: client)
      }
    }
  }
}

extension RequestHandler {
  /// Time a client has to read the error response before it is disconnected, in milliseconds.
  private static let lingering = 2_000
  /// Limit of discarded reads per call, so that other connections on this thread get their turn.
  private static let maximumDropped = 16

  /// Takes bytes from recv(2). Returns the byte count, or error, that libmicrohttpd is given.
  fileprivate func received(_ buffer: UnsafeMutableRawBufferPointer, on client: Connection) -> Int {
    if client.fault != nil { return drop(client) }
    guard client.proxyHeader != nil else { return check(buffer, on: client) }
    do throws(ImageError) {
      let count = try takeProxyHeader(off: buffer, of: client)
      guard count > 0 else { return pictor_received_nothing() }
      return check(UnsafeMutableRawBufferPointer(rebasing: buffer[..<count]), on: client)
    } catch {
      return refuse(
        error, of: client,
        line: Array(UnsafeRawBufferPointer(buffer).prefix(RefusedLine.longest)), from: 0)
    }
  }

  /// Checks bytes of requests. Returns the byte count, or error, that libmicrohttpd is given.
  private func check(_ buffer: UnsafeMutableRawBufferPointer, on client: Connection) -> Int {
    let isNew = client.framing.isBetweenRequests
    let bytes = UnsafeRawBufferPointer(buffer)
    defer {
      for index in client.framing.cookieQuotes { buffer[index] = RequestFraming.cookieQuote }
    }
    guard case .refused(let fault, let start) = client.framing.take(bytes) else {
      keepLine(of: bytes, isNew: isNew, on: client)
      noteProgress(on: client, hasBegun: isNew || client.framing.lastStart > 0)
      return bytes.count
    }
    return refuse(
      fault, of: client,
      line: refusedLine(of: bytes, from: start, isNew: isNew || start > 0, client), from: start)
  }

  /// Notes a fault in the bytes from `start`, and answers it after all requests before it.
  private func refuse(
    _ fault: ImageError, of client: Connection, line: [UInt8], from start: Int
  ) -> Int {
    client.fault = fault
    client.watch.begin()
    client.refusedLine = line
    refuseIfDue(client)
    // Requests before the faulty one are answered first.
    return client.isRefused || start == 0 ? pictor_received_nothing() : start
  }

  /// Notes whether the connection waits for a header, and a begun header's deadline.
  ///
  /// - Parameter hasBegun: whether the latest request began in the last piece.
  private func noteProgress(on client: Connection, hasBegun: Bool) {
    if hasBegun, client.isAtLastRequest, !client.framing.isBetweenRequests {
      let now = Clock.coarseMilliseconds()
      client.watch.wait(since: now, .begun)
      // The deadline of the first request's header counts from the opening of the connection.
      if client.endedRequests > 0 { client.watch.deadline = now + client.policy.headerTimeout }
    }
    if !client.isWaiting { client.watch.begin() }
  }

  /// Sends the error response for a framing fault, once all requests before it are answered.
  func refuseIfDue(_ client: Connection) {
    guard let error = client.fault, !client.isRefused,
      client.endedRequests >= client.framing.wholeRequests
    else { return }
    client.isRefused = true
    // Its header is not read.
    let id = RequestID()
    let text = refusal(of: error, id: id)
    let descriptor = client.watch.descriptor
    // The response fits into an empty socket buffer. A client that reads nothing does not get it.
    let sent = send(descriptor, text, text.count, CInt(MSG_NOSIGNAL) | CInt(MSG_DONTWAIT))
    // Shuts down the write side only, so libmicrohttpd cannot send a response of its own. The
    // client gets time to read: closing a socket with unread input sends RST and discards the
    // response.
    shutdown(descriptor, CInt(SHUT_WR))
    client.watch.deadline = Clock.coarseMilliseconds() + Self.lingering
    // A connection without a share of its client yields first.
    if error == ConnectionRefusal.error { client.watch.wait(since: 0) }
    figures.statuses.add("\(error.status)")
    figures.errors.add(error.code)
    let refused = RefusedLine(client.refusedLine)
    let head = text.firstRange(of: Array("\r\n\r\n".utf8))?.upperBound ?? 0
    let bytes = max(sent - head, 0)
    log.refusedRequest(
      fields: [
        "method": .string(ifPresent: refused.method), "target": .string(refused.target),
        "status": .int(error.status), "bytes": .int(bytes), "error": .string(error.code),
        "detail": .string(error.message),
        "client": .client(client.peer),
        "request_id": .string(id.description),
      ],
      combined: CombinedLine(
        client: client.peer?.unmapped.description, user: nil, method: refused.method ?? "-",
        target: refused.target, version: refused.version ?? "-", status: error.status,
        bytes: bytes, referer: nil, userAgent: nil))
  }

  /// Keeps the beginning of an incomplete request line for the log, in case the line is refused.
  private func keepLine(of bytes: UnsafeRawBufferPointer, isNew: Bool, on client: Connection) {
    guard client.framing.isInLine else {
      if !client.lineBeginning.isEmpty { client.lineBeginning = [] }
      return
    }
    let start = client.framing.lastStart
    if isNew || start > 0 { client.lineBeginning = [] }
    client.lineBeginning += bytes[start...]
  }

  /// Returns the received part of the refused request's line, or only its target if the line was
  /// read in an earlier call.
  private func refusedLine(
    of bytes: UnsafeRawBufferPointer, from start: Int, isNew: Bool, _ client: Connection
  ) -> [UInt8] {
    let rest = bytes[start...].prefix(RefusedLine.longest)
    if isNew { return Array(rest) }
    if !client.lineBeginning.isEmpty { return client.lineBeginning + rest }
    return Array(" ".utf8) + (client.target?.raw ?? [])
  }

  /// Discards the available input after a fault.
  private func drop(_ client: Connection) -> Int {
    var piece = [UInt8](repeating: 0, count: 4_096)
    for _ in 0..<Self.maximumDropped {
      let count = piece.withUnsafeMutableBytes { piece in
        recvfrom(client.watch.descriptor, piece.baseAddress, piece.count, 0, nil, nil)
      }
      if count == 0 { return 0 }
      if count < 0 { return pictor_received_nothing() }
    }
    shutdown(client.watch.descriptor, CInt(SHUT_RD))
    return 0
  }
}

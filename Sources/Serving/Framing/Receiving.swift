// Receiving: each piece that comes is judged before libmicrohttpd sees it, and what is no request is answered here.

import CMicrohttpd
import CReceiving
import Glibc
import Model
import Telemetry

/// A worker's connections by their descriptors. Belongs to its thread.
final class ClientTable {
  private var places = UnsafeMutableBufferPointer<Unmanaged<Connection>?>.allocate(capacity: 0)

  deinit { places.deallocate() }

  /// The connection with this descriptor. Allocates nothing and counts no reference.
  subscript(_ descriptor: CInt) -> Unmanaged<Connection>? {
    places.indices.contains(Int(descriptor)) ? places[Int(descriptor)] : nil
  }

  /// Adds a connection, which is to be removed before it is released. One without a socket receives nothing.
  func add(_ client: Connection) {
    let index = Int(client.watch.descriptor)
    guard index >= 0 else { return }
    if index >= places.count { grow(to: max(index + 1, places.count * 2, 64)) }
    places[index] = Unmanaged.passUnretained(client)
  }

  /// Removes a connection, before its descriptor is closed.
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

/// The way from recv(2) to the framing of a connection.
enum Receiving {
  /// Whether libmicrohttpd's calls of recv(2) come this way.
  static var isPossible: Bool { pictor_can_watch_receiving() == 1 }

  /// Judges what comes on the calling thread, which is that of `context`'s loop and keeps `context` alive.
  static func begin(for context: EventLoop.Context) {
    pictor_watch_receiving(received, Unmanaged.passUnretained(context).toOpaque())
  }

  private static let received: pictor_received = { context, descriptor, bytes, count in
    guard let context else { return count }
    return Unmanaged<EventLoop.Context>.fromOpaque(context)._withUnsafeGuaranteedRef { loop in
      // A descriptor that is no connection's is none of ours.
      guard let client = loop.worker.clients[descriptor] else { return count }
      return client._withUnsafeGuaranteedRef { client in
        loop.handler.received(
          UnsafeRawBufferPointer(start: bytes, count: count), on: client)
      }
    }
  }
}

extension RequestHandler {
  /// How long a client has to read why it is refused, in milliseconds.
  private static let lingering = 2_000
  /// Most pieces that are dropped before others on this thread have their turn.
  private static let mostDropped = 16

  /// Judges a piece that recv(2) brought; returns what libmicrohttpd is told of it.
  fileprivate func received(_ bytes: UnsafeRawBufferPointer, on client: Connection) -> Int {
    if client.fault != nil { return drop(client) }
    let isNew = client.framing.isBetweenRequests
    guard case .refused(let fault, let start) = client.framing.take(bytes) else {
      keepLine(of: bytes, isNew: isNew, on: client)
      return bytes.count
    }
    client.fault = fault
    client.refusedLine = refusedLine(of: bytes, from: start, isNew: isNew || start > 0, client)
    refuseIfDue(client)
    // The requests in front of it are answered first.
    return client.isRefused || start == 0 ? pictor_received_nothing() : start
  }

  /// Answers what is no request, once all requests in front of it are answered.
  func refuseIfDue(_ client: Connection) {
    guard let fault = client.fault, !client.isRefused,
      client.endedRequests >= client.framing.wholeRequests
    else { return }
    client.isRefused = true
    let error = fault.error
    // Its header is not read.
    let id = RequestID()
    let json = ErrorBody(
      error, id: id.description, explains: configuration.explainsErrors
    ).json
    var head = ResponseHead(date: Clock.now(), id: id)
    head.add("Content-Type", "application/json")
    head.add("Content-Length", "\(json.count)")
    head.add("Cache-Control", "no-store")
    head.add("Connection", "close")
    head.addCommon()
    crossOrigin.addShared(to: &head)
    let reason = MHD_get_reason_phrase_for(UInt32(error.status)).map { String(cString: $0) } ?? ""
    let line = "HTTP/1.1 \(error.status) \(reason)\r\n\(ResponseHead.firstName): "
    let text = Array(line.utf8) + head.bytes + Array("\r\n\r\n".utf8) + json
    let descriptor = client.watch.descriptor
    // Below what the kernel takes at once, unless the client reads nothing: then it has no answer.
    let sent = send(descriptor, text, text.count, CInt(MSG_NOSIGNAL) | CInt(MSG_DONTWAIT))
    // What libmicrohttpd would say is not sent. The client reads before it is cut off: bytes that came and are not read
    // would take the answer back.
    shutdown(descriptor, CInt(SHUT_WR))
    client.watch.deadline = Clock.coarseMilliseconds() + Self.lingering
    figures.statuses.add("\(error.status)")
    let refused = RefusedLine(client.refusedLine)
    log.info(
      "request refused",
      [
        "method": .string(ifPresent: refused.method), "target": .string(refused.target),
        "status": .int(error.status), "bytes": .int(max(sent, 0)), "error": .string(error.code),
        "detail": .string(error.message),
        "client": .string(ifPresent: client.peer?.unmapped.description),
        "request_id": .string(id.description),
      ])
  }

  /// Keeps the beginning of a request line whose end is to come, for the case that it is refused. Few lines come in
  /// pieces.
  private func keepLine(of bytes: UnsafeRawBufferPointer, isNew: Bool, on client: Connection) {
    guard client.framing.isInLine else {
      if !client.lineBeginning.isEmpty { client.lineBeginning = [] }
      return
    }
    let start = client.framing.lastStart
    if isNew || start > 0 { client.lineBeginning = [] }
    client.lineBeginning += bytes[start...]
  }

  /// The request line of what is refused, as far as it came; where it was read long ago, the target alone.
  private func refusedLine(
    of bytes: UnsafeRawBufferPointer, from start: Int, isNew: Bool, _ client: Connection
  ) -> [UInt8] {
    let rest = bytes[start...].prefix(RefusedLine.longest)
    if isNew { return Array(rest) }
    if !client.lineBeginning.isEmpty { return client.lineBeginning + rest }
    return Array(" ".utf8) + (client.target?.raw ?? [])
  }

  /// Reads away what comes behind a fault, as far as is there.
  private func drop(_ client: Connection) -> Int {
    var piece = [UInt8](repeating: 0, count: 4_096)
    for _ in 0..<Self.mostDropped {
      let count = recvfrom(client.watch.descriptor, &piece, piece.count, 0, nil, nil)
      if count == 0 { return 0 }
      if count < 0 { return pictor_received_nothing() }
    }
    shutdown(client.watch.descriptor, CInt(SHUT_RD))
    return 0
  }
}

extension FramingFault {
  /// What the client is told.
  var error: ImageError {
    switch self {
    case .malformed(let reason): .malformedRequest(reason)
    case .targetTooLong: .targetTooLong(limit: RequestFraming.longestTarget)
    case .headTooLarge: .headTooLarge(limit: RequestFraming.largestHead)
    case .unsupportedVersion: .unsupportedVersion
    }
  }
}

// OriginReply: the steps with which an origin replies to a request.

/// The reply to one request, as steps in order. The connection is kept for the next request after a
/// complete reply, and closed if a step says so.
public struct OriginReply: Sendable {
  /// A step of a reply.
  public enum Step: Sendable {
    /// Sends bytes unchanged.
    case send([UInt8])
    /// Waits until the gate is open or the client has disconnected.
    case hold(Gate)
    /// Sends the same bytes repeatedly until the client disconnects.
    case sendForever([UInt8])
    /// Sends bytes one at a time with a pause between them.
    case trickle([UInt8], milliseconds: Int)
    /// Sends the same bytes repeatedly with a pause between them, until the client disconnects.
    case drip([UInt8], milliseconds: Int)
    /// Sends no data until the client disconnects.
    case silence
    /// Closes the connection gracefully.
    case close
    /// Resets the connection; unread data is lost.
    case reset
  }

  /// The steps, in order.
  public var steps: [Step]

  /// Creates a reply from steps.
  public init(_ steps: [Step]) { self.steps = steps }

  /// Returns a 200 reply with a complete body.
  public static func ok(
    _ body: [UInt8], type: String = "image/jpeg", headers: [String] = []
  ) -> OriginReply {
    status(200, body: body, headers: ["Content-Type: \(type)"] + headers)
  }

  /// Returns a reply with any status and a complete body.
  public static func status(
    _ status: Int, body: [UInt8] = [], headers: [String] = []
  ) -> OriginReply {
    OriginReply([
      .send(head(status, headers: headers + ["Content-Length: \(body.count)"])), .send(body),
    ])
  }

  /// Returns a redirect with this `Location`.
  public static func redirect(to location: String, status: Int = 302) -> OriginReply {
    .status(status, headers: ["Location: \(location)"])
  }

  /// Returns a reply that waits at the gate before its first byte.
  public static func hold(_ gate: Gate, then reply: OriginReply) -> OriginReply {
    OriginReply([.hold(gate)] + reply.steps)
  }

  /// Returns a complete reply that waits at the gate after `count` bytes of its body.
  public static func ok(_ body: [UInt8], holdingAfter count: Int, at gate: Gate) -> OriginReply {
    OriginReply([
      .send(head(200, headers: ["Content-Length: \(body.count)"])),
      .send(Array(body.prefix(count))),
      .hold(gate), .send(Array(body.dropFirst(count))),
    ])
  }

  /// Returns a body that ends after fewer bytes than declared.
  public static func truncated(_ body: [UInt8], declaring count: Int) -> OriginReply {
    OriginReply([.send(head(200, headers: ["Content-Length: \(count)"])), .send(body), .close])
  }

  /// Returns a chunked body without its last chunk.
  public static func truncatedChunked(_ body: [UInt8]) -> OriginReply {
    OriginReply([.send(chunkedHead), .send(chunk(body)), .close])
  }

  /// Returns a complete body in chunks of `size` bytes.
  public static func chunked(
    _ body: [UInt8], size: Int, headers: [String] = [], trailers: [String] = []
  ) -> OriginReply {
    let starts = stride(from: 0, to: body.count, by: size)
    let chunks = starts.flatMap { chunk(Array(body[$0..<min($0 + size, body.count)])) }
    let end = ("0\r\n" + trailers.map { $0 + "\r\n" }.joined() + "\r\n").utf8
    let head = head(200, headers: headers + ["Transfer-Encoding: chunked"])
    return OriginReply([.send(head), .send(chunks + end)])
  }

  /// Returns a body that is ended by closing the connection.
  public static func untilClose(_ body: [UInt8]) -> OriginReply {
    OriginReply([.send(head(200, headers: ["Connection: close"])), .send(body), .close])
  }

  /// A connection reset in place of a reply.
  public static let resetBeforeHead = OriginReply([.reset])

  /// Returns a reply that resets the connection after a part of the body.
  public static func reset(after body: [UInt8], declaring count: Int) -> OriginReply {
    OriginReply([.send(head(200, headers: ["Content-Length: \(count)"])), .send(body), .reset])
  }

  /// An endless body, in chunks of 16 KiB.
  public static let endlessBody = OriginReply([
    .send(chunkedHead), .sendForever(chunk([UInt8](repeating: 0x2a, count: 16_384))),
  ])

  /// Endless header fields.
  public static let endlessHeaders = OriginReply([
    .send(Array("HTTP/1.1 200 OK\r\n".utf8)),
    .sendForever(Array(("X-Filler: " + String(repeating: "a", count: 500) + "\r\n").utf8)),
  ])

  /// Returns a complete reply whose body is sent byte by byte.
  public static func trickle(_ body: [UInt8], milliseconds: Int) -> OriginReply {
    OriginReply([
      .send(head(200, headers: ["Content-Length: \(body.count)"])),
      .trickle(body, milliseconds: milliseconds),
    ])
  }

  /// A reply that never starts.
  public static let silence = OriginReply([.silence])

  /// A closed connection in place of a reply.
  public static let closeBeforeHead = OriginReply([.close])

  /// Returns any bytes, which need not be HTTP, followed by a close.
  public static func raw(_ bytes: [UInt8]) -> OriginReply {
    OriginReply([.send(bytes), .close])
  }

  /// Returns a status line, these headers and the empty line.
  public static func head(_ status: Int, headers: [String]) -> [UInt8] {
    let lines = ["HTTP/1.1 \(status) Status"] + headers + ["", ""]
    return Array(lines.joined(separator: "\r\n").utf8)
  }

  /// The head of a chunked reply.
  public static let chunkedHead = head(200, headers: ["Transfer-Encoding: chunked"])

  /// Returns one chunk; `bytes` must not be empty.
  public static func chunk(_ bytes: [UInt8]) -> [UInt8] {
    Array("\(String(bytes.count, radix: 16))\r\n".utf8) + bytes + Array("\r\n".utf8)
  }
}

// OriginReply and Gate: what an origin does with a request, step by step.

import Synchronization

/// Holds back whoever waits at it until the test opens it.
public final class Gate: Sendable {
  private let state = Atomic<Bool>(false)

  /// A closed gate.
  public init() {}

  /// Lets everyone through, now and later.
  public func open() { state.store(true, ordering: .sequentiallyConsistent) }

  /// Whether it was opened.
  public var isOpen: Bool { state.load(ordering: .sequentiallyConsistent) }
}

/// What an origin does with one request: steps taken in order. The connection is kept for the next request where the
/// answer was whole, and closed where a step says so.
public struct OriginReply: Sendable {
  /// One thing an origin does.
  public enum Step: Sendable {
    /// Sends bytes as they are.
    case send([UInt8])
    /// Waits until the gate is open, or the client has gone.
    case hold(Gate)
    /// Sends the same bytes over and over until the client has gone.
    case sendForever([UInt8])
    /// Sends bytes one by one with so many milliseconds between them.
    case trickle([UInt8], milliseconds: Int)
    /// Says nothing until the client has gone.
    case silence
    /// Closes the connection in good order.
    case close
    /// Resets the connection: what was not read yet is lost.
    case reset
  }

  /// What is done, in order.
  public var steps: [Step]

  /// Does these steps.
  public init(_ steps: [Step]) { self.steps = steps }

  /// 200 with a whole body.
  public static func ok(
    _ body: [UInt8], type: String = "image/jpeg", headers: [String] = []
  ) -> OriginReply {
    status(200, body, headers: ["Content-Type: \(type)"] + headers)
  }

  /// Any status with a whole body.
  public static func status(
    _ status: Int, _ body: [UInt8] = [], headers: [String] = []
  ) -> OriginReply {
    OriginReply([
      .send(head(status, headers + ["Content-Length: \(body.count)"])), .send(body),
    ])
  }

  /// A redirect, with `Location` as given.
  public static func redirect(to location: String, status: Int = 302) -> OriginReply {
    .status(status, headers: ["Location: \(location)"])
  }

  /// Waits before the first byte of the answer.
  public static func hold(_ gate: Gate, then reply: OriginReply) -> OriginReply {
    OriginReply([.hold(gate)] + reply.steps)
  }

  /// A whole answer that stops at the gate after so many bytes of its body.
  public static func ok(_ body: [UInt8], holdingAfter count: Int, at gate: Gate) -> OriginReply {
    OriginReply([
      .send(head(200, ["Content-Length: \(body.count)"])), .send(Array(body.prefix(count))),
      .hold(gate), .send(Array(body.dropFirst(count))),
    ])
  }

  /// A body that ends after fewer bytes than declared.
  public static func truncated(_ body: [UInt8], declaring count: Int) -> OriginReply {
    OriginReply([.send(head(200, ["Content-Length: \(count)"])), .send(body), .close])
  }

  /// A body in chunks, the last of which never comes.
  public static func truncatedChunked(_ body: [UInt8]) -> OriginReply {
    OriginReply([.send(chunkedHead), .send(chunk(body)), .close])
  }

  /// A whole body in chunks of so many bytes.
  public static func chunked(
    _ body: [UInt8], size: Int, trailers: [String] = []
  ) -> OriginReply {
    let starts = stride(from: 0, to: body.count, by: size)
    let chunks = starts.flatMap { chunk(Array(body[$0..<min($0 + size, body.count)])) }
    let end = ("0\r\n" + trailers.map { $0 + "\r\n" }.joined() + "\r\n").utf8
    return OriginReply([.send(chunkedHead), .send(chunks + end)])
  }

  /// A body whose end is the connection's.
  public static func untilClose(_ body: [UInt8]) -> OriginReply {
    OriginReply([.send(head(200, ["Connection: close"])), .send(body), .close])
  }

  /// A reset in place of an answer.
  public static let resetBeforeHead = OriginReply([.reset])

  /// A reset after so much of the body.
  public static func reset(after body: [UInt8], declaring count: Int) -> OriginReply {
    OriginReply([.send(head(200, ["Content-Length: \(count)"])), .send(body), .reset])
  }

  /// A body without end, in chunks of 16 KiB.
  public static let endlessBody = OriginReply([
    .send(chunkedHead), .sendForever(chunk([UInt8](repeating: 0x2a, count: 16_384))),
  ])

  /// Headers without end.
  public static let endlessHeaders = OriginReply([
    .send(Array("HTTP/1.1 200 OK\r\n".utf8)),
    .sendForever(Array(("X-Filler: " + String(repeating: "a", count: 500) + "\r\n").utf8)),
  ])

  /// A whole answer whose body comes byte by byte.
  public static func trickle(_ body: [UInt8], milliseconds: Int) -> OriginReply {
    OriginReply([
      .send(head(200, ["Content-Length: \(body.count)"])),
      .trickle(body, milliseconds: milliseconds),
    ])
  }

  /// No answer, ever.
  public static let silence = OriginReply([.silence])

  /// A closed connection in place of an answer.
  public static let closeBeforeHead = OriginReply([.close])

  /// Bytes that need not be HTTP, then a closed connection.
  public static func raw(_ bytes: [UInt8]) -> OriginReply {
    OriginReply([.send(bytes), .close])
  }

  /// A status line, these headers, and the empty line.
  public static func head(_ status: Int, _ headers: [String]) -> [UInt8] {
    let lines = ["HTTP/1.1 \(status) Status"] + headers + ["", ""]
    return Array(lines.joined(separator: "\r\n").utf8)
  }

  /// The head of an answer in chunks.
  public static let chunkedHead = head(200, ["Transfer-Encoding: chunked"])

  /// One chunk; `bytes` is not empty.
  public static func chunk(_ bytes: [UInt8]) -> [UInt8] {
    Array("\(String(bytes.count, radix: 16))\r\n".utf8) + bytes + Array("\r\n".utf8)
  }
}

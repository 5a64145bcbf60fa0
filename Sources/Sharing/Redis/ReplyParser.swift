// ReplyParser: turns the bytes of a connection into replies, by hiredis' parser.

import CHiredis

/// The parser of one connection. Bounds the bytes and the elements of a reply.
struct ReplyParser: ~Copyable {
  /// Bytes that the server may not send.
  struct Violation: Error, Hashable {
    let description: String
  }

  /// The most elements of one reply, nested ones included.
  static let elements = 65_536

  private let reader: UnsafeMutablePointer<pictor_redis_reader>
  private let limit: Int
  /// Bytes received since the last complete reply.
  private var received = 0

  /// - Parameter limit: the most bytes of one reply.
  init?(limit: Int) {
    guard let reader = pictor_redis_reader_new(CInt(Self.elements)) else { return nil }
    self.reader = reader
    self.limit = limit
  }

  deinit { pictor_redis_reader_free(reader) }

  /// Adds bytes that were received.
  mutating func feed(_ bytes: UnsafeRawBufferPointer) throws(Violation) {
    received += bytes.count
    guard pictor_redis_feed(reader, bytes.baseAddress, bytes.count) == REDIS_OK else {
      throw violation
    }
  }

  /// Returns the next complete reply; `nil` if its end has not arrived.
  mutating func next() throws(Violation) -> RedisReply? {
    var reply: UnsafeMutablePointer<redisReply>?
    guard pictor_redis_next(reader, &reply) == REDIS_OK else { throw violation }
    guard let reply else {
      // All of the reply, also what the parser has taken in already.
      guard received <= limit else {
        throw Violation(description: "a reply of more than \(limit) bytes")
      }
      return nil
    }
    received = pictor_redis_unread(reader)
    defer { freeReplyObject(reply) }
    return Self.value(of: reply.pointee)
  }

  private var violation: Violation {
    let text = RedisError(
      UnsafeBufferPointer(start: pictor_redis_error(reader), count: 127)
        .prefix { $0 != 0 }.map { UInt8(bitPattern: $0) })
    return Violation(description: text.description)
  }

  /// Copies a reply. The parser nests at most seven lists. The pointers are those of a complete reply, which is freed
  /// after the copy: `str` has `len` bytes, and `element` has `elements` replies.
  private static func value(of reply: redisReply) -> RedisReply {
    var bytes: UnsafeRawBufferPointer {
      UnsafeRawBufferPointer(start: reply.str, count: reply.str == nil ? 0 : Int(reply.len))
    }
    switch reply.type {
    case REDIS_REPLY_STRING: return .bytes(Array(bytes))
    case REDIS_REPLY_STATUS: return .status(String(decoding: bytes.prefix(200), as: UTF8.self))
    case REDIS_REPLY_ERROR: return .error(RedisError(bytes))
    case REDIS_REPLY_INTEGER: return .integer(Int(reply.integer))
    case REDIS_REPLY_ARRAY:
      return .list(
        (0..<Int(reply.elements)).map { index in
          reply.element?[index].map { value(of: $0.pointee) } ?? .none
        })
    default: return .none
    }
  }
}

// RedisReply: replies of Redis as values, by hiredis' parser, and commands as bytes.

import CHiredis

/// A reply of Redis (RESP2), copied from the parser. Untrusted input.
enum RedisReply: Hashable, Sendable {
  /// A status such as `OK`.
  case status(String)
  /// A string of any bytes.
  case bytes([UInt8])
  case integer(Int)
  case list([RedisReply])
  case none
  /// An error, for example `OOM command not allowed`.
  case error(RedisError)

  /// The bytes as UTF-8 text; `nil` for another reply.
  var text: String? {
    guard case .bytes(let bytes) = self else { return nil }
    return String(validating: bytes, as: UTF8.self)
  }

  var elements: [RedisReply]? {
    guard case .list(let list) = self else { return nil }
    return list
  }

  /// The error; `nil` for another reply.
  var error: RedisError? {
    guard case .error(let error) = self else { return nil }
    return error
  }
}

/// An error reply, or why a connection has failed.
struct RedisError: Error, Hashable, Sendable, CustomStringConvertible {
  /// The longest message that is kept, in bytes.
  static let longest = 200
  /// Errors after which every command fails until the server or its configuration changes.
  private static let lasting: Set<String> = [
    "LOADING", "NOAUTH", "WRONGPASS", "READONLY", "MASTERDOWN", "CLUSTERDOWN", "BUSY",
  ]

  /// The message, with its first word in capitals. Printable ASCII.
  let description: String

  init(_ bytes: some Sequence<UInt8>) {
    let text = bytes.prefix(Self.longest).map {
      (0x20...0x7e).contains($0) ? $0 : UInt8(ascii: "?")
    }
    description = String(decoding: text, as: UTF8.self)
  }

  /// The first word: the kind of the error.
  var kind: Substring { description.prefix { $0 != " " } }

  /// Whether the connection is useless: it is closed, and the breaker opens.
  var isLasting: Bool { Self.lasting.contains(String(kind)) }
}

struct RedisCommand: Sendable {
  let parts: [[UInt8]]

  init(_ parts: [[UInt8]]) { self.parts = parts }

  init(_ parts: String...) { self.parts = parts.map { Array($0.utf8) } }

  /// A `SET` of a key that ends after a time.
  init(setting key: String, to value: [UInt8], milliseconds: Int) {
    parts =
      ["SET".utf8, key.utf8].map { Array($0) } + [value]
      + ["PX".utf8, "\(milliseconds)".utf8].map { Array($0) }
  }

  /// Appends the command in the protocol's form: an array of strings.
  func append(to bytes: inout [UInt8]) {
    bytes += "*\(parts.count)\r\n".utf8
    for part in parts {
      bytes += "$\(part.count)\r\n".utf8
      bytes += part
      bytes += "\r\n".utf8
    }
  }
}

/// Why a command has no reply.
enum RedisFailure: Error, Hashable, Sendable {
  /// The breaker is open, too many commands wait, or the client stops. Nothing was sent.
  case unavailable
  /// There was no reply in time. The command may have been executed.
  case timedOut
  /// The connection ended before the reply. The command may have been executed.
  case lost
}

/// The parser of one connection. Bounds the bytes and the elements of a reply.
struct ReplyParser: ~Copyable {
  /// The most elements of one reply, nested ones included.
  static let elements = 65_536

  private let reader: UnsafeMutablePointer<pictor_redis_reader>
  private let limit: Int
  /// Bytes received since the last complete reply.
  private var received = 0

  /// - Parameter limit: the most bytes of one reply.
  init(limit: Int) throws(RedisError) {
    guard let reader = pictor_redis_reader_new(CInt(Self.elements)) else {
      throw RedisError("no memory for its replies".utf8)
    }
    self.reader = reader
    self.limit = limit
  }

  deinit { pictor_redis_reader_free(reader) }

  /// Adds the first bytes of a buffer, which were received.
  mutating func feed(_ bytes: [UInt8], count: Int) throws(RedisError) {
    received += count
    guard redisReaderFeed(reader.pointee.reader, bytes, count) == REDIS_OK else { throw violation }
  }

  /// Returns the next complete reply; `nil` if its end has not arrived.
  mutating func next() throws(RedisError) -> RedisReply? {
    var reply: UnsafeMutablePointer<redisReply>?
    guard pictor_redis_next(reader, &reply) == REDIS_OK else { throw violation }
    guard let reply else {
      // All of the reply, also what the parser has taken in already.
      guard received <= limit else {
        throw RedisError("a reply of more than \(limit) bytes".utf8)
      }
      return nil
    }
    // What waits for the rest of its reply.
    let hiredis = reader.pointee.reader.pointee
    received = hiredis.len - hiredis.pos
    defer { freeReplyObject(reply) }
    return Self.value(of: reply.pointee)
  }

  private var violation: RedisError {
    RedisError(String(cString: pictor_redis_error(reader)).utf8)
  }

  /// Copies a reply. The parser nests at most seven lists. The pointers are those of a complete
  /// reply, which is freed after the copy: `str` has `len` bytes, and `element` has `elements`
  /// replies.
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

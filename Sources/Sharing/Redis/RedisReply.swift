// RedisReply: a reply of Redis as a value, and a command as bytes.

/// A reply of Redis (RESP2), copied from the parser. Untrusted input.
enum RedisReply: Hashable, Sendable {
  /// A status such as `OK`.
  case status(String)
  /// A string of any bytes.
  case bytes([UInt8])
  /// A number.
  case integer(Int)
  /// A list of replies.
  case list([RedisReply])
  /// No value.
  case none
  /// An error, for example `OOM command not allowed`.
  case error(RedisError)

  /// The bytes as UTF-8 text; `nil` for another reply.
  var text: String? {
    guard case .bytes(let bytes) = self else { return nil }
    return String(validating: bytes, as: UTF8.self)
  }

  /// The elements; `nil` for another reply.
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

/// An error reply.
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

/// A command with its arguments.
struct RedisCommand: Sendable {
  /// The name and the arguments.
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

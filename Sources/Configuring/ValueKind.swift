// ValueKind: how values of settings are read from text and written, for each kind of value.

/// A kind of value: what is allowed, and how it is read and written.
struct ValueKind<Value: Sendable>: Sendable {
  /// The allowed values, as text for error messages.
  let allowed: String
  /// Whether a value may be a secret, which messages must not repeat.
  var isSecret = false
  /// The members of a JSON Schema that describe a value in a file.
  var schema = #""type": "string""#
  /// Returns the value, or `nil` if it is not allowed. Throws if only a part is not.
  let read: @Sendable (RawValue) throws(MemberProblems) -> Value?
  /// Returns the value as a JSON5 literal.
  let write: @Sendable (Value) -> String

  /// The kind with a word in place of a value, such as `auto`; an empty word is nothing.
  static func word<Wrapped>(
    _ word: String, or kind: ValueKind<Wrapped>
  ) -> ValueKind where Value == Wrapped? {
    ValueKind(
      allowed: word.isEmpty ? "\(kind.allowed); or nothing" : "\(word) or \(kind.allowed)",
      isSecret: kind.isSecret,
      schema: #""anyOf": [{ \#(kind.schema) }, { "const": "\#(word)" }]"#,
      read: { value throws(MemberProblems) in
        if value.text == word { return .some(nil) }
        return try kind.read(value).map { $0 }
      }, write: { $0.map(kind.write) ?? JSON5.quoted(word) })
  }

  /// The kind of a member that may be absent.
  static func optional<Wrapped>(
    _ kind: ValueKind<Wrapped>
  ) -> ValueKind where Value == Wrapped? {
    ValueKind(
      allowed: kind.allowed, isSecret: kind.isSecret, schema: kind.schema,
      read: { value throws(MemberProblems) in try kind.read(value).map { $0 } },
      write: { $0.map(kind.write) ?? "" })
  }

  /// The kind, of values that messages must not repeat.
  var secret: ValueKind {
    var kind = self
    kind.isSecret = true
    return kind
  }
}

// MARK: - Numbers

extension ValueKind<Int> {
  static func integer(_ range: ClosedRange<Int>) -> ValueKind {
    ValueKind(
      allowed: "a whole number from \(range.lowerBound) to \(range.upperBound)",
      schema:
        #""type": "integer", "minimum": \#(range.lowerBound), "maximum": \#(range.upperBound)"#,
      read: { value in value.integer.flatMap { range.contains($0) ? $0 : nil } },
      write: { "\($0)" })
  }

  static func size(atLeast minimum: Int = 0) -> ValueKind {
    // So that sums of sizes do not overflow.
    let maximum = 1 << 50
    return ValueKind(
      allowed: "a size such as \"64MiB\" (B, KiB, MiB, GiB, TiB), at least "
        + "\(ByteSize.text(minimum)), at most \(ByteSize.text(maximum))",
      schema: #""type": ["string", "integer"]"#,
      read: { value in ByteSize.bytes(value, in: minimum...maximum) },
      write: { JSON5.quoted(ByteSize.text($0)) })
  }
}

extension ValueKind<Bool> {
  static var flag: ValueKind {
    ValueKind(
      allowed: "true or false", schema: #""type": "boolean""#, read: { $0.boolean },
      write: { "\($0)" })
  }
}

extension ValueKind<Double> {
  static func number(_ range: ClosedRange<Double>) -> ValueKind {
    ValueKind(
      allowed: "a number from \(range.lowerBound) to \(range.upperBound)",
      schema:
        #""type": "number", "minimum": \#(range.lowerBound), "maximum": \#(range.upperBound)"#,
      read: { value in value.number.flatMap { range.contains($0) ? $0 : nil } },
      write: { "\($0)" })
  }
}

extension ValueKind<[Int]> {
  /// Whole numbers in ascending order, each once: a list, or one comma-separated text.
  static func ascending(in range: ClosedRange<Int>, limit: Int) -> ValueKind {
    ValueKind(
      allowed: "a list of at most \(limit) whole numbers from \(range.lowerBound) to "
        + "\(range.upperBound), in ascending order",
      schema: #""type": "array", "items": { "type": "integer" }"#,
      read: { value in
        guard let numbers = value.integers, numbers.count <= limit,
          numbers.allSatisfy(range.contains), zip(numbers, numbers.dropFirst()).allSatisfy(<)
        else { return nil }
        return numbers
      },
      write: { "[" + $0.map(String.init).joined(separator: ", ") + "]" })
  }
}

// MARK: - Times

extension ValueKind<Duration> {
  static func time(_ range: ClosedRange<Duration>) -> ValueKind {
    ValueKind(
      allowed: TimeSpan.allowed(range),
      read: { value in
        value.text.flatMap(TimeSpan.parse).flatMap { range.contains($0) ? $0 : nil }
      }, write: { JSON5.quoted(TimeSpan.text($0)) })
  }
}

extension ValueKind<Duration?> {
  /// A time, or `never`. Any negative time means `never` too, as in SDWebImage.
  static var age: ValueKind {
    ValueKind(
      allowed: "a time such as \"7d\" (ms, s, m, h, d), or \"never\" (or any negative time)",
      schema: #""type": ["string", "number"]"#,
      read: { value in
        let text = value.text
        let isNegative =
          text?.hasPrefix("-") == true && TimeSpan.parse(String((text ?? "").dropFirst())) != nil
        if text == "never" || isNegative || value.number.map({ $0 < 0 }) == true {
          return .some(nil)
        }
        return text.flatMap(TimeSpan.parse).map { $0 }
      }, write: { JSON5.quoted($0.map(TimeSpan.text) ?? "never") })
  }
}

extension ValueKind<[Int: Duration]> {
  /// Lifetimes by status: a list of `404=10m`. If a status appears twice, the last one counts.
  static func lifetimes(of statuses: Set<Int>, allowed: String) -> ValueKind {
    ValueKind(
      allowed: "a list of \(allowed)", schema: ValueKind<[String]>.listSchema,
      read: { value in
        guard let items = value.list else { return nil }
        var lifetimes: [Int: Duration] = [:]
        for item in items {
          let parts = item.split(separator: "=", maxSplits: 1)
          guard parts.count == 2, let status = Int(parts[0]), statuses.contains(status),
            let time = TimeSpan.parse(String(parts[1]))
          else { return nil }
          lifetimes[status] = time
        }
        return lifetimes
      },
      write: { lifetimes in
        JSON5.list(
          lifetimes.sorted { $0.key < $1.key }.map { "\($0.key)=\(TimeSpan.text($0.value))" })
      })
  }
}

// MARK: - Words and texts

extension ValueKind where Value: RawRepresentable<String> & CaseIterable {
  /// One of the raw values of an enumeration.
  static var choice: ValueKind {
    let all = Value.allCases.map(\.rawValue)
    return ValueKind(
      allowed: all.dropLast().joined(separator: ", ") + " or " + (all.last ?? ""),
      schema: #""enum": \#(JSON5.list(all))"#,
      read: { value in value.text.flatMap { Value(rawValue: $0) } },
      write: { JSON5.quoted($0.rawValue) })
  }
}

extension ValueKind<String> {
  static func text(
    _ allowed: String, where isAllowed: @escaping @Sendable (String) -> Bool
  ) -> ValueKind {
    ValueKind(
      allowed: allowed,
      read: { value in
        guard let text = value.text, !text.utf8.contains(0), isAllowed(text) else { return nil }
        return text
      }, write: JSON5.quoted)
  }

  /// The path of a file or a folder, or nothing.
  static func path(_ allowed: String) -> ValueKind { text(allowed) { _ in true } }
}

extension ValueKind {
  /// A list of values with texts of their own.
  static func parsedList<Item>(
    of allowed: String, _ parse: @escaping @Sendable (String) -> Item?
  ) -> ValueKind where Value == [Item], Item: CustomStringConvertible & Sendable {
    ValueKind(
      allowed: "a list of \(allowed)", schema: ValueKind<[String]>.listSchema,
      read: { value in
        guard let texts = value.list else { return nil }
        let items = texts.compactMap(parse)
        return items.count == texts.count ? items : nil
      }, write: { JSON5.list($0.map(\.description)) })
  }

}

extension ValueKind<[String]> {
  static var listSchema: String { #""type": "array", "items": { "type": "string" }"# }

  static func list(
    of allowed: String, where isAllowed: @escaping @Sendable (String) -> Bool
  ) -> ValueKind {
    ValueKind(
      allowed: "a list of \(allowed)", schema: listSchema,
      read: { value in value.list.flatMap { $0.allSatisfy(isAllowed) ? $0 : nil } },
      write: JSON5.list)
  }

  /// Patterns of sources.
  static var sourcePatterns: ValueKind {
    list(
      of: "hosts such as example.com, *.example.com:8443 or example.com/path",
      where: TextForm.isSourcePattern)
  }

  /// Ports and ranges of ports: texts, and in a file also numbers.
  static var ports: ValueKind {
    ValueKind(
      allowed: "a list of ports from 1 to 65535 and of ranges such as 8000-8999",
      schema: #""type": "array", "items": { "type": ["string", "integer"] }"#,
      read: { value in
        let texts: [String]? =
          if case .array(let items) = value {
            items.map { $0.text ?? $0.integer.map(String.init) ?? "" }
          } else {
            value.list
          }
        return texts.flatMap { $0.allSatisfy { PortRange($0) != nil } ? $0 : nil }
      }, write: JSON5.list)
  }

  /// Web origins (RFC 6454): a list, or one comma-separated text.
  static var origins: ValueKind {
    ValueKind(
      allowed: "*, origins such as https://example.com in lower case without a path, or nothing",
      schema: #""type": ["string", "array"]"#,
      read: { value in
        guard let items = value.list ?? value.text.flatMap({ RawValue.argument($0).list }),
          items.allSatisfy(TextForm.isWebOrigin), Set(items).count == items.count
        else { return nil }
        return items
      }, write: JSON5.list)
  }
}

extension ValueKind<[String: String]> {
  /// Texts by name: an object in a file, otherwise comma-separated `name=text`.
  static func map(
    of allowed: String, where isAllowed: @escaping @Sendable (String, String) -> Bool
  ) -> ValueKind {
    ValueKind(
      allowed: "an object of \(allowed)", schema: #""type": "object""#,
      read: { value throws(MemberProblems) in
        guard let members = value.map else { return nil }
        let wrong = members.filter { !isAllowed($0.key, $0.value) }.sorted { $0.key < $1.key }
        guard wrong.isEmpty else {
          throw MemberProblems(
            wrong.map { name, text in
              MemberProblem(at: "." + name, "'\(text)' is not allowed: an object of \(allowed)")
            })
        }
        return members
      }, write: { JSON5.object($0) })
  }

  /// URLs of images by name.
  static func images(
    allowed: String = "letters, digits, - and _", except name: String = ""
  ) -> ValueKind {
    map(of: "http, https or local URLs, by names of " + allowed) { key, url in
      key.isPlain() && key != name && (try? SourceURL(parsing: url)) != nil
    }
  }
}

extension ValueKind<[ImageFormat]> {
  static func formats(
    of choice: [ImageFormat] = ImageFormat.inputs, mayBeEmpty: Bool = false
  ) -> ValueKind {
    let all = choice.map(\.rawValue)
    return ValueKind(
      allowed: "a list of \(all.joined(separator: ", ")), each once",
      schema: #""type": "array", "items": { "enum": \#(JSON5.list(all)) }"#,
      read: { value in
        guard let items = value.list, mayBeEmpty || !items.isEmpty,
          items.allSatisfy(all.contains), Set(items).count == items.count
        else { return nil }
        return items.compactMap(ImageFormat.init(rawValue:))
      }, write: { JSON5.list($0.map(\.rawValue)) })
  }
}

extension ValueKind<Set<ClientOption>> {
  /// Options of clients, each once.
  static var options: ValueKind {
    let all = ClientOption.allCases
    return ValueKind(
      allowed: "a list of \(all.map(\.rawValue).joined(separator: ", ")), each once",
      schema: ValueKind<[String]>.listSchema,
      read: { value in
        guard let items = value.list, Set(items).count == items.count else { return nil }
        let options = Set(items.compactMap(ClientOption.init(rawValue:)))
        return options.count == items.count ? options : nil
      }, write: { options in JSON5.list(all.filter(options.contains).map(\.rawValue)) })
  }
}

// MARK: - Addresses

extension ValueKind<[ListenItem]> {
  /// The addresses of clients: one, or a list of them.
  static var listenItems: ValueKind {
    let limit = 32
    return ValueKind(
      allowed: "numeric addresses such as 0.0.0.0, with a port such as 127.0.0.1:8081 or "
        + "[::1]:8081, or unix: and an absolute path; one, or a list of at most \(limit)",
      schema: #""type": ["string", "array"]"#,
      read: { value in
        let texts = value.list ?? value.text.map { [$0] } ?? []
        let items = texts.compactMap { text -> ListenItem? in
          // An address alone has the port of `server.port`. The listener accepts the same forms.
          if IPAddress(numeric: text) != nil { return .host(text) }
          return text.contains(":") ? ListenAddress(text).map(ListenItem.address) : nil
        }
        return (1...limit).contains(texts.count) && items.count == texts.count ? items : nil
      },
      write: { items in
        let texts = items.map(\.description)
        return texts.count == 1 ? JSON5.quoted(texts[0]) : JSON5.list(texts)
      })
  }
}

extension ValueKind<ListenAddress> {
  static var listenAddress: ValueKind {
    ValueKind(
      allowed: "a port (on 127.0.0.1), a numeric address with a port such as 127.0.0.1:9090 or "
        + "[::1]:9090, unix: and an absolute path",
      schema: #""type": ["string", "integer"]"#,
      read: { value in (value.text ?? value.integer.map(String.init)).flatMap(ListenAddress.init) },
      write: { JSON5.quoted($0.description) })
  }
}

extension ValueKind<SourceURL> {
  /// The endpoint of an object store, written without the slash at its end, as is usual.
  static var endpoint: ValueKind {
    ValueKind(
      allowed: "http or https with host and port, in lower case",
      read: { value in value.text.flatMap(ObjectStore.endpoint) },
      write: { JSON5.quoted(String($0.text.dropLast())) })
  }
}

// MARK: - JSON5

/// Writes JSON5 literals.
enum JSON5 {
  /// Returns a string. Escapes backslashes, quotes and control characters (ECMA-404).
  @Sendable static func quoted(_ text: String) -> String {
    var result = "\""
    for scalar in text.unicodeScalars {
      switch scalar {
      case "\"", "\\": result += "\\\(scalar)"
      case _ where scalar.value < 0x20:
        result += "\\u" + scalar.value.hexadecimal(4)
      default: result.unicodeScalars.append(scalar)
      }
    }
    return result + "\""
  }

  /// Returns a list of strings.
  @Sendable static func list(_ items: [String]) -> String {
    "[" + items.map(quoted).joined(separator: ", ") + "]"
  }

  /// Returns an object of strings, by name.
  static func object(_ members: [String: String]) -> String {
    let texts = members.sorted { $0.key < $1.key }.map { "\(quoted($0)): \(quoted($1))" }
    return texts.isEmpty ? "{}" : "{ " + texts.joined(separator: ", ") + " }"
  }
}

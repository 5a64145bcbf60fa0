// KeyKinds: reads and writes each kind of value.

import Model

extension ConfigurationKey {
  static func integer(
    _ path: String, at field: WritableKeyPath<Configuration, Int> & Sendable, purpose: String,
    in range: ClosedRange<Int>
  ) -> ConfigurationKey {
    ConfigurationKey(
      path: path, purpose: purpose,
      allowed: "a whole number from \(range.lowerBound) to \(range.upperBound)",
      read: { configuration, value in
        guard let number = value.integer, range.contains(number) else { return false }
        configuration[keyPath: field] = number
        return true
      }, write: { "\($0[keyPath: field])" })
  }

  static func boolean(
    _ path: String, at field: WritableKeyPath<Configuration, Bool> & Sendable, purpose: String
  ) -> ConfigurationKey {
    ConfigurationKey(
      path: path, purpose: purpose, allowed: "true or false",
      read: { configuration, value in
        guard let flag = value.boolean else { return false }
        configuration[keyPath: field] = flag
        return true
      }, write: { "\($0[keyPath: field])" })
  }

  static func number(
    _ path: String, at field: WritableKeyPath<Configuration, Double> & Sendable, purpose: String,
    in range: ClosedRange<Double>
  ) -> ConfigurationKey {
    ConfigurationKey(
      path: path, purpose: purpose,
      allowed: "a number from \(range.lowerBound) to \(range.upperBound)",
      read: { configuration, value in
        guard let number = value.number, range.contains(number) else { return false }
        configuration[keyPath: field] = number
        return true
      }, write: { "\($0[keyPath: field])" })
  }

  /// The maximum of each size, in bytes, so that sums of sizes do not overflow.
  private static let maximumSize = 1 << 50

  static func size(
    _ path: String, at field: WritableKeyPath<Configuration, Int> & Sendable, purpose: String,
    atLeast minimum: Int = 0
  ) -> ConfigurationKey {
    ConfigurationKey(
      path: path, purpose: purpose,
      allowed: "a size such as \"64MiB\" (B, KiB, MiB, GiB, TiB), at least "
        + "\(ByteSize.text(minimum)), at most \(ByteSize.text(maximumSize))",
      read: { configuration, value in
        guard let bytes = ByteSize.bytes(value, in: minimum...maximumSize) else { return false }
        configuration[keyPath: field] = bytes
        return true
      }, write: { quoted(ByteSize.text($0[keyPath: field])) })
  }

  /// A size, or `auto` for one that depends on the available memory.
  static func sizeOrAuto(
    _ path: String, at field: WritableKeyPath<Configuration, Int?> & Sendable, purpose: String,
    atLeast minimum: Int = 0
  ) -> ConfigurationKey {
    ConfigurationKey(
      path: path, purpose: purpose,
      allowed: "auto or a size such as \"64MiB\" (B, KiB, MiB, GiB, TiB), at least "
        + "\(ByteSize.text(minimum)), at most \(ByteSize.text(maximumSize))",
      read: { configuration, value in
        if value.text == "auto" {
          configuration[keyPath: field] = nil
          return true
        }
        guard let bytes = ByteSize.bytes(value, in: minimum...maximumSize) else { return false }
        configuration[keyPath: field] = bytes
        return true
      }, write: { quoted($0[keyPath: field].map(ByteSize.text) ?? "auto") })
  }

  static func duration(
    _ path: String, at field: WritableKeyPath<Configuration, Duration> & Sendable,
    purpose: String, in range: ClosedRange<Duration>
  ) -> ConfigurationKey {
    ConfigurationKey(
      path: path, purpose: purpose, allowed: allowedTimes(range),
      read: { configuration, value in
        guard let duration = value.text.flatMap(TimeSpan.parse), range.contains(duration) else {
          return false
        }
        configuration[keyPath: field] = duration
        return true
      }, write: { quoted(TimeSpan.text($0[keyPath: field])) })
  }

  /// Returns the allowed values, as text for error messages.
  static func allowedTimes(_ range: ClosedRange<Duration>) -> String {
    "a time such as \"15s\" (ms, s, m, h, d), from "
      + "\(TimeSpan.text(range.lowerBound)) to \(TimeSpan.text(range.upperBound))"
  }

  /// A duration, or `never`. Any negative duration means `never` too, as in SDWebImage.
  static func optionalDuration(
    _ path: String, at field: WritableKeyPath<Configuration, Duration?> & Sendable,
    purpose: String
  ) -> ConfigurationKey {
    ConfigurationKey(
      path: path, purpose: purpose,
      allowed: "a time such as \"7d\" (ms, s, m, h, d), or \"never\" (or any negative time)",
      read: { configuration, value in
        let text = value.text
        let isNegative =
          text?.hasPrefix("-") == true && TimeSpan.parse(String((text ?? "").dropFirst())) != nil
        if text == "never" || isNegative || value.number.map({ $0 < 0 }) == true {
          configuration[keyPath: field] = nil
          return true
        }
        guard let duration = text.flatMap(TimeSpan.parse) else { return false }
        configuration[keyPath: field] = duration
        return true
      }, write: { quoted($0[keyPath: field].map(TimeSpan.text) ?? "never") })
  }

  static func text(
    _ path: String, at field: WritableKeyPath<Configuration, String> & Sendable, purpose: String,
    allowed: String, where isAllowed: @escaping @Sendable (String) -> Bool
  ) -> ConfigurationKey {
    ConfigurationKey(
      path: path, purpose: purpose, allowed: allowed,
      read: { configuration, value in
        guard let text = value.text, !text.utf8.contains(0), isAllowed(text) else { return false }
        configuration[keyPath: field] = text
        return true
      }, write: { quoted($0[keyPath: field]) })
  }

  /// One of the raw values of an enumeration.
  static func choice<Value: RawRepresentable<String> & CaseIterable & Sendable>(
    _ path: String, _ field: WritableKeyPath<Configuration, Value> & Sendable, _ purpose: String
  ) -> ConfigurationKey {
    let all = Value.allCases.map(\.rawValue)
    return ConfigurationKey(
      path: path, purpose: purpose,
      allowed: all.dropLast().joined(separator: ", ") + " or " + (all.last ?? ""),
      read: { configuration, value in
        guard let choice = value.text.flatMap({ Value(rawValue: $0) }) else { return false }
        configuration[keyPath: field] = choice
        return true
      }, write: { quoted($0[keyPath: field].rawValue) })
  }

  /// Lifetimes by status: a list of `404=10m`. If a status appears twice, the last one counts.
  static func lifetimes(
    _ path: String, at field: WritableKeyPath<Configuration, [Int: Duration]> & Sendable,
    purpose: String, of statuses: Set<Int>, allowed: String
  ) -> ConfigurationKey {
    ConfigurationKey(
      path: path, purpose: purpose, allowed: "a list of \(allowed)",
      read: { configuration, value in
        guard let items = value.list else { return false }
        var lifetimes: [Int: Duration] = [:]
        for item in items {
          let parts = item.split(separator: "=", maxSplits: 1)
          guard parts.count == 2, let status = Int(parts[0]), statuses.contains(status),
            let time = TimeSpan.parse(String(parts[1]))
          else { return false }
          lifetimes[status] = time
        }
        configuration[keyPath: field] = lifetimes
        return true
      },
      write: { configuration in
        let lifetimes = configuration[keyPath: field].sorted { $0.key < $1.key }
        return literal(lifetimes.map { "\($0.key)=\(TimeSpan.text($0.value))" })
      })
  }

  static func list(
    _ path: String, at field: WritableKeyPath<Configuration, [String]> & Sendable,
    purpose: String, allowed: String, where isAllowed: @escaping @Sendable (String) -> Bool
  ) -> ConfigurationKey {
    ConfigurationKey(
      path: path, purpose: purpose, allowed: "a list of \(allowed)",
      read: { configuration, value in
        guard let items = value.list, items.allSatisfy(isAllowed) else { return false }
        configuration[keyPath: field] = items
        return true
      }, write: { literal($0[keyPath: field]) })
  }

  /// Web origins (RFC 6454): a list, or one comma-separated text; `auto` leaves them to other keys.
  static func origins(
    _ path: String, at field: WritableKeyPath<Configuration, [String]?> & Sendable,
    purpose: String
  ) -> ConfigurationKey {
    ConfigurationKey(
      path: path, purpose: purpose,
      allowed: "auto, *, origins such as https://example.com in lower case without a path, or "
        + "nothing",
      read: { configuration, value in
        if value.text == "auto" {
          configuration[keyPath: field] = nil
          return true
        }
        guard let items = value.list ?? value.text.flatMap({ RawValue.argument($0).list }),
          items.allSatisfy(WebOrigin.isOne), Set(items).count == items.count
        else { return false }
        configuration[keyPath: field] = items
        return true
      }, write: { $0[keyPath: field].map(literal) ?? quoted("auto") })
  }

  /// Texts by name: an object in a file, otherwise comma-separated `name=text`.
  static func map(
    _ path: String, at field: WritableKeyPath<Configuration, [String: String]> & Sendable,
    purpose: String, allowed: String, where isAllowed: @escaping @Sendable (String, String) -> Bool
  ) -> ConfigurationKey {
    ConfigurationKey(
      path: path, purpose: purpose, allowed: allowed,
      read: { configuration, value throws(MemberProblems) in
        guard let members = value.map else { return false }
        let wrong = members.filter { !isAllowed($0.key, $0.value) }.sorted { $0.key < $1.key }
        guard wrong.isEmpty else {
          throw MemberProblems(
            all: wrong.map { name, text in
              MemberProblem(
                place: "." + name, description: "'\(text)' is not allowed: \(allowed)")
            })
        }
        configuration[keyPath: field] = members
        return true
      },
      write: { configuration in
        let members = configuration[keyPath: field].sorted { $0.key < $1.key }
        return members.isEmpty
          ? "{}"
          : "{ " + members.map { "\(quoted($0)): \(quoted($1))" }.joined(separator: ", ") + " }"
      })
  }

  static func formats(
    _ path: String, at field: WritableKeyPath<Configuration, [ImageFormat]> & Sendable,
    purpose: String, from choice: [ImageFormat] = ImageFormat.inputs,
    mayBeEmpty: Bool = false
  ) -> ConfigurationKey {
    let all = choice.map(\.rawValue)
    return ConfigurationKey(
      path: path, purpose: purpose, allowed: "a list of \(all.joined(separator: ", ")), each once",
      read: { configuration, value in
        guard let items = value.list, mayBeEmpty || !items.isEmpty,
          items.allSatisfy(all.contains), Set(items).count == items.count
        else { return false }
        configuration[keyPath: field] = items.compactMap(ImageFormat.init(rawValue:))
        return true
      }, write: { literal($0[keyPath: field].map(\.rawValue)) })
  }

  /// Host rules: a list in a file, otherwise the JSON5 text of a list.
  static func hosts(
    _ path: String, at field: WritableKeyPath<Configuration, [HostRule]> & Sendable,
    purpose: String
  ) -> ConfigurationKey {
    ConfigurationKey(
      path: path, purpose: purpose, allowed: HostRuleMember.listAllowed,
      read: { configuration, value throws(MemberProblems) in
        configuration[keyPath: field] = try HostRuleMember.rules(value)
        return true
      },
      write: { "[" + $0[keyPath: field].map(HostRuleMember.text).joined(separator: ", ") + "]" })
  }

  /// A proxy's URL or a reference to it; empty for none. Messages do not contain the value, which
  /// may hold a password.
  static func proxy(
    _ path: String, at field: WritableKeyPath<Configuration, SecretText?> & Sendable,
    purpose: String
  ) -> ConfigurationKey {
    ConfigurationKey(
      path: path, purpose: purpose, allowed: ProxyURL.allowed,
      read: { configuration, value throws(MemberProblems) in
        guard let text = value.text else { return false }
        guard !text.isEmpty else {
          configuration[keyPath: field] = nil
          return true
        }
        guard let proxy = ProxyURL.setting(text) else {
          throw MemberProblems(
            all: [MemberProblem(place: "", description: "not allowed: \(ProxyURL.allowed)")])
        }
        configuration[keyPath: field] = proxy
        return true
      }, write: { quoted($0[keyPath: field]?.text ?? "") })
  }

  static func literal(_ items: [String]) -> String {
    "[" + items.map(quoted).joined(separator: ", ") + "]"
  }

  /// Returns a JSON5 string. Escapes backslashes, quotes and control characters (ECMA-404).
  static func quoted(_ text: String) -> String {
    var result = "\""
    for scalar in text.unicodeScalars {
      switch scalar {
      case "\"", "\\": result += "\\\(scalar)"
      case _ where scalar.value < 0x20:
        result += "\\u00" + (scalar.value < 0x10 ? "0" : "") + String(scalar.value, radix: 16)
      default: result.unicodeScalars.append(scalar)
      }
    }
    return result + "\""
  }
}

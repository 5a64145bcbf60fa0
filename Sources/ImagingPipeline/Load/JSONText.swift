// JSONText: JSON as a worker writes it, without Foundation, which would be another library to link at each start.

/// A value of JSON (RFC 8259).
indirect enum JSONText {
  case object([(name: String, value: JSONText)])
  case text(String)
  case number(Int)
  case flag(Bool)

  /// Its text, on one line; members stay in their order.
  var encoded: String {
    switch self {
    case .object(let members):
      "{" + members.map { Self.quoted($0.name) + ":" + $0.value.encoded }.joined(separator: ",")
        + "}"
    case .text(let text): Self.quoted(text)
    case .number(let number): "\(number)"
    case .flag(let flag): "\(flag)"
    }
  }

  /// Section 7: quotes, backslashes and what is below U+0020 must be escaped.
  private static func quoted(_ text: String) -> String {
    var result = "\""
    for scalar in text.unicodeScalars {
      switch scalar {
      case "\"", "\\": result += "\\\(scalar)"
      case _ where scalar.value < 0x20:
        let digits = String(scalar.value, radix: 16)
        result += "\\u" + String(repeating: "0", count: 4 - digits.count) + digits
      default: result.unicodeScalars.append(scalar)
      }
    }
    return result + "\""
  }
}

// JSONText: writes JSON without Foundation, to keep the start of an imaging worker fast.

/// A JSON value (RFC 8259).
indirect enum JSONText {
  case object([(name: String, value: JSONText)])
  case text(String)
  case number(Int)
  case flag(Bool)

  /// The JSON text on one line; members keep their order.
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

  /// Quotes a string. RFC 8259, section 7: quotes, backslashes and characters below U+0020 must be
  /// escaped.
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

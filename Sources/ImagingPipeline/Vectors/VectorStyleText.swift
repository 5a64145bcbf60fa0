// VectorStyleText: brings CSS into a form that can be split at braces and semicolons.

/// The text of a style sheet or a `style` attribute.
enum VectorStyleText {
  /// Returns CSS without comments, and with spaces for braces and semicolons within strings and parentheses (CSS Syntax
  /// Module Level 3, section 4). What is not closed ends with the text.
  static func simplified(_ text: [UInt8]) -> String {
    var result: [UInt8] = []
    result.reserveCapacity(text.count)
    var quote: UInt8?
    var depth = 0
    var index = 0
    while index < text.count {
      var byte = text[index]
      let next = index + 1 < text.count ? text[index + 1] : 0
      index += 1
      if byte == UInt8(ascii: "\\") {
        result.append(byte)
        guard index < text.count else { break }
        byte = text[index]
        index += 1
        if isBreak(byte) { byte = UInt8(ascii: " ") }
      } else if let open = quote {
        // A line break ends a string that is not closed.
        if byte == open || byte == 0x0a || byte == 0x0d { quote = nil }
        if isBreak(byte) { byte = UInt8(ascii: " ") }
      } else if byte == UInt8(ascii: "/"), next == UInt8(ascii: "*") {
        // Behind the `/*`.
        index += 1
        while index < text.count {
          index += 1
          if text[index - 1] == UInt8(ascii: "*"), index < text.count,
            text[index] == UInt8(ascii: "/")
          {
            break
          }
        }
        index += 1
        byte = UInt8(ascii: " ")
      } else if byte == UInt8(ascii: "\"") || byte == UInt8(ascii: "'") {
        quote = byte
      } else if byte == UInt8(ascii: "(") {
        depth += 1
      } else if byte == UInt8(ascii: ")") {
        depth = max(0, depth - 1)
      } else if depth > 0, isBreak(byte) {
        byte = UInt8(ascii: " ")
      }
      result.append(byte)
    }
    return String(decoding: result, as: UTF8.self)
  }

  private static func isBreak(_ byte: UInt8) -> Bool {
    byte == UInt8(ascii: "{") || byte == UInt8(ascii: "}") || byte == UInt8(ascii: ";")
  }
}

// SyntaxErrorLine: finds the line of a JSON5 syntax error, which the decoder does not report.

/// Returns the first line (from 1) after which `decodes` can no longer accept the text. Closes the
/// open brackets of each prefix of whole lines and decodes the result.
func syntaxErrorLine(in text: String, decodes: (String) -> Bool) -> Int {
  var scanner = OpenBrackets()
  var prefix = ""
  let lines = text.split(separator: "\n", omittingEmptySubsequences: false)
  for (index, line) in lines.enumerated() {
    prefix += line + "\n"
    scanner.read(line)
    // An unfinished block comment, or a key without its value, is not an error yet.
    guard !scanner.isInBlockComment else { continue }
    let isValueMissing = scanner.lastCharacter == nil || scanner.lastCharacter == ":"
    let completion = isValueMissing ? "null" : ""
    if !decodes(prefix + completion + scanner.closing) { return index + 1 }
  }
  return lines.count
}

/// The open brackets after some lines of JSON5, ignoring strings and comments.
private struct OpenBrackets {
  private(set) var closing = ""
  private(set) var isInBlockComment = false
  /// The last character that is neither white space nor in a comment.
  private(set) var lastCharacter: Character?

  mutating func read(_ line: Substring) {
    var rest = line
    var quote: Character?
    while let character = rest.popFirst() {
      if isInBlockComment {
        if character == "*", rest.first == "/" {
          rest.removeFirst()
          isInBlockComment = false
        }
        continue
      }
      if let open = quote {
        if character == "\\" { _ = rest.popFirst() }
        if character == open { quote = nil }
        continue
      }
      if character == "/", rest.first == "/" { return }
      if character == "/", rest.first == "*" {
        rest.removeFirst()
        isInBlockComment = true
        continue
      }
      switch character {
      case "\"", "'": quote = character
      case "{": closing = "}" + closing
      case "[": closing = "]" + closing
      case "}", "]": closing = String(closing.dropFirst())
      default: break
      }
      if !character.isWhitespace { lastCharacter = character }
    }
  }
}

// SyntaxErrorLine: finds the line of a JSON5 syntax error, which FoundationEssentials's decoder does not tell.

/// The first line (from 1) after which the text can no longer become what `decodes` accepts: each prefix of whole lines
/// is completed by closing what is open in it, and handed to the decoder.
func syntaxErrorLine(in text: String, decodes: (String) -> Bool) -> Int {
  var scanner = OpenBrackets()
  var prefix = ""
  let lines = text.split(separator: "\n", omittingEmptySubsequences: false)
  for (index, line) in lines.enumerated() {
    prefix += line + "\n"
    scanner.read(line)
    // What is merely begun is no error yet: a block comment, a key without its value.
    guard !scanner.isInBlockComment else { continue }
    let isValueMissing = scanner.lastCharacter == nil || scanner.lastCharacter == ":"
    let completion = isValueMissing ? "null" : ""
    if !decodes(prefix + completion + scanner.closing) { return index + 1 }
  }
  return lines.count
}

/// The brackets that are open at the end of some lines of JSON5; strings and comments hide theirs.
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

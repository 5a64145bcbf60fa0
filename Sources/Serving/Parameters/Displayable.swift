// Displayable: makes clients' text fit for messages and log lines.

import Core

/// Returns a client's text in the form for messages and log lines: at most `limit` characters,
/// without control characters and secrets.
func displayable(_ text: String, limit: Int = 100) -> String {
  // Masked before it is cut, because the sign that marks a password may come after it.
  let text = SecretMask.masked(text)
  var result = ""
  for scalar in text.unicodeScalars.prefix(limit) {
    if scalar.value < 0x20 || (0x7f..<0xa0).contains(scalar.value) {
      result += "\\u{\(String(scalar.value, radix: 16))}"
    } else {
      result.unicodeScalars.append(scalar)
    }
  }
  return text.unicodeScalars.count > limit ? result + "…" : result
}

/// Does the same for bytes that may not be valid text.
func displayable(_ bytes: some Collection<UInt8>, limit: Int = 100) -> String {
  displayable(
    String(decoding: bytes.prefix(2 * SourceURL.maximumLength), as: UTF8.self), limit: limit)
}

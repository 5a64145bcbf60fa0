// PrefetchRequestParser: parses the body of a prefetch request into image requests.

import Core

/// Parses a list of images, one per line. Skips empty lines and lines that begin with `#`; an
/// invalid line does not affect others.
///
/// A line is a URL or a query of `/image`.
enum PrefetchRequestParser {
  /// Parses the request body.
  ///
  /// - Parameters:
  ///   - body: the request body.
  ///   - presets: preset names; each line is requested once per preset. If empty, lines are
  ///     requested as they are.
  ///   - accepted: the formats that future clients accept.
  ///   - rules: the operator's rules. Request fields are not forwarded, because a list has no
  ///     client.
  /// - Throws: `invalidParameter` for an unknown preset, `tooManyLines` for too many requests.
  static func parse(
    _ body: [UInt8], presets: [String], accepting accepted: AcceptedFormats = AcceptedFormats(),
    rules: RequestRules
  ) throws(ImageError) -> [PrefetchLine] {
    var suffixes: [String] = []
    for name in presets {
      guard rules.presets[name] != nil else {
        throw .invalidParameter(
          name: "preset", value: displayable(name), allowed: rules.presetsAllowed)
      }
      suffixes.append("&preset=" + PercentEncoding.encode(name))
    }
    if suffixes.isEmpty { suffixes = [""] }
    // Count before parsing, so that a list that is too long costs little.
    let lines = body.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false)
      .enumerated()
      .map { (number: $0.offset + 1, text: $0.element.trimming(while: isBlank)) }
      .filter { !$0.text.isEmpty && $0.text.first != UInt8(ascii: "#") }
    guard lines.count * suffixes.count <= PrefetchLine.maximumCount else {
      throw .tooManyLines(limit: PrefetchLine.maximumCount)
    }
    return lines.flatMap { line in
      suffixes.map { suffix in
        PrefetchLine(
          number: line.number,
          request: request(of: line.text, suffix: suffix, accepted: accepted, rules: rules))
      }
    }
  }

  private static func request(
    of text: ArraySlice<UInt8>, suffix: String, accepted: AcceptedFormats,
    rules: RequestRules
  ) -> Result<ImageRequest, ImageError> {
    do throws(ImageError) {
      guard let line = String(validating: text, as: UTF8.self) else {
        throw .invalidParameter(
          name: "line", value: displayable(text), allowed: "a URL or a query of /image")
      }
      let query = query(of: line)
      let request = try ImageParameter.parse(Array((query + suffix).utf8), rules: rules)
      return .success(rules.request(request, accepting: accepted))
    } catch {
      return .failure(error)
    }
  }

  /// Returns a query unchanged, and a URL as the value of `url`.
  private static func query(of text: String) -> String {
    for prefix in ["/image?", "?"] where text.hasPrefix(prefix) {
      return String(text.dropFirst(prefix.count))
    }
    return text.hasPrefix("url=") ? text : "url=" + PercentEncoding.encode(text)
  }

  private static func isBlank(_ byte: UInt8) -> Bool {
    byte == UInt8(ascii: " ") || byte == UInt8(ascii: "\t") || byte == UInt8(ascii: "\r")
  }
}

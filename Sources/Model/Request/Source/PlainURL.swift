// PlainURL: parses URLs that are already in canonical form, in one pass.

/// The parts of an `http` or `https` URL that needs no normalizing, decoding or encoding.
///
/// Such a URL has a lower-case scheme and host, a path, no user, no default port, no fragment and
/// no percent sign, and no dot segments. It contains only characters that RFC 3986, section 2,
/// allows at their place. All other URLs take the slower path through Foundation.
struct PlainURL {
  let scheme: SourceURL.Scheme
  let host: String
  let port: Int
  let path: String

  /// Parses `text`. Returns `nil` if the URL is not in this form.
  init?(_ text: String) {
    var text = text
    let parts = text.withUTF8 { bytes -> (SourceURL.Scheme, Range<Int>, Int, Range<Int>)? in
      let scheme: SourceURL.Scheme
      if bytes.starts(with: "http://".utf8) {
        scheme = .http
      } else if bytes.starts(with: "https://".utf8) {
        scheme = .https
      } else {
        return nil
      }
      var position = scheme.rawValue.utf8.count + 3
      func skip(_ isAllowed: (UInt8) -> Bool) -> Range<Int> {
        let start = position
        while position < bytes.count, isAllowed(bytes[position]) { position += 1 }
        return start..<position
      }
      let host = skip { Self.kinds[Int($0)].contains(.host) }
      let standardPort = scheme == .https ? 443 : 80
      var port = standardPort
      if position < bytes.count, bytes[position] == UInt8(ascii: ":") {
        position += 1
        let digits = skip { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }
        guard (1...5).contains(digits.count), bytes[digits.lowerBound] != UInt8(ascii: "0") else {
          return nil
        }
        port = bytes[digits].reduce(0) { $0 * 10 + Int($1 - UInt8(ascii: "0")) }
        guard port <= 65_535, port != standardPort else { return nil }
      }
      guard !host.isEmpty, position < bytes.count, bytes[position] == UInt8(ascii: "/") else {
        return nil
      }
      let path = skip { Self.kinds[Int($0)].contains(.path) }
      guard !Self.hasDots(bytes[path]) else { return nil }
      if position < bytes.count, bytes[position] == UInt8(ascii: "?") {
        position += 1
        _ = skip { $0 == UInt8(ascii: "?") || Self.kinds[Int($0)].contains(.path) }
      }
      return position == bytes.count ? (scheme, host, port, path) : nil
    }
    guard let parts else { return nil }
    func part(_ range: Range<Int>) -> String {
      text.withUTF8 { String(decoding: $0[range], as: UTF8.self) }
    }
    scheme = parts.0
    port = parts.2
    host = part(parts.1)
    path = part(parts.3)
  }

  /// Whether a segment of a path is `.` or `..`.
  private static func hasDots(_ path: Slice<UnsafeBufferPointer<UInt8>>) -> Bool {
    path.indices.contains { index in
      guard path[index] == UInt8(ascii: "/") else { return false }
      let rest = path[(index + 1)...].drop { $0 == UInt8(ascii: ".") }
      let dots = rest.startIndex - index - 1
      return (1...2).contains(dots) && (rest.isEmpty || rest.first == UInt8(ascii: "/"))
    }
  }

  /// The URL parts in which a byte may occur.
  private struct Kind: OptionSet {
    let rawValue: UInt8
    static let host = Kind(rawValue: 1)
    static let path = Kind(rawValue: 2)
  }

  private static let kinds: [Kind] = (0..<256).map { byte in
    switch UInt8(byte) {
    case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "0")...UInt8(ascii: "9"):
      [.host, .path]
    case UInt8(ascii: "A")...UInt8(ascii: "Z"): .path
    case let byte where "-.".utf8.contains(byte): [.host, .path]
    case let byte where "_~!$&'()*+,;=:@/".utf8.contains(byte): .path
    default: []
    }
  }
}

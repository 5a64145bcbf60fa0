// SourcePattern: matches sources by host, port and path prefix, for the allow and deny lists.

/// A pattern for sources: a `HostPattern`, then optionally a port, then optionally a path.
///
/// | Pattern | Matches |
/// | --- | --- |
/// | `example.com`, `*.example.com`, `*` | all ports and paths of these hosts |
/// | `example.com:8443`, `[2001:db8::1]:8443` | one port, given or the scheme's default |
/// | `example.com/shop`, `*:8080/public/images` | the path itself, and all paths below it |
///
/// A path matches by whole segments: `/shop` matches `/shop` and `/shop/a.jpg`, but not
/// `/shopping`. Letter case counts. See `PathReading` for how a path is read.
public struct SourcePattern: Hashable, Sendable, CustomStringConvertible {
  /// The hosts.
  public let host: HostPattern
  /// The port, 1 to 65535; `nil`: every port.
  public let port: Int?
  /// The decoded segments of the path; empty: every path.
  private let path: [[UInt8]]

  /// Parses a pattern. Returns `nil` for an invalid host, a port out of range, a path with a query
  /// or a fragment, and a path that does not have one meaning (`/a/../b`, `/a%2fb`).
  public init?(_ text: String) {
    let slash = text.firstIndex(of: "/") ?? text.endIndex
    guard let (name, port) = Self.parts(of: text[..<slash]), let host = HostPattern(name) else {
      return nil
    }
    let path = String(text[slash...])
    guard !path.utf8.contains(where: { $0 <= 0x20 || $0 == 0x7f || "?#".utf8.contains($0) }) else {
      return nil
    }
    let reading = PathReading(path)
    guard reading.isPlain else { return nil }
    self.host = host
    self.port = port
    self.path = reading.asSent
  }

  /// Splits host and port. More than one colon without brackets is an IPv6 address.
  private static func parts(of authority: Substring) -> (name: String, port: Int?)? {
    let isBracketed = authority.hasPrefix("[")
    let colons = authority.utf8.count { $0 == UInt8(ascii: ":") }
    guard isBracketed ? !authority.hasSuffix("]") : colons == 1 else {
      return (String(authority), nil)
    }
    guard let colon = authority.lastIndex(of: ":"),
      !isBracketed || authority[..<colon].hasSuffix("]"),
      let port = PortRange.port(authority[authority.index(after: colon)...])
    else { return nil }
    return (String(authority[..<colon]), port)
  }

  /// Whether only the host decides.
  public var isOfWholeHosts: Bool { port == nil && path.isEmpty }

  /// Returns whether a source may be reached under the pattern in each way in which an origin may
  /// read its path. For lists that allow.
  public func covers(host: String, port: Int, path: PathReading) -> Bool {
    matches(host: host, port: port)
      && [path.asSent, path.asDecoded].allSatisfy { $0.starts(with: self.path) }
  }

  /// Returns whether a source is reached under the pattern in one way in which an origin may read
  /// its path. For lists that deny.
  public func touches(host: String, port: Int, path: PathReading) -> Bool {
    matches(host: host, port: port)
      && [path.asSent, path.asDecoded].contains { $0.starts(with: self.path) }
  }

  private func matches(host: String, port: Int) -> Bool {
    (self.port ?? port) == port && self.host.matches(host)
  }

  /// The normalized pattern.
  public var description: String {
    let name = host.description
    let isAddress = name.utf8.contains(UInt8(ascii: ":"))
    let authority = isAddress && port != nil ? "[\(name)]" : name
    let segments = path.map { "/" + PercentEncoding.encode(String(decoding: $0, as: UTF8.self)) }
    return authority + (port.map { ":\($0)" } ?? "") + segments.joined()
  }
}

/// The segments of a URL's path, in the two ways in which servers read it (RFC 3986, sections 3.3
/// and 5.2.4).
///
/// Both ways remove empty segments and resolve `.` and `..`; `..` at the top is dropped.
///
/// - As sent: the path is split at `/`. A dot segment may be encoded (`%2e`), as browsers read it
///   (WHATWG URL, section 4.4). Then each segment is decoded once.
/// - As decoded: the path is decoded once, and then split at `/` and `\`. Parameters after `;` do
///   not hide a dot segment (`..;a`).
public struct PathReading: Hashable, Sendable {
  /// Segments of the path as it is sent.
  public let asSent: [[UInt8]]
  /// Segments of the decoded path.
  public let asDecoded: [[UInt8]]
  private let hasDots: Bool

  /// Reads a percent-encoded path. A `%` without two hexadecimal digits stands for itself.
  public init(_ path: String) {
    let sent = path.utf8.split(separator: UInt8(ascii: "/")).map {
      PercentEncoding.decodeLeniently($0)
    }
    let decoded = PercentEncoding.decodeLeniently(path.utf8).split {
      $0 == UInt8(ascii: "/") || $0 == UInt8(ascii: "\\")
    }.map(Array.init)
    asSent = Self.resolved(sent) { $0[...] }
    asDecoded = Self.resolved(decoded) { $0.prefix { $0 != UInt8(ascii: ";") } }
    hasDots = decoded.contains { Self.isDots($0.prefix { $0 != UInt8(ascii: ";") }) }
  }

  /// Whether the path has one meaning, and no dot segments.
  var isPlain: Bool { asSent == asDecoded && !hasDots }

  private static func isDots(_ segment: ArraySlice<UInt8>) -> Bool {
    segment.elementsEqual(".".utf8) || segment.elementsEqual("..".utf8)
  }

  private static func resolved(
    _ segments: [[UInt8]], name: ([UInt8]) -> ArraySlice<UInt8>
  ) -> [[UInt8]] {
    var path: [[UInt8]] = []
    for segment in segments {
      switch name(segment) {
      case let name where name.elementsEqual(".".utf8): break
      case let name where name.elementsEqual("..".utf8): _ = path.popLast()
      default: path.append(segment)
      }
    }
    return path
  }
}

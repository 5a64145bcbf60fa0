// PortRange: ports that sources may be loaded from, one or a range.

/// A port, `8080`, or a range of ports with both ends, `1024-65535`.
public struct PortRange: Hashable, Sendable, CustomStringConvertible {
  /// The ports, from 1 to 65535.
  public let ports: ClosedRange<Int>

  /// Parses a port or a range. Returns `nil` for anything else, and for a range without ports.
  public init?(_ text: String) {
    let ends = text.split(separator: "-", omittingEmptySubsequences: false).map(Self.port)
    guard (1...2).contains(ends.count), let first = ends[0], let last = ends[ends.count - 1],
      first <= last
    else { return nil }
    ports = first...last
  }

  /// The range as it is written.
  public var description: String {
    ports.count == 1 ? "\(ports.lowerBound)" : "\(ports.lowerBound)-\(ports.upperBound)"
  }

  /// Parses a port, 1 to 65535, of decimal digits without a leading zero.
  static func port(_ text: Substring) -> Int? {
    guard text.utf8.count <= 5, text.first != "0", text.isDigits, let port = Int(text),
      port <= 65_535
    else { return nil }
    return port
  }
}

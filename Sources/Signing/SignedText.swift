// SignedText: the text that a signature covers.

import Model

/// The path and the query of a request in the one form that is signed (docs/signing.md).
///
/// Parameters keep the names and values that the client wrote, aliases and fractions too. Only what
/// cannot change the meaning is evened out: order and percent-encoding.
public struct SignedText: Hashable, Sendable {
  /// The text: the path, `?`, and the sorted parameters without `sig`, joined by `&`.
  public let text: String
  /// The decoded value of `sig`; `nil` without it.
  public let signature: String?
  /// Whether the query has a parameter `exp`.
  public let hasExpiry: Bool

  /// Creates the text of a request.
  ///
  /// Returns `nil` for a query that no request may have: a name or a value is not percent-encoded
  /// UTF-8 without NUL, or `sig` is repeated.
  ///
  /// - Parameters:
  ///   - path: the path at the server, decoded: `/image` or `/info`.
  ///   - query: the query as sent, without the `?`.
  public init?(path: String, query: some Collection<UInt8>) {
    var items: [String] = []
    var signature: String?
    var hasExpiry = false
    for piece in query.split(separator: UInt8(ascii: "&")) {
      let end = piece.firstIndex(of: UInt8(ascii: "=")) ?? piece.endIndex
      guard let name = PercentEncoding.decode(piece[..<end]),
        let value = PercentEncoding.decode(piece[end...].dropFirst())
      else { return nil }
      switch name {
      case "sig":
        guard signature == nil else { return nil }
        signature = value
        continue
      case "exp": hasExpiry = true
      default: break
      }
      items.append(PercentEncoding.encode(name) + "=" + PercentEncoding.encode(value))
    }
    // All characters are ASCII, so this is the order of their bytes.
    text = path + "?" + items.sorted().joined(separator: "&")
    self.signature = signature
    self.hasExpiry = hasExpiry
  }
}

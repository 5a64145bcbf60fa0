// URLSigner: signs URLs, and verifies their signatures.

import FoundationEssentials

/// Why a signature is refused.
public enum SignatureFault: Error, Hashable, Sendable {
  /// The URL has no signature.
  case missing
  /// It has another form than `id.signature` or `signature`, or another length.
  case malformed
  /// No key has its id.
  case unknownKey
  /// It belongs to another text or another secret.
  case mismatch
}

/// Signs with the first of its keys, and accepts the signatures of all of them.
public struct URLSigner: Equatable, Sendable {
  /// Characters of a signature without a key's id.
  public static let signatureLength = 43

  private let keys: [SigningKey]

  /// Creates a signer; without keys it accepts no signature.
  public init(keys: [SigningKey]) { self.keys = keys }

  /// Returns the value of `sig` for a text, `id.signature`. Returns `nil` if there is no such key.
  ///
  /// - Parameter id: the key to sign with; `nil` for the first.
  public func sign(_ text: SignedText, with id: String? = nil) -> String? {
    guard let key = keys.first(where: { id == nil || $0.id == id }) else { return nil }
    return key.id + "." + String(decoding: key.signature(of: text.text), as: UTF8.self)
  }

  /// Verifies the signature of a text, in a time that does not depend on how much is right.
  ///
  /// A signature without an id is compared with those of all keys.
  public func verify(_ text: SignedText) throws(SignatureFault) {
    guard let given = text.signature else { throw .missing }
    let parts = given.utf8.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
    guard parts.count <= 2, let signature = parts.last, signature.count == Self.signatureLength
    else { throw .malformed }
    let id = parts.count == 2 ? String(parts[0]) : nil
    let candidates = keys.filter { id == nil || $0.id == id }
    guard !candidates.isEmpty || id == nil else { throw .unknownKey }
    var isFound = false
    for key in candidates
    where HMAC.isEqual(key.signature(of: text.text), Array(signature)) {
      // Texts and not bytes are compared: base64url has several texts for the same bytes.
      isFound = true
    }
    guard isFound else { throw .mismatch }
  }
}

/// A key with its secret, as it signs and verifies URLs. Its texts leave out the secret.
public struct SigningKey: Equatable, Sendable, CustomStringConvertible, CustomReflectable {
  /// The name of the key in a signature, `id.…`. It is public.
  public let id: String
  /// The bytes of the secret, as they are written in the configuration.
  private let secret: [UInt8]

  /// Creates a key. The settings check its id and the length of its secret.
  public init(id: String, secret: String) {
    self.id = id
    self.secret = Array(secret.utf8)
  }

  /// The id.
  public var description: String { id }

  /// The id alone, for code that prints an object's properties.
  public var customMirror: Mirror { Mirror(self, children: ["id": id]) }

  /// Returns the signature of a text without the key's id: 43 characters of base64url (RFC 4648,
  /// section 5), without `=`.
  func signature(of text: String) -> [UInt8] {
    Data(HMAC.sha256(of: Array(text.utf8), key: secret)).base64EncodedData().compactMap { byte in
      switch byte {
      case UInt8(ascii: "+"): UInt8(ascii: "-")
      case UInt8(ascii: "/"): UInt8(ascii: "_")
      case UInt8(ascii: "="): nil
      default: byte
      }
    }
  }
}

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

// URLSigner: signs URLs, and verifies their signatures.

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

  /// Whether there is a key to sign with.
  public var canSign: Bool { !keys.isEmpty }

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
    where Self.isEqual(key.signature(of: text.text), Array(signature)) {
      isFound = true
    }
    guard isFound else { throw .mismatch }
  }

  /// Compares texts of equal length in constant time: every byte is looked at. Texts and not bytes
  /// are compared, because base64url has several texts for the same bytes.
  private static func isEqual(_ left: [UInt8], _ right: [UInt8]) -> Bool {
    guard left.count == right.count else { return false }
    var difference: UInt8 = 0
    for index in left.indices { difference |= left[index] ^ right[index] }
    return difference == 0
  }
}

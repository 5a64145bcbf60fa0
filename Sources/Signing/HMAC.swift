// HMAC: message authentication, computed by GLib.

import CGLib

/// Message authentication (RFC 2104).
public enum HMAC {
  /// A digest (FIPS 180-4). SHA-1 only verifies the signatures of other servers.
  public enum Digest: String, Sendable {
    case sha1, sha256, sha512

    /// GLib's name of the digest, and its bytes.
    fileprivate var gType: (type: GChecksumType, length: Int) {
      switch self {
      case .sha1: (G_CHECKSUM_SHA1, 20)
      case .sha256: (G_CHECKSUM_SHA256, 32)
      case .sha512: (G_CHECKSUM_SHA512, 64)
      }
    }
  }

  /// Returns the 32 bytes of SHA-256 for a message and a key of any length.
  public static func sha256(of message: [UInt8], key: [UInt8]) -> [UInt8] {
    code(of: message, key: key, digest: .sha256)
  }

  /// Returns the bytes for a message and a key of any length.
  public static func code(of message: [UInt8], key: [UInt8], digest: Digest) -> [UInt8] {
    let state = State(key: key, digest: digest)
    state.update(message)
    return state.result()
  }

  /// Compares bytes of equal length in constant time: every byte is looked at.
  public static func isEqual(_ left: [UInt8], _ right: [UInt8]) -> Bool {
    guard left.count == right.count else { return false }
    var difference: UInt8 = 0
    for index in left.indices { difference |= left[index] ^ right[index] }
    return difference == 0
  }

  /// Returns the SHA-256 of bytes as 64 hexadecimal digits in lower case.
  public static func hexSHA256(of bytes: UnsafeRawBufferPointer) -> String {
    hex(G_CHECKSUM_SHA256, of: bytes)
  }

  /// Returns the SHA-256 of bytes as 64 hexadecimal digits in lower case.
  public static func hexSHA256(of bytes: [UInt8]) -> String {
    bytes.withUnsafeBytes { hexSHA256(of: $0) }
  }

  /// Returns the MD5 (RFC 1321) of bytes as 32 hexadecimal digits in lower case. It only verifies
  /// the signatures of other servers.
  public static func md5Hex(of bytes: [UInt8]) -> String {
    bytes.withUnsafeBytes { hex(G_CHECKSUM_MD5, of: $0) }
  }

  private static func hex(_ type: GChecksumType, of bytes: UnsafeRawBufferPointer) -> String {
    // GLib fails only for unknown digest types.
    guard
      let text = g_compute_checksum_for_data(
        type, bytes.bindMemory(to: UInt8.self).baseAddress, gsize(bytes.count))
    else {
      preconditionFailure("GLib does not know the digest")
    }
    defer { g_free(text) }
    return String(cString: text)
  }

  /// Owns GLib's state.
  private struct State: ~Copyable {
    private let hmac: OpaquePointer
    private let length: Int

    init(key: [UInt8], digest: Digest) {
      // GLib fails only for unknown digest types, and copies the key.
      guard let hmac = g_hmac_new(digest.gType.type, key, gsize(key.count)) else {
        preconditionFailure("GLib knows no \(digest)")
      }
      self.hmac = hmac
      length = digest.gType.length
    }

    deinit { g_hmac_unref(hmac) }

    func update(_ bytes: [UInt8]) { g_hmac_update(hmac, bytes, gssize(bytes.count)) }

    func result() -> [UInt8] {
      var count = gsize(length)
      var bytes = [UInt8](repeating: 0, count: length)
      g_hmac_get_digest(hmac, &bytes, &count)
      precondition(count == length, "GLib's digest has another length")
      return bytes
    }
  }
}

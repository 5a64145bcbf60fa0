// HMAC: HMAC-SHA256, computed by GLib.

import CGLib

/// Message authentication (RFC 2104) with SHA-256 (FIPS 180-4).
public enum HMAC {
  /// Length of a result, in bytes.
  static let length = 32

  /// Returns the 32 bytes for a message and a key of any length.
  static func sha256(of message: [UInt8], key: [UInt8]) -> [UInt8] {
    let state = State(key: key)
    state.update(message)
    return state.digest()
  }

  /// Returns the SHA-256 of bytes as 64 hexadecimal digits in lower case.
  public static func hexSHA256(of bytes: UnsafeRawBufferPointer) -> String {
    // GLib fails only for unknown digest types.
    guard
      let text = g_compute_checksum_for_data(
        G_CHECKSUM_SHA256, bytes.bindMemory(to: UInt8.self).baseAddress, gsize(bytes.count))
    else {
      preconditionFailure("GLib knows no SHA-256")
    }
    defer { g_free(text) }
    return String(cString: text)
  }

  /// Returns the SHA-256 of bytes as 64 hexadecimal digits in lower case.
  public static func hexSHA256(of bytes: [UInt8]) -> String {
    bytes.withUnsafeBytes { hexSHA256(of: $0) }
  }

  /// Owns GLib's state.
  private struct State: ~Copyable {
    private let hmac: OpaquePointer

    init(key: [UInt8]) {
      // GLib fails only for unknown digest types, and copies the key.
      guard let hmac = g_hmac_new(G_CHECKSUM_SHA256, key, gsize(key.count)) else {
        preconditionFailure("GLib knows no SHA-256")
      }
      self.hmac = hmac
    }

    deinit { g_hmac_unref(hmac) }

    func update(_ bytes: [UInt8]) { g_hmac_update(hmac, bytes, gssize(bytes.count)) }

    func digest() -> [UInt8] {
      var length = gsize(HMAC.length)
      var digest = [UInt8](repeating: 0, count: HMAC.length)
      g_hmac_get_digest(hmac, &digest, &length)
      precondition(length == HMAC.length, "GLib's SHA-256 has another length")
      return digest
    }
  }
}

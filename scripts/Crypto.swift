// Crypto: the part of swift-crypto's interface that the code of docs/clients/README.md uses, by
// GLib, so that it runs on Linux without a package from elsewhere.

import CGLib

public enum SHA256 {}

public struct SymmetricKey {
  fileprivate let bytes: [UInt8]
  public init(data: some Sequence<UInt8>) { bytes = Array(data) }
}

public enum HMAC<Hash> {
  public static func authenticationCode(
    for data: some Sequence<UInt8>, using key: SymmetricKey
  ) -> [UInt8] {
    guard let state = g_hmac_new(G_CHECKSUM_SHA256, key.bytes, gsize(key.bytes.count)) else { return [] }
    defer { g_hmac_unref(state) }
    let message = Array(data)
    g_hmac_update(state, message, gssize(message.count))
    var length = gsize(32)
    var digest = [UInt8](repeating: 0, count: 32)
    g_hmac_get_digest(state, &digest, &length)
    return digest
  }
}

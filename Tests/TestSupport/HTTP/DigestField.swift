// DigestField: a response field with the digest of a body.

import CGLib
import FoundationEssentials

/// A response field with a digest (RFC 9530, RFC 1864, S3), for tests.
public enum DigestField: String, CaseIterable, Sendable {
  case contentDigest = "Content-Digest"
  case reprDigest = "Repr-Digest"
  case contentMD5 = "Content-MD5"
  case amazonSHA256 = "x-amz-checksum-sha256"
  case amazonSHA1 = "x-amz-checksum-sha1"

  /// Returns the field with the digest of `bytes`.
  public func line(for bytes: [UInt8]) -> String {
    let (type, before, after) =
      switch self {
      case .contentDigest: (G_CHECKSUM_SHA256, "sha-256=:", ":")
      case .reprDigest: (G_CHECKSUM_SHA512, "sha-512=:", ":")
      case .contentMD5: (G_CHECKSUM_MD5, "", "")
      case .amazonSHA256: (G_CHECKSUM_SHA256, "", "")
      case .amazonSHA1: (G_CHECKSUM_SHA1, "", "")
      }
    let checksum = g_checksum_new(type)
    defer { g_checksum_free(checksum) }
    g_checksum_update(checksum, bytes, gssize(bytes.count))
    let digest = [UInt8](unsafeUninitializedCapacity: 64) { buffer, count in
      var length = gsize(buffer.count)
      g_checksum_get_digest(checksum, buffer.baseAddress, &length)
      count = Int(length)
    }
    return "\(rawValue): \(before)\(Data(digest).base64EncodedString())\(after)"
  }
}

// BodyDigests: parses the digests of a body that an origin sends, and verifies the body.

import CDeflate
import CGLib
import Core
import FoundationEssentials

/// The digests in `Content-Digest` and `Repr-Digest` (RFC 9530), `Content-MD5` (RFC 1864) and S3's
/// `x-amz-checksum-…`.
///
/// A complete response without a content coding is its representation, so both fields of RFC 9530
/// cover the same bytes. Invalid values and unknown algorithms are ignored.
struct BodyDigests: Hashable, Sendable {
  /// The digest algorithms.
  enum Algorithm: String, Hashable, CaseIterable, Sendable {
    case md5, sha1, sha256, sha512, crc32, crc32c, crc64nvme

    /// Length of a digest in bytes.
    var length: Int {
      switch self {
      case .md5: 16
      case .sha1: 20
      case .sha256: 32
      case .sha512: 64
      case .crc32, .crc32c: 4
      case .crc64nvme: 8
      }
    }

    /// Parses a name of RFC 9530's registry.
    fileprivate init?(key: Substring) {
      switch key {
      case "md5": self = .md5
      case "sha": self = .sha1
      case "sha-256": self = .sha256
      case "sha-512": self = .sha512
      case "crc32c": self = .crc32c
      default: return nil
      }
    }
  }

  /// A digest and the field that contained it.
  struct Claim: Hashable, Sendable {
    let algorithm: Algorithm
    let digest: [UInt8]
    let field: String
  }

  /// The parsed digests, at most `limit`.
  private(set) var claims: [Claim] = []
  /// Whether S3 sent a digest of part digests (multipart upload), which cannot be verified from the
  /// body.
  private var isComposite = false

  private static let limit = 16

  /// Whether the origin announced digests in trailer fields, which follow the body.
  private(set) var isAnnounced = false

  /// Whether the origin sent no usable digest.
  var isEmpty: Bool { claims.isEmpty }

  /// Whether the body may have to be verified. Known with the head of the response.
  var isExpected: Bool { !isEmpty || isAnnounced }

  /// Parses a response field if it contains a digest; `name` is in lower case.
  mutating func receive(name: String, _ value: String) {
    switch name {
    case "content-digest", "repr-digest":
      for member in value.split(separator: ",") { receive(member: member, of: name) }
    case "content-md5": add(.md5, base64: value, field: name)
    // RFC 9110, section 6.6.2; RFC 9530, section 2
    case "trailer":
      let names = value.split(separator: ",").map { $0.trimmed.lowercased() }
      if names.contains(where: Self.isDigest) { isAnnounced = true }
    case "x-amz-checksum-type":
      isComposite = value.uppercased() == "COMPOSITE"
      if isComposite { claims.removeAll { $0.field.hasPrefix(Self.amazon) } }
    default:
      guard name.hasPrefix(Self.amazon), !isComposite,
        let algorithm = Algorithm(rawValue: String(name.dropFirst(Self.amazon.count)))
      else { return }
      add(algorithm, base64: value, field: name)
    }
  }

  private static let amazon = "x-amz-checksum-"

  /// Whether a field of this name, in lower case, is a digest.
  private static func isDigest(_ name: String) -> Bool {
    ["content-digest", "repr-digest", "content-md5"].contains(name) || name.hasPrefix(amazon)
  }

  /// Parses `sha-256=:base64:`, optionally with parameters (RFC 8941, section 3.2).
  private mutating func receive(member: Substring, of field: String) {
    let parts = member.split(separator: "=", maxSplits: 1)
    guard parts.count == 2, let algorithm = Algorithm(key: parts[0].trimmed) else { return }
    let value = parts[1].trimmed
    guard value.first == ":", let end = value.dropFirst().firstIndex(of: ":") else { return }
    add(algorithm, base64: String(value[value.index(after: value.startIndex)..<end]), field: field)
  }

  private mutating func add(_ algorithm: Algorithm, base64: String, field: String) {
    guard claims.count < Self.limit, let data = Data(base64Encoded: base64),
      data.count == algorithm.length
    else { return }
    claims.append(Claim(algorithm: algorithm, digest: Array(data), field: field))
  }

  // MARK: Verification

  /// Compares a body with the digests. Blocks. Returns a description of the first mismatch, for
  /// operators; `nil` if all digests match.
  func mismatch(with file: FileRegion) -> String? {
    for algorithm in Set(claims.map(\.algorithm)) {
      guard let digest = Self.digest(of: file, algorithm) else {
        return "the body cannot be read back"
      }
      let wrong = claims.first { $0.algorithm == algorithm && $0.digest != digest }
      if let wrong { return "\(wrong.field): \(algorithm.rawValue) does not match the body" }
    }
    return nil
  }

  private static let pieceLength = 256 << 10

  private static func digest(of file: FileRegion, _ algorithm: Algorithm) -> [UInt8]? {
    var digest = BodyDigest(algorithm)
    let piece = UnsafeMutableRawBufferPointer.allocate(byteCount: pieceLength, alignment: 16)
    defer { piece.deallocate() }
    var position = 0
    while position < file.count {
      let count = min(piece.count, file.count - position)
      guard let bytes = try? file.read(count, at: position, into: piece) else { return nil }
      digest.update(bytes)
      position += count
    }
    return digest.finish()
  }
}

/// An incremental digest: GLib's checksums, libdeflate's CRC-32, or a CRC of our own.
struct BodyDigest: ~Copyable {
  private enum State {
    case checksum(OpaquePointer)
    case crc32(UInt32)
    /// A CRC of `count` bytes, with the table of its polynomial.
    case crc(UInt64, [UInt64], count: Int)
  }

  private var state: State

  init(_ algorithm: BodyDigests.Algorithm) {
    func checksum(_ type: GChecksumType) -> State {
      // GLib fails only for unknown types, and every GLib knows these.
      guard let checksum = g_checksum_new(type) else {
        preconditionFailure("GLib lacks a checksum")
      }
      return .checksum(checksum)
    }
    switch algorithm {
    case .md5: state = checksum(G_CHECKSUM_MD5)
    case .sha1: state = checksum(G_CHECKSUM_SHA1)
    case .sha256: state = checksum(G_CHECKSUM_SHA256)
    case .sha512: state = checksum(G_CHECKSUM_SHA512)
    case .crc32: state = .crc32(0)
    case .crc32c: state = .crc(0xffff_ffff, Self.castagnoli, count: 4)
    case .crc64nvme: state = .crc(.max, Self.nvme, count: 8)
    }
  }

  deinit { if case .checksum(let checksum) = state { g_checksum_free(checksum) } }

  /// Adds the next bytes.
  mutating func update(_ bytes: UnsafeRawBufferPointer) {
    switch state {
    case .checksum(let checksum):
      g_checksum_update(
        checksum, bytes.baseAddress?.assumingMemoryBound(to: UInt8.self), gssize(bytes.count))
    case .crc32(let value):
      state = .crc32(libdeflate_crc32(value, bytes.baseAddress, bytes.count))
    case .crc(var value, let table, let count):
      table.withUnsafeBufferPointer { table in
        for byte in bytes { value = table[Int((value ^ UInt64(byte)) & 0xff)] ^ (value >> 8) }
      }
      state = .crc(value, table, count: count)
    }
  }

  /// Returns the digest of all bytes.
  consuming func finish() -> [UInt8] {
    switch state {
    case .checksum(let checksum):
      return [UInt8](unsafeUninitializedCapacity: 64) { digest, count in
        var length = gsize(digest.count)
        g_checksum_get_digest(checksum, digest.baseAddress, &length)
        count = Int(length)
      }
    case .crc32(let value): return withUnsafeBytes(of: value.bigEndian) { Array($0) }
    case .crc(let value, _, let count):
      return withUnsafeBytes(of: (~value).bigEndian) { Array($0.suffix(count)) }
    }
  }

  /// RFC 3720, appendix B.4.
  private static let castagnoli = table(of: 0x82f6_3b78)
  /// CRC-64/NVME; the check value of "123456789" is AE8B14860A799888.
  private static let nvme = table(of: 0x9a6c_9329_ac4b_c9b5)

  /// Returns the table of a reflected polynomial.
  private static func table(of polynomial: UInt64) -> [UInt64] {
    (0..<256).map { number in
      (0..<8).reduce(number) { value, _ in
        value & 1 == 0 ? value >> 1 : value >> 1 ^ polynomial
      }
    }
  }
}

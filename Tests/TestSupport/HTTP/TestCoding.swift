// TestCoding: the content codings that tests send.

import CCodecs
import Glibc

/// A content coding (RFC 9110, section 8.4.1), with an encoder. Deflate comes in two kinds: with
/// zlib's frame, as the RFC has it, and without, as some origins send it.
public enum TestCoding: String, CaseIterable, Sendable {
  case gzip, deflate, rawDeflate, br, zstd

  /// The value of `Content-Encoding`.
  public var name: String { self == .rawDeflate ? "deflate" : rawValue }
  /// The response field.
  public var field: String { "Content-Encoding: \(name)" }

  /// Returns the bytes with this coding.
  public func encode(_ bytes: [UInt8]) -> [UInt8] {
    var count = 0
    let coded =
      switch self {
      case .gzip: pictor_code_deflate(bytes, bytes.count, 31, &count)
      case .deflate: pictor_code_deflate(bytes, bytes.count, 15, &count)
      case .rawDeflate: pictor_code_deflate(bytes, bytes.count, -15, &count)
      case .br: pictor_code_brotli(bytes, bytes.count, &count)
      case .zstd: pictor_code_zstd(bytes, bytes.count, 0, &count)
      }
    return Self.taking(coded, count)
  }

  /// Returns a Zstandard frame whose decoder needs a window of `1 << windowLog` bytes.
  public static func zstd(_ bytes: [UInt8], windowLog: Int32) -> [UInt8] {
    var count = 0
    let coded = pictor_code_zstd(bytes, bytes.count, windowLog, &count)
    return taking(coded, count)
  }

  private static func taking(_ coded: UnsafeMutablePointer<UInt8>?, _ count: Int) -> [UInt8] {
    guard let coded else { preconditionFailure("an encoder failed") }
    defer { free(coded) }
    return Array(UnsafeBufferPointer(start: coded, count: count))
  }
}

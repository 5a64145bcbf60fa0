// ObjectName: the bucket and the key of an s3 URL.

/// The name of an object in S3, parsed from `s3://bucket/key`.
///
/// A key is any text of up to 1024 bytes, so it is decoded once and encoded once: two spellings of
/// a key are one URL. Keys with a segment `.` or `..` are refused. A server or proxy that resolves
/// them would reach another bucket with the operator's credentials.
struct ObjectName: Hashable {
  /// Why a URL names no object; completes "the URL cannot be used: …".
  struct Problem: Error {
    let reason: String
  }

  /// The beginning of such a URL.
  static let prefix = "s3://"
  /// The maximum length of a key, in UTF-8 bytes ("Naming Amazon S3 objects").
  static let longestKey = 1_024

  /// The bucket.
  let bucket: String
  /// `/` and the key, percent-encoded as signatures need it (`PercentEncoding.encodePath`).
  let path: String

  /// Parses a URL. Returns `nil` for another scheme, too long a text or control characters.
  ///
  /// - Throws: `ImageError.invalidURL` if it names no object.
  static func parse(_ text: String) throws(ImageError) -> ObjectName? {
    guard text.utf8.count <= SourceURL.maximumLength,
      text.utf8.prefix(prefix.utf8.count).elementsEqual(prefix.utf8)
        || text.utf8.starts(with: "S3://".utf8),
      !text.utf8.contains(where: { $0 < 0x20 || $0 == 0x7f })
    else { return nil }
    do throws(Problem) {
      return try ObjectName(Substring(text.utf8.dropFirst(prefix.utf8.count)))
    } catch {
      throw .invalidURL(text, reason: error.reason)
    }
  }

  /// Parses the rest of a URL after `s3://`.
  init(_ rest: Substring) throws(Problem) {
    if let mark = rest.utf8.first(where: { "?#".utf8.contains($0) }) {
      let (sign, code) = mark == UInt8(ascii: "?") ? ("?", "%3F") : ("#", "%23")
      throw Problem(reason: "an s3 URL has no query or fragment; a '\(sign)' of a key is \(code)")
    }
    let slash = rest.utf8.firstIndex(of: UInt8(ascii: "/")) ?? rest.endIndex
    bucket = String(rest[..<slash])
    guard Self.isBucket(bucket) else {
      throw Problem(
        reason:
          "a bucket has 3 to 63 lower-case letters, digits, '-', '.' and '_', and is no address")
    }
    guard let key = PercentEncoding.decode(rest[slash...].utf8.dropFirst()) else {
      throw Problem(
        reason: "its key is not percent-encoded UTF-8 without NUL; a '%' of a key is %25")
    }
    guard (1...Self.longestKey).contains(key.utf8.count) else {
      throw Problem(reason: "a key has 1 to \(Self.longestKey) bytes")
    }
    // By bytes: a slash and a combining mark after it are one `Character`.
    let segments = key.utf8.split(omittingEmptySubsequences: false) { $0 == 0x2f || $0 == 0x5c }
    guard !segments.contains(where: { $0.elementsEqual(".".utf8) || $0.elementsEqual("..".utf8) })
    else { throw Problem(reason: "its key has a segment '.' or '..'") }
    path = "/" + PercentEncoding.encodePath(key)
  }

  /// Whether a text can name a bucket ("General purpose bucket naming rules", and Google's `_`).
  static func isBucket(_ text: String) -> Bool {
    func isAlphanumeric(_ byte: UInt8) -> Bool {
      byte.isDigit || byte.isLetter && byte & 0x20 != 0
    }
    guard (3...63).contains(text.utf8.count), let first = text.utf8.first,
      let last = text.utf8.last,
      isAlphanumeric(first), isAlphanumeric(last), !text.contains("..")
    else { return false }
    let isAddress =
      text.split(separator: ".", omittingEmptySubsequences: false).count == 4
      && text.utf8.allSatisfy { $0 == 0x2e || $0.isDigit }
    return !isAddress && text.utf8.allSatisfy { isAlphanumeric($0) || "-._".utf8.contains($0) }
  }
}

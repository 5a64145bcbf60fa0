// S3Request: a read or a write of one entry, and how it is named and signed.

import Glibc
import Model
import Platform
import Signing

/// A request to the bucket, which ends once.
struct S3Request: Sendable {
  enum Work: Sendable {
    case read
    /// A write, and when the entry expires.
    case write(S3Body, expires: UnixTime)
  }

  /// What became of a request.
  enum Outcome: Sendable {
    case found(FileRegion)
    case absent
    case written
    case failed
    /// No answer before the deadline.
    case timedOut
  }

  let work: Work
  /// The name of the object after the prefix.
  let path: String
  let deadline: ContinuousClock.Instant
  /// Called once, on any thread; must not block.
  let finish: @Sendable (Outcome) -> Void

  var isRead: Bool {
    if case .read = work { true } else { false }
  }

  /// Bytes of the body.
  var count: Int {
    if case .write(let body, _) = work { body.count } else { 0 }
  }

  /// Returns the path of an entry: `v:0123…` becomes `v/01/23…`.
  ///
  /// Names are a kind and a digest, so the two digits spread objects evenly over 256 prefixes. S3 splits a bucket by
  /// prefixes, and tools can list, copy or remove a part.
  static func path(of name: String) -> String {
    let parts = name.split(separator: ":", maxSplits: 1)
    guard parts.count == 2, parts[1].utf8.count > 2 else {
      return name.replacing(":", with: "/")
    }
    let digest = parts[1].replacing(":", with: "/")
    return "\(parts[0])/\(digest.prefix(2))/\(digest.dropFirst(2))"
  }

  /// Returns the header lines of the request, signed now.
  ///
  /// The body is not part of the signature: an entry has a SHA-256 of its own, which each reader compares, TLS protects
  /// the way, and the hash of a file would mean to read it twice.
  func fields(_ configuration: S3Configuration, at time: UnixTime) -> [String] {
    var fields: [HeaderField] = []
    var payload = AWSRequest.Payload.empty
    var method = "GET"
    if case .write(_, let expires) = work {
      method = "PUT"
      payload = .unsigned
      fields = [
        ("Content-Type", "application/octet-stream"),
        ("x-amz-meta-expires", Self.text(of: expires)),
      ].compactMap { HeaderField($0.0, value: $0.1) }
    }
    if let signer = configuration.signer {
      fields += signer.fields(
        for: AWSRequest(
          method: method, host: configuration.host, path: configuration.basePath + path,
          fields: fields, payload: payload), at: time)
    }
    // No `Expect`, for which curl would wait a second.
    return fields.map { "\($0.name): \($0.value)" } + ["Expect:", "Accept:"]
  }

  /// Returns a time as RFC 3339 writes it, `2026-11-25T15:00:00Z`.
  static func text(of time: UnixTime) -> String {
    func padded(_ number: Int, to width: Int = 2) -> String {
      let digits = String(number)
      return String(repeating: "0", count: max(width - digits.count, 0)) + digits
    }
    let second = ((time.seconds % 86_400) + 86_400) % 86_400
    let date = HTTPDate.civilDate(daysSinceEpoch: (time.seconds - second) / 86_400)
    return "\(padded(date.year, to: 4))-\(padded(date.month))-\(padded(date.day))"
      + "T\(padded(second / 3_600)):\(padded(second / 60 % 60)):\(padded(second % 60))Z"
  }
}

/// The bytes of a write, which curl copies piece by piece.
struct S3Body: Sendable {
  let head: [UInt8]
  let region: FileRegion?

  var count: Int { head.count + (region?.count ?? 0) }

  /// Copies bytes from an offset. Returns their number, 0 at the end; `nil` if the file cannot be read.
  func copy(at offset: Int, to buffer: UnsafeMutableRawBufferPointer) -> Int? {
    guard offset >= 0 else { return nil }
    if offset < head.count {
      return head.withUnsafeBytes { bytes in
        let piece = UnsafeRawBufferPointer(rebasing: bytes[offset...].prefix(buffer.count))
        buffer.copyMemory(from: piece)
        return piece.count
      }
    }
    let position = offset - head.count
    guard let region, position < region.count else { return 0 }
    while true {
      let count = pread(
        region.descriptor, buffer.baseAddress, min(buffer.count, region.count - position),
        region.offset + position)
      if count < 0, errno == EINTR { continue }
      return count > 0 || buffer.isEmpty ? count : nil
    }
  }
}

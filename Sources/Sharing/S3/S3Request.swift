// S3Request: a read or a write of one entry, and how it is named and signed.

import Model
import Platform
import Requesting
import Signing

/// A request to the bucket, which ends once.
struct S3Request: Sendable {
  enum Work: Sendable {
    case read
    /// A write, and when the entry expires.
    case write([UInt8], expires: UnixTime)
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

  /// The number, for the breaker.
  var number = 0
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

  /// Returns the request, signed now.
  ///
  /// The body is not part of the signature: an entry has a SHA-256 of its own, which each reader compares, TLS protects
  /// the way.
  func request(_ configuration: S3Configuration, at time: UnixTime) -> ServerRequest {
    var request = ServerRequest(isRead ? .get : .put, configuration.base + path)
    var fields: [HeaderField] = []
    if case .write(let body, let expires) = work {
      request.body = body
      fields = [
        ("Content-Type", "application/octet-stream"),
        ("x-amz-meta-expires", Self.text(of: expires)),
      ].compactMap { HeaderField($0.0, value: $0.1) }
    }
    if let signer = configuration.signer {
      fields += signer.fields(
        for: AWSRequest(
          method: request.method.rawValue, host: configuration.host,
          path: configuration.basePath + path, fields: fields,
          payload: isRead ? .empty : .unsigned), at: time)
    }
    request.fields = fields.map { "\($0.name): \($0.value)" } + ["Accept:"]
    request.caFile = configuration.settings.caFile
    // That of an error.
    request.limit = 4 << 10
    return request
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

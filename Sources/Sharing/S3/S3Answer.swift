// S3Answer: what a response means. Pure.

/// A response, or the reason that none came.
struct S3Answer: Equatable {
  /// Why this machine ended the transfer.
  enum Stop: Equatable {
    /// The entry is longer than the limit.
    case tooLarge
    /// The memory for bodies has no room.
    case noRoom
    /// A response without a length.
    case noLength
    /// Too many header fields.
    case headTooLong
    /// An error's body is longer than what is read. Its status counts.
    case errorTooLong
  }

  /// What the request was.
  enum Kind {
    case read
    case write
  }

  enum Meaning: Equatable {
    /// The entry is there, whole.
    case found
    case absent
    case written
    case failed
  }

  /// curl's text for a failed transfer; `nil` for a complete response.
  var failure: String?
  var stop: Stop?
  /// The status; 0 without a response.
  var status = 0
  /// The `<Code>` of an error.
  var code: String?
  /// The bytes of the body.
  var received = 0
  /// The declared length.
  var expected: Int?

  /// Returns what the response means, what it says about the bucket, and the reason of a failure.
  func meaning(for kind: Kind) -> (Meaning, RequestBreaker.Verdict, detail: String?) {
    switch stop {
    case .tooLarge: return (.failed, .alive, nil)
    case .noRoom: return (.failed, .alive, nil)
    case .noLength: return (.failed, .failed, "a response without Content-Length")
    case .headTooLong: return (.failed, .failed, "too many header fields")
    case .errorTooLong, nil: break
    }
    if stop == nil, let failure { return (.failed, .failed, failure) }
    switch (kind, status) {
    case (.read, 200):
      guard received > 0, received == expected else {
        return (.failed, .failed, "\(received) bytes of \(expected ?? 0)")
      }
      return (.found, .alive, nil)
    // A missing bucket is 404, too.
    case (.read, 404) where code == nil || code == "NoSuchKey": return (.absent, .alive, nil)
    // S3 says 200; other servers say 201 for what is new, or 204 (RFC 9110, section 9.3.4).
    case (.write, 200), (.write, 201), (.write, 204): return (.written, .alive, nil)
    // Answers about this entry: a conflict, too large, no room.
    case (.write, 409), (.write, 412), (.write, 413), (.write, 507):
      return (.failed, .alive, detail)
    default: return (.failed, .failed, detail)
    }
  }

  private var detail: String { "status \(status)" + (code.map { ", \($0)" } ?? "") }
}

// ImageError+Key: the configuration key that caused a failure, for operators.

extension ImageError {
  /// The key whose value caused the failure; `nil` if no key would prevent it.
  public var decidingKey: String? {
    switch self {
    case .forbiddenSource(_, _, let key), .sourceUnreachable(_, let key),
      .sourceTimeout(_, let key), .tooCostly(_, let key), .bodyTooLarge(_, let key):
      key
    case .forbiddenParameter(let name): Self.keyForbidding(name)
    case .unsignedParameter(_, let key): key
    case .invalidSignature: "signing.keys"
    case .sourceTooLarge(_, let key): key
    case .tooManyPixels: "imaging.maximum_pixels"
    case .tooManyFrames: "imaging.maximum_frames"
    case .outOfMemory: "imaging.worker_memory"
    case .deadlineExceeded: "server.request_timeout"
    case .imagingTimeout: "imaging.deadline"
    case .overloaded(let queue, _): Self.keysOfQueues[queue]
    case .rateLimited(let limit, _): limit.key
    case .watermark(let cause), .remembered(let cause, _, _, _), .ofVariant(let cause):
      cause.decidingKey
    default: nil
    }
  }

  /// `message` with the reason and the key that decides, if known: for `server.explain_errors`.
  public var explainedMessage: String {
    message + (reason.isEmpty ? "" : ": " + SecretMask.masked(reason)) + hint
  }

  /// What curl, the origin or the decoder says of the failure; empty if it says nothing.
  private var reason: String {
    switch cause {
    // With a key, the detail has the address behind a name, which is not public.
    case .sourceUnreachable(let detail, nil), .sourceTimeout(let detail, _),
      .sourceIncomplete(let detail), .sourceTLS(let detail), .sourceError(_, _, let detail?),
      .unsupportedFormat(let detail), .undecodable(let detail):
      detail
    case .watermark(let cause): cause.reason
    default: ""
    }
  }

  /// The note that is appended to messages for operators; empty if no key decides.
  var hint: String { decidingKey.map { " (see \($0) in the configuration)" } ?? "" }

  private static func keyForbidding(_ parameter: String) -> String? {
    switch parameter {
    case "refresh", "cache", "retry", "store", "detach", "priority": "server.allow"
    case "enlarge": "server.allow_enlarge or server.presets_only"
    case "url", "preset": nil
    default: "server.presets_only"
    }
  }

  /// Returns what an `overloaded` error says of its queue.
  static func shortage(of queue: String) -> String {
    switch queue {
    case "memory": "memory for images is at its limit"
    case "download memory": "memory for downloads is at its limit"
    case "download time": "the download waited too long for its turn"
    default: "the \(queue) queue is at its limit"
    }
  }

  private static let keysOfQueues = [
    "memory": "memory.budget", "download memory": "memory.budget",
    "download time": "download.timeout",
    "stalled downloads": "download.limit",
    "requests": "server.active_requests", "imaging": "imaging.queue_limit",
    "download": "download.queue_limit",
  ]
}

// ImageError+Key: which key of the configuration decides about a failure, for operators' eyes.

extension ImageError {
  /// The key whose value brought the failure about, and would let it pass with another one; `nil` where none would.
  public var decidingKey: String? {
    switch self {
    case .forbiddenSource(_, _, let key): key
    case .forbiddenParameter(let name): Self.keyForbidding(name)
    case .sourceTooLarge: "download.maximum_bytes"
    case .tooManyRedirects: "download.maximum_redirects"
    case .tooManyPixels: "imaging.maximum_pixels"
    case .tooManyFrames: "imaging.maximum_frames"
    case .outOfMemory: "imaging.worker_memory"
    case .deadlineExceeded: "server.request_timeout"
    case .overloaded(let queue, _): Self.keysOfQueues[queue]
    case .watermark(let cause), .remembered(let cause, _, _, _), .ofVariant(let cause):
      cause.decidingKey
    default: nil
    }
  }

  /// `message` with the key that decides, where there is one.
  public var explainedMessage: String { message + hint }

  /// What is added to a text for operators.
  var hint: String { decidingKey.map { " (see \($0) in the configuration)" } ?? "" }

  private static func keyForbidding(_ parameter: String) -> String? {
    switch parameter {
    case "refresh", "cache", "retry": "server.allow_reload"
    case "enlarge": "server.allow_enlarge or server.presets_only"
    case "url", "preset": nil
    default: "server.presets_only"
    }
  }

  private static let keysOfQueues = [
    "requests": "server.active_requests", "imaging": "imaging.queue_limit",
    "download": "download.queue_limit and download.maximum_bytes_in_flight",
    "prefetch": "prefetch.lists", "disk": "disk.write_queue_limit",
  ]
}

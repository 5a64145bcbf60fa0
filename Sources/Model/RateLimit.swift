// RateLimit: the limits of one client.

/// A limit of what one client may have done.
public enum RateLimit: String, Hashable, Sendable {
  /// Requests that wait for an image at once.
  case activeRequests = "active_requests"
  /// Imaging time in a minute.
  case imagingTime = "imaging_time"
  /// Images that wait for a worker at once.
  case imagingQueue = "imaging_queue"
  /// Requests per second.
  case requests
  /// Open connections at once.
  case connections

  /// The configuration key of the limit.
  public var key: String {
    switch self {
    case .activeRequests: "server.active_requests_per_client"
    case .imagingTime: "server.imaging_time_per_client"
    case .imagingQueue: "imaging.queue_limit"
    case .requests: "server.requests_per_second"
    case .connections: "server.connections_per_client"
    }
  }

  /// What the client did, for a message.
  var wording: String {
    switch self {
    case .activeRequests: "too many requests of this client wait for images"
    case .imagingTime: "this client's images took too much imaging time"
    case .imagingQueue: "too many images of this client wait for a worker"
    case .requests: "this client sent too many requests"
    case .connections: "this client has too many open connections"
    }
  }
}

// ClientAccounts: what each client uses of the server's work, and when it is too much.

import Model
import Platform

/// How much work one client may cause.
struct ClientBudgets: Hashable, Sendable {
  /// Requests that wait for an image at once.
  var activeRequests = Int.max
  /// Seconds of imaging; `nil` for no limit.
  var imagingTime: TokenBucket.Rule?
  /// Requests; `nil` for no limit.
  var requests: TokenBucket.Rule?
}

/// What the clients use, in tables of limited size. Without sockets and clocks.
struct ClientAccounts {
  /// Clients whose budgets are remembered; a further one evicts the least recently used.
  static let maximumClients = 16_384
  /// Seconds that a client with too many waiting requests is told to wait.
  private static let pause = 1
  /// Seconds of imaging that must be left for a further request.
  private static let leastImagingTime = 0.001

  /// What each client may use.
  var budgets: ClientBudgets
  /// Has only clients with waiting requests, so `server.active_requests` bounds it.
  private var active: [IPAddress: Int] = [:]
  private var imaging = BoundedTable<IPAddress, TokenBucket>(limit: maximumClients)
  private var requests = BoundedTable<IPAddress, TokenBucket>(limit: maximumClients)

  /// Creates empty accounts.
  init(_ budgets: ClientBudgets) { self.budgets = budgets }

  /// The number of clients that are remembered, in the largest table.
  var clientCount: Int { max(active.count, imaging.count, requests.count) }

  /// Counts a request; `nil` if the client may send it. `now` is in monotonic milliseconds.
  mutating func count(_ client: IPAddress, at now: Int) -> ImageError? {
    guard let rule = budgets.requests else { return nil }
    var bucket = requests[client] ?? TokenBucket(rule, at: now)
    bucket.fill(rule, at: now)
    let seconds = bucket.wait(for: 1, rule)
    if seconds == nil { bucket.take(1, rule) }
    requests.setNewest(bucket, for: client)
    return seconds.map { .rateLimited(by: .requests, retryAfter: $0) }
  }

  /// Begins a request that waits for an image; `nil` beyond the client's share. `end` follows.
  mutating func begin(_ client: IPAddress, at now: Int) -> ImageError? {
    if let rule = budgets.imagingTime, var bucket = imaging[client] {
      bucket.fill(rule, at: now)
      if let seconds = bucket.wait(for: Self.leastImagingTime, rule) {
        return .rateLimited(by: .imagingTime, retryAfter: seconds)
      }
    }
    let count = active[client] ?? 0
    guard count < budgets.activeRequests else {
      return .rateLimited(by: .activeRequests, retryAfter: Self.pause)
    }
    active[client] = count + 1
    return nil
  }

  /// Ends a request that was begun.
  mutating func end(_ client: IPAddress) {
    let count = active[client] ?? 0
    active[client] = count > 1 ? count - 1 : nil
  }

  /// Charges the time that imaging workers spent.
  mutating func charge(_ client: IPAddress, seconds: Double, at now: Int) {
    guard let rule = budgets.imagingTime, seconds > 0 else { return }
    var bucket = imaging[client] ?? TokenBucket(rule, at: now)
    bucket.fill(rule, at: now)
    bucket.take(seconds, rule)
    imaging.setNewest(bucket, for: client)
  }
}

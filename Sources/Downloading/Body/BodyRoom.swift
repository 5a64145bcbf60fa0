// BodyRoom: gives transfers memory for their bodies, in the order in which they ask.

import Model
import Platform

/// The memory for bodies. A transfer that knows the length of its body waits until the whole body fits, so no two
/// transfers wait for each other. Belongs to the transfer thread.
final class BodyRoom {
  private let budget: ByteBudget
  private var waiting: [IncomingBody] = []

  init(_ budget: ByteBudget) { self.budget = budget }

  /// Maximum length of a body, in bytes.
  var limit: Int { budget.limit }

  /// Whether a body of this length fits into half of the memory, with all others.
  func hasPlenty(for length: Int) -> Bool { length <= budget.limit / 2 - budget.used }

  /// Returns a lease of no bytes, which grows with bytes that are kept beside a body.
  func emptyLease() throws(ImageError) -> ByteLease {
    guard let lease = budget.lease(0) else {
      throw .overloaded(queue: "download memory", retryAfter: 1)
    }
    return lease
  }

  /// The number of transfers that wait.
  var waitingCount: Int { waiting.count }

  /// Asks for memory for a body. It gets memory now or later.
  func ask(for body: IncomingBody) {
    waiting.append(body)
    // Those that wait already come first.
    if waiting.count == 1 { grant() }
  }

  /// Gives memory to the bodies that fit, until the first that does not. Call when bytes were returned.
  func grant() {
    while let next = waiting.first {
      guard let lease = budget.leaseOrNotice(next.expected ?? 0) else { return }
      waiting.removeFirst()
      next.take(lease)
    }
  }

  /// Removes a body that waits, if it does.
  func forget(_ body: IncomingBody) {
    let wasFirst = waiting.first === body
    waiting.removeAll { $0 === body }
    if wasFirst { grant() }
  }
}

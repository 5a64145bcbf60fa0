// ConnectionGroup: counts connections, and finds the one that has been waiting longest.

/// The connections of a listener, or those of one of its clients. Without sockets and clocks.
///
/// Finding the longest waiting connection takes a look at all of them. So a look remembers an
/// eighth, in order: a connection that begins to wait later is behind these.
struct ConnectionGroup {
  /// What part of the connections a look remembers, and how many at least.
  private static let remembered = (part: 8, least: 16)

  private struct Candidate {
    let connection: ConnectionWatch
    let since: Int
  }

  /// Connections that were admitted and neither ended nor yielded.
  private(set) var count = 0
  private var members: [ObjectIdentifier: ConnectionWatch] = [:]
  /// The ones that had been waiting longest, in the order of descending times.
  private var candidates: [Candidate] = []

  /// Creates an empty group.
  init() {}

  /// Whether the group may be forgotten.
  var isEmpty: Bool { count == 0 && members.isEmpty }

  /// The open connections.
  var connections: some Collection<ConnectionWatch> { members.values }

  /// Counts a connection that is about to be opened.
  mutating func admit() { count += 1 }

  /// Counts the end of a connection.
  mutating func end() { count -= 1 }

  /// Adds an open connection.
  mutating func add(_ connection: ConnectionWatch) {
    members[ObjectIdentifier(connection)] = connection
  }

  /// Removes a connection. Returns whether the group had it.
  @discardableResult mutating func remove(_ connection: ConnectionWatch) -> Bool {
    members.removeValue(forKey: ObjectIdentifier(connection)) != nil
  }

  /// Claims the connection that has been waiting longest; `nil` if none waits.
  ///
  /// - Parameter isQuiet: whether a connection has no unread input.
  mutating func claimLongestWaiting(
    where isQuiet: (ConnectionWatch) -> Bool
  ) -> ConnectionWatch? {
    if let found = claimCandidate(where: isQuiet) { return found }
    look()
    return claimCandidate(where: isQuiet)
  }

  private mutating func claimCandidate(
    where isQuiet: (ConnectionWatch) -> Bool
  ) -> ConnectionWatch? {
    while let candidate = candidates.popLast() {
      // A member, so its socket is open.
      guard members[ObjectIdentifier(candidate.connection)] === candidate.connection,
        isQuiet(candidate.connection), candidate.connection.claim(since: candidate.since)
      else { continue }
      return candidate.connection
    }
    return nil
  }

  private mutating func look() {
    let found = members.values.compactMap { connection in
      connection.waitingSince.map { Candidate(connection: connection, since: $0) }
    }
    let count = max(members.count / Self.remembered.part, Self.remembered.least)
    candidates = found.sorted { $0.since < $1.since }.prefix(count).reversed()
  }
}

// ConnectionTable: a listener's open connections: who may have one more, and which yields.

import Core
import Glibc
import Synchronization

/// How many connections there may be.
struct ConnectionLimits: Sendable {
  /// Open connections of the listener.
  var total = Int.max
  /// Open connections of one client.
  var perClient = Int.max
}

/// The open connections of a listener, with their clients and deadlines.
///
/// A new connection takes the place of the one that has been waiting longest for a request, if the
/// listener or the client has too many. A request that is read or answered never yields.
final class ConnectionTable: Sendable {
  /// Whether a new connection is served.
  enum Admission {
    case admitted
    /// The client has its share, and uses all of it. The connection is to be closed.
    case refused
    /// No connection is free. The new one has to wait.
    case full
  }

  /// Connections that may yield at a time. They are open, and not counted, until loops close them.
  static let maximumYielding = 64
  /// Connections whose deadlines are looked at in one piece: meanwhile none can be accepted.
  static let lookedAtOnce = 64

  private struct State {
    var limits: ConnectionLimits
    var leastPace: ReadingPace.Rule?
    /// The clients with a share. The connections of all are counted: who has a share may change.
    var counted: CountedClients
    var all = ConnectionGroup()
    /// The connections of `all`, each at its `place`.
    var list: [ConnectionWatch] = []
    var byClient: [IPAddress: ConnectionGroup] = [:]
    var yielding: Set<ObjectIdentifier> = []
    /// How fast the clients read that are sent a response now.
    var paces: [ObjectIdentifier: ReadingPace] = [:]

    mutating func end(of client: IPAddress?) {
      all.end()
      change(client) { $0.end() }
    }

    /// Adds an open connection to both groups.
    mutating func add(_ connection: ConnectionWatch) {
      all.add(connection)
      connection.place = list.count
      list.append(connection)
      change(connection.client) { $0.add(connection) }
    }

    /// Removes an open connection from both groups. Returns whether it was there.
    mutating func remove(_ connection: ConnectionWatch) -> Bool {
      paces[ObjectIdentifier(connection)] = nil
      change(connection.client) { $0.remove(connection) }
      guard all.remove(connection) else { return false }
      let last = list.removeLast()
      if last !== connection {
        list[connection.place] = last
        last.place = connection.place
      }
      return true
    }

    mutating func change(_ client: IPAddress?, by change: (inout ConnectionGroup) -> Void) {
      guard let client else { return }
      change(&byClient[client, default: ConnectionGroup()])
      if byClient[client]?.isEmpty == true { byClient[client] = nil }
    }
  }

  private let figures: ServerFigures
  private let state: Lock<State>

  /// Creates an empty table.
  ///
  /// - Parameter leastPace: how fast clients have to read; `nil`: only by each deadline.
  init(
    limits: ConnectionLimits = ConnectionLimits(), leastPace: ReadingPace.Rule? = nil,
    clients: CountedClients = CountedClients(proxies: TrustedProxies()),
    figures: ServerFigures = ServerFigures()
  ) {
    state = Lock(State(limits: limits, leastPace: leastPace, counted: clients))
    self.figures = figures
  }

  /// Replaces the limits, and who is held to them. Connections beyond them stay.
  func set(
    _ limits: ConnectionLimits, leastPace: ReadingPace.Rule?, clients: CountedClients
  ) {
    state.withLock { state in
      state.limits = limits
      state.leastPace = leastPace
      state.counted = clients
    }
  }

  /// The number of clients whose connections are counted.
  var clientCount: Int { state.withLock { $0.byClient.count } }

  /// Counts a new connection, if it may be served. `open` follows, or `cancel`.
  ///
  /// - Parameter isLast: whether the connection is the one beyond the listener's limit.
  func admit(_ address: IPAddress?, isLast: Bool = false) -> Admission {
    let client = address?.clientNetwork
    return state.withLock { state in
      if let client = state.counted.network(of: address), isUsedUp(client, in: state) {
        guard makeRoom(of: client, in: &state) else { return .refused }
      } else if state.all.count >= state.limits.total, !isLast {
        guard mayYield(in: state),
          let longest = state.all.claimLongestWaiting(where: Self.isQuiet)
        else { return .full }
        close(longest, in: &state)
      }
      state.all.admit()
      state.change(client) { $0.admit() }
      return .admitted
    }
  }

  /// Adds an admitted connection whose first request header is due by `deadline`.
  func open(
    descriptor: CInt, address: IPAddress?, at now: Int, deadline: Int
  ) -> ConnectionWatch {
    let connection = ConnectionWatch(
      descriptor: descriptor, client: address?.clientNetwork, openedAt: now,
      deadline: deadline)
    state.withLock { $0.add(connection) }
    return connection
  }

  /// Counts an open connection as one of the client that a PROXY header names. Returns `false` if
  /// that client has its share, and uses all of it. The connection then is to be closed.
  func assign(_ connection: ConnectionWatch, to address: IPAddress) -> Bool {
    let client = address.clientNetwork
    return state.withLock { state in
      // One that yields is closed anyway.
      guard !state.yielding.contains(ObjectIdentifier(connection)) else { return true }
      if state.counted.network(of: address) != nil, isUsedUp(client, in: state),
        !makeRoom(of: client, in: &state)
      {
        return false
      }
      state.change(connection.client) { group in
        group.remove(connection)
        group.end()
      }
      connection.client = client
      state.change(client) { group in
        group.admit()
        group.add(connection)
      }
      return true
    }
  }

  private func isUsedUp(_ client: IPAddress, in state: State) -> Bool {
    state.byClient[client]?.count ?? 0 >= state.limits.perClient
  }

  private func mayYield(in state: State) -> Bool {
    state.yielding.count < Self.maximumYielding
  }

  /// Closes the client's longest waiting connection. Returns `false` and counts a refusal if none.
  private func makeRoom(of client: IPAddress, in state: inout State) -> Bool {
    guard mayYield(in: state),
      let own = state.byClient[client]?.claimLongestWaiting(where: Self.isQuiet)
    else {
      figures.connectionsRefused.add()
      return false
    }
    close(own, in: &state)
    return true
  }

  /// Counts the end of an admitted connection that was not opened.
  func cancel(_ address: IPAddress?) {
    state.withLock { $0.end(of: address?.clientNetwork) }
  }

  /// Removes a connection. Called before libmicrohttpd closes its socket.
  func remove(_ connection: ConnectionWatch) {
    state.withLock { state in
      // One that yields is removed and counted already.
      guard state.yielding.remove(ObjectIdentifier(connection)) == nil else { return }
      if state.remove(connection) { state.end(of: connection.client) }
    }
  }

  /// Shuts down the connections whose deadline has passed, and those whose client reads too slowly.
  ///
  /// Looks at some at a time, from the last: one that takes a closed one's place was behind it.
  func closeLate(_ now: Int) {
    var end = state.withLock { $0.list.count }
    while end > 0 {
      let start = max(end - Self.lookedAtOnce, 0)
      state.withLock { state in
        // Under the lock, so that the descriptor is not closed and reused before shutdown(2).
        for place in (start..<end).reversed() where place < state.list.count {
          let connection = state.list[place]
          guard connection.deadline <= now || isTooSlow(connection, in: &state, at: now) else {
            continue
          }
          shutdown(connection.descriptor, CInt(SHUT_RDWR))
          connection.deadline = .max
        }
      }
      end = start
    }
  }

  /// Whether the client of a connection has long read less of a response than `leastPace` asks for.
  private func isTooSlow(
    _ connection: ConnectionWatch, in state: inout State, at now: Int
  ) -> Bool {
    guard let leastPace = state.leastPace else { return false }
    let id = ObjectIdentifier(connection)
    let deadline = connection.deadline
    // Without a deadline the server is at work, and a waiting connection has no response.
    guard deadline != .max, connection.waitingSince == nil else {
      state.paces[id] = nil
      return false
    }
    // Each response has its own deadline.
    guard var pace = state.paces[id], pace.response == deadline else {
      state.paces[id] = ReadingPace(
        response: deadline, leastPace, at: now, SocketProgress(of: connection.descriptor))
      return false
    }
    guard pace.isDue(leastPace, at: now) else { return false }
    let isTooSlow = pace.look(leastPace, at: now, SocketProgress(of: connection.descriptor))
    state.paces[id] = isTooSlow ? nil : pace
    return isTooSlow
  }

  /// Shuts down the connections that wait for their next request, and those that have waited long
  /// for their first. Leaves those that have received the beginning of a request.
  ///
  /// - Parameter patience: milliseconds that a new connection has for its first byte.
  func closeIdle(at now: Int, patience: Int) {
    state.withLock { state in
      for connection in state.all.connections {
        guard let since = connection.waitingSince else { continue }
        let isDue =
          switch connection.phase {
          case .opened: now - since >= patience
          case .begun: false
          case .between: true
          }
        guard isDue, Self.isQuiet(connection), connection.claim(since: since) else { continue }
        // Under the lock, as in `closeLate`.
        shutdown(connection.descriptor, CInt(SHUT_RDWR))
      }
    }
  }

  /// Shuts down a claimed connection, under the lock for the same reason.
  private func close(_ connection: ConnectionWatch, in state: inout State) {
    _ = state.remove(connection)
    state.end(of: connection.client)
    state.yielding.insert(ObjectIdentifier(connection))
    figures.connectionsYielded.add()
    shutdown(connection.descriptor, CInt(SHUT_RDWR))
  }

  /// Whether a socket has no input. Does not wait: it peeks at one byte.
  private static func isQuiet(_ connection: ConnectionWatch) -> Bool {
    var byte: UInt8 = 0
    let flags = CInt(MSG_PEEK) | CInt(MSG_DONTWAIT)
    return recvfrom(connection.descriptor, &byte, 1, flags, nil, nil) <= 0
  }
}

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

  /// Whether the group may be forgotten.
  var isEmpty: Bool { count == 0 && members.isEmpty }

  var connections: some Collection<ConnectionWatch> { members.values }

  /// Counts a connection that is about to be opened.
  mutating func admit() { count += 1 }

  mutating func end() { count -= 1 }

  mutating func add(_ connection: ConnectionWatch) {
    members[ObjectIdentifier(connection)] = connection
  }

  /// Removes a connection. Returns whether the group had it.
  @discardableResult mutating func remove(_ connection: ConnectionWatch) -> Bool {
    members.removeValue(forKey: ObjectIdentifier(connection)) != nil
  }

  /// Claims the connection that has been waiting longest; `nil` if none waits.
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

/// A connection as the monitor and the listener see it. Its event loop writes, they read.
final class ConnectionWatch: Sendable {
  /// What of a connection's requests was received.
  enum Phase: UInt8 {
    /// Nothing yet.
    case opened
    /// A part of a header.
    case begun
    /// All of the last request.
    case between
  }

  let descriptor: CInt
  private let clientStorage: Lock<IPAddress?>
  /// Monotonic milliseconds; `Int.max` while none of the server's own deadlines applies.
  private let deadlineStorage: Atomic<Int>
  /// Monotonic milliseconds; `Int.max` while the connection is busy.
  private let waitingStorage: Atomic<Int>
  /// Where the connection is among those of its table, which alone uses it, under its lock.
  private let placeStorage = Atomic<Int>(0)
  private let phaseStorage = Atomic<UInt8>(Phase.opened.rawValue)

  /// Creates the watch of a socket opened at `now`, with its first header due by `deadline`.
  init(descriptor: CInt, client: IPAddress?, openedAt now: Int, deadline: Int) {
    self.descriptor = descriptor
    clientStorage = Lock(client)
    deadlineStorage = Atomic(deadline)
    waitingStorage = Atomic(now)
  }

  /// The network of the client; `nil` for one of a unix socket. The connection's table alone
  /// changes it, when a PROXY header names another client.
  var client: IPAddress? {
    get { clientStorage.withLock { $0 } }
    set { clientStorage.withLock { $0 = newValue } }
  }

  /// Where the connection is in the list of its table.
  var place: Int {
    get { placeStorage.load(ordering: .relaxed) }
    set { placeStorage.store(newValue, ordering: .relaxed) }
  }

  /// When the connection is shut down, in monotonic milliseconds.
  var deadline: Int {
    get { deadlineStorage.load(ordering: .relaxed) }
    set { deadlineStorage.store(newValue, ordering: .relaxed) }
  }

  /// Since when the connection waits for a request's header, in monotonic milliseconds; `nil` while
  /// a request is read or answered.
  var waitingSince: Int? {
    let since = waitingStorage.load(ordering: .relaxed)
    return since == .max ? nil : since
  }

  /// What was received when the connection began to wait.
  var phase: Phase { Phase(rawValue: phaseStorage.load(ordering: .relaxed)) ?? .begun }

  /// The connection waits for the header of its next request, or for its rest.
  func wait(since now: Int, _ phase: Phase = .between) {
    phaseStorage.store(phase.rawValue, ordering: .relaxed)
    waitingStorage.store(now, ordering: .relaxed)
  }

  /// The header of a request is complete.
  ///
  /// An exchange, because `claim` on another thread must see it or come before it.
  func begin() { _ = waitingStorage.exchange(.max, ordering: .relaxed) }

  /// Takes a connection that still waits since `since`. A later request is too late.
  func claim(since: Int) -> Bool {
    waitingStorage.compareExchange(expected: since, desired: .max, ordering: .relaxed).exchanged
  }
}

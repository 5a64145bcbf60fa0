// ConnectionMonitor: detects disconnects of suspended clients and enforces deadlines.

import CMicrohttpd
import Core
import Glibc
import Synchronization

/// A suspended connection, as the monitor sees it.
protocol Suspended: AnyObject, Sendable {
  /// A number that is unique within the server.
  var number: UInt64 { get }
  /// The client's socket. It stays open while the connection is suspended.
  var descriptor: CInt { get }
  /// Monotonic milliseconds after which the request fails with `deadlineExceeded`. Read under the
  /// monitor's lock, so the getter must not take a lock.
  var deadline: Int { get }
  /// Ends the wait early: client disconnect, deadline, or shutdown.
  func interrupt(_ reason: Outcome)
  /// Tells the request that the server is draining. The request may finish within the grace period.
  func drain()
}

/// A thread with an epoll set of the sockets of connections that are suspended, or were. It also
/// enforces the deadlines of all connections.
final class ConnectionMonitor: Sendable {
  private struct Table {
    var suspended: [UInt64: any Suspended] = [:]
    var isClosed = false
  }

  let connections: ConnectionTable
  private let epoll: OwnedDescriptor
  private let wake: WakeSignal
  private let tick: Atomic<Int>
  private let limit: Atomic<Int>
  private let table = Lock(Table())
  private let waiting = Atomic<Int>(0)
  private let numbers = Atomic<UInt64>(1)
  private let isStopped = Atomic<Bool>(false)
  private let thread = Lock<OwnThread?>(nil)

  /// Creates a monitor for at most `limit` suspended requests. It checks deadlines every `tick`
  /// milliseconds.
  init(
    limit: Int, tick: Int, connections: ConnectionTable = ConnectionTable()
  ) throws(ServerError) {
    self.connections = connections
    self.limit = Atomic(limit)
    self.tick = Atomic(tick)
    do throws(SystemError) {
      wake = try WakeSignal()
      epoll = OwnedDescriptor(owning: epoll_create1(CInt(EPOLL_CLOEXEC)))
      // 0 identifies the wake-up; suspended requests are numbered from 1.
      var event = epoll_event(events: EPOLLIN.rawValue, data: epoll_data_t(u64: 0))
      guard epoll.value >= 0,
        epoll_ctl(epoll.value, EPOLL_CTL_ADD, wake.descriptor, &event) == 0
      else { throw SystemError() }
    } catch {
      throw .cannotStart(reason: "no epoll set: \(error)")
    }
  }

  /// Changes the limit of suspended requests, and how often deadlines are checked.
  func set(limit: Int, tick: Int) {
    self.limit.store(limit, ordering: .relaxed)
    self.tick.store(tick, ordering: .relaxed)
  }

  /// Starts the thread, which retains the monitor until `stop`.
  func start(name: String) throws(ServerError) {
    let started = try ServerError.start(
      needing: "thread", try OwnThread(name: name, rank: .foreground) { self.run() })
    thread.withLock { $0 = started }
  }

  /// Stops the thread and waits for its end.
  func stop() {
    isStopped.store(true, ordering: .releasing)
    wake.set()
    thread.withLock { $0.take() }?.join()
  }

  // MARK: Suspended requests

  /// Reserves a slot for a suspended request. Returns `false` if all slots are taken; `resume`
  /// releases the slot.
  ///
  /// - Parameters:
  ///   - beyondLimit: `true` for admin requests, which are admitted during overload.
  ///   - taken: slots held by work whose requests have ended.
  func reserve(beyondLimit: Bool = false, taken: Int = 0) -> Bool {
    guard
      waiting.wrappingAdd(1, ordering: .relaxed).newValue
        <= limit.load(ordering: .relaxed) - taken || beyondLimit
    else {
      waiting.wrappingSubtract(1, ordering: .relaxed)
      return false
    }
    return true
  }

  func nextNumber() -> UInt64 { numbers.wrappingAdd(1, ordering: .relaxed).oldValue }

  /// Watches the client and the deadline of a suspended request, on the thread of its event loop.
  /// Returns `false` if the server is stopping.
  ///
  /// - Parameter isKnown: whether the epoll set probably has the socket: see `resume`.
  func add(_ suspended: any Suspended, isKnown: Bool) -> Bool {
    let isAdded = table.withLock { table in
      if !table.isClosed { table.suspended[suspended.number] = suspended }
      return !table.isClosed
    }
    // The socket stays open meanwhile, because only this thread closes it.
    if isAdded { watch(suspended.descriptor, as: suspended.number, isKnown: isKnown) }
    return isAdded
  }

  private func watch(_ descriptor: CInt, as number: UInt64, isKnown: Bool) {
    // One event for each request: one that has ended does not come again (EPOLLONESHOT).
    var event = epoll_event(
      events: EPOLLRDHUP.rawValue | EPOLLHUP.rawValue | EPOLLERR.rawValue | EPOLLONESHOT.rawValue,
      data: epoll_data_t(u64: number))
    let (first, second) = isKnown ? (EPOLL_CTL_MOD, EPOLL_CTL_ADD) : (EPOLL_CTL_ADD, EPOLL_CTL_MOD)
    // If both fail, for lack of memory, only the deadline is watched.
    if epoll_ctl(epoll.value, first, descriptor, &event) != 0 {
      _ = epoll_ctl(epoll.value, second, descriptor, &event)
    }
  }

  /// Removes a socket from the epoll set, on the thread of its event loop.
  ///
  /// Each segment for a socket of the set takes the set's lock. So connections with hits leave it.
  func forget(_ descriptor: CInt) {
    _ = epoll_ctl(epoll.value, EPOLL_CTL_DEL, descriptor, nil)
  }

  /// Watches a stream. A stream needs no reservation, because its request was already admitted.
  func addStream(_ stream: BodyStream) -> Bool {
    guard add(stream, isKnown: true) else { return false }
    waiting.wrappingAdd(1, ordering: .relaxed)
    return true
  }

  /// Stops watching and resumes the connection on the thread that `wake` wakes. Does nothing for a
  /// request that is not watched, because the request may not be suspended.
  ///
  /// The socket stays in the epoll set, so the end of a flight needs no system call for each
  /// participant. The kernel removes it at its close. Events of ended requests are ignored.
  func resume(_ suspended: any Suspended, on connection: OpaquePointer, wake: WakeSignal) {
    let isWatched = table.withLock { $0.suspended.removeValue(forKey: suspended.number) != nil }
    if isWatched { resume(connection, wake: wake) }
  }

  /// Resumes a connection that is not watched, because `add` refused it. Only for the thread that
  /// suspended the connection.
  func resume(_ connection: OpaquePointer, wake: WakeSignal) {
    // The order matters: libmicrohttpd checks for resumed connections at the start of a round, and
    // does not wake the thread.
    MHD_resume_connection(connection)
    wake.set()
    waiting.wrappingSubtract(1, ordering: .releasing)
  }

  /// The number of connections that are suspended or being resumed.
  var waitingCount: Int { waiting.load(ordering: .acquiring) }

  /// Ends all suspended requests with `reason`, and refuses further ones.
  func close(with reason: ImageError) {
    let rest = table.withLock { table in
      table.isClosed = true
      return Array(table.suspended.values)
    }
    for suspended in rest { suspended.interrupt(.failure(reason)) }
  }

  /// Tells all suspended requests that the server is draining.
  func drain() {
    for suspended in table.withLock({ Array($0.suspended.values) }) { suspended.drain() }
  }

  // MARK: The thread

  private func run() {
    var events = [epoll_event](repeating: epoll_event(), count: 64)
    var sweepAt = Clock.coarseMilliseconds() + tick.load(ordering: .relaxed)
    while !isStopped.load(ordering: .acquiring) {
      let rest = max(sweepAt - Clock.coarseMilliseconds(), 0)
      let count = epoll_wait(epoll.value, &events, CInt(events.count), CInt(rest))
      for event in events.prefix(max(Int(count), 0)) where event.data.u64 != 0 {
        // A number that is missing from the table belongs to a request that has ended.
        table.withLock { $0.suspended[event.data.u64] }?.interrupt(.clientGone)
      }
      let now = Clock.coarseMilliseconds()
      guard now >= sweepAt else { continue }
      sweep(now)
      sweepAt = now + tick.load(ordering: .relaxed)
    }
  }

  private func sweep(_ now: Int) {
    let late = table.withLock { table in
      table.suspended.values.filter { $0.deadline <= now }
    }
    for suspended in late { suspended.interrupt(.failure(.deadlineExceeded)) }
    connections.closeLate(now)
  }
}

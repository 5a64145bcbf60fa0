// Watcher: sees clients leave while their requests are suspended, and keeps the deadlines libmicrohttpd does not.

import CMicrohttpd
import Glibc
import Model
import Platform
import Synchronization

/// A connection that is suspended, as the watcher sees it.
protocol Suspended: AnyObject, Sendable {
  /// Its number among all of this server.
  var number: UInt64 { get }
  /// The client's socket, which stays open as long as the connection is suspended.
  var descriptor: CInt { get }
  /// Monotonic milliseconds after which it is interrupted with `deadlineExceeded`. Read under the watcher's lock, so it
  /// takes none itself.
  var deadline: Int { get }
  /// Something came before what it waits for: its client left, its deadline passed, the server ends.
  func interrupt(_ reason: Outcome)
  /// The server is stopping, and gives what runs its grace time.
  func drain()
}

/// One thread with an epoll set of the suspended connections' sockets, and the list of all connections.
final class ConnectionMonitor: Sendable {
  private struct Table {
    var suspended: [UInt64: any Suspended] = [:]
    var isClosed = false
  }

  private let epoll: OwnedDescriptor
  private let wake: WakeSignal
  private let tick: Int
  private let limit: Int
  private let table = Lock(Table())
  private let waiting = Atomic<Int>(0)
  private let numbers = Atomic<UInt64>(1)
  private let connections = Lock<[ObjectIdentifier: ConnectionWatch]>([:])
  private let isStopped = Atomic<Bool>(false)
  private let thread = Lock<OwnThread?>(nil)

  /// A watcher for at most `limit` suspended requests that looks at deadlines every `tick` milliseconds.
  init(limit: Int, tick: Int) throws(ServerError) {
    (self.limit, self.tick) = (limit, tick)
    do throws(SystemError) {
      wake = try WakeSignal()
      epoll = OwnedDescriptor(owning: epoll_create1(CInt(EPOLL_CLOEXEC)))
      // Number 0 is the wake-up; exchanges count from 1.
      var event = epoll_event(events: EPOLLIN.rawValue, data: epoll_data_t(u64: 0))
      guard epoll.value >= 0,
        epoll_ctl(epoll.value, EPOLL_CTL_ADD, wake.descriptor, &event) == 0
      else { throw SystemError() }
    } catch {
      throw .cannotStart(reason: "no epoll set: \(error)")
    }
  }

  /// Starts the thread; it holds the watcher until `stop`.
  func start() throws(ServerError) {
    do throws(SystemError) {
      let started = try OwnThread(name: "pictor-watcher", rank: .foreground) { self.run() }
      thread.withLock { $0 = started }
    } catch {
      throw .cannotStart(reason: "no thread: \(error)")
    }
  }

  /// Ends the thread and waits for it.
  func stop() {
    isStopped.store(true, ordering: .releasing)
    wake.set()
    thread.withLock { thread in
      defer { thread = nil }
      return thread
    }?.join()
  }

  // MARK: Suspended requests

  /// Takes one of the places for suspended requests, `false` when there is none; `resume` and `resumeRefused` give it
  /// back. Operators get one `beyondLimit`, since they come when there is no room for others.
  ///
  /// - Parameter taken: places that are held by work whose requests have gone.
  func reserve(beyondLimit: Bool = false, taken: Int = 0) -> Bool {
    guard waiting.wrappingAdd(1, ordering: .relaxed).newValue <= limit - taken || beyondLimit else {
      waiting.wrappingSubtract(1, ordering: .relaxed)
      return false
    }
    return true
  }

  /// A number for an exchange.
  func nextNumber() -> UInt64 { numbers.wrappingAdd(1, ordering: .relaxed).oldValue }

  /// Watches a suspended request's client and deadline; `false` once the server is stopping.
  func add(_ suspended: any Suspended) -> Bool {
    table.withLock { table in
      guard !table.isClosed else { return false }
      table.suspended[suspended.number] = suspended
      var event = epoll_event(
        events: EPOLLRDHUP.rawValue | EPOLLHUP.rawValue | EPOLLERR.rawValue,
        data: epoll_data_t(u64: suspended.number))
      // Without memory for it the client is not watched; its deadline still is.
      _ = epoll_ctl(epoll.value, EPOLL_CTL_ADD, suspended.descriptor, &event)
      return true
    }
  }

  /// The same for a stream, which has no place to take: whoever streams was let in already.
  func addStream(_ stream: BodyStream) -> Bool {
    guard add(stream) else { return false }
    waiting.wrappingAdd(1, ordering: .relaxed)
    return true
  }

  /// Stops watching, and resumes the connection on the thread that `wake` wakes. What is not watched is not resumed:
  /// nobody knows whether it is suspended.
  func resume(_ suspended: any Suspended, _ connection: OpaquePointer, wake: WakeSignal) {
    // The descriptor leaves the set first: once resumed, the connection may be closed and its number reused.
    let wasWatched = table.withLock { table in
      guard table.suspended.removeValue(forKey: suspended.number) != nil else { return false }
      _ = epoll_ctl(epoll.value, EPOLL_CTL_DEL, suspended.descriptor, nil)
      return true
    }
    if wasWatched { resume(connection, wake) }
  }

  /// Resumes a connection that `add` did not take; for the one thread that knows of its suspension.
  func resumeRefused(_ connection: OpaquePointer, wake: WakeSignal) { resume(connection, wake) }

  private func resume(_ connection: OpaquePointer, _ wake: WakeSignal) {
    // In this order: libmicrohttpd looks for resumed connections at the beginning of a round, and wakes nobody.
    MHD_resume_connection(connection)
    wake.set()
    waiting.wrappingSubtract(1, ordering: .releasing)
  }

  /// Connections suspended, or being resumed, now.
  var waitingCount: Int { waiting.load(ordering: .acquiring) }

  /// Ends all suspended requests and lets no further one in.
  func close(with reason: ImageError) {
    let rest = table.withLock { table in
      table.isClosed = true
      return Array(table.suspended.values)
    }
    for suspended in rest { suspended.interrupt(.failure(reason)) }
  }

  /// Tells all that the server is stopping.
  func drain() {
    for suspended in table.withLock({ Array($0.suspended.values) }) { suspended.drain() }
  }

  // MARK: Connections

  /// Keeps a new connection's deadlines.
  func add(_ connection: ConnectionWatch) {
    connections.withLock { $0[ObjectIdentifier(connection)] = connection }
  }

  /// Forgets a connection, before libmicrohttpd closes its socket.
  func remove(_ connection: ConnectionWatch) {
    connections.withLock { _ = $0.removeValue(forKey: ObjectIdentifier(connection)) }
  }

  // MARK: The thread

  private func run() {
    var events = [epoll_event](repeating: epoll_event(), count: 64)
    var sweepAt = Clock.coarseMilliseconds() + tick
    while !isStopped.load(ordering: .acquiring) {
      let rest = max(sweepAt - Clock.coarseMilliseconds(), 0)
      let count = epoll_wait(epoll.value, &events, CInt(events.count), CInt(rest))
      for event in events.prefix(max(Int(count), 0)) where event.data.u64 != 0 {
        // Gone from the table means ended meanwhile.
        table.withLock { $0.suspended[event.data.u64] }?.interrupt(.gone)
      }
      let now = Clock.coarseMilliseconds()
      guard now >= sweepAt else { continue }
      sweep(now)
      sweepAt = now + tick
    }
  }

  private func sweep(_ now: Int) {
    let late = table.withLock { table in
      table.suspended.values.filter { $0.deadline <= now }
    }
    for suspended in late { suspended.interrupt(.failure(.deadlineExceeded)) }
    connections.withLock { table in
      // Under the lock, so that the socket cannot be closed and its number reused before shutdown(2).
      for connection in table.values where connection.deadline <= now {
        shutdown(connection.descriptor, CInt(SHUT_RDWR))
        connection.deadline = .max
      }
    }
  }
}

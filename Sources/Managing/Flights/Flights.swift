// Flights: runs work once however many ask for it, and stops it when nobody asks any more.

import Model
import Platform
import Telemetry

/// One level of coalescing. Guarded by a lock and not an actor: a cancellation takes effect where it happens, so that
/// cancelling and asking again keep their order, and entering costs no hop. The lock is never held across a resumption
/// or the start of a task.
final class Flights<Key: Hashable & Sendable, Value: Sendable>: Sendable {
  /// Somebody who waits. The result comes by way of a lock, since the thread sanitizer does not see into continuations.
  private final class Waiter: Sendable {
    private let continuation: CheckedContinuation<Void, Never>
    private let outcome: Outcome

    init(_ continuation: CheckedContinuation<Void, Never>, _ outcome: Outcome) {
      (self.continuation, self.outcome) = (continuation, outcome)
    }

    func resume(returning result: Result<Value, ImageError>) {
      outcome.withLock { $0 = result }
      continuation.resume()
    }
  }

  private typealias Work = @Sendable (FlightParticipant) async throws(ImageError) -> Value
  private typealias Outcome = Lock<Result<Value, ImageError>>
  private typealias Table = FlightTable<Key, Waiter>

  private struct Flight {
    let share: FlightParticipant
    var task: Task<Void, Never>?
    /// Of one that waits to start.
    var work: Work?
  }

  private struct State {
    var table = Table()
    var flights: [Table.FlightID: Flight] = [:]
  }

  private let state = Lock(State())
  private let started = Counter()
  private let coalesced = Counter()
  private let cancelled = Counter()

  /// The value for `key`, from the flight that is running or from one started with `work`.
  ///
  /// Cancelling the calling task throws `ImageError.cancelled` at once; `work` is cancelled with its last waiter, unless
  /// one of them was detached.
  /// - Parameter share: the waiter's; its raises are the flight's too. `work` gets the flight's own.
  /// - Returns: the value, and whether it came from a flight that somebody else had started.
  func value(
    for key: Key, share: FlightParticipant, isDetached: Bool = false,
    work: @escaping @Sendable (FlightParticipant) async throws(ImageError) -> Value
  ) async throws(ImageError) -> (value: Value, joined: Bool) {
    let entry = Lock<Table.Entry?>(nil)
    let outcome = Outcome(.failure(.cancelled))
    await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in
        let waiter = Waiter(continuation, outcome)
        let (entered, shared) = state.withLock { state in
          let entered = state.table.enter(key, waiter, isDetached: isDetached)
          // Raised below by whoever starts it, like by everyone who joins.
          var flight =
            state.flights[entered.flight]
            ?? Flight(share: .ofFlight { [weak self] in self?.close(entered.flight) })
          if entered.waits { flight.work = work }
          state.flights[entered.flight] = flight
          return (entered, flight.share)
        }
        entry.withLock { $0 = entered }
        shared.enter(entered.waiter, share, hasJoined: entered.joined)
        if entered.joined {
          coalesced.add()
        } else if !entered.waits {
          start(entered.flight, shared, work)
        }
        // The cancellation handler finds no entry when it runs before this point, and is not run again.
        if Task.isCancelled { leave(entered) }
      }
    } onCancel: {
      if let entered = entry.withLock({ $0 }) { leave(entered) }
    }
    return (try outcome.withLock { $0 }.get(), entry.withLock { $0?.joined ?? false })
  }

  /// Ends all flights and cancels their work; everyone who waits gets `error`.
  ///
  /// - Returns: how many requests waited, those of other flights aside.
  func cancelAll(_ error: ImageError) -> Int {
    let (ended, flights) = state.withLock { state in
      defer { state.flights = [:] }
      return (state.table.finishAll(), Array(state.flights.values))
    }
    for flight in flights { flight.task?.cancel() }
    let waiters = ended.flatMap(\.waiters)
    for _ in ended { cancelled.add() }
    for waiter in waiters { waiter.resume(returning: .failure(error)) }
    return flights.reduce(0) { $0 + $1.share.requests }
  }

  /// Lets nobody further into the flights whose keys are meant; they go on for those who wait already.
  func retire(where isMeant: (Key) -> Bool) {
    let keys = state.withLock { $0.table.joinableKeys }.filter(isMeant)
    // One that was started in between needs not be retired and is all the same: another does its work once more.
    state.withLock { state in
      for key in keys { state.table.retire(key) }
    }
  }

  /// The result of a flight is for those alone who wait for it already.
  private func close(_ flight: Table.FlightID) { state.withLock { $0.table.close(flight) } }

  /// Running flights, waiting requests and counts, added to what `figures` holds.
  func add(to figures: inout FlightFigures, running: WritableKeyPath<FlightFigures, Int>) {
    let (flights, waiters) = state.withLock { ($0.table.flightCount, $0.table.waiterCount) }
    figures[keyPath: running] += flights
    figures.waiting += waiters
    figures.started += started.value
    figures.coalesced += coalesced.value
    figures.cancelled += cancelled.value
  }

  /// Flights that go on though nobody waits for them.
  var unattendedCount: Int { state.withLock { $0.table.unattendedCount } }

  private func start(
    _ flight: Table.FlightID, _ share: FlightParticipant, _ work: @escaping Work
  ) {
    started.add()
    // Immediate: until it first waits it runs here and now, which saves handing it to another thread.
    let task = Task.immediate {
      let result: Result<Value, ImageError>
      do throws(ImageError) {
        result = .success(try await work(share))
      } catch {
        result = .failure(error)
      }
      self.finish(flight, result)
    }
    let isRunning = state.withLock { state in
      // The task may have finished, or its last waiter may have left, before its handle could be kept.
      let isRunning = state.table.isRunning(flight)
      if isRunning { state.flights[flight]?.task = task }
      return isRunning
    }
    if !isRunning { task.cancel() }
  }

  private func finish(_ flight: Table.FlightID, _ result: Result<Value, ImageError>) {
    let (waiters, next) = state.withLock { state in
      state.flights[flight] = nil
      let waiters = state.table.finish(flight)
      return (waiters, takeStartable(&state))
    }
    for waiter in waiters { waiter.resume(returning: result) }
    for (flight, share, work) in next { start(flight, share, work) }
  }

  /// The flights that were delayed and may start now.
  private func takeStartable(
    _ state: inout State
  ) -> [(flight: Table.FlightID, share: FlightParticipant, work: Work)] {
    state.table.takeStartable().compactMap { id in
      guard let flight = state.flights[id], let work = flight.work else { return nil }
      state.flights[id]?.work = nil
      return (id, flight.share, work)
    }
  }

  private func leave(_ entry: Table.Entry) {
    let (departure, task, next) = state.withLock { state in
      let departure = state.table.leave(entry)
      state.flights[entry.flight]?.share.leave(entry.waiter)
      let task = departure?.abandoned.flatMap { state.flights.removeValue(forKey: $0)?.task }
      return (departure, task, takeStartable(&state))
    }
    guard let departure else { return }
    if departure.abandoned != nil { cancelled.add() }
    task?.cancel()
    departure.waiter.resume(returning: .failure(.cancelled))
    for (flight, share, work) in next { start(flight, share, work) }
  }
}

// FleetLeases: one flight in the fleet: leases of variants and sources, and waits for those of other machines.

import Model
import Platform
import Synchronization
import Telemetry

/// When leases end and waits give up.
struct LeaseTiming: Sendable {
  /// How long a lease lasts without renewal: what a machine that dies costs others.
  var life = Duration.seconds(3)
  /// The pause between renewals, shorter than `life`: a renewal may be late by the rest.
  var renewal = Duration.seconds(1)
  /// The longest wait for another machine.
  var wait = FleetSettings().leaseWait
  /// The pause between two looks in case notices are lost, with jitter.
  var poll = Duration.milliseconds(200)
  /// How long there is no wait after one that ended without a result.
  var givenUp = Duration.seconds(1)
}

/// The leases of this machine.
final class FleetLeases: Sendable {
  private struct State {
    var held: [LeaseName: HeldLease] = [:]
    var isRenewing = false
    /// When a wait for a source or one of its variants ended without a result.
    var givenUp = BoundedTable<CacheKey, ContinuousClock.Instant>(limit: 1_024)
  }

  let counters = LeaseCounters()
  private let client: RedisClient
  private let commands: LeaseCommands
  private let timing: LeaseTiming
  private let waiters: LeaseWaiters
  private let state = Lock(State())
  private let lastToken = Atomic<Int>(0)

  /// - Parameter machine: a name that no other machine has.
  init(client: RedisClient, prefix: String, machine: String, timing: LeaseTiming) {
    self.client = client
    self.timing = timing
    commands = LeaseCommands(
      prefix: prefix, machine: machine, life: Int(timing.life / .milliseconds(1)))
    waiters = LeaseWaiters(client: client, commands: commands)
  }

  /// Leases that this machine holds.
  var held: Int { state.withLock { $0.held.count } }
  /// Waits for other machines.
  var waiting: Int { waiters.count }

  // MARK: Taking

  /// Takes the lease, or waits for its holder. A long wait without a result is followed by none for the same source for
  /// a while: a request waits for its variant and for its source, together little longer than for one.
  ///
  /// - Parameters:
  ///   - source: the source of the entry.
  ///   - look: the command that reads the entry.
  ///   - generation: returns the generation for what is found; read before each look.
  ///   - read: returns what a reply and a generation make, if it answers the request.
  func lease<Shared>(
    of name: LeaseName, from source: CacheKey, waits: Bool, look: RedisCommand,
    generation: () -> Int, read: (RedisReply, Int) async -> Shared?
  ) async -> LeaseOutcome<Shared> {
    let token = newToken()
    let deadline = ContinuousClock.now + timing.wait
    var waiter: LeaseWaiter?
    defer { if let waiter { waiters.remove(waiter, of: name.digest) } }
    var mayWait = waits && !hasGivenUp(source)
    while true {
      var start = generation()
      // The lease first: if it is free, the reply to `look` has what its last holder wrote.
      guard
        let replies = try? await client.send([
          commands.take(name, token: token, waits: mayWait), look,
        ]), replies.count == 2, case .integer(let isTaken) = replies[0]
      else { return .none }
      let found = await read(replies[1], start)
      if isTaken == 1 {
        let lease = hold(name, token: token, hasWaited: waiter != nil)
        guard let found else { return .held(lease) }
        // Others may have waited for the machine whose lease this is now.
        await tell(lease)
        return served(found, after: waiter)
      }
      if let found { return served(found, after: waiter) }
      guard mayWait, !Task.isCancelled else { return .none }
      if waiter == nil {
        // Asks once more after this, so a notice that came before is not missed.
        waiter = waiters.add(name.digest)
        counters.waited.add()
        continue
      }
      guard let present = waiter, .now < deadline else {
        counters.timedOut.add()
        giveUp(source)
        return .none
      }
      let pause = min(timing.poll * Double.random(in: 0.75...1.25), deadline - .now)
      switch await present.notice(within: pause)?.end {
      case .withoutResult:
        if .now > deadline - timing.wait / 2 { giveUp(source) }
        return .none
      case .shared:
        start = generation()
        if let reply = try? await client.send([look]).first, let found = await read(reply, start) {
          return served(found, after: present)
        }
        // Purged meanwhile, or too old for this request: waiting again does not help.
        mayWait = false
      case nil: break
      }
    }
  }

  /// An attempt to take a lease at the same time as its entry is asked for.
  struct Attempt {
    fileprivate let name: LeaseName
    fileprivate let token: String
    /// The command. Those that ask for the entry have to follow in the same pipeline.
    let command: RedisCommand
  }

  /// Prepares an attempt, which takes a free lease unless one of the keys exists.
  func attempt(_ name: LeaseName, unless found: [String]) -> Attempt {
    let token = newToken()
    return Attempt(
      name: name, token: token,
      command: commands.take(name, token: token, waits: false, unless: found))
  }

  /// Returns the lease that an attempt has taken.
  func held(by attempt: Attempt, _ reply: RedisReply) -> HeldLease? {
    reply == .integer(1) ? hold(attempt.name, token: attempt.token, hasWaited: false) : nil
  }

  private func newToken() -> String {
    "\(commands.machine)-\(lastToken.wrappingAdd(1, ordering: .relaxed).newValue)"
  }

  private func giveUp(_ source: CacheKey) {
    state.withLock { $0.givenUp.setNewest(.now, for: source) }
  }

  private func hasGivenUp(_ source: CacheKey) -> Bool {
    state.withLock { $0.givenUp[source] }.map { $0.duration(to: .now) < timing.givenUp } ?? false
  }

  private func served<Shared>(
    _ found: Shared, after waiter: LeaseWaiter?
  ) -> LeaseOutcome<Shared> {
    if waiter != nil { counters.served.add() }
    return .shared(found)
  }

  private func hold(_ name: LeaseName, token: String, hasWaited: Bool) -> HeldLease {
    let lease = HeldLease(name, token: token, hasWaited: hasWaited, owner: self)
    counters.taken.add()
    let mustStart = state.withLock { state in
      state.held[name] = lease
      defer { state.isRenewing = true }
      return !state.isRenewing
    }
    if mustStart { Task.detached { [self] in await renew() } }
    return lease
  }

  // MARK: Holding

  /// Returns the lease that the write of a variant or a source has to end.
  func claim(_ name: LeaseName) -> HeldLease? {
    state.withLock { $0.held[name] }.flatMap { $0.claim() ? $0 : nil }
  }

  /// Renews leases of long work. Short work ends before.
  private func renew() async {
    while isNeeded() {
      try? await Task.sleep(for: timing.renewal)
      let old = state.withLock { Array($0.held.values) }
        .filter { !$0.isLost && $0.start.duration(to: .now) >= timing.renewal * 3 / 4 }
      guard !old.isEmpty,
        let replies = try? await client.send(
          old.map { commands.renew($0.name, token: $0.token) })
      else { continue }
      // Unless it has been written and freed in between.
      for (lease, reply) in zip(old, replies) where reply == .integer(0) && lease.isWorking {
        if lease.lose() { counters.lost.add() }
      }
    }
  }

  private func isNeeded() -> Bool {
    state.withLock { state in
      if state.held.isEmpty { state.isRenewing = false }
      return state.isRenewing
    }
  }

  private func forget(_ lease: HeldLease) {
    state.withLock { if $0.held[lease.name] === lease { $0.held[lease.name] = nil } }
  }

  // MARK: Ending

  /// The command that writes an entry and ends its lease.
  func write(_ content: [UInt8], life: Int, ending lease: HeldLease) -> RedisCommand {
    commands.end(lease.name, token: lease.token, as: .shared, writing: (content, life))
  }

  /// Reads the reply to `write`. Returns whether the entry is written.
  func hasWritten(_ lease: HeldLease, _ reply: RedisReply?) -> Bool {
    forget(lease)
    if reply == .integer(-1), lease.lose() { counters.lost.add() }
    return reply == .integer(1)
  }

  /// Ends a lease without an entry. Never waits.
  func end(_ lease: HeldLease, admitting admit: (@Sendable () -> Void)?) {
    let command = commands.end(
      lease.name, token: lease.token, as: .withoutResult, unlessAwaited: admit != nil)
    guard let admit else {
      forget(lease)
      return client.send([command], on: .commands, within: nil) { _ in }
    }
    client.send([command], on: .commands, within: nil) { [self] outcome in
      guard (try? outcome.get())?.first == .integer(2) else {
        forget(lease)
        return
      }
      Task.detached { [self] in
        admit()
        // Behind the write, if there is one: the queue of variants keeps the order.
        finish.withLock { $0 }?(lease)
      }
    }
  }

  /// Ends a lease once all variants that wait now are written. Set by the tier.
  let finish = Lock<(@Sendable (HeldLease) -> Void)?>(nil)

  /// Tells others that a variant may be there.
  func tell(_ lease: HeldLease) async {
    forget(lease)
    _ = try? await client.send([commands.end(lease.name, token: lease.token, as: .shared)])
  }

  /// Frees all leases, since this machine ends.
  func endAll() async {
    let held = state.withLock { state in
      defer { state.held = [:] }
      return Array(state.held.values)
    }
    _ = try? await client.send(
      held.map { commands.end($0.name, token: $0.token, as: .withoutResult) })
  }
}

/// Counts since the start.
final class LeaseCounters: Sendable {
  /// Leases taken.
  let taken = Counter()
  /// Leases that ended, or went to another machine, before the work.
  let lost = Counter()
  /// Waits for another machine.
  let waited = Counter()
  /// Waits that ended with the variant or source.
  let served = Counter()
  /// Waits that ended without, after the longest wait.
  let timedOut = Counter()
}

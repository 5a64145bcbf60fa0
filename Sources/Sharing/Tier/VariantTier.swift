// VariantTier: variants in Redis and in a bucket, checked like network input.

import Model
import Platform
import Telemetry

/// The variants that machines share.
final class VariantTier: Sendable {
  let counters = SharedCounters()
  private let client: RedisClient
  private let stream: PurgeStream
  private let coding: any VariantCoding
  private let prefix: String
  private let limit: Int
  private let leases: FleetLeases?
  private let objects: BucketVariants?
  private let failures: SharedFailures?
  private let writer: VariantWriter

  /// - Parameters:
  ///   - limit: the largest body in Redis, in bytes; 0: none.
  ///   - leases: the leases that end with a write; `nil` without leases.
  ///   - failures: the shared failures; `nil` if they are not shared.
  ///   - objects: the variants in a bucket; `nil` without one.
  init(
    client: RedisClient, stream: PurgeStream, coding: any VariantCoding, prefix: String,
    limit: Int, leases: FleetLeases? = nil, failures: SharedFailures? = nil,
    objects: BucketVariants? = nil
  ) {
    self.client = client
    self.stream = stream
    self.coding = coding
    self.prefix = prefix
    self.limit = limit
    self.leases = leases
    self.objects = objects
    self.failures = failures
    writer = VariantWriter(
      client: client, coding: coding, prefix: prefix, limit: limit, leases: leases,
      objects: objects, counters: counters)
  }

  /// Whether there is a place for variants.
  private var isOn: Bool { limit > 0 || objects != nil }

  /// Variants that wait to be written.
  var waiting: Int { writer.waiting + (objects?.waiting ?? 0) }

  /// Queues a variant for other machines, or drops it.
  func store(_ variant: Variant, since mark: SharedMark) { writer.store(variant, since: mark) }

  // MARK: Reading

  /// What a look-up found.
  private enum Look {
    case found(Variant)
    case refused
    case absent
  }

  /// Returns the variant and the failure of its source that no purge covers. Redis is asked once if there is no failure;
  /// the bucket, if Redis has neither.
  ///
  /// - Parameter takingLease: whether to take the lease if it is free and there is neither variant nor failure.
  func look(
    for key: CacheKey, generation: Int, withFailure: Bool, takingLease: Bool
  ) async -> SharedLookup {
    let failures = withFailure ? failures : nil
    let name = LeaseName(.variant, of: key)
    let keys = [prefix + name.entry] + (failures.map { [$0.name(of: key.source)] } ?? [])
    let attempt = takingLease && isOn ? leases?.attempt(name, unless: keys) : nil
    var commands = attempt.map { [$0.command] } ?? []
    if isOn { commands.append(RedisCommand("GET", prefix + name.entry)) }
    if let failures { commands.append(failures.look(for: key.source)) }
    guard !commands.isEmpty, stream.isSynchronised, let replies = try? await client.send(commands),
      replies.count == commands.count
    else { return SharedLookup() }
    var found = SharedLookup()
    let lease = attempt.flatMap { leases?.held(by: $0, replies[0]) }
    found.failure = await failures?.failure(of: key.source, in: replies[replies.count - 1])
    guard isOn else { return found }
    let look: Look
    if case .bytes(let bytes) = replies[attempt == nil ? 0 : 1] {
      look = await read(bytes, as: key, name: name, generation: generation)
    } else if found.failure == nil {
      look = await inBucket(key, name: name, generation: generation)
    } else {
      look = .absent
    }
    switch look {
    case .found(let variant):
      counters.hits.add()
      found.variant = variant
    case .refused: counters.refused.add()
    case .absent: counters.misses.add()
    }
    // A variant or a failure that came after the lease was taken.
    if found.variant == nil, found.failure == nil, !Task.isCancelled {
      found.lease = lease
    } else {
      lease?.end(admitting: nil)
    }
    return found
  }

  /// Reads an entry of Redis, or the one in the bucket that it stands for.
  private func read(
    _ bytes: [UInt8], as key: CacheKey, name: LeaseName, generation: Int
  ) async -> Look {
    let (mark, variant, isInBucket) = bytes.withUnsafeBytes {
      bytes -> (SharedMark?, Variant?, Bool) in
      guard let entry = SharedEntry.parse(bytes) else { return (nil, nil, false) }
      switch entry.kind {
      case .whole:
        guard entry.content.count <= limit + BucketVariants.frameLimit else {
          return (nil, nil, false)
        }
        return (entry.mark, coding.decode(entry.content, as: key, generation: generation), false)
      case .inBucket: return (entry.mark, nil, entry.content.isEmpty)
      case .dated: return (nil, nil, false)
      }
    }
    // Decoded first, checked last: a purge that arrives meanwhile counts.
    guard let mark, variant != nil || isInBucket, stream.allows(key, mark: mark)
    else { return .refused }
    if let variant { return .found(variant) }
    return await inBucket(key, name: name, generation: generation)
  }

  private func inBucket(_ key: CacheKey, name: LeaseName, generation: Int) async -> Look {
    guard let objects else { return .absent }
    switch await objects.variant(for: key, name: name.entry, generation: generation) {
    case .none: return .absent
    case .refused: return .refused
    case .found(let mark, let variant):
      guard stream.allows(key, mark: mark) else {
        objects.store.counters.refused.add()
        return .refused
      }
      return .found(variant)
    }
  }

  // MARK: Leases

  /// Takes the lease of a variant, or waits for the machine that has it.
  func lease(_ request: LeaseRequest) async -> LeaseOutcome<Variant> {
    guard let leases, isOn, stream.isSynchronised else { return .none }
    let name = LeaseName(.variant, of: request.key)
    let outcome: LeaseOutcome<Variant> = await leases.lease(
      of: name, from: request.key.source, waits: request.waits,
      look: RedisCommand("GET", prefix + name.entry),
      generation: request.generation
    ) { reply, generation in
      guard case .bytes(let bytes) = reply,
        case .found(let variant) = await read(
          bytes, as: request.key, name: name, generation: generation),
        await request.accepts(variant)
      else { return nil }
      return variant
    }
    guard outcome.mayFollowFailure, request.waits, !Task.isCancelled,
      let failure = await failures?.failure(of: request.key.source)
    else { return outcome }
    outcome.endLease()
    return .failed(failure)
  }

  /// Seconds until an entry is useless, at least 1: machines take fresh ones only.
  static func lifetime(of freshness: Freshness, at now: UnixTime) -> Int {
    max(freshness.timeToLive(at: now), 1)
  }
}

// Fleet: the façade of what machines share by Redis and a bucket.

import Model
import Platform
import Telemetry

/// The configuration of a fleet.
public struct FleetConfiguration: Sendable {
  /// Where Redis is.
  public var address: RedisAddress
  /// The settings.
  public var settings: FleetSettings
  /// The folder for the position and for purges that wait; `nil` without a disk tier.
  public var folder: String?
  /// The rules with the tags of hosts.
  public var filter = CacheKeyFilter()
  /// The bucket for what does not fit into Redis; `nil` without one.
  public var bucket: S3Configuration?
  /// Text that is the same on machines for which the same sources fail: it stands for their version and limits.
  public var limits = ""
  /// When leases end.
  var leaseTiming: LeaseTiming

  /// Creates a configuration.
  public init(address: RedisAddress, settings: FleetSettings, folder: String?) {
    self.address = address
    self.settings = settings
    self.folder = folder
    leaseTiming = LeaseTiming()
    leaseTiming.wait = settings.leaseWait
  }
}

/// One machine of a fleet. It publishes its purges, and applies those of the other machines.
public final class Fleet: SharedCache {
  let client: RedisClient
  let stream: PurgeStream
  let leases: FleetLeases?
  /// The bucket; `nil` without one.
  let bucket: S3Bucket?
  private let tier: VariantTier
  private let sourceTier: SourceTier?
  private let failures: SharedFailures?
  private let log: Log
  private let work = Lock<[Task<Void, Never>]>([])

  /// Connects, and reads the files of an earlier run. Blocks while it reads.
  ///
  /// - Parameters:
  ///   - coding: variants as bytes.
  ///   - sourceCoding: the metadata of sources as bytes.
  ///   - bodies: what entries of the bucket count against while they are received and read.
  /// - Throws: if a thread for connections cannot start.
  public convenience init(
    _ configuration: FleetConfiguration, coding: any VariantCoding,
    sourceCoding: any SourceCoding, bodies: ByteBudget = .unlimited, log: Log
  ) throws(SystemError) {
    let bucket = try configuration.bucket.map { bucket throws(SystemError) in
      try S3Bucket(bucket, budget: bodies, log: log)
    }
    let sharesSources = configuration.bucket?.settings.sources == true
    try self.init(
      configuration, coding: coding, sourceCoding: sourceCoding, bucket: bucket,
      objects: sharesSources ? bucket : nil, log: log)
  }

  /// - Parameters:
  ///   - bucket: has variants.
  ///   - objects: has the bytes of sources; `nil` if machines do not share sources.
  init(
    _ configuration: FleetConfiguration, coding: any VariantCoding,
    sourceCoding: any SourceCoding, bucket: S3Bucket? = nil, objects: (any SharedStore)?, log: Log
  ) throws(SystemError) {
    let settings = configuration.settings
    var redis = RedisConfiguration(address: configuration.address)
    redis.timeout = settings.timeout
    redis.retryInterval = settings.retryInterval
    let bucketHasVariants = configuration.bucket?.settings.variants == true
    let sharesWork =
      settings.leases && (settings.variantLimit > 0 || bucketHasVariants || objects != nil)
    redis.readsNotices = sharesWork
    client = try RedisClient(redis, log: log)
    self.bucket = bucket
    stream = PurgeStream(
      client: client, prefix: settings.keyPrefix, folder: configuration.folder,
      retryInterval: settings.retryInterval, filter: configuration.filter, log: log)
    leases =
      sharesWork
      ? FleetLeases(
        client: client, prefix: settings.keyPrefix, machine: stream.machine,
        timing: configuration.leaseTiming) : nil
    failures =
      settings.failures
      ? SharedFailures(
        client: client, stream: stream, prefix: settings.keyPrefix, limits: configuration.limits)
      : nil
    tier = VariantTier(
      client: client, stream: stream, coding: coding, prefix: settings.keyPrefix,
      limit: settings.variantLimit, leases: leases, failures: failures,
      objects: bucketHasVariants ? bucket.map { BucketVariants(store: $0, coding: coding) } : nil)
    sourceTier = objects.map { [client, stream, leases, failures] objects in
      SourceTier(
        client: client, stream: stream, store: objects, coding: sourceCoding,
        prefix: settings.keyPrefix,
        limit: configuration.bucket?.settings.entryLimit ?? SharedBucketSettings().entryLimit,
        leases: leases, failures: failures)
    }
    self.log = log
  }

  /// Replaces the rules with the tags of hosts.
  public func apply(_ filter: CacheKeyFilter) { stream.apply(filter) }

  /// Publishes a purge that this machine has applied. Waits for Redis no longer than its time-out; if Redis is away,
  /// the purge waits on disk and is delivered later.
  public func publish(
    _ scope: PurgeScope, number: Int, isDurable: Bool
  ) async throws(ImageError) {
    try await stream.publish(scope, number: number, isDurable: isDurable)
  }

  /// See `SharedCache`.
  public func beginPurge(_ scope: PurgeScope) -> Int { stream.begin(scope) }

  /// See `SharedCache`.
  public var mark: SharedMark? { stream.mark }

  /// See `SharedCache`.
  public var sharesFailures: Bool { failures != nil }

  /// See `SharedCache`.
  public func look(
    for key: CacheKey, generation: Int, withFailure: Bool, takingLease: Bool
  ) async -> SharedLookup {
    await tier.look(
      for: key, generation: generation, withFailure: withFailure, takingLease: takingLease)
  }

  /// See `SharedCache`.
  public func share(_ failure: SharedFailure, since mark: SharedMark) {
    failures?.share(failure, since: mark)
  }

  /// See `SharedCache`.
  public func removeFailure(of source: CacheKey) { failures?.remove(source) }

  /// See `SharedCache`.
  public func store(_ variant: Variant, since mark: SharedMark) { tier.store(variant, since: mark) }

  /// See `SharedCache`.
  public func lease(_ request: LeaseRequest) async -> LeaseOutcome<Variant> {
    await tier.lease(request)
  }

  /// See `SharedCache`.
  public var sources: (any SharedSources)? { sourceTier }

  /// Whether this machine has applied all purges that the stream had at the last read.
  var isSynchronised: Bool { stream.isSynchronised }

  /// Begins to follow the purge stream.
  ///
  /// - Parameters:
  ///   - record: makes purges durable for which `apply` could not; throws if it still cannot.
  ///   - apply: applies a purge to this machine's tiers, without publishing it. One that throws is in force and not
  ///     durable.
  public func start(
    recording record: @escaping @Sendable () async throws(ImageError) -> Void = {},
    applying apply: @escaping @Sendable (PurgeScope) async throws(ImageError) -> Void
  ) {
    let reading = Task { [stream] in
      await stream.run(PurgeStream.Application(apply: apply, record: record))
    }
    let checking = Task { [self] in await checkPolicy() }
    work.withLock { $0 = [reading, checking] }
  }

  /// Ends the connections and the reading. Purges that wait stay on disk.
  public func stop() async {
    let tasks = work.withLock { $0 }
    for task in tasks { task.cancel() }
    // Others need not wait for leases of a machine that is gone.
    await leases?.endAll()
    // It waits for the client's thread.
    _ = try? await BlockingThreads(name: "pictor-end", threads: 1).value { [client, bucket] in
      client.stop()
      bucket?.stop()
    }
    for task in tasks { await task.value }
  }

  /// The figures, as `/stats` shows them.
  public var figures: FleetFigures {
    var figures = FleetFigures()
    figures.isConnected = client.isReady() && client.isReady(.stream)
    figures.commands = client.counters.sent.value
    figures.unavailable = client.counters.unavailable.value
    figures.timedOut = client.counters.timedOut.value
    figures.errors = client.counters.errors.value
    figures.failures = client.counters.failures.value
    figures.hits = tier.counters.hits.value
    figures.misses = tier.counters.misses.value
    figures.refused = tier.counters.refused.value
    figures.stores = tier.counters.stores.value
    figures.dropped = tier.counters.dropped.value
    figures.storesWaiting = tier.waiting
    figures.sources = sourceTier?.figures
    figures.bucket = bucket?.figures
    if let failures {
      figures.failedURLsShared = failures.counters.shared.value
      figures.failedURLsDropped = failures.counters.dropped.value
      figures.failedURLsFound = failures.counters.found.value
      figures.failedURLsRefused = failures.counters.refused.value
    }
    if let leases {
      figures.leasesTaken = leases.counters.taken.value
      figures.leasesLost = leases.counters.lost.value
      figures.leasesWaited = leases.counters.waited.value
      figures.leasesServed = leases.counters.served.value
      figures.leasesTimedOut = leases.counters.timedOut.value
      figures.leasesHeld = leases.held
    }
    figures.purgesPublished = stream.counters.published.value
    figures.purgesApplied = stream.counters.applied.value
    figures.purgesWaiting = stream.waiting
    figures.positionAgeSeconds = stream.age
    return figures
  }

  /// Warns once if Redis may evict the purge stream, or refuses purges when it is full.
  private func checkPolicy() async {
    while !Task.isCancelled {
      if let reply = try? await client.send([RedisCommand("CONFIG", "GET", "maxmemory-policy")])
        .first
      {
        // A user without the right to ask is no reason to warn.
        guard let policy = reply.elements?.last?.text, !policy.hasPrefix("volatile-") else {
          return
        }
        log.warning(
          "maxmemory-policy of Redis should be volatile-lfu: allkeys policies evict the purge stream, "
            + "noeviction refuses purges",
          fields: ["policy": .string(policy)])
        return
      }
      try? await Task.sleep(for: .seconds(1))
    }
  }
}

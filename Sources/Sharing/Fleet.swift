// Fleet: the façade of what machines share by Redis and a bucket.

import Core

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

  /// Creates a configuration.
  public init(address: RedisAddress, settings: FleetSettings, folder: String?) {
    self.address = address
    self.settings = settings
    self.folder = folder
  }
}

/// One machine of a fleet. It publishes its purges, and applies those of the other machines.
public final class Fleet: SharedCache {
  /// The connection for commands that are answered at once.
  let client: RedisClient
  /// The connection for `XREAD BLOCK`, which delays the commands behind it.
  private let reader: RedisClient
  let stream: PurgeStream
  /// The bucket; `nil` without one.
  let bucket: S3Bucket?
  private let tier: VariantTier
  private let log: Log
  private let work = Lock<[Task<Void, Never>]>([])

  /// Connects, and reads the files of an earlier run. Blocks while it reads.
  ///
  /// - Parameter bodies: what entries of the bucket count against while they are received and read.
  /// - Throws: if a thread for connections cannot start.
  public init(
    _ configuration: FleetConfiguration, coding: any VariantCoding,
    bodies: ByteBudget = .unlimited, log: Log
  ) throws(SystemError) {
    let settings = configuration.settings
    var redis = RedisConfiguration(address: configuration.address)
    redis.timeout = settings.timeout
    redis.retryInterval = settings.retryInterval
    client = try RedisClient(redis, log: log)
    redis.name = "stream"
    redis.isCounted = false
    reader = try RedisClient(redis, counters: client.counters, log: log)
    bucket = try configuration.bucket.map { bucket throws(SystemError) in
      try S3Bucket(bucket, budget: bodies, log: log)
    }
    stream = PurgeStream(
      client: client, reader: reader, prefix: settings.keyPrefix, folder: configuration.folder,
      retryInterval: settings.retryInterval, filter: configuration.filter, log: log)
    tier = VariantTier(
      client: client, stream: stream, coding: coding, prefix: settings.keyPrefix,
      limit: settings.variantLimit,
      bucket: bucket)
    self.log = log
  }

  /// Replaces the rules with the tags of hosts.
  public func apply(_ filter: CacheKeyFilter) { stream.apply(filter) }

  /// See `SharedCache`. Waits for Redis no longer than its time-out; if it is away, the purge waits
  /// on disk.
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
  public func variant(for key: CacheKey, generation: Int) async -> Variant? {
    await tier.variant(for: key, generation: generation)
  }

  /// See `SharedCache`.
  public func store(_ variant: Variant, since mark: SharedMark) { tier.store(variant, since: mark) }

  /// Begins to follow the purge stream.
  ///
  /// - Parameters:
  ///   - record: makes purges durable for which `apply` could not; throws if it still cannot.
  ///   - apply: applies a purge to this machine's tiers, without publishing it. One that throws is
  ///     in force and not durable.
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
    client.stop()
    reader.stop()
    bucket?.stop()
    for task in tasks { await task.value }
  }

  /// The figures, as `/stats` shows them.
  public var figures: Figures {
    var figures = Figures(of: client.counters)
    figures.merge(Figures(of: tier.counters))
    figures.merge(Figures(of: stream.counters))
    figures.add(
      "connected", client.isReady && reader.isReady, "pictor_fleet_connected",
      "1 if Redis is used, 0 if it is away.")
    figures.add(
      "stores_waiting", tier.waiting, "pictor_fleet_stores_waiting",
      "Variants that wait to be written.")
    figures.add(
      "purges_waiting", stream.waiting, "pictor_fleet_purges_waiting",
      "Purges of this machine that wait for Redis.")
    figures.add(
      "position_age_seconds", stream.age, "pictor_fleet_position_age_seconds",
      "Time since the purge stream was read to its end.")
    if let bucket { figures.add("s3", bucket.figures) }
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

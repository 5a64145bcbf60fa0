// Figures: what /stats shows, part by part. Each part is filled in by the target it is about.

/// How long something took: how often it happened, the sum, and quantiles in milliseconds.
public struct LatencyFigures: Codable, Hashable, Sendable {
  /// How often it happened.
  public var count: Int
  /// All durations together, in seconds.
  public var sumSeconds: Double
  /// Median in milliseconds.
  public var p50: Double
  /// 95th percentile in milliseconds.
  public var p95: Double
  /// 99th percentile in milliseconds.
  public var p99: Double

  /// All of it.
  public init(count: Int, sumSeconds: Double, p50: Double, p95: Double, p99: Double) {
    (self.count, self.sumSeconds) = (count, sumSeconds)
    (self.p50, self.p95, self.p99) = (p50, p95, p99)
  }

  enum CodingKeys: String, CodingKey {
    case count
    case sumSeconds = "sum_seconds"
    case p50 = "p50_ms"
    case p95 = "p95_ms"
    case p99 = "p99_ms"
  }
}

/// Requests to the server.
public struct RequestFigures: Codable, Hashable, Sendable {
  /// All requests answered.
  public var total = 0
  /// Requests being answered now.
  public var active = 0
  /// Most requests that may be waited for at once.
  public var limit = 0
  /// Answers by status code.
  public var byStatus: [String: Int] = [:]
  /// `/image` answers by where they came from: `memory`, `disk`, `source`, `variant`, `origin`, `stale` (kept, in
  /// place of an origin that failed), `error`.
  public var byOrigin: [String: Int] = [:]
  /// `/image` answers from memory or disk ÷ all `/image` answers with an image.
  public var hitRatio = 0.0
  /// Body bytes sent.
  public var bytesSent = 0
  /// Clients that went away before their answer.
  public var clientsGone = 0
  /// Open connections.
  public var connections = 0
  /// From the request's header to its answer, memory hits.
  public var hitLatency: LatencyFigures?
  /// The same, all other requests for images.
  public var missLatency: LatencyFigures?

  /// Nothing yet.
  public init() {}

  enum CodingKeys: String, CodingKey {
    case total, active, limit, connections
    case byStatus = "by_status"
    case byOrigin = "by_origin"
    case hitRatio = "hit_ratio"
    case bytesSent = "bytes_sent"
    case clientsGone = "clients_gone"
    case hitLatency = "hit_latency"
    case missLatency = "miss_latency"
  }
}

/// Downloads from origins.
public struct DownloadFigures: Codable, Hashable, Sendable {
  /// Started and ended well.
  public var succeeded = 0
  /// Started and failed, by the contract's error code.
  public var failed: [String: Int] = [:]
  /// Given up because nobody wanted them any more.
  public var cancelled = 0
  /// Running now.
  public var running = 0
  /// Waiting for a place.
  public var waiting = 0
  /// Of those running, the ones whose host has said nothing for long: others have their places.
  public var silent = 0
  /// Most that may run at once, silent ones aside.
  public var limit = 0
  /// Most that may run at once from one host.
  public var limitPerHost = 0
  /// Body bytes received.
  public var bytes = 0
  /// Requests made once more after a failure.
  public var retries = 0
  /// Hosts that are left alone because they failed time and again, those being probed included.
  public var circuitsOpen = 0
  /// Whether an operator has downloads wait.
  public var paused = false
  /// From the start of a transfer to its end.
  public var latency: LatencyFigures?

  /// Nothing yet.
  public init() {}

  enum CodingKeys: String, CodingKey {
    case succeeded, failed, cancelled, running, waiting, silent, limit, bytes, retries, paused
    case latency
    case circuitsOpen = "circuits_open"
    case limitPerHost = "limit_per_host"
  }
}

/// The manager's flights.
public struct FlightFigures: Codable, Hashable, Sendable {
  /// Source flights running now.
  public var sources = 0
  /// Variant flights running now.
  public var variants = 0
  /// Requests waiting for flights now.
  public var waiting = 0
  /// Flights ever started.
  public var started = 0
  /// Requests that joined a flight already running.
  public var coalesced = 0
  /// Flights given up because the last one waiting left, or ended by an operator.
  public var cancelled = 0
  /// Sources on the list of failed URLs.
  public var failedURLs = 0
  /// Results that were larger than their source, which is kept and sent in their place.
  public var sourcesInstead = 0
  /// Images made of larger variants, since their source was not kept.
  public var derived = 0
  /// AVIFs made behind quicker answers.
  public var avifsLater = 0
  /// Those being made now, and waiting for it.
  public var avifsWaiting = 0
  /// Those that could not be made.
  public var avifsFailed = 0

  /// Nothing yet.
  public init() {}

  enum CodingKeys: String, CodingKey {
    case sources, variants, waiting, started, coalesced, cancelled, derived
    case failedURLs = "failed_urls"
    case sourcesInstead = "sources_instead"
    case avifsLater = "avifs_later"
    case avifsWaiting = "avifs_waiting"
    case avifsFailed = "avifs_failed"
  }
}

/// Lists that are prefetched.
public struct PrefetchFigures: Codable, Hashable, Sendable {
  /// Lists being worked on now.
  public var lists = 0
  /// Images waiting for their turn.
  public var waiting = 0
  /// Images being asked for now.
  public var running = 0
  /// Most images that may be asked for at once.
  public var limit = 0
  /// Images that were loaded or made.
  public var finished = 0
  /// Images that were kept and fresh already.
  public var skipped = 0
  /// Images that could not be had.
  public var failed = 0

  /// Nothing yet.
  public init() {}
}

/// The worker processes.
public struct ImagingFigures: Codable, Hashable, Sendable {
  /// Images made.
  public var succeeded = 0
  /// Jobs that ended in an error, by the contract's error code.
  public var failed: [String: Int] = [:]
  /// Jobs given up because nobody wanted them any more.
  public var cancelled = 0
  /// Jobs being worked at now.
  public var running = 0
  /// Jobs waiting for a worker.
  public var waiting = 0
  /// Most jobs that may wait.
  public var limit = 0
  /// Workers alive.
  public var workers = 0
  /// Workers that died in a job, were killed at a deadline, or broke the protocol.
  public var workersLost = 0
  /// Workers replaced for age.
  public var workersRetired = 0
  /// Resident memory of the workers together, in bytes.
  public var residentBytes = 0
  /// From the start of a job to its result.
  public var latency: LatencyFigures?

  /// Nothing yet.
  public init() {}

  enum CodingKeys: String, CodingKey {
    case succeeded, failed, cancelled, running, waiting, limit, workers, latency
    case workersLost = "workers_lost"
    case workersRetired = "workers_retired"
    case residentBytes = "resident_bytes"
  }
}

/// The server process.
public struct ProcessFigures: Codable, Hashable, Sendable {
  /// Resident memory in bytes.
  public var residentBytes = 0
  /// Open descriptors.
  public var descriptors = 0
  /// Most descriptors that may be open.
  public var descriptorLimit = 0
  /// Threads.
  public var threads = 0
  /// Processor time used so far, user and system, in seconds.
  public var cpuSeconds = 0.0

  /// Nothing yet.
  public init() {}

  enum CodingKeys: String, CodingKey {
    case descriptors, threads
    case residentBytes = "resident_bytes"
    case descriptorLimit = "descriptor_limit"
    case cpuSeconds = "cpu_seconds"
  }
}

/// The whole of `/stats`.
public struct Stats: Codable, Hashable, Sendable {
  /// `serving` or `draining`.
  public var status: String
  /// Version of the program.
  public var version: String
  /// Seconds since the start.
  public var uptimeSeconds: Double
  /// Requests to the server.
  public var requests: RequestFigures
  /// The memory tier.
  public var memory: TierFigures
  /// The disk tier.
  public var disk: TierFigures
  /// Downloads from origins.
  public var downloads: DownloadFigures
  /// The manager's flights.
  public var flights: FlightFigures
  /// What was served stale.
  public var freshness: FreshnessFigures
  /// Lists that are prefetched.
  public var prefetch: PrefetchFigures
  /// The worker processes.
  public var imaging: ImagingFigures
  /// The server process.
  public var process: ProcessFigures
  /// Lines of the log.
  public var log: LogFigures

  /// All of it.
  public init(
    status: String, version: String, uptimeSeconds: Double, requests: RequestFigures,
    memory: TierFigures, disk: TierFigures, downloads: DownloadFigures, flights: FlightFigures,
    freshness: FreshnessFigures, prefetch: PrefetchFigures, imaging: ImagingFigures,
    process: ProcessFigures, log: LogFigures = LogFigures()
  ) {
    self.log = log
    self.status = status
    self.version = version
    self.uptimeSeconds = uptimeSeconds
    self.requests = requests
    self.memory = memory
    self.disk = disk
    self.downloads = downloads
    self.flights = flights
    self.freshness = freshness
    self.prefetch = prefetch
    self.imaging = imaging
    self.process = process
  }

  enum CodingKeys: String, CodingKey {
    case status, version, requests, memory, disk, downloads, flights, freshness, prefetch, imaging
    case process, log
    case uptimeSeconds = "uptime_seconds"
  }
}

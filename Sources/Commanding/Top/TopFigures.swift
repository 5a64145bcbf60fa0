// TopFigures: the part of /stats that `pictor top` shows, and the difference of two looks.

/// The used part of the JSON of `/stats`.
struct TopFigures: Decodable, Equatable {
  /// A latency since the start.
  struct Latency: Decodable, Equatable {
    var count = 0
    /// The sum in seconds.
    var sum = 0.0
    /// Quantiles since the start, in milliseconds.
    var p50 = 0.0
    var p95 = 0.0
    var p99 = 0.0

    private enum CodingKeys: String, CodingKey {
      case count
      case sum = "sum_seconds"
      case p50 = "p50_ms"
      case p95 = "p95_ms"
      case p99 = "p99_ms"
    }
  }

  /// The figures of requests.
  struct Requests: Decodable, Equatable {
    var total = 0
    var active = 0
    var limit = 0
    var connections = 0
    var bytesSent = 0
    /// Image requests by outcome, then by tier.
    var byOutcome: [String: [String: Int]] = [:]
    var byStatus: [String: Int] = [:]
    /// By error code.
    var errors: [String: Int] = [:]
    var hitLatency = Latency()
    var missLatency = Latency()
    var stages: [String: Latency] = [:]

    private enum CodingKeys: String, CodingKey {
      case total, active, limit, connections, errors, stages
      case bytesSent = "bytes_sent"
      case byOutcome = "by_outcome"
      case byStatus = "by_status"
      case hitLatency = "hit_latency"
      case missLatency = "miss_latency"
    }
  }

  /// The figures of a tier.
  struct Tier: Decodable, Equatable {
    var bytes = 0
    var limit = 0
    var entries = 0
    var evictions = 0
    var failures = 0
  }

  /// The figures of downloads.
  struct Downloads: Decodable, Equatable {
    var running = 0
    var limit = 0
    var waiting = 0
    var bytes = 0
    var succeeded = 0
    var failed: [String: Int] = [:]
    var openCircuits = 0

    private enum CodingKeys: String, CodingKey {
      case running, limit, waiting, bytes, succeeded, failed
      case openCircuits = "circuits_open"
    }
  }

  /// The figures of the workers.
  struct Imaging: Decodable, Equatable {
    var workers = 0
    var running = 0
    var waiting = 0
    var limit = 0
    var succeeded = 0
    var failed: [String: Int] = [:]
    var lost = 0

    private enum CodingKeys: String, CodingKey {
      case workers, running, waiting, limit, succeeded, failed
      case lost = "workers_lost"
    }
  }

  /// The figures of the process.
  struct Process: Decodable, Equatable {
    var cpuSeconds = 0.0
    var residentBytes = 0
    var threads = 0
    var descriptors = 0
    var descriptorLimit = 0

    private enum CodingKeys: String, CodingKey {
      case threads, descriptors
      case cpuSeconds = "cpu_seconds"
      case residentBytes = "resident_bytes"
      case descriptorLimit = "descriptor_limit"
    }
  }

  var version = ""
  var status = ""
  /// Seconds since the start of the server.
  var uptime = 0.0
  var requests = Requests()
  var memory = Tier()
  /// `nil` for a server without a disk tier.
  var disk: Tier?
  var downloads = Downloads()
  var imaging = Imaging()
  var process = Process()

  private enum CodingKeys: String, CodingKey {
    case version, status, requests, memory, disk, downloads, imaging, process
    case uptime = "uptime_seconds"
  }
}

/// Two looks at the figures of one server.
struct TopInterval {
  /// The figures now.
  let now: TopFigures
  private let before: TopFigures

  /// Creates the interval between two looks. A server that was restarted in between counts from its start.
  init(from before: TopFigures, to now: TopFigures) {
    self.now = now
    self.before = before.uptime <= now.uptime ? before : TopFigures()
  }

  /// The length in seconds; not 0.
  var seconds: Double { max(now.uptime - before.uptime, 0.001) }

  /// Returns the increase of a count.
  func increase(_ count: (TopFigures) -> Int) -> Int { max(count(now) - count(before), 0) }

  /// Returns the increase of a count per second.
  func rate(_ count: (TopFigures) -> Int) -> Double { Double(increase(count)) / seconds }

  /// The cores that the server's process kept busy, workers not included.
  var cores: Double { max(now.process.cpuSeconds - before.process.cpuSeconds, 0) / seconds }

  /// Returns the increases of counts by name that are not 0, the largest first.
  func increases(_ counts: (TopFigures) -> [String: Int]) -> [(name: String, count: Int)] {
    let old = counts(before)
    return counts(now).map { (name: $0.key, count: $0.value - old[$0.key, default: 0]) }
      .filter { $0.count > 0 }
      .sorted { ($1.count, $0.name) < ($0.count, $1.name) }
  }

  /// Returns the mean of a latency in the interval, in milliseconds; `nil` without a measurement.
  func mean(_ latency: (TopFigures) -> TopFigures.Latency?) -> Double? {
    let new = latency(now) ?? .init()
    let old = latency(before) ?? .init()
    guard new.count > old.count else { return nil }
    return (new.sum - old.sum) / Double(new.count - old.count) * 1_000
  }
}

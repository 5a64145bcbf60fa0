// MetricFamilyTests: each figure of /stats is a metric, and the names follow Prometheus's rules.

import FoundationEssentials
import Model
import TestSupport
import Testing

@testable import Telemetry

struct MetricFamilyTests {
  /// Any JSON.
  private enum JSON: Codable {
    case number(Double), flag(Bool), text(String), array([JSON]), object([String: JSON])

    init(from decoder: any Decoder) throws {
      let value = try decoder.singleValueContainer()
      if let flag = try? value.decode(Bool.self) {
        self = .flag(flag)
      } else if let number = try? value.decode(Double.self) {
        self = .number(number)
      } else if let text = try? value.decode(String.self) {
        self = .text(text)
      } else if let array = try? value.decode([JSON].self) {
        self = .array(array)
      } else {
        self = .object(try value.decode([String: JSON].self))
      }
    }

    func encode(to encoder: any Encoder) throws {
      var value = encoder.singleValueContainer()
      switch self {
      case .number(let number): try value.encode(number)
      case .flag(let flag): try value.encode(flag)
      case .text(let text): try value.encode(text)
      case .array(let array): try value.encode(array)
      case .object(let object): try value.encode(object)
      }
    }
  }

  /// Figures with every optional part.
  private var stats: Stats {
    let latency = LatencyFigures(count: 0, sumSeconds: 0, p50: 0, p95: 0, p99: 0)
    let share = ShareFigures(entries: 0, bytes: 0, limit: 0, countLimit: 0)
    var requests = RequestFigures()
    requests.byStatus = ["200": 0]
    requests.byOutcome = ["hit": ["memory": 0]]
    requests.errors = ["x": 0]
    requests.rateLimited = ["x": 0]
    requests.tokensRefused = ["x": 0]
    requests.stages = ["x": latency]
    (requests.hitLatency, requests.missLatency) = (latency, latency)
    var memory = TierFigures()
    memory.pressure = PressureFigures(
      isActive: true, warnings: 0, evictions: 0, limit: 0, share: 0)
    var disk = TierFigures()
    (disk.latency, disk.variants, disk.sources) = (latency, share, share)
    var downloads = DownloadFigures()
    downloads.latency = latency
    downloads.failed = ["x": 0]
    var imaging = ImagingFigures()
    imaging.latency = latency
    imaging.failed = ["x": 0]
    imaging.sandbox = SandboxReport(landlock: 0, seccomp: true)
    var stats = Stats(
      status: "draining", version: "1.2.3", uptimeSeconds: 0, requests: requests, memory: memory,
      disk: disk, downloads: downloads, flights: FlightFigures(), freshness: FreshnessFigures(),
      prefetch: PrefetchFigures(), imaging: imaging, process: ProcessFigures())
    stats.budgets.files = BudgetFigures()
    stats.tracing = TracingFigures()
    stats.fleet = FleetFigures()
    stats.fleet?.bucket = BucketFigures()
    return stats
  }

  /// Figures that `/metrics` leaves out: Prometheus computes them, or only one tier has them.
  private static let derived: Set<String> = [
    "requests.total", "requests.hit_ratio", "memory.hit_ratio", "disk.hit_ratio",
    "memory.deferred", "memory.displaced", "memory.open_files",
  ]

  @Test func `each figure of stats is a metric`() throws {
    // Given a number of its own for each figure
    var next = 1_000.0
    var paths: [Double: String] = [:]
    func numbered(_ json: JSON, at path: String) -> JSON {
      switch json {
      case .object(let object):
        return .object(
          Dictionary(
            uniqueKeysWithValues: object.sorted { $0.key < $1.key }.map { key, value in
              (key, numbered(value, at: path.isEmpty ? key : path + "." + key))
            }))
      case .number:
        next += 1
        paths[next] = path
        return .number(next)
      case .flag, .text, .array: return json
      }
    }
    let json = try JSONDecoder().decode(JSON.self, from: JSONEncoder().encode(stats))
    let numbers = try JSONDecoder().decode(
      Stats.self, from: JSONEncoder().encode(numbered(json, at: "")))
    // When
    let page = try MetricsPage(String(decoding: MetricText.bytes(of: numbers), as: UTF8.self))
    // Then
    let found = Set(page.families.flatMap(\.samples).map(\.value))
    let absent = paths.filter { !found.contains($0.key) }.values.filter {
      !Self.derived.contains($0) && !$0.hasSuffix("_ms")
    }
    #expect(absent.sorted() == [])
    #expect(paths.count > 120)
    #expect(page.value("pictor_draining") == 1 && page.value("pictor_imaging_seccomp") == 1)
    #expect(page.value("pictor_memory_pressure_active") == 1)
    #expect(page.value("pictor_build_info", ["version": "1.2.3"]) == 1)
  }

  @Test func `names and types follow the rules`() {
    let families = MetricFamily.all
    #expect(Set(families.map(\.name)).count == families.count)
    for family in families {
      let name = family.name
      #expect(name.wholeMatch(of: /pictor(_[a-z]+)+/) != nil, "\(name)")
      #expect(name.hasSuffix("_total") == (family.kind == .counter), "\(name)")
      if family.kind == .histogram { #expect(name.hasSuffix("_seconds"), "\(name)") }
      #expect(!name.contains("_ms") && !name.contains("milli") && !name.contains("kilo"))
      #expect(family.help.hasSuffix(".") && !family.help.contains("\n"), "\(name)")
      for (labels, _) in family.samples(stats) {
        for label in labels {
          #expect(label.name.wholeMatch(of: /[a-z_]+/) != nil && label.name != "le", "\(name)")
        }
      }
    }
  }

  @Test func `no limit is infinite`() throws {
    var stats = stats
    stats.budgets.jobs.limit = .max
    let page = try MetricsPage(String(decoding: MetricText.bytes(of: stats), as: UTF8.self))
    #expect(page.value("pictor_budget_limit_bytes", ["budget": "jobs"]) == .infinity)
  }
}

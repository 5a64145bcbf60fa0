// TopScreen: the figures of an interval as lines for a terminal.

/// The lines of `pictor top`. Pure functions.
enum TopScreen {
  /// The stages in the order of a request.
  private static let stages = [
    "queue", "dns", "connect", "tls", "ttfb", "download", "disk", "decode", "transform", "encode",
  ]

  /// Returns the lines, each at most `columns` wide.
  static func lines(_ interval: TopInterval, server: String, columns: Int) -> [String] {
    let lines =
      [heading(interval, server)] + [""] + traffic(interval) + [""] + latencies(interval)
      + [""] + state(interval)
    return lines.map { String(PrefetchReport.printable($0).prefix(max(columns, 1))) }
  }

  private static func heading(_ interval: TopInterval, _ server: String) -> String {
    let now = interval.now
    return
      "pictor \(now.version) at \(server): \(now.status) for \(PrefetchReport.clock(now.uptime))"
      + "; the last \(decimal(interval.seconds)) s"
  }

  private static func traffic(_ interval: TopInterval) -> [String] {
    let now = interval.now.requests
    let outcomes = ["hit", "stale_hit", "stale_if_error", "miss", "error"].flatMap { outcome in
      (now.byOutcome[outcome] ?? [:]).keys.sorted().map { tier in
        (
          name: outcome + (tier == "none" ? "" : " " + tier),
          count: interval.increase { $0.requests.byOutcome[outcome]?[tier] ?? 0 }
        )
      }
    }
    let all = outcomes.reduce(0) { $0 + $1.count }
    let shares = outcomes.filter { $0.count > 0 }
      .map { "\($0.name) \(percent($0.count, of: all))" }
    return [
      row(
        "requests",
        [
          "\(decimal(interval.rate { $0.requests.total }))/s",
          "\(now.active) of \(now.limit) active",
          "connections: \(now.connections)",
          "\(bytes(interval.rate { $0.requests.bytesSent }))/s sent",
        ]),
      row("images", shares.isEmpty ? ["none"] : shares),
      row("statuses", counts(interval.increases(\.requests.byStatus))),
      row("errors", counts(interval.increases(\.requests.errors))),
    ]
  }

  private static func latencies(_ interval: TopInterval) -> [String] {
    var rows = [table(["ms", "mean now", "p50", "p95", "p99", "count"])]
    func add(_ name: String, _ latency: (TopFigures) -> TopFigures.Latency?) {
      guard let total = latency(interval.now), total.count > 0 else { return }
      rows.append(
        table([
          name, interval.mean(latency).map(decimal) ?? "-", decimal(total.p50), decimal(total.p95),
          decimal(total.p99), "\(total.count)",
        ]))
    }
    add("hit") { $0.requests.hitLatency }
    add("miss") { $0.requests.missLatency }
    let others = Set(interval.now.requests.stages.keys).subtracting(stages).sorted()
    for stage in stages + others { add("  " + stage) { $0.requests.stages[stage] } }
    return rows
  }

  private static func state(_ interval: TopInterval) -> [String] {
    let now = interval.now
    var lines = [tier("memory", now.memory, evictions: interval.increase(\.memory.evictions))]
    if let disk = now.disk {
      lines.append(tier("disk", disk, evictions: interval.increase { $0.disk?.evictions ?? 0 }))
    }
    let downloads = now.downloads
    let imaging = now.imaging
    let process = now.process
    return lines + [
      row(
        "downloads",
        [
          "\(downloads.running) of \(downloads.limit) running", "\(downloads.waiting) waiting",
          "\(decimal(interval.rate { $0.downloads.succeeded }))/s",
          "\(bytes(interval.rate { $0.downloads.bytes }))/s received",
        ] + (downloads.openCircuits > 0 ? ["open circuits: \(downloads.openCircuits)"] : [])
          + counts(interval.increases(\.downloads.failed), none: [])),
      row(
        "imaging",
        [
          "\(imaging.running) of \(imaging.workers) workers busy",
          "\(imaging.waiting) of \(imaging.limit) waiting",
          "\(decimal(interval.rate { $0.imaging.succeeded }))/s",
        ] + (imaging.lost > 0 ? ["workers lost: \(imaging.lost)"] : [])
          + counts(interval.increases(\.imaging.failed), none: [])),
      row(
        "process",
        [
          "\(decimal(interval.cores)) cores", "\(bytes(Double(process.residentBytes))) resident",
          "threads: \(process.threads)",
          "\(process.descriptors) of \(process.descriptorLimit) descriptors",
        ]),
    ]
  }

  private static func tier(_ name: String, _ tier: TopFigures.Tier, evictions: Int) -> String {
    row(
      name,
      [
        "\(bytes(Double(tier.bytes))) of \(bytes(Double(tier.limit)))", "entries: \(tier.entries)",
        "evictions: \(evictions)", "failures: \(tier.failures)",
      ])
  }

  // MARK: Formatting

  private static func row(_ name: String, _ parts: [String]) -> String {
    padded(name, to: 12) + parts.joined(separator: ", ")
  }

  /// Returns a line with a name and right-aligned cells.
  private static func table(_ cells: [String]) -> String {
    padded(cells[0], to: 12)
      + cells.dropFirst().map { String(repeating: " ", count: max(10 - $0.count, 1)) + $0 }.joined()
  }

  private static func padded(_ text: String, to width: Int) -> String {
    text + String(repeating: " ", count: max(width - text.count, 1))
  }

  private static func counts(
    _ counts: [(name: String, count: Int)], none: [String] = ["none"]
  ) -> [String] {
    counts.isEmpty ? none : counts.prefix(8).map { "\($0.name): \($0.count)" }
  }

  /// Returns a number with three significant digits, at most two of them after the point.
  static func decimal(_ value: Double) -> String {
    let value = min(max(value, 0), 1e15)
    switch value {
    case 100...: return "\(Int(value.rounded()))"
    case 10...: return "\((value * 10).rounded() / 10)"
    default: return "\((value * 100).rounded() / 100)"
    }
  }

  /// Returns a number of bytes with a binary unit.
  static func bytes(_ count: Double) -> String {
    var value = max(count, 0)
    for unit in ["B", "KiB", "MiB", "GiB"] {
      if value < 1_024 { return "\(decimal(value)) \(unit)" }
      value /= 1_024
    }
    return "\(decimal(value)) TiB"
  }

  private static func percent(_ count: Int, of all: Int) -> String {
    "\(decimal(100 * Double(count) / Double(max(all, 1)))) %"
  }
}

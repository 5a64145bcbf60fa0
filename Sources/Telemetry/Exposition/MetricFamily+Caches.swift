// MetricFamily+Caches: the metrics of the cache tiers and of bytes that are held.

extension MetricFamily {
  /// The metrics of the memory tier, the disk tier and the budgets.
  static let caches: [MetricFamily] = tiers + shares + pressure + budgets

  private static let tiers: [MetricFamily] = [
    .counters(
      "pictor_cache_lookups_total", byOuter: "tier", inner: "result",
      "Look-ups in a cache tier, by result."
    ) { stats in
      [
        "memory": ["hit": stats.memory.hits, "miss": stats.memory.misses],
        "disk": ["hit": stats.disk.hits, "miss": stats.disk.misses],
      ]
    },
    .gauges("pictor_cache_entries", by: "tier", "Entries of a cache tier.") {
      eachTier($0, \.entries)
    },
    .gauges("pictor_cache_size_bytes", by: "tier", "Bytes in a cache tier, with overhead.") {
      eachTier($0, \.bytes)
    },
    .gauges("pictor_cache_limit_bytes", by: "tier", "The configured limit of a cache tier.") {
      eachTier($0, \.limit)
    },
    .counters("pictor_cache_stores_total", by: "tier", "Entries stored.") {
      eachTier($0, \.stores)
    },
    .counters("pictor_cache_evictions_total", by: "tier", "Entries evicted for room.") {
      eachTier($0, \.evictions)
    },
    .counters("pictor_cache_expirations_total", by: "tier", "Entries removed by age.") {
      eachTier($0, \.expirations)
    },
    .counters("pictor_cache_purged_entries_total", by: "tier", "Entries removed by purges.") {
      eachTier($0, \.purged)
    },
    .counters("pictor_cache_damaged_entries_total", by: "tier", "Damaged entries removed.") {
      eachTier($0, \.damaged)
    },
    .counters(
      "pictor_cache_redated_entries_total", by: "tier",
      "Entries whose times were in the future, and were reset to now."
    ) { eachTier($0, \.redated) },
    .counters("pictor_cache_failures_total", by: "tier", "Operations that a tier could not do.") {
      eachTier($0, \.failures)
    },
    .gauges(
      "pictor_cache_purges_pending", by: "tier", "Purges in effect with entries left to remove."
    ) { eachTier($0, \.purgesPending) },
    .gauge("pictor_disk_open_files", "Files of entries that are kept open.") { $0.disk.openFiles },
    .counter(
      "pictor_disk_deferred_variants_total", "Variants not stored at their first request."
    ) { $0.disk.deferred },
    .counter(
      "pictor_disk_displaced_variants_total",
      "Variants removed because their source has too many."
    ) { $0.disk.displaced },
    .histogram(
      "pictor_disk_lookup_duration_seconds", "Time of look-ups on disk that found an entry."
    ) { $0.disk.latency },
  ]

  private static let shares: [MetricFamily] = [
    .gauges("pictor_disk_share_entries", by: "kind", "Entries of a kind on disk.") {
      eachShare($0, \.entries)
    },
    .gauges("pictor_disk_share_size_bytes", by: "kind", "Bytes of a kind of entry on disk.") {
      eachShare($0, \.bytes)
    },
    .gauges("pictor_disk_share_limit_bytes", by: "kind", "The most bytes of a kind on disk.") {
      eachShare($0, \.limit)
    },
    .gauges(
      "pictor_disk_share_limit_entries", by: "kind",
      "The most entries of a kind on disk; 0: unlimited."
    ) { eachShare($0, \.countLimit) },
  ]

  private static let pressure: [MetricFamily] = [
    .gauge(
      "pictor_memory_pressure_active", "Whether the memory tier is reduced: 1, else 0."
    ) { $0.memory.pressure.map { $0.isActive ? 1 : 0 } },
    .fraction(
      .gauge, "pictor_memory_pressure_ratio",
      "Memory in use that the kernel cannot reclaim, of the control group's limit."
    ) { $0.memory.pressure?.share },
    .gauge(
      "pictor_memory_pressure_limit_bytes", "The current limit of the memory tier."
    ) { $0.memory.pressure?.limit },
    MetricFamily(
      .counter, "pictor_memory_pressure_warnings_total", "Episodes of memory pressure."
    ) { stats in
      stats.memory.pressure.map { [([], .number(Double($0.warnings)))] } ?? []
    },
    MetricFamily(
      .counter, "pictor_memory_pressure_evictions_total",
      "Entries evicted because of memory pressure."
    ) { stats in
      stats.memory.pressure.map { [([], .number(Double($0.evictions)))] } ?? []
    },
  ]

  private static let budgets: [MetricFamily] = [
    .gauges("pictor_budget_used_bytes", by: "budget", "Bytes held now.") {
      eachBudget($0, \.bytes)
    },
    .gauges("pictor_budget_peak_bytes", by: "budget", "The most bytes held at one time.") {
      eachBudget($0, \.peak)
    },
    .gauges(
      "pictor_budget_limit_bytes", by: "budget", "The most bytes that may be held; 0: no limit."
    ) {
      eachBudget($0, \.limit)
    },
    .counters("pictor_budget_refusals_total", by: "budget", "How often bytes did not fit.") {
      eachBudget($0, \.refused)
    },
  ]

  private static func eachTier(
    _ stats: Stats, _ figure: KeyPath<TierFigures, Int>
  ) -> [String: Int] {
    ["memory": stats.memory[keyPath: figure], "disk": stats.disk[keyPath: figure]]
  }

  private static func eachShare(
    _ stats: Stats, _ figure: KeyPath<ShareFigures, Int>
  ) -> [String: Int] {
    let shares = ["variant": stats.disk.variants, "source": stats.disk.sources]
    return shares.compactMapValues { $0?[keyPath: figure] }
  }

  private static func eachBudget(
    _ stats: Stats, _ figure: KeyPath<BudgetFigures, Int>
  ) -> [String: Int] {
    let budgets = stats.budgets
    let all = [
      "bodies": budgets.bodies, "variants": budgets.variants, "jobs": budgets.jobs,
      "files": budgets.files,
    ]
    return all.compactMapValues { $0?[keyPath: figure] }
  }
}

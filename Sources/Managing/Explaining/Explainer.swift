// Explainer: says what a request would do, with the steps of a miss and without their effects.

import Model

/// Explains requests. The steps decide, each by the rule that its `run` uses.
struct Explainer: Sendable {
  private let steps: [any MissStep]
  private let cache: VariantCache
  private let sources: SourceService
  private let sourceStore: SourceStore
  private let failures: NegativeCache
  private let staleness: Staleness
  private let variants: VariantService
  private let now: @Sendable () -> UnixTime

  init(
    steps: [any MissStep], cache: VariantCache, sources: SourceService, sourceStore: SourceStore,
    failures: NegativeCache, staleness: Staleness, variants: VariantService,
    now: @escaping @Sendable () -> UnixTime
  ) {
    self.steps = steps
    self.cache = cache
    self.sources = sources
    self.sourceStore = sourceStore
    self.failures = failures
    self.staleness = staleness
    self.variants = variants
    self.now = now
  }

  /// Returns what a request would do now.
  func explain(_ request: ImageRequest) async -> Explanation {
    var explanation = Explanation()
    let now = now()
    let entries = await cache.lookUp(request.key)
    let source = await sourceStore.entry(of: request.key.source)
    func entry(_ info: CacheEntryInfo?) -> ExplainedEntry? {
      info.map {
        ExplainedEntry($0, use: .init(staleness.use(of: $0.freshness, by: request)), at: now)
      }
    }
    explanation.memory = entry(entries.memory)
    explanation.disk = entry(entries.disk)
    explanation.source = entry(source)
    let transform = request.transform.canonicalText
    explanation.failures = failures.all().filter {
      $0.url == SecretMask.withoutUsers(request.key.url) && ($0.transform ?? transform) == transform
    }
    explanation.flights = sources.running(for: request)
    explanation.flights.variant = variants.participants(of: request)
    explanation.origin = await sources.outlook(for: request)
    await plan(request, into: &explanation)
    return explanation
  }

  /// Adds the steps of a request, and of the fallback that would answer it.
  private func plan(_ request: ImageRequest, into explanation: inout Explanation) async {
    let entries = await cache.lookUp(request.key)
    func entry(_ info: CacheEntryInfo?) -> PlannedEntry? {
      info.map {
        PlannedEntry(info: $0, use: staleness.use(of: $0.freshness, by: request))
      }
    }
    var plan = MissPlan(request: request)
    plan.inMemory = entry(entries.memory)
    // A bypass does not look there.
    plan.onDisk = request.options.cache == .bypass ? nil : entry(entries.disk)
    for step in steps {
      if step is FallbackFormatStep, plan.source == nil,
        await planFlight(&plan, into: &explanation)
      {
        return
      }
      let outcome = await step.plan(&plan)
      switch outcome {
      case .next(let why):
        if !why.isEmpty { explanation.would.append(ExplainedStep(step.name, .next, why)) }
      case .response(let status, let why):
        explanation.would.append(ExplainedStep(step.name, .answers, why))
        explanation.answer = ExplainedAnswer(cacheStatus: status)
        explanation.answer?.isCollapsed = plan.isCollapsed && plan.source?.forward != nil
        return
      case .failure(let error, let why):
        explanation.would.append(ExplainedStep(step.name, .fails, why))
        explanation.answer = ExplainedAnswer(error)
        return
      case .fallback(let fallback, let why):
        explanation.would.append(ExplainedStep(step.name, .next, why))
        return await self.plan(fallback, into: &explanation)
      }
    }
  }

  /// Adds what comes between the look-ups and the rest: the fallback of a pending AVIF, which is
  /// answered at once, and the flight. Returns whether the request has its answer.
  private func planFlight(_ plan: inout MissPlan, into explanation: inout Explanation) async -> Bool
  {
    if let status = variants.plannedFallback(for: plan.request) {
      explanation.would.append(
        ExplainedStep("pending-avif", .answers, "the AVIF is being encoded; its fallback answers"))
      explanation.answer = ExplainedAnswer(cacheStatus: status)
      return true
    }
    let participants = variants.participants(of: plan.request)
    if participants > 0 {
      plan.isCollapsed = true
      explanation.would.append(
        ExplainedStep("flight", .next, "joins a running flight: \(participants) requests wait"))
    }
    return false
  }
}

extension ExplainedEntry.Use {
  init(_ use: EntryUse?) {
    switch use {
    case .fresh: self = .fresh
    case .stale(.whileRevalidating): self = .whileRevalidating
    case .stale(.ifError): self = .ifError
    case .stale(.accepted): self = .accepted
    case nil: self = .no
    }
  }
}

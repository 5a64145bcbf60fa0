// SourceStep: loads the source of a miss, or serves a stale variant if the load fails.

import Model

/// Loads the source from the source flights, or takes the one that the request already holds.
struct SourceStep: MissStep {
  private let sources: SourceService
  private let staleOnError: StaleOnError
  private let validity: EntryValidity

  init(sources: SourceService, staleOnError: StaleOnError, validity: EntryValidity) {
    self.sources = sources
    self.staleOnError = staleOnError
    self.validity = validity
  }

  let name = "source"

  func plan(_ plan: inout MissPlan) async -> PlannedOutcome {
    do throws(ImageError) {
      let (source, why, isCollapsed) = try await sources.plan(for: plan.request)
      plan.source = source
      if isCollapsed { plan.isCollapsed = true }
      return .next(why)
    } catch {
      guard let cached = plan.onDisk ?? plan.inMemory,
        sources.replaces(error, with: cached.info.freshness, for: plan.request)
      else { return .failure(error, "no source: \(error.code)") }
      let status = CacheStatus.staleIfError(collapsed: false, originStatus: error.originStatus)
      return .response(status.headerValue, "the stale variant, in place of \(error.code)")
    }
  }

  func run(_ miss: inout Miss) async throws(ImageError) -> StepOutcome {
    let (loaded, joined): (LoadedSource, Bool)
    do throws(ImageError) {
      (loaded, joined) = try await source(of: miss)
    } catch {
      guard let cached = miss.onDisk ?? miss.inMemory,
        await staleOnError.allows(
          cached.info.freshness, version: cached.info.sourceVersion, insteadOf: error,
          to: miss.request,
          isCurrent: { validity.isCurrent(cached) })
      else { throw error }
      return .response(
        VariantResult(
          variant: cached,
          status: .staleIfError(collapsed: false, originStatus: error.originStatus),
          timings: miss.timings))
    }
    miss.timings.add(loaded.timings)
    miss.loaded = loaded
    miss.isCollapsed = joined
    // Closes the flight before rendering: later requests must not share this source.
    if !loaded.source.freshness.isStorable { miss.participant.close() }
    return .next
  }

  /// Returns the source that the request already holds, or the one from the shared flight if that
  /// load was cancelled or purged.
  private func source(
    of miss: Miss
  ) async throws(ImageError) -> (LoadedSource, joined: Bool) {
    guard let held = miss.heldSource else {
      return try await sources.source(for: miss.request, participant: miss.participant)
    }
    // The held load gets this flight's priority, and closing it closes this flight.
    held.participant.enter(0, participant: miss.participant, hasJoined: false)
    let generation = validity.generation
    do throws(ImageError) {
      let loaded = try await held.task.value.get()
      // A source from before a purge does not satisfy requests that joined this flight after the
      // purge.
      guard loaded.source.generation >= generation || !validity.isPurged(loaded.source) else {
        return try await sources.source(for: miss.request, participant: miss.participant)
      }
      return (loaded, held.participant.hasJoined)
    } catch .cancelled where !Task.isCancelled {
      // The holder of the source has left, but other requests wait for this variant.
      return try await sources.source(for: miss.request, participant: miss.participant)
    }
  }
}

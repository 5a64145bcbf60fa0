// Oracle: derives the correct responses only from what the origin returned and when.

import Core

/// A naive reference without a cache. It records every response of the origin and every purge. It
/// decides whether a response is allowed, and whether a request must be a hit.
struct Oracle {
  /// Bytes that were current at the origin at a given time.
  private struct Sighting {
    let version: Int
    let terms: Terms
    let time: UnixTime
    /// The step of the test in which the origin returned them.
    let step: Int
  }

  /// An entry that must be cached until it is removed.
  private struct Kept {
    let version: Int
    let tiers: StoreTiers
    let freshUntil: UnixTime
  }

  private var sightings: [Int: [Sighting]] = [:]
  private var failures: [Int: UnixTime] = [:]
  private var healed: [Int: (failure: UnixTime, step: Int)] = [:]
  private var disappearances: [Int: UnixTime] = [:]
  private var kept: [Variety: Kept] = [:]
  private(set) var step = 0

  /// One image in one width.
  struct Variety: Hashable {
    let number: Int
    let width: Int
  }

  /// Seconds after which no entry is fresh or may be served stale: the maximum of the test's terms.
  static let longestLife = 720

  /// Seconds for which a 404 is remembered, and for which stale entries are served after a failure
  /// of the origin: the back-off and one minute more.
  static let memoryOfGone = 60
  static let memoryOfFailure = 10 + 60

  // MARK: Events

  /// Begins the next step.
  mutating func begin() { step += 1 }

  /// Records requests to the origin.
  mutating func note(_ loads: [Load]) {
    for load in loads {
      switch load.outcome {
      case .right(let version, let terms, let isSent):
        // Older sightings can no longer justify a response.
        sightings[load.number]?.removeAll {
          load.time.seconds - $0.time.seconds > Self.longestLife
        }
        sightings[load.number, default: []].append(
          Sighting(version: version, terms: terms, time: load.time, step: step))
        // A background revalidation ends after its response, sent while the origin failed.
        if let time = failures.removeValue(forKey: load.number) {
          healed[load.number] = (time, step)
        }
        // Newly sent bytes are a new version even if equal: earlier variants are invalid.
        forget(load.number) { isSent || $0.version != version }
      case .failed: failures[load.number] = load.time
      case .gone:
        disappearances[load.number] = load.time
        forget(load.number) { _ in true }
      }
    }
  }

  /// Forgets everything about these images: earlier responses are no longer allowed.
  mutating func purge(_ numbers: [Int]) {
    for number in numbers {
      sightings[number] = nil
      failures[number] = nil
      disappearances[number] = nil
      forget(number) { _ in true }
    }
  }

  /// Records that tiers were cleared.
  mutating func clear(_ tiers: StoreTiers) {
    kept = kept.compactMapValues { kept in
      let left = kept.tiers.subtracting(tiers)
      return left.isEmpty
        ? nil : Kept(version: kept.version, tiers: left, freshUntil: kept.freshUntil)
    }
  }

  private mutating func forget(_ number: Int, where isWrong: (Kept) -> Bool) {
    kept = kept.filter { $0.key.number != number || !isWrong($0.value) }
  }

  // MARK: Checks

  /// Returns what is wrong with a response; `nil` if it is allowed.
  ///
  /// - Parameter loads: the requests to the origin during the step, already recorded.
  mutating func complaint(
    about delivery: ImageDelivery, to variety: Variety, options: LoadOptions, loads: [Load],
    now: UnixTime, keeps: Bool
  ) -> String? {
    guard let version = version(of: delivery.variant, variety) else { return "other bytes" }
    let asked = !loads.isEmpty
    let age = delivery.variant.info.freshness.age(at: now)
    let reasons = (sightings[variety.number] ?? []).filter { sighting in
      sighting.version == version && sighting.time.seconds + age == now.seconds
        && isAllowed(sighting, of: variety.number, options: options, now: now)
    }
    guard let reason = reasons.last else { return "version \(version) at age \(age) is not right" }
    if options.cache == .only, asked { return "the origin was asked" }
    if options.cache == .normal, let known = kept[variety], now < known.freshUntil {
      if asked { return "the origin was asked for what is kept" }
      if known.version != version { return "not what is kept" }
    }
    if options.cache != .only, keeps, !options.store.isEmpty, !reason.terms.noStore,
      reason.step == step, delivery.isStored
    {
      kept[variety] = Kept(
        version: version, tiers: options.store,
        freshUntil: UnixTime(seconds: reason.time.seconds + reason.terms.lifetime))
    }
    return nil
  }

  /// Returns what is wrong with a failure; `nil` if it is allowed.
  func complaint(
    about error: ImageError, to variety: Variety, options: LoadOptions, now: UnixTime
  ) -> String? {
    if options.cache == .normal || options.cache == .only, let known = kept[variety],
      now < known.freshUntil
    {
      return "\(error) for what is kept"
    }
    let number = variety.number
    switch error {
    case .notCached: return options.cache == .only ? nil : "\(error)"
    case .sourceError: return isFailing(number, at: now) ? nil : "\(error) of a healthy origin"
    case .sourceNotFound: return isGone(number, at: now) ? nil : "\(error) of what is there"
    case .remembered(.sourceNotFound, _, _, _):
      return isGone(number, at: now) ? nil : "\(error) of what is there"
    default: return "\(error)"
    }
  }

  private func isAllowed(
    _ sighting: Sighting, of number: Int, options: LoadOptions, now: UnixTime
  ) -> Bool {
    if sighting.step == step { return true }
    let terms = sighting.terms
    let age = now.seconds - sighting.time.seconds
    if terms.noStore || options.cache == .bypass { return false }
    let mayBeStale = !terms.mustRevalidate
    let isSavedFromError =
      mayBeStale && isFailing(number, at: now) && age < terms.lifetime + terms.staleIfError
    if options.cache == .refresh { return isSavedFromError }
    return age < terms.lifetime
      || mayBeStale && age < terms.lifetime + terms.staleWhileRevalidate || isSavedFromError
  }

  private func isFailing(_ number: Int, at now: UnixTime) -> Bool {
    let before = healed[number].flatMap { $0.step == step ? $0.failure : nil }
    return (failures[number] ?? before).map { now.seconds - $0.seconds <= Self.memoryOfFailure }
      ?? false
  }

  private func isGone(_ number: Int, at now: UnixTime) -> Bool {
    disappearances[number].map { now.seconds - $0.seconds <= Self.memoryOfGone } ?? false
  }

  /// Returns the source version of a variant; `nil` if it shows another image or width.
  private func version(of variant: Variant, _ variety: Variety) -> Int? {
    guard case .memory(let bytes) = variant.body else { return nil }
    let words = bytes.withUnsafeBytes { String(decoding: $0, as: UTF8.self) }.split(separator: " ")
    guard words.count == 3, Int(words[0]) == variety.number, Int(words[2]) == variety.width else {
      return nil
    }
    return Int(words[1])
  }
}

extension ImageDelivery {
  /// Whether the status reports a hit or a store in a tier.
  fileprivate var isStored: Bool {
    if case .miss(_, let stored, _, _) = cacheStatus { stored } else { true }
  }
}

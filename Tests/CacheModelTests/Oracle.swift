// Oracle: which answers are right, worked out from nothing but what the origin said and when.

import Model

/// A naive reference: it remembers every answer of the origin and every purge, keeps nothing, evicts nothing, and says
/// of an answer whether there is any good reason for it; and of a request whether its answer has to be there.
struct Oracle {
  /// Bytes that the origin said are right, at a moment.
  private struct Sighting {
    let version: Int
    let terms: Terms
    let time: UnixTime
    /// The step of the test in which that was.
    let step: Int
  }

  /// What must be there, unless somebody took it away.
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

  /// Seconds after which nothing is fresh, or stale but served: the longest of the test's terms.
  static let longestLife = 720

  /// For how many seconds a 404 is remembered, and what is kept is served stale after an origin failed: as long as it is
  /// left alone, and a minute more.
  static let memoryOfGone = 60
  static let memoryOfFailure = 10 + 60

  // MARK: What happens

  /// The next step begins.
  mutating func begin() { step += 1 }

  /// The origin was asked.
  mutating func note(_ loads: [Load]) {
    for load in loads {
      switch load.outcome {
      case .right(let version, let terms, let isSent):
        // Of what is older than anything may be, nothing is asked any more.
        sightings[load.number]?.removeAll {
          load.time.seconds - $0.time.seconds > Self.longestLife
        }
        sightings[load.number, default: []].append(
          Sighting(version: version, terms: terms, time: load.time, step: step))
        // Where that was behind an answer, the answer was given while it failed.
        if let time = failures.removeValue(forKey: load.number) {
          healed[load.number] = (time, step)
        }
        // Bytes that come anew are others, whatever is in them: what was made of those before goes.
        forget(load.number) { isSent || $0.version != version }
      case .failed: failures[load.number] = load.time
      case .gone:
        disappearances[load.number] = load.time
        forget(load.number) { _ in true }
      }
    }
  }

  /// All that these images had is gone, and nothing from before is right any more.
  mutating func purge(_ numbers: [Int]) {
    for number in numbers {
      sightings[number] = nil
      failures[number] = nil
      disappearances[number] = nil
      forget(number) { _ in true }
    }
  }

  /// Tiers were emptied.
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

  // MARK: What is right

  /// What is wrong with an answer; `nil`: nothing.
  ///
  /// - Parameter loads: what the origin was asked meanwhile; noted already.
  mutating func complaint(
    about delivery: ImageDelivery, to variety: Variety, _ options: LoadOptions, _ loads: [Load],
    now: UnixTime, keeps: Bool
  ) -> String? {
    guard let version = version(of: delivery.variant, variety) else { return "other bytes" }
    let asked = !loads.isEmpty
    let age = delivery.variant.info.freshness.age(at: now)
    let reasons = (sightings[variety.number] ?? []).filter { sighting in
      sighting.version == version && sighting.time.seconds + age == now.seconds
        && isAllowed(sighting, of: variety.number, options, now)
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

  /// What is wrong with a failure; `nil`: nothing.
  func complaint(
    about error: ImageError, to variety: Variety, _ options: LoadOptions, now: UnixTime
  ) -> String? {
    if options.cache == .normal || options.cache == .only, let known = kept[variety],
      now < known.freshUntil
    {
      return "\(error) for what is kept"
    }
    let number = variety.number
    switch error {
    case .notCached: return options.cache == .only ? nil : "\(error)"
    case .sourceError: return isFailing(number, now) ? nil : "\(error) of a healthy origin"
    case .sourceNotFound: return isGone(number, now) ? nil : "\(error) of what is there"
    case .remembered(.sourceNotFound, _, _, _):
      return isGone(number, now) ? nil : "\(error) of what is there"
    default: return "\(error)"
    }
  }

  private func isAllowed(
    _ sighting: Sighting, of number: Int, _ options: LoadOptions, _ now: UnixTime
  ) -> Bool {
    if sighting.step == step { return true }
    let terms = sighting.terms
    let age = now.seconds - sighting.time.seconds
    if terms.noStore || options.cache == .bypass { return false }
    let mayBeStale = !terms.mustRevalidate
    let isSavedFromError =
      mayBeStale && isFailing(number, now) && age < terms.lifetime + terms.staleIfError
    if options.cache == .refresh { return isSavedFromError }
    return age < terms.lifetime
      || mayBeStale && age < terms.lifetime + terms.staleWhileRevalidate || isSavedFromError
  }

  private func isFailing(_ number: Int, _ now: UnixTime) -> Bool {
    let before = healed[number].flatMap { $0.step == step ? $0.failure : nil }
    return (failures[number] ?? before).map { now.seconds - $0.seconds <= Self.memoryOfFailure }
      ?? false
  }

  private func isGone(_ number: Int, _ now: UnixTime) -> Bool {
    disappearances[number].map { now.seconds - $0.seconds <= Self.memoryOfGone } ?? false
  }

  /// The version that a variant was made of; `nil` where it is not of this image in this width.
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
  /// Whether it says that a tier keeps it.
  fileprivate var isStored: Bool {
    if case .miss(_, let stored, _, _) = cacheStatus { stored } else { true }
  }
}

// FailedURLs: what failed in a way that will not heal by itself, and for how long it is remembered.

import Model

/// For how many seconds failures are remembered (SDWebImage's blacklist remembers for the life of the process).
public struct FailurePolicy: Sendable {
  /// Seconds by the HTTP status a failure is answered with, or by the origin's own where that was 404 or 410; a
  /// status that is not here is never remembered.
  public var lifetimes: [Int: Int] = [404: 600, 410: 86_400, 413: 3_600, 415: 3_600, 422: 3_600]
  /// Most URLs remembered; 0: none.
  public var limit = 10_000

  /// The defaults.
  public init() {}

  /// For how many seconds a failure is remembered; 0: not at all. Time-outs, DNS, refused or reset connections,
  /// cancellation, 429 and 5xx never are, whatever `lifetimes` says.
  func lifetime(of error: ImageError) -> Int {
    switch error {
    case .sourceNotFound(let status): lifetimes[status] ?? 0
    case .sourceTooLarge, .unsupportedFormat, .undecodable, .tooManyPixels, .tooManyFrames,
      .tooCostly:
      lifetimes[error.status] ?? 0
    case .ofVariant(let cause): lifetime(of: cause)
    default: 0
    }
  }
}

/// The list. Pure: it is told what time it is.
struct FailedURLs {
  private struct Entry {
    let error: ImageError
    let until: UnixTime
    /// What the origin said with it.
    let said: Freshness?
    /// Tells an entry from a later one of the same URL in `order`.
    let number: Int

    func told(isRepeated: Bool, now: UnixTime) -> ImageError {
      let seconds = until.seconds - now.seconds
      let forClients = said?.bounding(clientFailure: seconds, at: now) ?? seconds
      return .remembered(
        error, seconds: seconds, clientSeconds: forClients == seconds ? nil : forClients,
        isRepeated: isRepeated)
    }
  }

  private let policy: FailurePolicy
  private var entries: [CacheKey: Entry] = [:]
  /// In the order of listing, with numbers that have gone meanwhile.
  private(set) var order: [(key: CacheKey, number: Int)] = []
  private var firstInOrder = 0
  private var lastNumber = 0

  init(policy: FailurePolicy) { self.policy = policy }

  /// How many are listed, expired ones included that nobody asked for since.
  var count: Int { entries.count }

  /// The first failure of what is listed, a source or a variant, as it is told again.
  mutating func failure(of key: CacheKey, now: UnixTime) -> ImageError? {
    guard let entry = entries[key] else { return nil }
    guard now < entry.until else {
      entries[key] = nil
      return nil
    }
    return entry.told(isRepeated: true, now: now)
  }

  /// Lists a source or a variant, if the failure is one that is remembered; what is listed stays so with its first
  /// failure.
  ///
  /// - Parameter said: what the origin's answer says of how long it holds, which no failure outlives (RFC 9111);
  ///   `nil`: there was none.
  /// - Returns: the failure as it is to be told.
  mutating func add(
    _ key: CacheKey, _ error: ImageError, said: Freshness? = nil, now: UnixTime
  ) -> ImageError {
    let configured = policy.lifetime(of: error)
    let lifetime = said?.bounding(failure: configured, at: now) ?? configured
    guard lifetime > 0, policy.limit > 0 else { return error }
    if let entry = entries[key], now < entry.until { return error }
    while entries.count >= policy.limit { removeOldest() }
    lastNumber += 1
    let until = UnixTime(seconds: now.seconds + lifetime)
    let entry = Entry(error: error, until: until, said: said, number: lastNumber)
    entries[key] = entry
    order.append((key, lastNumber))
    tidy()
    return entry.told(isRepeated: false, now: now)
  }

  /// Takes something off the list; tells whether it was on it.
  mutating func remove(_ key: CacheKey) -> Bool { entries.removeValue(forKey: key) != nil }

  /// Takes what is meant off the list; tells how much was on it.
  mutating func removeAll(where isMeant: (CacheKey) -> Bool) -> Int {
    let keys = entries.keys.filter(isMeant)
    for key in keys { entries[key] = nil }
    return keys.count
  }

  /// Empties the list; tells how many were on it.
  mutating func removeAll() -> Int {
    defer { (entries, order, firstInOrder) = ([:], [], 0) }
    return entries.count
  }

  /// Those listed now, first listed first.
  func all(now: UnixTime) -> [FailedURL] {
    order[firstInOrder...].compactMap { key, number in
      guard let entry = entries[key], entry.number == number, now < entry.until else { return nil }
      return FailedURL(
        url: SecretMask.withoutUsers(key.url),
        transform: key.isSource ? nil : String(key.text.dropFirst(key.source.text.count + 1)),
        code: entry.error.code, status: entry.error.status,
        seconds: entry.until.seconds - now.seconds)
    }
  }

  private mutating func removeOldest() {
    while firstInOrder < order.count {
      let (key, number) = order[firstInOrder]
      firstInOrder += 1
      guard entries[key]?.number == number else { continue }
      entries[key] = nil
      break
    }
  }

  /// What has gone takes little more room than what is left.
  private mutating func tidy() {
    guard order.count > 2 * entries.count + 64 else { return }
    order = order[firstInOrder...].filter { entries[$0.key]?.number == $0.number }
    firstInOrder = 0
  }
}

// TokenBucket: a budget that refills with time.

/// A budget of tokens. It refills at a constant rate to a limit, and may be overdrawn by it.
struct TokenBucket: Hashable, Sendable {
  /// How a budget refills.
  struct Rule: Hashable, Sendable {
    /// The most tokens that the budget holds.
    let burst: Double
    /// Tokens that are added per second.
    let rate: Double
  }

  private var level: Double
  private var filledAt: Int

  /// Creates a full budget.
  ///
  /// - Parameter now: monotonic milliseconds.
  init(_ rule: Rule, at now: Int) {
    level = rule.burst
    filledAt = now
  }

  /// Adds the tokens of the time since the last call.
  mutating func fill(_ rule: Rule, at now: Int) {
    level = min(level + Double(max(now - filledAt, 0)) / 1_000 * rule.rate, rule.burst)
    filledAt = now
  }

  /// Takes tokens, even if there are fewer.
  mutating func take(_ tokens: Double, _ rule: Rule) { level = max(level - tokens, -rule.burst) }

  /// Returns the seconds until there are `tokens`, at least 1; `nil` if there are.
  func wait(for tokens: Double, _ rule: Rule) -> Int? {
    level >= tokens ? nil : max(Int(((tokens - level) / rule.rate).rounded(.up)), 1)
  }
}

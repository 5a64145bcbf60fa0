// AscendingKind: reads and writes ascending lists of whole numbers.

import Model

extension ConfigurationKey {
  /// Whole numbers in ascending order, each once: a list, or one comma-separated text.
  static func ascending(
    _ path: String, at field: WritableKeyPath<Configuration, [Int]> & Sendable, purpose: String,
    in range: ClosedRange<Int>, limit: Int
  ) -> ConfigurationKey {
    ConfigurationKey(
      path: path, purpose: purpose,
      allowed: "a list of at most \(limit) whole numbers from \(range.lowerBound) to "
        + "\(range.upperBound), in ascending order",
      read: { configuration, value in
        guard let numbers = value.integers, numbers.count <= limit,
          numbers.allSatisfy(range.contains), zip(numbers, numbers.dropFirst()).allSatisfy(<)
        else { return false }
        configuration[keyPath: field] = numbers
        return true
      },
      write: { "[" + $0[keyPath: field].map(String.init).joined(separator: ", ") + "]" })
  }
}

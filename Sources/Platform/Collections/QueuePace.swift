// QueuePace: estimates how long a queue takes, from how long its work took.

/// The average duration of a queue's work, in which the latest eighth counts most.
public struct QueuePace: Sendable {
  /// The longest estimate, in seconds.
  public static let longest = 60

  /// The average in seconds; `nil` before the first piece of work.
  private var average: Double?

  /// Creates a pace without any work.
  public init() {}

  /// Records how long a piece of work took.
  public mutating func record(_ duration: Duration) {
    let seconds = duration / .seconds(1)
    average = average.map { $0 + (seconds - $0) / 8 } ?? seconds
  }

  /// Returns after how many seconds `count` waiting pieces have probably begun, if `width` run at a
  /// time: a whole number from 1 to `longest`, for `Retry-After`.
  public func seconds(forWaiting count: Int, width: Int) -> Int {
    guard let average else { return 1 }
    let seconds = average * Double(count) / Double(max(width, 1))
    return Int(min(max(seconds.rounded(.up), 1), Double(Self.longest)))
  }
}

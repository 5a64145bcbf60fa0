// RedisConfiguration: what the Redis client needs to know.

import Model
import Platform

/// The configuration of a `RedisClient`.
struct RedisConfiguration: Sendable {
  let address: RedisAddress
  /// The longest wait for a reply.
  var timeout = FleetSettings().timeout
  /// Time-outs after which the server is away, each of a command that was sent after the one before.
  var timeOuts = 3
  /// The pause after a first failure.
  var retryInterval = FleetSettings().retryInterval
  /// The pauses between attempts to connect: up to eight times as long, and never shorter than the interval, which bounds
  /// the time-outs of callers.
  var pauses: Backoff { Backoff(retryInterval, longest: retryInterval * 8, jitter: 1...1.25) }
  /// The time for connecting, and again for the greeting. No caller waits for either.
  var patience = Duration.seconds(2)
  /// The most bytes of commands that wait for their replies, on one connection.
  var queueLimit = 16 << 20
  /// The most bytes of one reply: what one command may store, and its frame.
  var replyLimit = 17 << 20
}

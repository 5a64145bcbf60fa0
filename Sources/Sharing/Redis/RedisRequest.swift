// RedisRequest: commands in one pipeline, with what receives their replies.

/// Commands that are sent in one pipeline, and whose replies arrive together.
struct RedisRequest: Sendable {
  typealias Outcome = Result<[RedisReply], RedisFailure>

  /// The commands in the protocol's form.
  let bytes: [UInt8]
  /// The number of commands, at least 1.
  let count: Int
  /// How long the replies may take, from when the commands are sent.
  let time: Duration
  /// Called once, on the client's thread. Must not block.
  let finish: @Sendable (Outcome) -> Void
}

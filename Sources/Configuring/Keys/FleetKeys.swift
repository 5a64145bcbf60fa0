// FleetKeys: the keys of machines that share by Redis, `fleet.…`.

import Model

extension Configuration {
  /// The keys of a fleet.
  static let fleetKeys: [ConfigurationKey] = [
    ConfigurationKey(
      path: "fleet.redis",
      purpose:
        "address of the Redis through which machines share purges and variants; env:NAME or "
        + "file:/path for one with a password; empty: none",
      allowed: redisAllowed, read: readRedis,
      write: { ConfigurationKey.quoted($0.fleet.redis?.text ?? "") }
    ).atStart,
    .text(
      "fleet.key_prefix", at: \.fleet.keyPrefix,
      purpose: "beginning of the names of keys in Redis; one for each fleet",
      allowed: "1 to 64 letters, digits, and characters of -_.:{}"
    ) { text in
      (1...64).contains(text.utf8.count)
        && text.utf8.allSatisfy { byte in
          switch byte {
          case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
            UInt8(ascii: "0")...UInt8(ascii: "9"):
            true
          default: "-_.:{}".utf8.contains(byte)
          }
        }
    }.atStart,
    .duration(
      "fleet.timeout", at: \.fleet.timeout, purpose: "longest wait for a reply of Redis",
      in: .milliseconds(1)...(.seconds(10))
    ).atStart,
    .duration(
      "fleet.retry_interval", at: \.fleet.retryInterval,
      purpose:
        "time after a failure in which Redis, or the bucket, is not asked; doubles with each "
        + "failure, to 8 intervals",
      in: .milliseconds(10)...(.seconds(60))
    ).atStart,
    .size(
      "fleet.variant_limit", at: \.fleet.variantLimit,
      purpose: "bytes of the largest variant that machines share by Redis; 0: none"
    ).atStart,
  ]

  private static let redisAllowed =
    RedisAddress.allowed + " without a password, or env:NAME or file:/path; or nothing"

  /// Reads the address. Messages do not repeat it, since it may hold a password.
  private static func readRedis(
    _ configuration: inout Configuration, _ value: RawValue
  ) throws(MemberProblems) -> Bool {
    guard let text = value.text else { return false }
    let setting = SecretText(text)
    let isPlain = RedisAddress(text).map { $0.password == nil } ?? false
    guard text.isEmpty || (setting.isWellFormed && (setting.isReference || isPlain)) else {
      throw MemberProblems(
        all: [MemberProblem(place: "", description: "not allowed: \(redisAllowed)")])
    }
    configuration.fleet.redis = text.isEmpty ? nil : setting
    return true
  }
}

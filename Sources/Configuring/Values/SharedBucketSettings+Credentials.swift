// SharedBucketSettings+Credentials: how the keys `fleet.s3.…` depend on each other; secrets.

import Model
import Platform

extension SharedBucketSettings {
  /// The first conflict between keys, and the key; `nil` if the keys fit.
  ///
  /// - Parameter hasRedis: whether there is a fleet.
  public func conflict(hasRedis: Bool) -> (key: String, problem: String)? {
    guard isOn else {
      guard self == SharedBucketSettings() else {
        return ("fleet.s3.bucket", "it is empty: the other keys of fleet.s3 need a bucket")
      }
      return nil
    }
    guard hasRedis else {
      return (
        "fleet.s3.bucket",
        "it needs fleet.redis: without its purges, machines would serve what others purged"
      )
    }
    guard (access.accessKey == nil) == (access.secretKey == nil) else {
      return ("fleet.s3.access_key", "access_key and secret_key belong together")
    }
    guard access.sessionToken == nil || access.accessKey != nil else {
      return ("fleet.s3.session_token", "it requires access_key and secret_key")
    }
    if access.addressing == .virtual, let host = access.endpoint?.host, IPAddress(host) != nil {
      return ("fleet.s3.addressing", "an endpoint that is an address needs 'path'")
    }
    return nil
  }

  /// Returns what requests are signed with; `nil` if they are not signed.
  ///
  /// - Throws: `ConfigurationError` if a secret is missing, or if no request can carry it.
  public func credentials(
    environment: [String: String]
  ) throws(ConfigurationError) -> AWSCredentials? {
    try access.credentials(at: "fleet.s3") { text, member throws(ConfigurationError) in
      // The member of a host rule is `s3.access_key`.
      try text.value(environment: environment, at: "fleet.\(member)")
    }
  }
}

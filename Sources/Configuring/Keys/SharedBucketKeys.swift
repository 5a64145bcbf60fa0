// SharedBucketKeys: the keys of the shared tier's bucket, `fleet.s3.…`.

import Model
import Platform

extension Configuration {
  /// The keys of the bucket that machines share. Words are those of the member `s3` of a host rule.
  static let sharedBucketKeys: [ConfigurationKey] = [
    .text(
      "fleet.s3.bucket", at: \.fleet.bucket.name,
      purpose: "bucket through which machines share what does not fit into Redis; empty: none",
      allowed: "the name of a bucket, or nothing",
      where: { $0.isEmpty || SourceURL.isBucket($0) }
    ).atStart,
    ConfigurationKey(
      path: "fleet.s3.endpoint",
      purpose: "http or https with host and port; empty: that of the region at AWS",
      allowed: "http or https with host and port, in lower case; or nothing",
      read: { configuration, value in
        guard let text = value.text else { return false }
        let endpoint = ObjectStore.endpoint(text)
        guard text.isEmpty || endpoint != nil else { return false }
        configuration.fleet.bucket.access.endpoint = endpoint
        return true
      },
      write: {
        // Without the slash at its end, as it is usually written.
        ConfigurationKey.quoted(
          $0.fleet.bucket.access.endpoint.map { String($0.text.dropLast()) } ?? "")
      }
    ).atStart,
    .text(
      "fleet.s3.region", at: \.fleet.bucket.access.region, purpose: "region that signatures name",
      allowed: "up to 64 letters, digits, - and _", where: ObjectStore.isRegion
    ).atStart,
    .text(
      "fleet.s3.prefix", at: \.fleet.bucket.prefix,
      purpose: "beginning of the names of objects; one for each fleet",
      allowed:
        "up to 256 letters, digits, and characters of -_./, without empty segments, . and ..",
      where: SharedBucketSettings.isPrefix
    ).atStart,
    secret(
      "fleet.s3.access_key", at: \.fleet.bucket.access.accessKey,
      purpose: "access key: literal, env:NAME or file:/path; empty: requests are not signed",
      allowed: "an access key, env:NAME or file:/path; or nothing"
    ) { AWSCredentials(accessKey: $0, secretKey: "-") != nil }.atStart,
    secret(
      "fleet.s3.secret_key", at: \.fleet.bucket.access.secretKey,
      purpose: "secret access key: env:NAME or file:/path",
      allowed: "env:NAME or file:/path; or nothing"
    ) { _ in false }.atStart,
    secret(
      "fleet.s3.session_token", at: \.fleet.bucket.access.sessionToken,
      purpose: "token of temporary credentials: env:NAME or file:/path",
      allowed: "env:NAME or file:/path; or nothing"
    ) { _ in false }.atStart,
    ConfigurationKey(
      path: "fleet.s3.addressing",
      purpose:
        "where requests name the bucket: path, virtual (in the host), or auto: in the host at AWS",
      allowed: "auto, path or virtual",
      read: { configuration, value in
        let addressing = value.text.flatMap { ObjectStore.Addressing(rawValue: $0) }
        guard addressing != nil || value.text == "auto" else { return false }
        configuration.fleet.bucket.access.addressing = addressing
        return true
      },
      write: { ConfigurationKey.quoted($0.fleet.bucket.access.addressing?.rawValue ?? "auto") }
    ).atStart,
    .duration(
      "fleet.s3.timeout", at: \.fleet.bucket.timeout,
      purpose: "longest wait for an entry of the bucket; writes may take ten times as long",
      in: .milliseconds(10)...(.seconds(60))
    ).atStart,
    .text(
      "fleet.s3.ca_file", at: \.fleet.bucket.caFile,
      purpose: "certificate authorities for the endpoint, in PEM; empty: those of the system",
      allowed: "the path of a file, or nothing"
    ) { _ in true }.atStart,
  ]

  /// A text that may be a secret. Messages do not repeat it.
  ///
  /// - Parameter isLiteral: whether a text that is no reference is allowed.
  private static func secret(
    _ path: String, at field: WritableKeyPath<Configuration, SecretText?> & Sendable,
    purpose: String, allowed: String, isLiteral: @escaping @Sendable (String) -> Bool
  ) -> ConfigurationKey {
    ConfigurationKey(
      path: path, purpose: purpose, allowed: allowed,
      read: { (configuration, value) throws(MemberProblems) in
        guard let text = value.text else { return false }
        let secret = SecretText(text)
        guard text.isEmpty || (secret.isReference ? secret.isWellFormed : isLiteral(text)) else {
          throw MemberProblems(
            all: [MemberProblem(place: "", description: "not allowed: \(allowed)")])
        }
        configuration[keyPath: field] = text.isEmpty ? nil : secret
        return true
      }, write: { ConfigurationKey.quoted($0[keyPath: field]?.text ?? "") })
  }
}

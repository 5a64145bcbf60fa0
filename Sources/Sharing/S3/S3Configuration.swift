// S3Configuration: what the bucket needs to know, and what it counts.

import Model
import Platform
import Signing

/// The configuration of an `S3Bucket`.
public struct S3Configuration: Sendable {
  /// The settings.
  let settings: SharedBucketSettings
  /// What requests are signed with; `nil`: they are not signed.
  let credentials: AWSCredentials?
  /// The pause after a first failure.
  public var retryInterval = FleetSettings().retryInterval
  /// The most requests at one time, and connections that are kept.
  var concurrency = 8
  /// The most reads, and the most writes, that wait.
  var queueLimit = 256
  /// The most bytes of writes that wait or are on their way; one entry of `entryLimit` always fits.
  var queueBytes = 32 << 20

  /// The URL of the prefix, to which the name of an object is appended.
  let base: String
  /// The path of `base`, as it is sent and signed.
  let basePath: String
  /// The value of `Host`.
  let host: String

  /// Creates a configuration.
  ///
  /// - Throws: `ImageError` if endpoint, bucket and prefix make no URL.
  public init(
    _ settings: SharedBucketSettings, credentials: AWSCredentials?
  ) throws(ImageError) {
    self.settings = settings
    self.credentials = credentials
    // A prefix may be empty; an object has a name.
    let url = try settings.access.url(
      of: SourceURL(parsing: "s3://\(settings.name)/\(settings.prefix)x"))
    base = String(url.text.dropLast())
    basePath = String(url.path.dropLast())
    host = url.authority
  }

  /// How long no request is sent after a failure: up to eight times as long, and never shorter than the interval, which
  /// bounds the time-outs of callers.
  var pauses: Backoff { Backoff(retryInterval, longest: retryInterval * 8, jitter: 1...1.25) }
  /// The longest wait for a read.
  var timeout: Duration { settings.timeout }
  /// The longest wait for a write. The request that made the entry does not wait, and a large entry takes its time.
  var writeTimeout: Duration { settings.timeout * 10 }

  var signer: AWSSigner? { credentials.map { AWSSigner($0, region: settings.access.region) } }
}

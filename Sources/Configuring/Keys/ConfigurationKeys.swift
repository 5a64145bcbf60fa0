// ConfigurationKeys: the table of keys, with defaults, ranges and environment variables.
//
// Also the source of config/pictor.json5 and docs/configuration.md.

import Model

/// A setting: its path, its purpose, and how it is read and written.
public struct ConfigurationKey: Sendable {
  /// The path, `section.name` or `section.part.name`.
  public let path: String
  /// The purpose, in one line.
  public let purpose: String
  /// The allowed values, as text for error messages.
  public let allowed: String
  /// Applies a value, or returns `false` if it is not allowed. Throws if only a part is not
  /// allowed, or if messages must not repeat the value.
  let read: @Sendable (inout Configuration, RawValue) throws(MemberProblems) -> Bool
  /// The value as a JSON5 literal.
  let write: @Sendable (Configuration) -> String
  /// Whether a reload applies the key: its value is read for each request, load or line of the log.
  /// Other keys decide at the start: listeners, threads, folders, tiers, workers.
  public private(set) var isLive = true

  /// The key, if only a start applies it.
  var atStart: ConfigurationKey {
    var key = self
    key.isLive = false
    return key
  }

  /// The environment variable: the path in capitals.
  public var environmentVariable: String {
    "PICTOR_" + path.uppercased().replacing(".", with: "_")
  }

  /// Returns the value in `configuration` as a JSON5 literal.
  public func literal(in configuration: Configuration) -> String { write(configuration) }
}

extension Configuration {
  /// All keys, in the order of config/pictor.json5.
  public static let keys =
    serverKeys + firstKeys + downloadKeys + imagingKeys + lastKeys + fleetKeys + sharedBucketKeys
    + tracingKeys + signingKeys

  /// The keys between those of the server and those of sources.
  private static let firstKeys: [ConfigurationKey] = [
    .map(
      "presets", at: \.presets,
      purpose: "queries of /image, by name, for preset=NAME: thumb: \"w=300&h=200\"",
      allowed: "an object of queries such as \"w=300&h=200\", by names of letters, digits, - and _"
    ) { name, query in !query.isEmpty && isName(name) },
    .map(
      "watermarks", at: \.watermarks,
      purpose: "URLs of images for watermark=NAME, by name: logo: \"local:///logo.png\"",
      allowed: "an object of http, https or local URLs, by names of letters, digits, - and _"
    ) { name, url in isName(name) && (try? SourceURL(parsing: url)) != nil },
    .map(
      "fallbacks", at: \.fallbacks,
      purpose:
        "URLs of images for fallback=NAME, sent if an image cannot be had: gone: \"local:///gone.svg\"",
      allowed:
        "an object of http, https or local URLs, by names of letters, digits, - and _ other than none"
    ) { name, url in
      isName(name) && name != "none" && (try? SourceURL(parsing: url)) != nil
    },

    .hosts(
      "hosts", at: \.hosts,
      purpose: "rules for the hosts of sources; the first that matches applies"),

    .operatorTokens(
      "admin.tokens", at: \.admin.tokens,
      purpose: "operators' tokens for /admin, with names and scopes; empty: no /admin"),

    .sizeOrAuto(
      "memory.budget", at: \.memory.budget,
      purpose: "bytes that images, bodies, disk writes and jobs share; auto: 0.7 of memory"
    ).atStart,
    .sizeOrAuto(
      "memory.limit", at: \.memory.limit,
      purpose: "bytes of images in memory, at most 1/16 for one; auto: 256MiB, at most 1/8 of "
        + "memory; 0: none"
    ).atStart,
    .sizeOrAuto(
      "memory.response_limit", at: \.memory.responseLimit,
      purpose:
        "bytes of images in memory outside of the tier, until they are sent; beyond it, they "
        + "are sent from files; auto: 256MiB, at most 1/16 of memory"
    ).atStart,
    .integer(
      "memory.count_limit", at: \.memory.countLimit,
      purpose: "images in memory; 0: as many as fit", in: 0...1_000_000_000
    ).atStart,
    .number(
      "memory.pressure", at: \.memory.pressure,
      purpose:
        "share of the container's memory above which the memory tier shrinks; 0: never",
      in: 0...1
    ).atStart,

    .text(
      "disk.path", at: \.disk.path,
      purpose: "folder of the disk tier; relative to the working folder",
      allowed: "the path of a folder"
    ) { !$0.isEmpty }.atStart,
    .size(
      "disk.limit", at: \.disk.limit,
      purpose: "bytes on disk, as du counts them, at most 1/16 for one entry; 0 turns the tier off"
    ).atStart,
    .integer(
      "disk.count_limit", at: \.disk.countLimit,
      purpose:
        "files on disk, each with an inode and 75 bytes of index in memory; 0: no limit; 1: a variant",
      in: 0...1_000_000_000
    ).atStart,
    .number(
      "disk.source_share", at: \.disk.sourceShare,
      purpose: "share of both limits for sources; variants have the rest", in: 0.01...0.99
    ).atStart,
    .choice(
      "disk.admission", \.disk.admission,
      "when free-form variants are written: always at once, at the second_request, or auto: at once "
        + "while there is room"
    ).atStart,
    .optionalDuration(
      "disk.maximum_age", at: \.disk.maximumAge, purpose: "age after which a file is removed"
    ).atStart,
    .choice(
      "disk.expire_by", \.disk.expireBy,
      "start of that age: the last use, the last write, or the first write of the key"
    ).atStart,

    .duration(
      "freshness.default_lifetime", at: \.freshness.defaultLifetime,
      purpose: "freshness lifetime if the origin gives none",
      in: FreshnessSettings.allowed),
    .duration(
      "freshness.heuristic_lifetime", at: \.freshness.heuristicLifetime,
      purpose: "upper bound of the lifetime from Last-Modified, a tenth of its age; 0s: not used",
      in: FreshnessSettings.allowed),
    .duration(
      "freshness.client_default", at: \.freshness.clientDefault,
      purpose: "lifetime in browsers if the origin gives none; a purge does not reach them",
      in: FreshnessSettings.allowed),
    .duration(
      "freshness.minimum_lifetime", at: \.freshness.minimumLifetime,
      purpose: "lower bound of all lifetimes; no-store and private remain in force",
      in: FreshnessSettings.allowed),
    .duration(
      "freshness.maximum_lifetime", at: \.freshness.maximumLifetime,
      purpose: "upper bound of all lifetimes", in: FreshnessSettings.allowed),
    .duration(
      "freshness.stale_while_revalidate", at: \.freshness.staleWhileRevalidate,
      purpose:
        "time after that in which a stale image is served while its origin is asked (RFC 5861)",
      in: FreshnessSettings.allowed),
    .duration(
      "freshness.stale_if_error", at: \.freshness.staleIfError,
      purpose: "time after that in which a stale image is served if its origin fails (RFC 5861)",
      in: FreshnessSettings.allowed),
    .duration(
      "freshness.error_interval", at: \.freshness.errorInterval,
      purpose:
        "time for which a failed origin is not asked for the same image",
      in: .zero...(.seconds(3_600))),

    .lifetimes(
      "failures.ttl", at: \.failures.lifetimes,
      purpose:
        "how long a failed URL is remembered, by the status of its response (410: the origin's)",
      of: FailureSettings.statuses,
      allowed: "404, 410, 413, 415 or 422 with a time, such as 404=10m"),
    .integer(
      "failures.limit", at: \.failures.limit, purpose: "failed URLs remembered; 0: none",
      in: 0...10_000_000
    ).atStart,
  ]

  /// The keys after those of imaging.
  private static let lastKeys: [ConfigurationKey] = [
    .integer(
      "prefetch.limit", at: \.prefetch.limit,
      purpose: "images prefetched at once, in all lists together (SDWebImage's 3)", in: 1...1_000),

    .choice("log.format", \.log.format, "text for people, json and logfmt for machines"),
    .choice(
      "log.level", \.log.level,
      "lowest level that is written"),
    .choice(
      "log.requests", \.log.requests,
      "requests logged at info: all (slows memory hits), misses (all but memory hits, "
        + "/stats, /metrics), errors (failures)"),
    .choice(
      "log.access_format", \.log.access.format,
      "format of the lines of requests: log (as log.format), json, logfmt, combined (Apache's)"),
    .text(
      "log.access_path", at: \.log.access.path,
      purpose: "file for the lines of requests, reopened on SIGHUP, /dev/stdout or /dev/stderr; "
        + "empty: the log",
      allowed: "the path of a file, or nothing"
    ) { _ in true }.atStart,
    .number(
      "log.access_sample", at: \.log.access.sample,
      purpose: "share of successful requests that have a line; failures always have one", in: 0...1),
  ]

  /// Returns this configuration with the values that a reload of `wanted` applies.
  public func reloaded(from wanted: Configuration) -> Configuration {
    var result = self
    for key in Self.keys where key.isLive {
      // The text is whole: `--print-config` writes a usable file.
      guard let value = RawValue(json5: key.write(wanted)) else { continue }
      _ = try? key.read(&result, value)
    }
    return result
  }

  /// Returns the key with this path.
  static func key(_ path: String) -> ConfigurationKey? { keys.first { $0.path == path } }
}

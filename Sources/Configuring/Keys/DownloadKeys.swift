// DownloadKeys: the keys of sources, `download.…` and `sources.…`.

import Model

extension Configuration {
  /// The keys of sources.
  static let downloadKeys: [ConfigurationKey] = [
    .duration(
      "download.timeout", at: \.download.timeout,
      purpose: "time for a whole transfer (SDWebImage's 15s)",
      in: .milliseconds(100)...(.seconds(3_600))),
    .duration(
      "download.connect_timeout", at: \.download.connectTimeout,
      purpose: "time for DNS, connection and TLS",
      in: .milliseconds(100)...(.seconds(3_600))),
    .duration(
      "download.low_speed_time", at: \.download.lowSpeedTime,
      purpose: "time an origin may send less than 128 bytes a second",
      in: .seconds(1)...(.seconds(3_600))),
    .duration(
      "download.first_byte_timeout", at: \.download.firstByteTimeout,
      purpose: "time from a request to the first byte of its response; 0: no limit of its own",
      in: .zero...(.seconds(3_600))),
    .integer(
      "download.retries", at: \.download.retries,
      purpose: "retries after a failure before the first byte, or after 502 to 504 with a short "
        + "Retry-After", in: 0...5
    ),
    .integer(
      "download.breaker_threshold", at: \.download.breakerThreshold,
      purpose:
        "failed connections in a row that open a host's circuit (502 at once); 0: never",
      in: 0...1_000_000),
    .duration(
      "download.breaker_open_time", at: \.download.breakerOpenTime,
      purpose:
        "time a circuit stays open before a probe; doubles with each failed one, up to 5m",
      in: .milliseconds(1)...(.seconds(300))),
    .choice(
      "download.order", \.download.order, "order of waiting downloads of one priority"),
    .integer("download.limit", at: \.download.limit, purpose: "transfers at once", in: 1...10_000),
    .integer(
      "download.limit_per_host", at: \.download.limitPerHost,
      purpose: "transfers at once from one host and port (SDWebImage's 6)", in: 1...10_000),
    .integer(
      "download.limit_per_client", at: \.download.limitPerClient,
      purpose:
        "transfers of one client at once while others wait, except trusted proxies and "
        + "loopback; 0: a quarter of download.limit", in: 0...10_000),
    .integer(
      "download.queue_limit", at: \.download.queueLimit,
      purpose: "downloads that may wait for a place; beyond it, 503", in: 0...1_000_000),
    .duration(
      "download.queue_timeout", at: \.download.queueTimeout,
      purpose: "time a download may wait for a place; after it, 503",
      in: .milliseconds(100)...(.seconds(3_600))),
    .size(
      "download.maximum_bytes", at: \.download.maximumBytes,
      purpose: "bytes of one source; beyond it, 413",
      atLeast: 1),
    .sizeOrAuto(
      "download.maximum_bytes_in_flight", at: \.download.maximumBytesInFlight,
      purpose:
        "bytes of bodies in memory; beyond it, others wait or are 503; auto: 512MiB, at most "
        + "1/8 of memory",
      atLeast: 1
    ).atStart,
    .integer(
      "download.maximum_redirects", at: \.download.maximumRedirects,
      purpose: "redirects that are followed",
      in: 0...50),
    .list(
      "download.allow_networks", at: \.download.allowNetworks,
      purpose: "networks that the address check lets through; it refuses all that are not public",
      allowed: "networks such as 10.0.0.0/8 or fd00::/8", where: isNetwork
    ),
    .list(
      "download.allow_hosts", at: \.download.allowHosts,
      purpose: "hosts that sources may be loaded from, with port or path if wanted; empty: all",
      allowed: sourcePatterns, where: isSourcePattern),
    .list(
      "download.deny_hosts", at: \.download.denyHosts,
      purpose: "hosts that sources may not be loaded from; overrides allow_hosts",
      allowed: sourcePatterns, where: isSourcePattern),
    ports(
      "download.ports", at: \.download.ports,
      purpose: "ports that sources may be loaded from; allow_hosts with a port adds it; empty: all"),
    .proxy(
      "download.proxy", at: \.download.proxy,
      purpose: "HTTP proxy for all sources, http://host:port; empty: none"),
    .text(
      "download.ca_file", at: \.download.caFile,
      purpose: "PEM file of trusted certificate authorities; empty: the system's",
      allowed: "the path of a file"
    ) { _ in true },

    .text(
      "sources.local_root", at: \.sources.localRoot,
      purpose: "folder for local:/// URLs; empty turns them off",
      allowed: "the path of a folder, or nothing"
    ) { _ in true },
    .duration(
      "sources.local_lifetime", at: \.sources.localLifetime,
      purpose: "time in which results of a local file are served without checking the file",
      in: .zero...(.seconds(365 * 86_400))),
  ]

  /// Ports and ranges of ports: texts, and in a file also numbers.
  private static func ports(
    _ path: String, at field: WritableKeyPath<Configuration, [String]> & Sendable, purpose: String
  ) -> ConfigurationKey {
    ConfigurationKey(
      path: path, purpose: purpose,
      allowed: "a list of ports from 1 to 65535 and of ranges such as 8000-8999",
      read: { configuration, value in
        let texts: [String]? =
          if case .array(let items) = value {
            items.map { $0.text ?? $0.integer.map(String.init) ?? "" }
          } else {
            value.list
          }
        guard let texts, texts.allSatisfy({ PortRange($0) != nil }) else { return false }
        configuration[keyPath: field] = texts
        return true
      }, write: { ConfigurationKey.literal($0[keyPath: field]) })
  }
}

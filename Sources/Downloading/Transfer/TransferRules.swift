// TransferRules: the settings, limits and timer that all transfers of a thread share.

import CCurl
import Model
import Platform
import Requesting

/// The downloader's settings, prepared for transfers.
struct TransferRules: Sendable {
  let configuration: DownloaderConfiguration
  let addresses: AddressPolicy
  let retries: RetryPolicy
  let hosts: HostRules
  /// Where this server listens.
  let own: OwnEndpoint
  private let defaults: [HeaderField]
  private let usual: HeaderList

  init(
    _ configuration: DownloaderConfiguration, own: OwnEndpoint = OwnEndpoint(),
    keeping known: HostRules? = nil
  ) throws(ImageError) {
    self.configuration = configuration
    self.own = own
    addresses = AddressPolicy(allowedNetworks: configuration.allowedNetworks)
    retries = RetryPolicy(
      limit: min(max(configuration.retries, 0), 5), delay: configuration.retryDelay)
    hosts = try HostRules(configuration.hostRules, keeping: known)
    // `identity`, because a compressed body can expand to a much larger one. Coded bodies are still
    // decoded, within the limits.
    defaults = [
      HeaderField("Accept", value: configuration.accept),
      HeaderField("User-Agent", value: configuration.userAgent),
      HeaderField("Accept-Encoding", value: "identity"),
      // RFC 9110, section 7.6.3. A rule may drop it, because `CDN-Loop` ends loops.
      configuration.serverID.isEmpty
        ? nil : HeaderField("Via", value: "1.1 \(configuration.serverID)"),
    ].compactMap(\.self)
    let trail = try Self.trailField(ServerTrail(), through: configuration.serverID)
    usual = try Self.list(defaults + trail)
  }

  /// The parser of a hop's response head.
  var head: OriginResponseParser {
    OriginResponseParser(limit: configuration.maximumHeaderBytes)
  }

  /// Returns the proxy for a hop, or `nil` for none.
  func proxy(_ rule: HostRule?) -> String? {
    switch rule?.proxy ?? .standard {
    case .standard: configuration.proxy
    case .direct: nil
    case .url(let url): url
    }
  }

  /// Returns why a host may not be requested through a proxy. The proxy resolves names, so only IP
  /// addresses and localhost names (RFC 6761, section 6.3) can be checked here.
  func refusal(byProxy host: String) -> String? {
    if host == "localhost" || host.hasSuffix(".localhost") {
      return addresses.refusal(of: .v4(0x7f00_0001)).map { "\(host): \($0)" }
    }
    if let address = IPAddress(host) { return addresses.refusal(of: address) }
    // An IPv6 address with a zone is only valid on this machine.
    return host.contains(":") ? "\(host) (not an address)" : nil
  }

  /// Returns the request fields of a hop. A client's fields override the defaults, and the host
  /// rule's fields override both.
  ///
  /// - Parameters:
  ///   - forwarded: the client's fields, if the hop may have them; only those that the rule names are sent.
  ///   - hasSecrets: whether the rule's secrets are sent on this hop.
  ///   - trail: the servers that the request came through.
  ///   - trace: the trace that the origin is told. It takes the place of what the rule and the client say.
  ///   - signature: the fields that sign the request.
  func headers(
    of rule: HostRule?, forwarded: [HeaderField], hasSecrets: Bool, validators: Validators?,
    isRedirected: Bool, trail: ServerTrail = ServerTrail(), trace: TraceContext? = nil,
    signature: [HeaderField] = []
  ) throws(ImageError) -> HeaderList {
    // Sent on every hop, regardless of the rule: RFC 8586, section 2, forbids removing it.
    let last =
      Self.conditions(validators, isRedirected: isRedirected)
      + (try Self.trailField(trail, through: configuration.serverID)) + (trace?.fields ?? [])
      + signature
    guard let rule else {
      let isUsual = trail.elements.isEmpty && validators == nil && trace == nil
      return isUsual ? usual : try Self.list(defaults + last)
    }
    var fields = defaults
    func isNamed(_ name: String, in names: [String]) -> Bool {
      names.contains { $0.lowercased() == name.lowercased() }
    }
    func set(_ more: [HeaderField]) {
      fields.removeAll { field in isNamed(field.name, in: more.map(\.name)) }
      fields += more
    }
    set(forwarded.filter { isNamed($0.name, in: rule.forwardedHeaders) })
    fields.removeAll { isNamed($0.name, in: rule.droppedHeaders) }
    set(rule.headers)
    if hasSecrets { set(rule.secretHeaders) }
    fields.removeAll { $0.name.lowercased() == Self.trailName }
    if trace != nil {
      fields.removeAll { isNamed($0.name, in: [TraceContext.parentName, TraceContext.stateName]) }
    }
    return try Self.list(fields + last)
  }

  private static let trailName = "cdn-loop"

  /// Returns `CDN-Loop` with this server's name after those of the servers before it.
  private static func trailField(
    _ trail: ServerTrail, through server: String
  ) throws(ImageError) -> [HeaderField] {
    guard !server.isEmpty else { return [] }
    guard let field = HeaderField("CDN-Loop", value: trail.value(through: server)) else {
      throw .internal(detail: "a CDN-Loop field that cannot be sent")
    }
    return [field]
  }

  /// An empty line disables the `Accept` and `Accept-Encoding` that curl sends by default.
  private static func list(_ fields: [HeaderField]) throws(ImageError) -> HeaderList {
    let absent = ["Accept", "Accept-Encoding"].filter { name in
      !fields.contains { $0.name.lowercased() == name.lowercased() }
    }
    return try HeaderList(
      fields.map { "\($0.name): \($0.value)" } + absent.map { "\($0):" })
  }

  /// Returns the fields that make a request conditional.
  ///
  /// The validators belong to the response of the last hop. Origins ignore them while redirecting
  /// (RFC 9110, section 13.2.1), so the `ETag` is sent on every hop: it is not secret and
  /// practically unique. A date says nothing about another URL, so it is sent to the requested URL
  /// only (section 15.4).
  ///
  /// Validators may come from disk; one with a line break is dropped.
  private static func conditions(_ validators: Validators?, isRedirected: Bool) -> [HeaderField] {
    let date = isRedirected ? nil : validators?.lastModified
    return [
      validators?.etag.flatMap { HeaderField("If-None-Match", value: $0) },
      date.flatMap { HeaderField("If-Modified-Since", value: $0) },
    ].compactMap(\.self)
  }
}

/// The next time at which a transfer must be checked without an event from curl. Belongs to the
/// transfer thread.
///
/// Keeps only the earliest time that was set; waits that end early do not clear it. An unneeded
/// check is cheaper than a sorted list.
final class TransferAlarm {
  private(set) var time: ContinuousClock.Instant?

  /// Rings at `instant`, or earlier if set so before.
  func set(_ instant: ContinuousClock.Instant) { time = min(time ?? instant, instant) }

  /// Returns whether the time has come, and clears it if so.
  func rings(at now: ContinuousClock.Instant) -> Bool {
    guard let time, time <= now else { return false }
    self.time = nil
    return true
  }
}

// TransferRules, BodyBudget, TransferAlarm: what all transfers of one thread have in common.

import CCurl
import Model

/// What an operator decided, made ready for the transfers.
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
    _ configuration: DownloaderConfiguration, own: OwnEndpoint = OwnEndpoint()
  ) throws(ImageError) {
    (self.configuration, self.own) = (configuration, own)
    addresses = AddressPolicy(allowedNetworks: configuration.allowedNetworks)
    retries = RetryPolicy(
      limit: min(max(configuration.retries, 0), 5), delay: configuration.retryDelay)
    hosts = try HostRules(configuration.hostRules)
    // A small body that swells is not asked for. What comes coded all the same is decoded within the limits.
    defaults = [
      HeaderField("Accept", configuration.accept),
      HeaderField("User-Agent", configuration.userAgent),
      HeaderField("Accept-Encoding", "identity"),
      // RFC 9110, section 7.6.3. A rule may drop it: what ends loops is `CDN-Loop`.
      configuration.serverID.isEmpty ? nil : HeaderField("Via", "1.1 \(configuration.serverID)"),
    ].compactMap(\.self)
    let trail = try Self.trailField(ServerTrail(), through: configuration.serverID)
    usual = try Self.list(defaults + trail)
  }

  /// The proxy that a hop goes by; `nil`: none.
  func proxy(_ rule: HostRule?) -> String? {
    switch rule?.proxy ?? .standard {
    case .standard: configuration.proxy
    case .direct: nil
    case .url(let url): url
    }
  }

  /// Why a host may not be asked for by way of a proxy, which resolves names by itself: only what is an address already
  /// can be judged here, and the names that mean the asked machine itself (RFC 6761, section 6.3).
  func refusal(byProxy host: String) -> String? {
    if host == "localhost" || host.hasSuffix(".localhost") {
      return addresses.refusal(of: .v4(0x7f00_0001)).map { "\(host): \($0)" }
    }
    if let address = IPAddress(host) { return addresses.refusal(of: address) }
    // An IPv6 address with a zone, which means nothing anywhere else.
    return host.contains(":") ? "\(host) (not an address)" : nil
  }

  /// The header fields of a hop's request: the defaults, over them a client's, over them those of the host's rule.
  ///
  /// - Parameters:
  ///   - forwarded: a client's, where the hop may have them; of these, those that the rule names.
  ///   - hasSecrets: whether the rule's secrets are meant for the hop.
  ///   - trail: the servers that the load was asked for through.
  func headers(
    _ rule: HostRule?, forwarded: [HeaderField], hasSecrets: Bool, _ validators: Validators?,
    isRedirected: Bool, trail: ServerTrail = ServerTrail()
  ) throws(ImageError) -> HeaderList {
    // Of every hop, whatever a rule says: no origin is to be kept from being told (RFC 8586, section 2).
    let last =
      Self.conditions(validators, isRedirected: isRedirected)
      + (try Self.trailField(trail, through: configuration.serverID))
    guard let rule else {
      let isUsual = trail.elements.isEmpty && validators == nil
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
    return try Self.list(fields + last)
  }

  private static let trailName = "cdn-loop"

  /// `CDN-Loop` with this server's name behind those of the ones before.
  private static func trailField(
    _ trail: ServerTrail, through server: String
  ) throws(ImageError) -> [HeaderField] {
    guard !server.isEmpty else { return [] }
    guard let field = HeaderField("CDN-Loop", trail.value(through: server)) else {
      throw .internal(detail: "a CDN-Loop field that cannot be sent")
    }
    return [field]
  }

  /// curl sends an `Accept` and an `Accept-Encoding` of its own where there is none, unless it is told not to.
  private static func list(_ fields: [HeaderField]) throws(ImageError) -> HeaderList {
    let absent = ["Accept", "Accept-Encoding"].filter { name in
      !fields.contains { $0.name.lowercased() == name.lowercased() }
    }
    return try HeaderList(
      fields.map { "\($0.name): \($0.value)" } + absent.map { "\($0):" })
  }

  /// The fields that make a request conditional.
  ///
  /// Kept validators are those of the last hop's answer, then. An origin takes no notice of them while it redirects
  /// (RFC 9110, section 13.2.1), so the `ETag` goes along on every hop: it is no secret, and hardly any two images
  /// share one. A date says nothing about another URL's image, which may well be older: it goes to the URL that was
  /// asked for and no further (section 15.4 wants validating fields fitted to the new request).
  ///
  /// Validators may come from a disk; one that would add a line to the request makes no field.
  private static func conditions(_ validators: Validators?, isRedirected: Bool) -> [HeaderField] {
    let date = isRedirected ? nil : validators?.lastModified
    return [
      validators?.etag.flatMap { HeaderField("If-None-Match", $0) },
      date.flatMap { HeaderField("If-Modified-Since", $0) },
    ].compactMap(\.self)
  }
}

/// Bytes of the bodies being received, all transfers together; of the transfer thread alone.
final class BodyBudget {
  private let limit: Int
  private var used = 0

  init(limit: Int) { self.limit = limit }

  func take(_ count: Int) -> Bool {
    guard used + count <= limit else { return false }
    used += count
    return true
  }

  func giveBack(_ count: Int) { used -= count }
}

/// When some transfer wants to be looked at next, though curl has nothing to report; of the transfer thread alone.
///
/// It only knows the earliest moment of all that were ever set: a transfer that is done with its wait does not take it
/// back. So a busy loop looks through its transfers in vain once in ten seconds, and keeps no list in order.
final class TransferAlarm {
  private(set) var time: ContinuousClock.Instant?

  /// Rings at `instant`, or earlier where it was set so.
  func set(_ instant: ContinuousClock.Instant) { time = min(time ?? instant, instant) }

  /// Whether it is time; it is unset then.
  func rings(at now: ContinuousClock.Instant) -> Bool {
    guard let time, time <= now else { return false }
    self.time = nil
    return true
  }
}

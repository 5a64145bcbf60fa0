// RequestPolicy: what the configuration decides about requests. A reload replaces it whole.

import Core
import Synchronization

/// What the settings decide about requests: rules, limits, fields of responses, lines of the log.
/// Immutable: a reload makes another for later requests. Running ones keep theirs.
///
/// Each event loop has a copy, so that hits count no references together with another core.
final class RequestPolicy: Sendable {
  let configuration: ServerConfiguration
  /// The rules derived from the configuration.
  let rules: RequestRules
  /// The rules for operators.
  let operatorRules: RequestRules
  /// Whether operators may request more than other clients.
  let isRestricting: Bool
  /// The endpoints of the listener.
  let endpoints: EndpointTable
  /// The files of the page; `nil` if it is turned off.
  let page: PageFiles?
  /// The origins whose pages may read responses.
  let crossOrigin: CrossOrigin
  /// The fields that all hits from disk have, as they are sent.
  let sharedFields: (negotiated: [UInt8], others: [UInt8])
  /// The proxies that are trusted to name their clients' addresses.
  let trustedProxies: TrustedProxies
  /// Whether all requests of a client are counted. Cached, because it is read for each hit.
  let countsRequests: Bool
  let logsHits: Bool
  let logsDiskHits: Bool
  /// Whether requests are recorded.
  let exportsSpans: Bool
  /// The share of recorded requests, for `TraceSampler`.
  let sampleThreshold: UInt64
  /// How long a client may take to read a response.
  let transferTime: TransferTime
  /// `idleTimeout` in milliseconds.
  let idleTimeout: Int
  /// `headerTimeout` in milliseconds.
  let headerTimeout: Int
  /// Distinguishes what is prepared under this policy from what is under another.
  let serial: UInt64
  private static let serials = Atomic<UInt64>(0)

  /// Creates the policy of a listener whose log has this level.
  convenience init(_ configuration: ServerConfiguration, for audience: Audience, logging: LogLevel)
  {
    let rules = RequestRules(configuration)
    let all = configuration.page ? audience.endpoints : audience.endpoints.withoutPage
    self.init(
      configuration, rules: rules,
      endpoints: (rules.bodies == .off ? all : all.takingBodies)
        .with(audience == .operators ? [] : configuration.doors),
      page: configuration.page
        ? PageFiles(PageDescription(of: audience, configuration: configuration, rules: rules))
        : nil,
      logsHits: logging <= (configuration.log.requests == .all ? .info : .debug),
      logsDiskHits: logging <= (configuration.log.requests == .errors ? .debug : .info),
      serial: Self.serials.wrappingAdd(1, ordering: .relaxed).newValue)
  }

  private init(
    _ configuration: ServerConfiguration, rules: RequestRules, endpoints: EndpointTable,
    page: PageFiles?, logsHits: Bool, logsDiskHits: Bool, serial: UInt64
  ) {
    self.configuration = configuration
    self.rules = rules
    operatorRules = rules.forOperators
    isRestricting = rules.isRestricting
    self.endpoints = endpoints
    self.page = page
    crossOrigin = CrossOrigin(configuration.corsOrigins)
    sharedFields = (
      ResponseHead.sharedFields(configuration, crossOrigin, vary: "Accept"),
      ResponseHead.sharedFields(configuration, crossOrigin, vary: nil)
    )
    trustedProxies = configuration.trustedProxies
    countsRequests = configuration.clientBudgets.requests != nil
    self.logsHits = logsHits
    self.logsDiskHits = logsDiskHits
    exportsSpans = configuration.spans != nil
    sampleThreshold = TraceSampler.threshold(of: configuration.sampledShare)
    transferTime = configuration.transferTime
    idleTimeout = configuration.idleTimeout.wholeMilliseconds
    headerTimeout = configuration.headerTimeout.wholeMilliseconds
    self.serial = serial
  }

  /// Returns a copy for an event loop.
  func copy() -> RequestPolicy {
    RequestPolicy(
      configuration, rules: rules, endpoints: endpoints, page: page, logsHits: logsHits,
      logsDiskHits: logsDiskHits, serial: serial)
  }
}

extension RequestHandler {
  /// The policy of requests that begin now, for threads other than the event loops'.
  var latestPolicy: RequestPolicy { latest.withLock { $0 } }

  /// Replaces the policy. Each event loop takes it over with its next request line.
  func setPolicy(_ configuration: ServerConfiguration) {
    let policy = RequestPolicy(configuration, for: audience, logging: log.level)
    latest.withLock { $0 = policy }
    shares.set(configuration.clientBudgets, clients: configuration.countedClients)
    newestSerial.store(policy.serial, ordering: .releasing)
  }

  /// Returns the event loop's policy, on its thread.
  func policy(of loop: EventLoopState) -> RequestPolicy {
    if loop.policy.serial != newestSerial.load(ordering: .acquiring) {
      loop.policy = latestPolicy.copy()
    }
    return loop.policy
  }
}

// RequestPolicy: what the configuration decides about requests. A reload replaces it whole.

import Core
import Synchronization

/// What the settings decide about requests: rules, limits, fields of responses, lines of the log.
/// Immutable: a reload makes another for later requests. Running ones keep theirs.
///
/// Each event loop has a copy, so that hits count no references together with another core.
final class RequestPolicy: Sendable {
  let configuration: ServerConfiguration
  let rules: RequestRules
  let operatorRules: RequestRules
  /// Whether operators may request more than other clients.
  let isRestricting: Bool
  let endpoints: EndpointTable
  /// The files of the page; `nil` if it is turned off.
  let page: PageFiles?
  /// The file of `/openapi.json`.
  let openAPI: PageFile
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
    let table = rules.bodies == .off ? all : all.takingBodies
    self.init(
      configuration, rules: rules,
      endpoints: table.with(audience == .operators ? [] : configuration.doors),
      page: configuration.page
        ? PageFiles(PageDescription(of: audience, configuration: configuration, rules: rules))
        : nil,
      openAPI: PageFile(
        OpenAPI(table, hasOperators: !configuration.operators.isEmpty, rules: rules).bytes,
        type: "application/json"),
      logsHits: logging <= (configuration.log.requests == .all ? .info : .debug),
      logsDiskHits: logging <= (configuration.log.requests == .errors ? .debug : .info),
      serial: Self.serials.wrappingAdd(1, ordering: .relaxed).newValue)
  }

  private init(
    _ configuration: ServerConfiguration, rules: RequestRules, endpoints: EndpointTable,
    page: PageFiles?, openAPI: PageFile, logsHits: Bool, logsDiskHits: Bool, serial: UInt64
  ) {
    self.configuration = configuration
    self.rules = rules
    operatorRules = rules.forOperators
    isRestricting = rules.isRestricting
    self.endpoints = endpoints
    self.page = page
    self.openAPI = openAPI
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

  func copy() -> RequestPolicy {
    RequestPolicy(
      configuration, rules: rules, endpoints: endpoints, page: page, openAPI: openAPI,
      logsHits: logsHits, logsDiskHits: logsDiskHits, serial: serial)
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

  func policy(of loop: EventLoopState) -> RequestPolicy {
    if loop.policy.serial != newestSerial.load(ordering: .acquiring) {
      loop.policy = latestPolicy.copy()
    }
    return loop.policy
  }
}

/// The configured rules for `/image` requests. Created once, before the server starts.
struct RequestRules: Sendable {
  /// The parts of a request that form cache keys, and the request fields forwarded to origins.
  let keyFilter: CacheKeyFilter
  /// Formats for requests without a format, in order of preference, if `Accept` names them.
  let autoFormats: [ImageFormat]
  /// `autoFormats` as a set.
  let onOffer: AcceptedFormats
  /// Whether a request without a format is redirected to a URL that names the negotiated format.
  let redirectsAuto: Bool
  /// Whether clients may request images by preset only.
  private(set) var presetsOnly: Bool
  /// Whether clients may enlarge an image beyond its source's size.
  private(set) var allowsEnlarging: Bool
  /// Which requests need a signature, and the keys.
  private(set) var signing: SigningPolicy
  /// Whether clients may use plain parameters and presets only (`ParameterAccess`).
  private(set) var plainOnly: Bool
  /// The loading options that clients may use.
  private(set) var options: Set<ClientOption>
  /// The sizes to which `w` and `h` are rounded up.
  private(set) var sizeSteps: SizeSteps
  /// Whether the parameters are an operator's, rather than a client's free choice
  /// (`LoadOptions.isFreeForm`).
  private(set) var areVouched = false
  /// The maximum of `limitbytes`, at 4 bytes per pixel.
  let highestLimitBytes: Int
  /// Whether requests without `format` keep the source's.
  let keepsFormat: Bool
  /// Quality of lossy results for requests without `quality`.
  let qualities: FormatQualities
  /// The same for clients that save data; `nil` if `Save-Data` does not count.
  let savingQualities: FormatQualities?
  /// The steps of client hints, those of signed requests included.
  let hintSteps: HintSteps
  /// Fallback images, by the names that clients use.
  let fallbacks: [String: FallbackImage]
  /// What requests without `fallback` get if their image cannot be had.
  let defaultFallback: FailureAnswer
  private(set) var presets: [String: ImageQuery] = [:]
  /// Watermark images, by the names that clients use.
  let watermarks: [String: SourceURL]
  /// Whether files below the local root are allowed as watermarks.
  let allowsLocalWatermarks: Bool
  /// Parameters that change nothing, such as a page's `v=3`.
  let ignoredParameters: Set<String>
  /// Whose bodies are sources.
  let bodies: BodySources
  private let sourceRules: (@Sendable (String, Bool) throws(ImageError) -> String)?
  /// Whether a door has made the query.
  var areOfDoor = false

  /// Creates the rules of a server. Omits invalid presets, which
  /// `ServerConfiguration.invalidPresets` reports before a server is created.
  init(_ configuration: ServerConfiguration) {
    self.init(withoutPresets: configuration)
    let bare = self
    for (name, text) in configuration.presets {
      presets[name] = try? bare.preset(text)
    }
  }

  /// Creates the rules for parsing presets.
  init(withoutPresets configuration: ServerConfiguration) {
    keyFilter = configuration.keyFilter
    watermarks = configuration.watermarks
    allowsLocalWatermarks = configuration.allowsLocalWatermarks
    ignoredParameters = Set(configuration.ignoredParameters)
    sourceRules = configuration.sourceRules
    bodies = configuration.sources.bodies
    autoFormats = configuration.imaging.autoFormats
    onOffer = AcceptedFormats(configuration.imaging.autoFormats)
    redirectsAuto = configuration.redirectsAuto
    presetsOnly = configuration.presetsOnly
    allowsEnlarging = configuration.allowsEnlarging
    sizeSteps = SizeSteps(configuration.sizeSteps)
    signing = configuration.signing
    plainOnly = signing.mode == .options
    options = configuration.allow ?? (signing.mode == .off ? .open : [])
    highestLimitBytes = 4 * configuration.imaging.maximumResultPixels
    keepsFormat = configuration.imaging.keepsFormat
    qualities = configuration.imaging.qualities
    // Caches in front that ignore `Vary` would give the lower quality to every client.
    let lower = configuration.imaging.saveDataReduction
    savingQualities = lower > 0 && !redirectsAuto ? qualities.lowered(by: lower) : nil
    hintSteps = HintSteps(sizeSteps)
    let filter = keyFilter
    fallbacks = Dictionary(
      uniqueKeysWithValues: configuration.fallbacks.map { name, url in
        (name, FallbackImage(name: name, source: url, keyURL: filter.keyURL(of: url)))
      })
    defaultFallback = fallbacks[configuration.fallback].map { .fallback($0) } ?? .error
  }

  /// Parses and checks a preset's parameters.
  ///
  /// - Throws: the errors of `ImageQuery`, and `forbiddenParameter` for `url`, `preset`, `onerror`,
  ///   `exp` and `sig`. `invalidParameter` for `auto` if clients are redirected: the URL that they
  ///   are redirected to has the preset, too.
  func preset(_ text: String) throws(ImageError) -> ImageQuery {
    let query = try ImageQuery(Array(text.utf8))
    for name in ["url", "preset", "onerror", "exp", "sig"] where query.has(name) {
      throw .forbiddenParameter(name)
    }
    let hints = try query.draft(self).hints
    if hints.hasAuto, redirectsAuto {
      throw .invalidParameter(
        name: hints.width ? "w" : "scale", value: "auto",
        allowed: "a number: with server.redirect_auto, presets have no auto")
    }
    return query
  }

  /// The preset names for error messages; only their number if there are more than 20.
  var presetsAllowed: String {
    switch presets.count {
    case 0: "no presets are configured"
    case ...20: "one of " + presets.keys.sorted().joined(separator: ", ")
    default: "one of the \(presets.count) presets of the configuration"
    }
  }

  /// The rules for operators, who have no restrictions on parameters. Sizes are those of clients,
  /// so that a prefetch finds the images that clients will request.
  var forOperators: RequestRules {
    var rules = self
    rules.areVouched = true
    rules.signing = SigningPolicy()
    rules.presetsOnly = false
    rules.allowsEnlarging = true
    rules.plainOnly = false
    rules.options = .all
    return rules
  }

  /// The rules for signed requests: those for operators, with exact sizes.
  var forSigned: RequestRules {
    var rules = forOperators
    rules.sizeSteps = SizeSteps([])
    return rules
  }

  /// Whether `forOperators` allows more.
  var isRestricting: Bool {
    signing.mode != .off || presetsOnly || !allowsEnlarging || options != .all
  }

  /// Returns the request as negotiated for clients that accept `formats`.
  func request(_ request: ImageRequest, accepting formats: AcceptedFormats) -> ImageRequest {
    let formats = formats.intersection(onOffer)
    guard isNegotiated(request.transform), !formats.isEmpty else { return request }
    return request.accepting(autoFormats.filter(formats.contains))
  }

  /// Returns the URL that the operator's rules make of the text of `url`.
  ///
  /// - Throws: `forbiddenSource` or `invalidURL`.
  func absolute(_ url: String) throws(ImageError) -> String {
    try sourceRules?(url, areOfDoor) ?? url
  }

  /// Whether the response depends on the client's `Accept`.
  func isNegotiated(_ transform: Transform) -> Bool {
    transform.leavesFormatOpen && !onOffer.isEmpty
  }
}

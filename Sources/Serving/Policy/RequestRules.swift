// RequestRules: the operator's rules for image requests.

import Core

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
  /// Named sets of parameters.
  private(set) var presets: [String: ImageQuery] = [:]
  /// Watermark images, by the names that clients use.
  let watermarks: [String: SourceURL]
  /// Whether files below the local root are allowed as watermarks.
  let allowsLocalWatermarks: Bool
  /// Parameters that change nothing, such as a page's `v=3`.
  let ignoredParameters: Set<String>
  /// Whose bodies are sources.
  let bodies: BodySources
  /// What sources without a scheme are appended to; empty: they are refused.
  private let baseURL: String

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
    baseURL = configuration.sources.baseURL
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

  /// Returns a source's URL with the base URL in front, if it has no scheme.
  func absolute(_ url: String) -> String {
    guard !baseURL.isEmpty, !url.isEmpty,
      !url.prefix(while: { $0 != "/" && $0 != "?" }).contains(":")
    else { return url }
    return baseURL + (url.hasPrefix("/") ? "" : "/") + url
  }

  /// Whether the response depends on the client's `Accept`.
  func isNegotiated(_ transform: Transform) -> Bool {
    transform.leavesFormatOpen && !onOffer.isEmpty
  }
}

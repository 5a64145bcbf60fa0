// RequestRules: the operator's rules for image requests.

import Model

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
  /// The maximum of `limitbytes`, at 4 bytes per pixel.
  let highestLimitBytes: Int
  /// Quality of lossy results for requests without `quality`.
  let qualities: FormatQualities
  /// Named sets of parameters.
  private(set) var presets: [String: ImageQuery] = [:]
  /// Watermark images, by the names that clients use.
  let watermarks: [String: SourceURL]
  /// Whether files below the local root are allowed as watermarks.
  let allowsLocalWatermarks: Bool

  /// Creates the rules of a server. Omits invalid presets, which `ServerConfiguration.invalidPresets` reports before a
  /// server is created.
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
    autoFormats = configuration.autoFormats
    onOffer = AcceptedFormats(configuration.autoFormats)
    redirectsAuto = configuration.redirectsAuto
    presetsOnly = configuration.presetsOnly
    allowsEnlarging = configuration.allowsEnlarging
    highestLimitBytes = 4 * configuration.maximumResultPixels
    qualities = configuration.qualities
  }

  /// Parses and checks a preset's parameters.
  ///
  /// - Throws: the errors of `ImageQuery`, and `forbiddenParameter` for `url` and `preset`.
  func preset(_ text: String) throws(ImageError) -> ImageQuery {
    let query = try ImageQuery(Array(text.utf8))
    for name in ["url", "preset"] where query.has(name) { throw .forbiddenParameter(name) }
    _ = try query.draft(self)
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

  /// The rules for operators, who have no restrictions on presets and enlarging.
  var forOperators: RequestRules {
    var rules = self
    rules.presetsOnly = false
    rules.allowsEnlarging = true
    return rules
  }

  /// Returns the request as negotiated for clients that accept `formats`.
  func request(_ request: ImageRequest, accepting formats: AcceptedFormats) -> ImageRequest {
    let formats = formats.intersection(onOffer)
    guard isNegotiated(request.transform), !formats.isEmpty else { return request }
    return request.accepting(autoFormats.filter(formats.contains))
  }

  /// Whether the response depends on the client's `Accept`.
  func isNegotiated(_ transform: Transform) -> Bool {
    transform.format == nil && transform.product == .image && !onOffer.isEmpty
  }
}

// RequestRules: what is known of every request for an image before its query is read.

import Model

/// What the operator decided of the requests of `/image`. Made once, before the server starts.
struct RequestRules: Sendable {
  /// What keys are made of, and which fields of clients' headers go on to origins.
  let keyFilter: CacheKeyFilter
  /// Formats for those who name them, where the request leaves the format open; the best first.
  let autoFormats: [ImageFormat]
  /// The same without their order.
  let onOffer: AcceptedFormats
  /// Whether a request that leaves the format open is sent on to one that names it.
  let redirectsAuto: Bool
  /// Whether images are asked for by presets alone.
  private(set) var presetsOnly: Bool
  /// Whether clients may ask for more pixels than a source has.
  private(set) var allowsEnlarging: Bool
  /// The highest limit that may be asked for with `limitbytes`, at 4 bytes a pixel.
  let highestLimitBytes: Int
  /// Quality of lossy results where the request does not say.
  let qualities: FormatQualities
  /// Named sets of parameters.
  private(set) var presets: [String: ImageQuery] = [:]
  /// The images that may be laid on others, by the names that clients know them by.
  let watermarks: [String: SourceURL]
  /// Whether files below the local root may be, too.
  let allowsLocalWatermarks: Bool

  /// The rules of a server. A preset that nothing can be asked for with is left out: `invalidPresets` tells of it before
  /// there is a server.
  init(_ configuration: ServerConfiguration) {
    self.init(withoutPresets: configuration)
    let bare = self
    for (name, text) in configuration.presets {
      presets[name] = try? bare.preset(text)
    }
  }

  /// The rules by which presets themselves are read.
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

  /// A preset's parameters, once it is sure that they can be used.
  ///
  /// - Throws: what `ImageParameter.parse` does; `forbiddenParameter` for `url` and `preset`.
  func preset(_ text: String) throws(ImageError) -> ImageQuery {
    let query = try ImageQuery(Array(text.utf8))
    for name in ["url", "preset"] where query.has(name) { throw .forbiddenParameter(name) }
    _ = try query.draft(self)
    return query
  }

  /// The names of presets, as error messages say what is allowed: as many as can be read.
  var presetsAllowed: String {
    switch presets.count {
    case 0: "no presets are configured"
    case ...20: "one of " + presets.keys.sorted().joined(separator: ", ")
    default: "one of the \(presets.count) presets of the configuration"
    }
  }

  /// The same for operators, who are free.
  var forOperators: RequestRules {
    var rules = self
    rules.presetsOnly = false
    rules.allowsEnlarging = true
    return rules
  }

  /// A request as it stands for clients who take `formats`, where they have a say.
  func request(_ request: ImageRequest, accepting formats: AcceptedFormats) -> ImageRequest {
    let formats = formats.intersection(onOffer)
    guard isNegotiated(request.transform), !formats.isEmpty else { return request }
    return request.accepting(autoFormats.filter(formats.contains))
  }

  /// Whether the answer depends on what its client takes.
  func isNegotiated(_ transform: Transform) -> Bool {
    transform.format == nil && transform.product == .image && !onOffer.isEmpty
  }
}

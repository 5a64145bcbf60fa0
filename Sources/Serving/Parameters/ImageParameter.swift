// ImageParameter: parses the queries of /image and /info by a table of parameters.

import Model

/// A parameter of `/image`, and possibly of `/info`.
struct ImageParameter: Sendable {
  /// Its name in the query.
  let name: String
  /// Returns the allowed values, as text for the error message.
  let allowed: @Sendable (RequestRules) -> String
  /// Whether the parameter changes the image, rather than how the image is loaded.
  let shapesImage: Bool
  /// Who may use it.
  let access: ParameterAccess
  /// Stores a decoded value in the draft. Returns `false` if the value is not allowed.
  let apply: @Sendable (_ value: String, _ draft: inout Draft) -> Bool

  /// Whether `/info` accepts the parameter: loading options and `placeholder`, but nothing that
  /// changes the image.
  var isForInfo: Bool { name == "placeholder" || !shapesImage && name != "preset" }

  /// Creates a parameter with the same values on every server.
  init(
    name: String, allowed: String, shapesImage: Bool = true, access: ParameterAccess = .signed,
    apply: @escaping @Sendable (_ value: String, _ draft: inout Draft) -> Bool
  ) {
    self.init(
      name: name, allowed: { _ in allowed }, shapesImage: shapesImage, access: access, apply: apply)
  }

  /// Creates a parameter whose allowed values depend on the configuration.
  init(
    name: String, allowed: @escaping @Sendable (RequestRules) -> String,
    shapesImage: Bool = true, access: ParameterAccess = .signed,
    apply: @escaping @Sendable (_ value: String, _ draft: inout Draft) -> Bool
  ) {
    self.name = name
    self.allowed = allowed
    self.shapesImage = shapesImage
    self.access = access
    self.apply = apply
  }

  /// The request as parsed so far.
  struct Draft {
    /// The operator's rules.
    let rules: RequestRules
    /// The source's URL, not yet parsed.
    var url: String?
    /// The requested transform.
    var transform = Transform()
    /// Whether `format` requests a placeholder instead of the image.
    var isPlaceholder = false
    /// The kind of placeholder.
    var placeholder: PlaceholderKind?
    /// The loading options.
    var options = LoadOptions()
    /// The watermark's URL.
    var watermark: SourceURL?
    /// The watermark's placement, if a parameter sets it.
    var watermarkPlacement: WatermarkPlacement?

    /// Nothing was read yet.
    init(rules: RequestRules) {
      self.rules = rules
      transform.output.qualities = rules.qualities
    }
  }

  /// All parameters.
  static let table = imageTable + watermarkTable + signatureTable

  /// All parameters except the watermark's. To add a parameter, add a row.
  private static let imageTable: [ImageParameter] = [
    ImageParameter(
      name: "url", allowed: "an absolute http, https or local URL", shapesImage: false,
      access: .plain
    ) {
      $1.url = $0
      return true
    },
    // `ImageQuery` expands presets.
    ImageParameter(
      name: "preset", allowed: { $0.presetsAllowed }, shapesImage: false, access: .plain
    ) {
      $1.rules.presets[$0] != nil
    },
    ImageParameter(name: "scale", allowed: "a number above 0, at most 10", access: .plain) {
      $1.transform.sizing.scale = decimal($0)
      return $1.transform.sizing.scale.map { Sizing.scaleRange.contains($0) && $0 > 0 } ?? false
    },
    ImageParameter(name: "w", allowed: text(Sizing.sideRange), access: .plain) {
      $1.transform.sizing.width = whole($0, in: Sizing.sideRange)
      return $1.transform.sizing.width != nil
    },
    ImageParameter(name: "h", allowed: text(Sizing.sideRange), access: .plain) {
      $1.transform.sizing.height = whole($0, in: Sizing.sideRange)
      return $1.transform.sizing.height != nil
    },
    ImageParameter(name: "fit", allowed: text(Fit.allCases.map(\.rawValue)), access: .plain) {
      choose(Fit(rawValue: $0), for: &$1.transform.sizing.fit)
    },
    ImageParameter(
      name: "position",
      allowed: text(Position.allCases.map(\.rawValue)) + ", or x,y: two numbers from 0 to 1",
      access: .plain
    ) {
      $1.transform.sizing.focalPoint = focalPoint($0)
      return $1.transform.sizing.focalPoint != nil
        || choose(Position(rawValue: $0), for: &$1.transform.sizing.position)
    },
    ImageParameter(
      name: "crop", allowed: "x,y,w,h in whole source pixels, w and h at least 1"
    ) {
      $1.transform.selection.crop = area($0)
      return $1.transform.selection.crop != nil
    },
    ImageParameter(name: "rotate", allowed: "one of 90, 180, 270") {
      choose(
        whole($0, in: 90...270).flatMap(Rotation.init(rawValue:)),
        for: &$1.transform.selection.rotation)
    },
    ImageParameter(name: "flip", allowed: "one of h, v, hv") {
      choose(
        Flip(rawValue: $0).flatMap { $0 == .none ? nil : $0 }, for: &$1.transform.selection.flip)
    },
    ImageParameter(name: "trim", allowed: text(Selection.trimRange)) {
      $1.transform.selection.trim = whole($0, in: Selection.trimRange)
      return $1.transform.selection.trim != nil
    },
    ImageParameter(name: "blur", allowed: text(Effects.blurRange)) {
      $1.transform.effects.blur = decimal($0, in: Effects.blurRange)
      return $1.transform.effects.blur != nil
    },
    ImageParameter(name: "sharpen", allowed: text(Effects.sharpenRange)) {
      $1.transform.effects.sharpen = decimal($0, in: Effects.sharpenRange)
      return $1.transform.effects.sharpen != nil
    },
    ImageParameter(name: "radius", allowed: "\(text(CornerRadius.pointRange)), or max") {
      $1.transform.effects.radius =
        $0 == "max" ? .maximum : whole($0, in: CornerRadius.pointRange).map { .points($0) }
      return $1.transform.effects.radius != nil
    },
    ImageParameter(name: "tint", allowed: "rgb, rrggbb or rrggbbaa in hexadecimal") {
      $1.transform.effects.tint = Color(hexadecimal: $0)
      return $1.transform.effects.tint != nil
    },
    ImageParameter(name: "grayscale", allowed: "0 or 1") {
      choose(flag($0), for: &$1.transform.effects.isGrayscale)
    },
    ImageParameter(name: "brightness", allowed: text(Effects.factorRange)) {
      choose(decimal($0, in: Effects.factorRange), for: &$1.transform.effects.brightness)
    },
    ImageParameter(name: "saturation", allowed: text(Effects.factorRange)) {
      choose(decimal($0, in: Effects.factorRange), for: &$1.transform.effects.saturation)
    },
    ImageParameter(name: "enlarge", allowed: "0 or 1") {
      choose(flag($0), for: &$1.transform.sizing.enlarge)
    },
    ImageParameter(
      name: "format",
      allowed: text(["auto"] + ImageFormat.outputs.map(\.rawValue) + ["placeholder"]),
      access: .plain
    ) { value, draft in
      let name = value == "jpg" ? "jpeg" : value
      draft.transform.output.format = ImageFormat.outputs.first { $0.rawValue == name }
      draft.isPlaceholder = value == "placeholder"
      return draft.transform.output.format != nil || draft.isPlaceholder || value == "auto"
    },
    ImageParameter(
      name: "placeholder", allowed: text(PlaceholderKind.allCases.map(\.rawValue)), access: .plain
    ) {
      $1.placeholder = PlaceholderKind(rawValue: $0)
      return $1.placeholder != nil
    },
    ImageParameter(name: "quality", allowed: text(OutputOptions.qualityRange)) {
      $1.transform.output.quality = whole($0, in: OutputOptions.qualityRange)
      return $1.transform.output.quality != nil
    },
    ImageParameter(name: "background", allowed: "rgb, rrggbb or rrggbbaa in hexadecimal") {
      choose(Color(hexadecimal: $0), for: &$1.transform.output.background)
    },
    ImageParameter(name: "maxbytes", allowed: "a whole number of bytes, at least 1") {
      $1.transform.output.maxBytes = whole($0, in: 1...Int.max)
      return $1.transform.output.maxBytes != nil
    },
    ImageParameter(name: "animated", allowed: "0 or 1") {
      choose(flag($0), for: &$1.transform.output.isAnimated)
    },
    ImageParameter(name: "strip", allowed: "0 or 1") {
      choose(flag($0), for: &$1.transform.output.stripsMetadata)
    },
    ImageParameter(
      name: "limitbytes", allowed: { text(1...$0.highestLimitBytes) + " of bytes" }
    ) {
      choose(whole($0, in: 1...$1.rules.highestLimitBytes), for: &$1.transform.sizing.limitBytes)
    },
    ImageParameter(name: "frame", allowed: "a whole number, at least 0") {
      $1.transform.selection.frame = whole($0, in: 0...Int(Int32.max))
      return $1.transform.selection.frame != nil
    },
    ImageParameter(name: "progressive", allowed: "0 or 1") {
      choose(flag($0), for: &$1.transform.output.isProgressive)
    },
    ImageParameter(
      name: "refresh", allowed: "1, and not together with cache", shapesImage: false,
      access: .option(.refresh)
    ) {
      guard $0 == "1", $1.options.cache == .normal else { return false }
      $1.options.cache = .refresh
      return true
    },
    ImageParameter(
      name: "cache", allowed: "only or bypass, and not together with refresh", shapesImage: false,
      access: .option(.bypass, except: ["only"])
    ) {
      guard $1.options.cache == .normal, $0 == "only" || $0 == "bypass" else { return false }
      $1.options.cache = $0 == "only" ? .only : .bypass
      return true
    },
    ImageParameter(
      name: "store", allowed: "one of all, memory, disk, none", shapesImage: false,
      access: .option(.store, except: ["all"])
    ) {
      choose(tiers($0), for: &$1.options.store)
    },
    ImageParameter(name: "retry", allowed: "1", shapesImage: false, access: .option(.retry)) {
      $1.options.retriesFailed = $0 == "1"
      return $0 == "1"
    },
    ImageParameter(
      name: "priority", allowed: text(LoadPriority.allCases.map(\.rawValue)), shapesImage: false,
      access: .option(.priority, except: ["low", "normal"])
    ) {
      choose(LoadPriority(rawValue: $0), for: &$1.options.priority)
    },
    ImageParameter(name: "detach", allowed: "1", shapesImage: false, access: .option(.detach)) {
      $1.options.isDetached = $0 == "1"
      return $0 == "1"
    },
  ]

  /// Parses a raw query, without its `?`.
  ///
  /// - Parameters:
  ///   - query: the query.
  ///   - rules: the operator's rules.
  ///   - kind: what the query asks for.
  /// - Throws: the first error in this order: parameter names, from left to right;
  ///   `forbiddenParameter` if only presets are allowed, and `unsignedParameter` or
  ///   `forbiddenParameter` for what the rules do not allow; values, those of the preset last;
  ///   `missingParameter` or `invalidURL` for the source.
  static func parse(
    _ query: some Collection<UInt8>, rules: RequestRules, kind: ImageQuery.Kind = .image
  ) throws(ImageError) -> ImageRequest {
    let query = try ImageQuery(query, kind: kind)
    if kind == .image { try query.checkPresetsOnly(rules) }
    try query.checkAllowed(rules)
    var draft = try query.rounded(to: rules.sizeSteps).withPreset(rules).draft(rules)
    draft.options.isFreeForm = query.isFreeForm && !rules.areVouched
    draft.transform.product = try product(of: draft, kind: kind)
    draft.transform.watermark = try draft.wholeWatermark()
    guard let url = draft.url else { throw .missingParameter("url") }
    do throws(ImageError) {
      let source = try SourceURL(parsing: url)
      return ImageRequest(
        source: source, transform: draft.transform, options: draft.options,
        keyURL: rules.keyFilter.keyURL(of: source))
    } catch {
      // The message repeats only part of the URL, which is untrusted and up to 8 kB long.
      if case .invalidURL(_, let reason) = error {
        throw .invalidURL(displayable(url), reason: reason)
      }
      throw error
    }
  }

  /// Returns the product that the parameters request.
  private static func product(of draft: Draft, kind: ImageQuery.Kind) throws(ImageError) -> Product
  {
    if kind == .info { return .info(draft.placeholder) }
    if draft.isPlaceholder { return .placeholder(draft.placeholder ?? .lqip) }
    guard let kind = draft.placeholder else { return .image }
    throw .invalidParameter(
      name: "placeholder", value: kind.rawValue, allowed: "only together with format=placeholder")
  }
}

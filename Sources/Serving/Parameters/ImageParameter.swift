// ImageParameter: parses the queries of /image and /info by a table of parameters.

import Core

/// A parameter of `/image`, and possibly of `/info`.
struct ImageParameter: Sendable {
  let name: String
  let allowed: @Sendable (RequestRules) -> AllowedValues
  let group: ParameterGroup
  /// What it does, in one line for people.
  let help: String
  /// The value that stands for an absent parameter; `nil` if no value does.
  var standard: String?
  /// Whether the parameter changes the image, rather than how the image is loaded.
  var shapesImage = false
  var access = ParameterAccess.plain
  /// Stores a decoded value in the draft. Returns `false` if the value is not allowed.
  let apply: @Sendable (_ value: String, _ draft: inout Draft) -> Bool

  /// Whether `/info` accepts the parameter: loading options and `placeholder`, but nothing that
  /// changes the image.
  var isForInfo: Bool {
    name == "placeholder" || !shapesImage && !["preset", "fallback", "onerror"].contains(name)
  }
}

extension ImageParameter {
  /// Creates a parameter with the same values on every server.
  init(
    name: String, allowed: AllowedValues, group: ParameterGroup, help: String,
    standard: String? = nil, access: ParameterAccess = .plain,
    apply: @escaping @Sendable (_ value: String, _ draft: inout Draft) -> Bool
  ) {
    self.init(
      name: name, allowed: { _ in allowed }, group: group, help: help, standard: standard,
      access: access, apply: apply)
  }

  /// Creates the parameter of a row of the transform; `nil` for what clients cannot name.
  ///
  /// A client may leave `scale` and `w` to its hints, and a server limits `limitbytes`.
  private init?(_ row: TransformParameter) {
    guard let group = row.group else { return nil }
    let hint: (WritableKeyPath<HintNeeds, Bool> & Sendable)? =
      ["scale": \HintNeeds.density, "w": \.width][row.name]
    let isLimited = row.name == "limitbytes"
    self.init(
      name: row.name,
      allowed: { rules in
        if isLimited {
          let range = 1...rules.highestLimitBytes
          return .whole(
            range, unit: row.allowed.unit, saying: AllowedValues.text(range) + " of bytes")
        }
        var allowed = row.allowed
        if hint != nil {
          allowed.text += ", or auto"
          allowed.names.append("auto")
        }
        return allowed
      },
      group: group, help: row.help, standard: row.standard, shapesImage: true,
      access: row.isPlain ? .plain : .signed
    ) { value, draft in
      if let hint, value == "auto" {
        draft.hints[keyPath: hint] = true
        return true
      }
      if group == .watermark { draft.placesWatermark = true }
      return row.read(ParameterText(value), &draft.image)
        && (!isLimited || draft.image.transform.sizing.limitBytes <= draft.rules.highestLimitBytes)
    }
  }

  /// All parameters, in the order of their groups. One that changes the image is a row of
  /// `TransformParameter`, all others are rows of `requestTable`.
  static let table: [ImageParameter] = {
    let rows = requestTable + TransformParameter.table.compactMap { ImageParameter($0) }
    return ParameterGroup.allCases.flatMap { group in rows.filter { $0.group == group } }
  }()

  /// The request as parsed so far.
  struct Draft {
    let rules: RequestRules
    /// The source's URL, not yet parsed.
    var url: String?
    var image = TransformDraft()
    var options = LoadOptions()
    /// The request fields that parameters with the value `auto` follow.
    var hints = HintNeeds()
    /// What `fallback` says; `nil` if it is absent.
    var fallback: FailureAnswer?
    var redirectsFailures = false
    var watermark: SourceURL?
    /// Whether a parameter sets the watermark's placement.
    var placesWatermark = false

    /// Nothing was read yet.
    init(rules: RequestRules) {
      self.rules = rules
      image.transform.output.qualities = rules.qualities
      image.transform.output.keepsFormat = rules.keepsFormat
    }
  }

  /// Parses a raw query, without its `?`.
  ///
  /// - Throws: the first error in this order: parameter names, from left to right;
  ///   `forbiddenParameter` if only presets are allowed, and `unsignedParameter` or
  ///   `forbiddenParameter` for what the rules do not allow; values, those of the preset last;
  ///   `missingParameter` or `invalidURL` for the source.
  static func parse(
    _ query: some Collection<UInt8>, rules: RequestRules, kind: ImageQuery.Kind = .image
  ) throws(ImageError) -> ImageRequest {
    let request = try parseAdaptive(query, rules: rules, kind: kind).request
    guard request.source.scheme != .body else { throw .missingParameter("url") }
    return request
  }

  /// Parses a raw query as `parse` does. Returns its request for a client without hints, and the
  /// hints that the response follows.
  static func parseAdaptive(
    _ query: some Collection<UInt8>, rules: RequestRules, kind: ImageQuery.Kind
  ) throws(ImageError) -> (request: ImageRequest, hints: HintNeeds) {
    let query = try ImageQuery(query, kind: kind, ignoring: rules.ignoredParameters)
    if kind == .image { try query.checkPresetsOnly(rules) }
    try query.checkAllowed(rules)
    var draft = try query.rounded(to: rules.sizeSteps).withPreset(rules).draft(rules)
    draft.options.isFreeForm = query.isFreeForm && !rules.areVouched
    draft.image.isDescription = kind == .info
    var transform = draft.image.transform
    transform.product = try product(of: draft.image)
    transform.watermark = try draft.wholeWatermark()
    if transform.output.passed.contains(.all), transform.product == .image,
      transform.watermark == nil
    {
      transform = transform.passingAll
    }
    if kind == .image { draft.options.onFailure = try draft.failureAnswer() }
    draft.hints.savesData = rules.lowersQuality(of: transform)
    // Whether there is a body is known with the method.
    guard draft.url != nil || rules.bodies != .off else { throw .missingParameter("url") }
    let url = try draft.url.map { url throws(ImageError) in try rules.absolute(url) } ?? ""
    do throws(ImageError) {
      let source = try draft.url == nil ? SourceURL(bodyWith: "") : SourceURL(parsing: url)
      let request = ImageRequest(
        source: source, transform: transform, options: draft.options,
        keyURL: rules.keyFilter.keyURL(of: source))
      return (request, draft.hints)
    } catch {
      // The message repeats only part of the URL, which is untrusted and up to 8 kB long.
      if case .invalidURL(_, let reason) = error {
        throw .invalidURL(displayable(url), reason: reason)
      }
      throw error
    }
  }

  private static func product(of draft: TransformDraft) throws(ImageError) -> Product {
    if let product = draft.product { return product }
    throw .invalidParameter(
      name: "placeholder", value: draft.placeholder?.rawValue ?? "",
      allowed: "only together with format=placeholder")
  }
}

/// Who may use a parameter.
enum ParameterAccess: Hashable, Sendable {
  /// Every client, unless all requests need a signature.
  case plain
  /// With `signing.mode` `options` only signed requests.
  case signed
  /// Only requests with a signature or an operator's token, with every `signing.mode`.
  case vouched
  /// Clients that have the option (`server.allow`). The values in `except` are for every client.
  case option(ClientOption, except: Set<String> = [])
}

extension ImageParameter {
  /// Whether an unsigned request may use the parameter with this value.
  func isOpen(value: String, rules: RequestRules) -> Bool {
    guard !isBeyondPresets(rules), !enlarges(value, against: rules) else { return false }
    return (try? checkAccess(value: value, rules: rules)) != nil
  }

  /// Whether the rules allow presets only, and the parameter changes the image.
  func isBeyondPresets(_ rules: RequestRules) -> Bool {
    // A redirected request names a format in addition to its preset.
    rules.presetsOnly && shapesImage && !(rules.redirectsAuto && name == "format")
  }

  func enlarges(_ value: String, against rules: RequestRules) -> Bool {
    Sizing.enlarging.contains(name) && value != "0" && !rules.allowsEnlarging
  }

  /// Checks that the rules let a client use the parameter with this value.
  ///
  /// - Throws: `unsignedParameter`, or `forbiddenParameter` if no signature would help.
  func checkAccess(value: String, rules: RequestRules) throws(ImageError) {
    switch access {
    case .plain: return
    case .signed:
      if rules.plainOnly { throw .unsignedParameter(name, key: "signing.mode") }
    case .vouched:
      if !rules.areVouched { throw .unsignedParameter(name, key: "signing.mode") }
    case .option(let option, let free):
      // What no request may say is a wrong value, and no matter of rights.
      guard !rules.options.contains(option), !free.contains(value),
        allowed(rules).names.contains(value)
      else { return }
      throw rules.signing.mode == .off
        ? .forbiddenParameter(name) : .unsignedParameter(name, key: "server.allow")
    }
  }
}

// Transform+CanonicalText: writes a transform as text, as it stands in cache keys.

extension Transform {
  /// The canonical text: parameters in a fixed order, without defaults. Equivalent transforms have
  /// the same text.
  ///
  /// It is part of the keys on disk: changing the text or the place of an existing parameter
  /// orphans cached entries. So the order is the order in which parameters were added, and not that
  /// of the groups.
  public var canonicalText: String {
    var text = ""
    func add(_ name: String, _ value: String) {
      if !text.isEmpty { text += "&" }
      text += name + "=" + value
    }
    if let scale = sizing.scale { add("scale", "\(scale)") }
    if let width = sizing.width { add("w", "\(width)") }
    if let height = sizing.height { add("h", "\(height)") }
    if sizing.fit != .inside { add("fit", sizing.fit.rawValue) }
    if sizing.position != .center { add("position", sizing.position.rawValue) }
    if sizing.enlarge { add("enlarge", "1") }
    if let format = output.format { add("format", format.rawValue) }
    if let quality = output.quality, quality != output.format?.defaultQuality {
      add("quality", "\(quality)")
    }
    // Compared with the contract's numbers, which never change: a key of other qualities is another key.
    if let text = qualitiesText { add("qualities", text) }
    if output.background != .white { add("background", output.background.hexadecimal) }
    if sizing.limitBytes != Sizing.defaultLimitBytes {
      add("limitbytes", "\(sizing.limitBytes)")
    }
    if let frame = selection.frame { add("frame", "\(frame)") }
    if output.isProgressive { add("progressive", "1") }
    if let focus = sizing.focalPoint { add("focus", "\(focus.x),\(focus.y)") }
    if selection.rotation != .none { add("rotate", "\(selection.rotation.rawValue)") }
    if selection.flip != .none { add("flip", selection.flip.rawValue) }
    if let crop = selection.crop { add("crop", crop.description) }
    if let trim = selection.trim { add("trim", "\(trim)") }
    if output.format == nil, !output.accepted.isEmpty {
      add("auto", output.accepted.map(\.rawValue).joined(separator: ","))
    }
    if let maxBytes = output.maxBytes { add("maxbytes", "\(maxBytes)") }
    if !output.isAnimated { add("animated", "0") }
    if !output.stripsMetadata { add("strip", "0") }
    effects.addText(add)
    product.addText(add)
    watermark?.addText(add)
    return text
  }

  /// The operator's qualities as far as the result may depend on them.
  private var qualitiesText: String? {
    guard output.quality == nil, product == .image, output.qualities != FormatQualities() else {
      return nil
    }
    return output.qualities.text(of: output.format.map { [$0] } ?? output.accepted + [.jpeg])
  }
}

extension Effects {
  fileprivate func addText(_ add: (String, String) -> Void) {
    if let blur { add("blur", "\(blur)") }
    if let sharpen { add("sharpen", "\(sharpen)") }
    switch radius {
    case .points(let points): add("radius", "\(points)")
    case .maximum: add("radius", "max")
    case nil: break
    }
    if let tint { add("tint", tint.hexadecimal) }
    if isGrayscale { add("grayscale", "1") }
    if brightness != 1 { add("brightness", "\(brightness)") }
    if saturation != 1 { add("saturation", "\(saturation)") }
  }
}

extension Product {
  fileprivate func addText(_ add: (String, String) -> Void) {
    switch self {
    case .image: break
    case .info(let kind):
      add("info", "1")
      if let kind { add("placeholder", kind.rawValue) }
    case .placeholder(let kind): add("placeholder", kind.rawValue)
    }
  }
}

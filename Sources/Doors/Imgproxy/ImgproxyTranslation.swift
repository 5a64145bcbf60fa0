// ImgproxyTranslation: what a draft of imgproxy is in Pictor's parameters.

import Core

extension ImgproxyDraft {
  /// Returns the translation for a source.
  ///
  /// - Throws: what Pictor cannot do; the reason begins with the option.
  func translation(of source: SourceURL) throws(OptionFault) -> DoorTranslation {
    var draft = self
    var result = DoorTranslation()
    result["url"] = source.text
    if expiry > 0 { result.expiry = UnixTime(seconds: expiry) }
    guard !isRaw else {
      for name in ["filename", "download"] { result[name] = own[name] }
      (result["format"], result["pass"]) = ("source", "all")
      return result
    }
    try draft.addSize(of: source, to: &result)
    addCrop(to: &result)
    try addFormat(of: source, to: &result)
    for parameter in own.parameters { result[parameter.name] = parameter.value }
    if format == .png || format == .gif { result["maxbytes"] = nil }
    if let (x, y) = watermarkOffset {
      result["watermark_offset"] = lengthText(x, times: dpr) + "," + lengthText(y, times: dpr)
    }
    if isPadded, own["background"] == nil {
      // What imgproxy adds is transparent, and white where the format has no alpha.
      result["background"] = "ffffff00"
    }
    draft.markNearOptions()
    result.notes = draft.notes
    return result
  }

  private var hasBox: Bool { width > 0 || height > 0 }
  private var isPadded: Bool { padding != Edges() || extend != nil || extendRatio != nil }
  /// Whether something of the resized image may be cut off.
  private var cuts: Bool {
    width > 0 && height > 0 && fit != .inside && fit != .fill || minWidth > 0 || minHeight > 0
  }

  /// Marks the options that are near with these values, and exact with others.
  private mutating func markNearOptions() {
    mark("zoom", if: zoom.x != zoom.y)
    mark("gravity", if: gravity.isSearch && cuts)
    mark("crop", if: crop != nil && (crop?.gravity ?? gravity).isSearch)
    mark("watermark", if: own["watermark"] != nil)
  }

  private mutating func addSize(
    of source: SourceURL, to result: inout DoorTranslation
  ) throws(OptionFault) {
    var factor = zoom.x
    var (width, height) = (width, height)
    if zoom.x != zoom.y {
      factor = 1
      if !hasBox {
        result["w"] = Argument.written(zoom.x * 100) + "%"
        result["h"] = Argument.written(zoom.y * 100) + "%"
        result["fit"] = Fit.fill.rawValue
      } else if fit == .fill, width > 0, height > 0 {
        width = max(1, Int((Double(width) * zoom.x).rounded()))
        height = max(1, Int((Double(height) * zoom.y).rounded()))
      } else {
        throw .unsupported("zoom: Pictor has no two factors with a width or a height")
      }
    }
    // Without a box, Pictor divides by the density that the source's name has.
    if !hasBox, result["w"] == nil { factor *= Double(source.density) }
    let scale = Argument.written(dpr * factor)
    guard scale != "0", dpr * factor <= Sizing.scaleRange.upperBound else {
      throw .unsupported("dpr: \(scale), together with zoom, is not above 0 and at most 10")
    }
    result["scale"] = scale

    let longest = Sizing.sideRange.upperBound
    if width > 0 { result["w"] = "\(min(width, longest))" }
    if height > 0 { result["h"] = "\(min(height, longest))" }
    mark("resize", if: max(width, height) > longest)
    if fit == .fill ? hasBox : fit != .inside && width > 0 && height > 0 {
      result["fit"] = fit.rawValue
      mark("resize", if: fit == .fill && !enlarges)
    }
    for (name, side) in [("min-w", minWidth), ("min-h", minHeight)] where side > 0 {
      result[name] =
        "\(max(1, points(side, dividedBy: factor, of: name == "min-w" ? "min-width" : "min-height")))"
    }
    if enlarges { result["enlarge"] = "1" }
    if padding != Edges() {
      result["pad"] = padding.all.map { "\(points($0, dividedBy: factor, of: "padding"))" }
        .joined(separator: ",")
    }
    addGravity(dividedBy: factor, to: &result)
    mark("dpr", if: dpr != 1 && !enlarges && (isPadded || result["offset"] != nil))
  }

  /// Returns points that only `dpr` multiplies, for a scale that has the zoom, too.
  private mutating func points(_ side: Int, dividedBy factor: Double, of option: String) -> Int {
    let points = wholePixels(Double(side) / factor)
    mark(option, if: Double(points) * factor != Double(side))
    return points
  }

  /// Adds where something is cut off, or what is added. Pictor has one position for both.
  private mutating func addGravity(dividedBy factor: Double, to result: inout DoorTranslation) {
    var used = cuts ? gravity : nil
    let isBox = extend != nil && hasBox
    if let added = isBox ? extend : width > 0 && height > 0 ? extendRatio : nil {
      result["extend"] = isBox ? Extension.box.rawValue : Extension.ratio.rawValue
      mark(
        isBox ? "extend" : "extend_aspect_ratio",
        if: added.isFocal || used.map { $0 != added } ?? false)
      used = used ?? added
    }
    guard let used, used != ImgproxyGravity() else { return }
    if used.position != .center { result["position"] = used.place }
    result["offset"] = used.offset(dividedBy: factor)
    let isWhole = [used.x, used.y].allSatisfy {
      abs($0) < 1 || ($0 / factor) == ($0 / factor).rounded()
    }
    mark("gravity", if: !used.isFocal && !isWhole)
  }

  private func addCrop(to result: inout DoorTranslation) {
    guard let crop, crop.width > 0 || crop.height > 0 else { return }
    let gravity = crop.gravity ?? gravity
    let sides = [crop.width, crop.height].map { $0 < 1 ? lengthText($0) : "\(Int($0))" }
    let place =
      if gravity.isSearch {
        [String]()
      } else if gravity.isFocal {
        ["fp", gravity.place]
      } else {
        [gravity == ImgproxyGravity() ? nil : gravity.place, gravity.offset()].compactMap(\.self)
      }
    result["crop"] = (sides + place).joined(separator: ",")
  }

  private func addFormat(
    of source: SourceURL, to result: inout DoorTranslation
  ) throws(OptionFault) {
    let named = ImgproxyFormat.ofSource(source)
    if let format, format != .svg || named != .svg {
      guard let own = format.own else {
        throw .unsupported("format: Pictor does not write '\(format.rawValue)'")
      }
      result["format"] = own
    } else {
      // imgproxy keeps the formats that all browsers read; of others it makes one of these.
      result["format"] = named?.isKept ?? true ? "source" : "auto"
      result["pass"] = "vector"
    }
    if let named, format == nil || format?.own == named.own,
      skipped.contains(where: { $0 == named || $0.own != nil && $0.own == named.own })
    {
      result["pass"] = "all"
    }
    if quality > 0 { result["quality"] = "\(quality)" }
    for format in ImgproxyFormat.allCases where quality == 0 && format.isLossy {
      guard let name = format.own, let value = qualities[format], value > 0 else { continue }
      result["q_" + name] = "\(value)"
    }
  }
}

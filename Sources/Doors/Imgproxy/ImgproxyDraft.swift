// ImgproxyDraft: what the options of imgproxy ask for, and what that is in Pictor's parameters.

import Core

/// The options of an address, the last of each.
struct ImgproxyDraft: OptionDraft {
  /// How the image comes into its box, by imgproxy's names.
  static let fits: [String: Fit] = [
    "fit": .inside, "fill": .cover, "fill-down": .coverDown, "force": .fill, "auto": .auto,
  ]

  /// The formats by imgproxy's names.
  static let formats = [
    "jpg": "jpeg", "jpeg": "jpeg", "png": "png", "webp": "webp", "avif": "avif", "jxl": "jxl",
    "gif": "gif", "tiff": "tiff", "svg": "svg", "ico": "ico", "bmp": "bmp", "heic": "heic",
  ]

  /// Parameters that depend on one option each, until `finish` adds the others.
  var translation = DoorTranslation()
  var fit = Fit.inside
  var width = 0
  var height = 0
  var minWidth = 0
  var minHeight = 0
  var zoom = (x: 1.0, y: 1.0)
  var dpr = 1.0
  var enlarges = false
  var gravity = ImgproxyGravity()
  /// Where the image lies in a box that it is extended to; `nil`: it is not.
  var extend: ImgproxyGravity?
  /// Likewise, for the shape of the box.
  var extendRatio: ImgproxyGravity?
  /// The part that is used. Without a gravity, it has that of `gravity`.
  var crop: (width: Double, height: Double, gravity: ImgproxyGravity?)?
  var padding = Edges()
  var watermarkOffset: (x: Double, y: Double)?
  var quality = 0
  var qualities: [String: Int] = [:]
  var format: String?
  var skipped: Set<String> = []
  var isRaw = false
  var expiry = 0
  /// Presets that the option just read names.
  var presets: [String] = []
  /// The options so far, with those of presets.
  var count = 0

  /// Adds the note of an option if it is not exact with its value.
  mutating func mark(_ name: String, if isNear: Bool) {
    if isNear, let standing = Self.table[name]?.row.standing { note(name, standing) }
  }

  /// Writes the query for a source. The reasons of its faults begin with the option.
  mutating func finish(_ source: SourceURL) throws(DoorFault) {
    let own = translation
    translation = DoorTranslation()
    self["url"] = source.text
    if expiry > 0 { translation.expiry = UnixTime(seconds: expiry) }
    guard !isRaw else {
      for name in ["filename", "download"] { self[name] = own[name] }
      (self["format"], self["pass"]) = ("source", "all")
      return
    }
    translation.notes = own.notes
    try addSize(of: source)
    addCrop()
    try addFormat(of: source)
    for parameter in own.parameters { self[parameter.name] = parameter.value }
    if format == "png" || format == "gif" { self["maxbytes"] = nil }
    if let (x, y) = watermarkOffset {
      self["watermark_offset"] = lengthText(x, times: dpr) + "," + lengthText(y, times: dpr)
    }
    // What imgproxy adds is transparent, and white where the format has no alpha.
    if isPadded, self["background"] == nil { self["background"] = "ffffff00" }
    mark("zoom", if: zoom.x != zoom.y)
    mark("gravity", if: gravity.isSearch && cuts)
    mark("crop", if: crop != nil && (crop?.gravity ?? gravity).isSearch)
    mark("watermark", if: self["watermark"] != nil)
  }

  private var hasBox: Bool { width > 0 || height > 0 }
  private var isPadded: Bool { padding != Edges() || extend != nil || extendRatio != nil }
  /// Whether something of the resized image may be cut off.
  private var cuts: Bool {
    width > 0 && height > 0 && fit != .inside && fit != .fill || minWidth > 0 || minHeight > 0
  }

  private mutating func addSize(of source: SourceURL) throws(DoorFault) {
    var factor = zoom.x
    var (width, height) = (width, height)
    if zoom.x != zoom.y {
      factor = 1
      if !hasBox {
        self["w"] = (zoom.x * 100).written + "%"
        self["h"] = (zoom.y * 100).written + "%"
        self["fit"] = Fit.fill.rawValue
      } else if fit == .fill, width > 0, height > 0 {
        width = max(1, Int((Double(width) * zoom.x).rounded()))
        height = max(1, Int((Double(height) * zoom.y).rounded()))
      } else {
        throw .unsupported("zoom: Pictor has no two factors with a width or a height")
      }
    }
    // Without a box, Pictor divides by the density that the source's name has.
    if !hasBox, self["w"] == nil { factor *= Double(source.density) }
    let scale = (dpr * factor).written
    guard scale != "0", dpr * factor <= Sizing.scaleRange.upperBound else {
      throw .unsupported("dpr: \(scale), together with zoom, is not above 0 and at most 10")
    }
    self["scale"] = scale

    let longest = Sizing.sideRange.upperBound
    if width > 0 { self["w"] = "\(min(width, longest))" }
    if height > 0 { self["h"] = "\(min(height, longest))" }
    mark("resize", if: max(width, height) > longest || fit == .fill && !enlarges && hasBox)
    if fit == .fill ? hasBox : fit != .inside && width > 0 && height > 0 {
      self["fit"] = fit.rawValue
    }
    for (name, option, side) in [
      ("min-w", "min-width", minWidth), ("min-h", "min-height", minHeight),
    ] where side > 0 {
      self[name] = "\(max(1, points(side, dividedBy: factor, of: option)))"
    }
    if enlarges { self["enlarge"] = "1" }
    if padding != Edges() {
      self["pad"] = padding.all.map { "\(points($0, dividedBy: factor, of: "padding"))" }
        .joined(separator: ",")
    }
    addGravity(dividedBy: factor)
    mark("dpr", if: dpr != 1 && !enlarges && (isPadded || self["offset"] != nil))
  }

  /// Returns points that only `dpr` multiplies, for a scale that has the zoom, too.
  private mutating func points(_ side: Int, dividedBy factor: Double, of option: String) -> Int {
    let points = wholePixels(Double(side) / factor)
    mark(option, if: Double(points) * factor != Double(side))
    return points
  }

  /// Adds where something is cut off, or what is added. Pictor has one position for both.
  private mutating func addGravity(dividedBy factor: Double) {
    var used = cuts ? gravity : nil
    let isBox = extend != nil && hasBox
    if let added = isBox ? extend : width > 0 && height > 0 ? extendRatio : nil {
      self["extend"] = isBox ? Extension.box.rawValue : Extension.ratio.rawValue
      mark(
        isBox ? "extend" : "extend_aspect_ratio",
        if: added.isFocal || used.map { $0 != added } ?? false)
      used = used ?? added
    }
    guard let used, used != ImgproxyGravity() else { return }
    if used.position != .center { self["position"] = used.place }
    self["offset"] = used.offset(dividedBy: factor)
    let isWhole = [used.x, used.y].allSatisfy {
      abs($0) < 1 || ($0 / factor) == ($0 / factor).rounded()
    }
    mark("gravity", if: !used.isFocal && !isWhole)
  }

  private mutating func addCrop() {
    guard let crop, crop.width > 0 || crop.height > 0 else { return }
    let gravity = crop.gravity ?? gravity
    var parts = [crop.width, crop.height].map { $0 < 1 ? lengthText($0) : "\(Int($0))" }
    if gravity.isFocal { parts.append("fp") }
    if !gravity.isSearch, gravity != ImgproxyGravity() { parts.append(gravity.place) }
    if let offset = gravity.offset() { parts.append(offset) }
    self["crop"] = parts.joined(separator: ",")
  }

  private mutating func addFormat(of source: SourceURL) throws(DoorFault) {
    let name = source.fileName
    let ending = name.lastIndex(of: ".").map { name[$0...].dropFirst().lowercased() }
    let named = Self.formats[ending == "tif" ? "tiff" : ending ?? ""]
    if let format, format != "svg" || named != "svg" {
      guard !["svg", "ico", "bmp", "heic"].contains(format) else {
        throw .unsupported("format: Pictor does not write '\(format)'")
      }
      self["format"] = format
    } else {
      // imgproxy keeps the formats that all browsers read; of others it makes one of these.
      let isKept = named.map { ["jpeg", "png", "gif", "svg"].contains($0) } ?? true
      self["format"] = isKept ? "source" : "auto"
      self["pass"] = "vector"
    }
    if let named, format ?? named == named, skipped.contains(named) { self["pass"] = "all" }
    if quality > 0 { self["quality"] = "\(quality)" }
    for name in ["jpeg", "webp", "avif", "jxl"] where quality == 0 {
      if let value = qualities[name], value > 0 { self["q_" + name] = "\(value)" }
    }
  }
}

/// Where imgproxy cuts or extends: at a place, at a focal point, or where libvips finds something.
struct ImgproxyGravity: Hashable, Sendable {
  /// The place; `attention` for a search.
  var position: Position? = .center
  /// Whether the offsets are a focal point.
  var isFocal = false
  /// The offsets inward from the place, in pixels from 1 on, below as a share.
  var x = 0.0
  var y = 0.0

  static let offsets = -65_535.0...65_535.0
  static let positions: [String: Position] = [
    "no": .top, "so": .bottom, "ea": .right, "we": .left, "noea": .rightTop, "nowe": .leftTop,
    "soea": .rightBottom, "sowe": .leftBottom, "ce": .center,
  ]

  /// Whether the place depends on the image.
  var isSearch: Bool { position == .attention }
  /// The value of `position`.
  var place: String { position?.rawValue ?? x.written + "," + y.written }

  /// Returns the value of `offset`, its pixels divided by a factor; `nil` without offsets.
  func offset(dividedBy divisor: Double = 1) -> String? {
    guard !isFocal, x != 0 || y != 0 else { return nil }
    return lengthText(x, times: 1 / divisor) + "," + lengthText(y, times: 1 / divisor)
  }
}

/// Returns a length as Pictor has it: from 1 on whole pixels, times a factor; below a share.
func lengthText(_ length: Double, times factor: Double = 1) -> String {
  length != 0 && abs(length) < 1 ? length.share : "\(wholePixels(length * factor))"
}

/// Returns a number as whole pixels.
func wholePixels(_ number: Double) -> Int { Int(number.clamped(to: -65_535...65_535).rounded()) }

// ThumborDraft: what an address of thumbor or imagor asks for, and what that is in Pictor's terms.

import Core
import Glibc

/// What an address asks for, in the terms of thumbor: a part of the source is resized, flipped, and
/// then turned. At the end it is put into Pictor's terms, where turning comes first.
struct ThumborDraft: OptionDraft {
  /// A side of the box: as the aspect ratio gives it, in pixels, or the source's own.
  enum Side: Hashable, Sendable { case free, pixels(Int), original }

  /// Two corners, `AxB:CxD`, in pixels of the source or in shares of it.
  typealias Area = (edges: [Double], isShare: Bool)
  /// A filter, its arguments decoded.
  private typealias Call = (name: String, arguments: [String])

  private let door: ThumborDoor
  /// What needs no geometry is written here at once.
  var translation = DoorTranslation()

  /// The part of the source.
  var crop: Area?
  var isFitIn = false
  var isFull = false
  var isAdaptive = false
  var isStretched = false
  var width = Side.free
  var height = Side.free
  /// Whether left and right are swapped after the resize.
  var flipsAcross = false
  var flipsDown = false
  /// Quarters by which the result is then turned clockwise, 0 to 3.
  private var quarters = 0
  /// Quarters by which the source is turned clockwise before all else.
  var quartersBefore = 0
  /// left, top, right, bottom.
  var padding: [Int]?
  /// The alignment: 0 at the left or upper edge, 1 in the middle, 2 at the other edge.
  var align = (x: 1, y: 1)
  var isSmart = false
  /// The sum of the focal points, each times its weight, and the weights.
  private var focus: (x: Double, y: Double, weight: Double, isShare: Bool)?
  var enlarges = false
  var keepsSize = false
  /// By what the box is made smaller.
  var proportion = 1.0
  /// What pads the image up to the box, `rrggbbaa`.
  private var fill: String?
  /// Whether the colour of `fill` is behind the image, too.
  private var fillsBehind = false
  /// Whether the image was turned by a quarter when it was filled.
  private var isTurnedBeforeFill = false
  /// The filter of the highest rank so far (`order`).
  private var latest: (rank: Int, name: String)?

  init(_ door: ThumborDoor) { self.door = door }

  /// Whether the peer is imagor.
  var isImagor: Bool { door.isImagor }

  /// Reads what follows `unsafe/` or the signature.
  mutating func read(_ path: Substring) throws(DoorFault) {
    var rest = path
    // imagor's addresses may have more slashes here.
    if isImagor { rest = rest.drop { $0 == "/" } }
    for part in door.parts {
      guard let (segment, tail) = rest.cutAtSlash else { break }
      let name = part.row.names[0]
      do { try part.apply([String(segment)], as: name, to: &self) } catch {
        if error.kind == .invalid { continue }
        throw error.of(name)
      }
      rest = tail
    }
    let (filters, tail) = Self.split(rest) ?? ([], rest)
    guard let image = PercentEncoding.decode(tail.utf8) else {
      throw .invalid("the source is not percent-encoded UTF-8")
    }
    self["url"] = try door.url(of: image)
    self["scale"] = "1"
    if !isImagor { self["orient"] = "0" }
    self["format"] = "source"
    for (name, arguments) in filters {
      do {
        let isKnown = try door.filters.read(name, arguments, into: &self)
        if isKnown { noteOrder(of: name) } else { note(name, .ignored("unknown at \(door.name)")) }
      } catch {
        guard error.kind == .invalid else { throw error.of(name) }
        note(name, .ignored("its arguments are not valid"))
      }
    }
    try writeGeometry()
  }

  /// Notes that Pictor has its own order of steps.
  private mutating func noteOrder(of name: String) {
    // Without a box nothing is filled.
    guard name != "fill" || isFitIn || padding != nil,
      let rank = Self.order.firstIndex(where: { $0.contains(name) })
    else { return }
    if let latest, rank < latest.rank {
      note(name, .near("comes before \(latest.name), also where the address has it later"))
    } else {
      latest = (rank, name)
    }
  }

  /// Splits `filters:NAME(ARGS):…/IMAGE`; `nil` if the text begins otherwise.
  private static func split(_ text: Substring) -> (calls: [Call], image: Substring)? {
    guard text.hasPrefix("filters:") else { return nil }
    var calls: [Call] = []
    var rest = text.utf8.dropFirst(8)
    while let open = rest.firstIndex(of: UInt8(ascii: "(")) {
      let name = text[rest.startIndex..<open]
      guard !name.isEmpty, name.isPlain(with: "_") else { return nil }
      var depth = 0
      let end = rest[open...].firstIndex { byte in
        if byte == UInt8(ascii: "(") { depth += 1 }
        if byte == UInt8(ascii: ")") { depth -= 1 }
        return depth == 0
      }
      guard let end else { return nil }
      let arguments = text[open..<end].dropFirst().commaParts.map { part in
        String(part.percentDecoded.trimming { $0 == " " })
      }
      calls.append((String(name), arguments == [""] ? [] : arguments))
      rest = rest[end...].dropFirst()
      guard let mark = rest.popFirst() else { return nil }
      if mark == UInt8(ascii: "/") { return (calls, Substring(rest)) }
      guard mark == UInt8(ascii: ":") else { return nil }
    }
    return nil
  }
}

/// Pictor turns and flips first, so places, offsets and sides are those of the turned image.
extension ThumborDraft {
  /// Writes what the geometry needs.
  private mutating func writeGeometry() throws(DoorFault) {
    let turns = (quartersBefore + quarters) % 4
    if turns > 0 { self["rotate"] = "\(turns * 90)" }
    let (across, down) = swapsSides ? (flipsDown, flipsAcross) : (flipsAcross, flipsDown)
    self["flip"] = Self.axes(across: across, down: down)
    if crop != nil, self["trim"] != nil {
      note("trim", .near("trims what AxB:CxD keeps, not the source"))
    }
    writeCrop()
    let isBox = try writeSides()
    if isBox { try writeFit() }
    if let padding {
      // Clockwise from the top, and from where the top was.
      let first = 5 - quarters
      let edges = (0..<4).map { padding[(first + $0) % 4] }
      self["pad"] = edges.map(String.init).joined(separator: ",")
    }
    if isImagor, let fill { self["background"] = fill }
    if ["jpeg", "png", "gif", "tiff"].contains(self["format"]) { self["lossless"] = nil }
    // Neither peer shows anything behind a JPEG's transparent parts.
    if self["format"] == "jpeg", self["background"] == nil { self["background"] = "000000" }
  }

  private mutating func writeCrop() {
    guard let (edges, isShare) = crop else { return }
    func text(_ x: Double, _ y: Double) -> [String] {
      (swapsSides ? [y, x] : [x, y]).map { isShare ? $0.share : $0.written }
    }
    let size = text(edges[2] - edges[0], edges[3] - edges[1])
    let offset = text(edges[0], edges[1])
    // Where the left upper corner goes, the offsets from it go too.
    let corner = Self.name(moved(0, 0, end: 2))
    let values = isMoved ? size + [corner] + offset : offset + size
    self["crop"] = values.joined(separator: ",")
  }

  /// Writes `w` and `h`. Returns whether the image is fitted into a box.
  private mutating func writeSides() throws(DoorFault) -> Bool {
    // A side that is the source's needs no limit, unless the other side has one.
    let isOwn = { (side: Side) in side == .free || side == .original }
    if isOwn(width) && isOwn(height) {
      guard proportion < 1 else { return false }
      (width, height) = (.original, .original)
    }
    let (across, down) = swapsSides ? (height, width) : (width, height)
    self["w"] = try text(of: across)
    self["h"] = try text(of: down)
    return true
  }

  private func text(of side: Side) throws(DoorFault) -> String? {
    switch side {
    case .free: return nil
    case .original: return max(proportion * 100, 0.01).written + "%"
    case .pixels(let pixels):
      let pixels = max(1, Int(Double(pixels) * proportion))
      guard Sizing.sideRange.contains(pixels) else {
        throw .unsupported("ExF: a side has at most \(Sizing.sideRange.upperBound) pixels")
      }
      return "\(pixels)"
    }
  }

  private mutating func writeFit() throws(DoorFault) {
    if width != .free, height != .free {
      if isStretched || (width == .original && height == .original) {
        self["fit"] = "fill"
      } else if isFitIn {
        self["fit"] = isFull ? "outside" : fill == nil ? "inside" : "contain"
      } else {
        self["fit"] = "cover"
        try writePosition()
      }
    }
    if self["fit"] == "contain" {
      if isTurnedBeforeFill, !isImagor, width != height {
        throw .unsupported("fill: comes after rotate, and the box is no square")
      }
      self["background"] = fill
      if fillsBehind { self["flatten"] = "1" }
    }
    if isAdaptive, isFitIn, case .pixels(let across) = width, case .pixels(let down) = height,
      across != down
    {
      self["swap"] = "1"
    }
    if !keepsSize, !isFitIn || isFull || isStretched || enlarges,
      proportion == 1 || width != .original
    {
      self["enlarge"] = "1"
    }
  }

  /// Writes which part `cover` keeps.
  private mutating func writePosition() throws(DoorFault) {
    if let focus, focus.weight > 0 {
      var point = (x: focus.x / focus.weight, y: focus.y / focus.weight)
      if focus.isShare {
        if let (edges, isShare) = crop {
          guard isShare else { throw .unsupported("focal: in shares, and AxB:CxD in pixels") }
          point.x = (point.x - edges[0]) / (edges[2] - edges[0])
          point.y = (point.y - edges[1]) / (edges[3] - edges[1])
        }
        point = moved(point.x.clamped(to: 0...1), point.y.clamped(to: 0...1), end: 1)
        self["position"] = point.x.written + "," + point.y.written
      } else {
        guard !isMoved else {
          throw .unsupported("focal: in pixels, and the image is flipped or turned")
        }
        self["position"] = "\(Int(point.x.rounded()))px,\(Int(point.y.rounded()))px"
      }
    } else if isSmart {
      // imagor asks libvips, thumbor its detectors.
      self["position"] = isImagor ? "attention" : "faces"
    } else if align != (1, 1) {
      self["position"] = Self.name(moved(align.x, align.y, end: 2))
    }
  }

  /// Whether a turn swaps width and height.
  private var swapsSides: Bool { quarters % 2 == 1 }
  private var isMoved: Bool { flipsAcross || flipsDown || quarters > 0 }

  /// Returns where a point is after flips and turn, if 0 and `end` are the edges.
  private func moved<Number: SignedNumeric>(
    _ x: Number, _ y: Number, end: Number
  ) -> (x: Number, y: Number) {
    var point = (x: flipsAcross ? end - x : x, y: flipsDown ? end - y : y)
    for _ in 0..<quarters { point = (end - point.y, point.x) }
    return point
  }

  /// Returns the name of a place: 0 is the left or upper edge, 1 the middle, 2 the other edge.
  private static func name(_ place: (x: Int, y: Int)) -> String {
    (Position.allCases.first { $0.anchor == place } ?? .center).rawValue
  }
}

/// What single filters ask for.
extension ThumborDraft {
  /// Blurs. thumbor's Gaussian ends at its radius, so it has a smaller standard deviation.
  mutating func blur(sigma: Double, radius: Int? = nil) {
    var deviation = sigma
    if let radius {
      guard sigma > 0, radius > 0 else { return }
      var (sum, total) = (0.0, 1.0)
      for place in (1...radius).map(Double.init) {
        let weight = 2 * exp(-place * place / (2 * sigma * sigma))
        sum += weight * place * place
        total += weight
      }
      deviation = (sum / total).squareRoot()
    }
    // What is lower is invisible.
    guard deviation >= Effects.blurRange.lowerBound else { return }
    self["blur"] = deviation.clamped(to: Effects.blurRange).written
  }

  mutating func rotate(quarters: Int) throws(DoorFault) {
    guard self["watermark"] == nil else { throw .unsupported("comes after a watermark") }
    self.quarters = (self.quarters + quarters % 4 + 4) % 4
  }

  /// Rounds the corners: a radius across, and perhaps another one down.
  mutating func round(_ radii: Arguments, colour: String?) throws(DoorFault) {
    let radius = try radii.integer(0, 0...Int.max)
    guard radius > 0 else { return }
    self["radius"] = "\(min(radius, CornerRadius.pointRange.upperBound))"
    if let colour { self["background"] = colour }
  }

  /// Pads the image up to the box.
  mutating func fill(_ given: Arguments) throws(DoorFault) {
    let name = given[0]
    let colour = try Self.colour(name)
    guard proportion == 1 else { throw .unsupported("comes after proportion") }
    fill = colour
    isTurnedBeforeFill = swapsSides
    if name == "auto" || name == "blur" { note("fill(\(name))", .near(Self.fillsWhite)) }
    fillsBehind = colour.hasSuffix("ff") && (isImagor || ["1", "true"].contains(given[1]))
  }

  /// Sets the format. Formats that the peer does not know are ignored, as there.
  mutating func format(_ name: String) throws(DoorFault) {
    let name = name.lowercased()
    switch name {
    case "webp", "jpeg", "gif", "png", "avif": self["format"] = name
    case "jpg" where isImagor: self["format"] = "jpeg"
    case "tiff" where isImagor, "jxl" where isImagor: self["format"] = name
    case "jp2" where isImagor, "heif" where isImagor: throw .unsupported("\(name) is not written")
    default: throw .invalid("a format")
    }
  }

  /// Adds a focal point: `AxB:CxD`, which weighs as much as its area, or imagor's `X,Y` and `XxY`.
  mutating func focus(on given: Arguments) throws(DoorFault) {
    let isArea = given.count == 1 && given[0].contains(":")
    guard isArea || isImagor && 1...2 ~= given.count else { throw .invalid("AxB:CxD") }
    let point = given.texts.joined(separator: "x")
    let text = isArea ? point : point + ":" + point
    let (edges, isShare) = try Self.corners(text, isDecimal: isImagor)
    let area = (edges[2] - edges[0]) * (edges[3] - edges[1])
    let weight = area > 0 ? area : isShare ? 1e-6 : 1
    var sum = focus ?? (0, 0, 0, isShare)
    guard sum.isShare == isShare else { throw .unsupported("both in pixels and in shares") }
    sum.x += weight * (edges[0] + edges[2]) / 2
    sum.y += weight * (edges[1] + edges[3]) / 2
    sum.weight += weight
    focus = sum
  }

  /// Puts an image on top: `url, x, y, alpha, wr, hr`.
  mutating func watermark(_ given: Arguments) throws(DoorFault) {
    guard (isImagor ? 1 : 4)...6 ~= given.count, !given[0].isEmpty else {
      throw .invalid("an image, x, y and alpha")
    }
    let x = try place(given.count > 1 ? given[1] : "0", words: ["left", "center", "right"])
    let y = try place(given.count > 2 ? given[2] : "0", words: ["top", "center", "bottom"])
    let alpha = given.count > 3 ? try given.integer(3, 0...100) : 0
    let width = try ratio(4, of: given)
    let height = try ratio(5, of: given)
    guard self["watermark"] == nil else { throw .unsupported("there is another one") }
    guard width != nil || height == nil else { throw .unsupported("its height is a share") }
    // It is fully transparent.
    guard alpha < 100 else { return }
    do { self["watermark"] = try door.url(of: given[0]) } catch { throw .unsupported(error.reason) }
    if x != nil || y != nil {
      self["watermark_position"] = Self.name((x?.side ?? 0, y?.side ?? 0))
      let offset = (x?.offset ?? "0") + "," + (y?.offset ?? "0")
      self["watermark_offset"] = offset == "0,0" ? nil : offset
    }
    self["watermark_repeat"] = x == nil ? y == nil ? "1" : "x" : y == nil ? "y" : nil
    if alpha > 0 { self["watermark_opacity"] = (1 - Double(alpha) / 100).written }
    if let width { self["watermark_scale"] = (width / 100).clamped(to: 0.0001...1).written }
  }

  /// Reads a place on an axis: the side, and the distance inward, at most what `/image` reads;
  /// `nil`: it repeats.
  private func place(
    _ text: String, words: [String]
  ) throws(DoorFault) -> (side: Int, offset: String)? {
    if text == "repeat" { return nil }
    if text == "center" { return (1, "0") }
    if isImagor, let side = words.firstIndex(of: text) { return (side, "0") }
    let isShare = text.hasSuffix("p")
    let digits = Arguments(texts: [isShare ? String(text.dropLast()) : text])
    let distance = try digits.integer(0, -100_000...100_000).magnitude
    let side = text.hasPrefix("-") ? 2 : 0
    let share = (Double(distance) / 100).clamped(to: 0...1).share
    return (side, isShare ? share : "\(min(distance, 65_535))")
  }

  /// Reads a share in percent; `nil` for `none` and 0.
  private func ratio(_ index: Int, of given: Arguments) throws(DoorFault) -> Double? {
    let isAbsent = index >= given.count || given[index].isEmpty && isImagor
    if isAbsent || given[index] == "none" { return nil }
    let number = try given.decimal(index, 0...100_000)
    return number > 0 ? number : nil
  }

  /// Reads `trim`'s corner and tolerance, each optional.
  mutating func trim(_ words: [String]) throws(DoorFault) {
    var (words, isOther) = (words[...], false)
    let corners = ["top-left", "bottom-right"] + (isImagor ? ["top-right", "bottom-left"] : [])
    if let word = words.first, corners.contains(word) {
      isOther = word != "top-left"
      words = words.dropFirst()
    }
    var tolerance = 0.0
    if let word = words.popFirst() {
      let given = try Arguments(texts: [word]).integer(0, 0...1_000_000)
      // thumbor's is the distance of two colours, which is √3 times that of equal channels.
      tolerance = Double(given) / (isImagor ? 1 : 1.732)
    }
    guard words.isEmpty else { throw .invalid("a corner, a tolerance") }
    if isOther { note("trim", .near("the colour is that of the corner at the top left")) }
    self["trim"] = "\(Int(tolerance.rounded().clamped(to: 1...255)))"
  }
}

// ImgixDraft: what the parameters of imgix add up to.

import Core

/// What the parameters of an address add up to.
struct ImgixDraft: OptionDraft {
  var translation = DoorTranslation()
  /// The parameters whose meaning depends on others, as text and as numbers.
  var words: [String: String] = [:]
  var numbers: [String: Double] = [:]

  /// How fits are named here, and whether they enlarge.
  private static let fits = [
    "clip": (nil, true), "crop": ("cover", true), "facearea": ("cover", true),
    "clamp": ("contain", true), "fill": ("contain", true), "fillmax": ("contain", false),
    "max": (nil, false), "min": ("cover-down", false), "scale": ("fill", true),
  ]
  /// The clockwise degrees, and the flip after them, of each EXIF orientation.
  private static let turns = [
    (0, ""), (0, ""), (0, "h"), (180, ""), (0, "v"), (90, "h"), (90, ""), (90, "v"), (270, ""),
  ]

  /// Returns the translation, with what depends on several parameters.
  func finished() throws(OptionFault) -> DoorTranslation {
    var result = translation
    let fit = words["fit"] ?? "clip"
    var sides = numbers.filter { $0.key == "w" || $0.key == "h" }
    result["pad"] = try edges(&sides)
    try finishBox(fit, sides, &result)
    if ["crop", "facearea", "min"].contains(fit) { try finishPosition(fit, &result) }
    if let mask = words["mask"] { result["radius"] = try radius(mask, sides) }
    finishBackground(fills: Self.fits[fit]?.0 == "contain", &result)
    finishTurn(&result)
    result["watermark_position"] = words["mark-align"].map(Self.place)
    if words["mark"] == nil {
      for name in ["position", "scale", "opacity", "repeat"] { result["watermark_" + name] = nil }
    }
    if let trim = words["trim"] {
      let tolerance = trim == "auto" ? 10 : numbers["trim-tol"] ?? 1
      result["trim"] = Argument.written(min(max(tolerance, 1), 255))
      result["trim_color"] = trim == "color" ? words["trim-color"].map { "\($0.prefix(6))" } : nil
    }
    result["format"] = words["auto"] ?? result["format"] ?? "source"
    if result["format"] == "jpeg" { result["progressive"] = words["jpg-progressive"] ?? "1" }
    result.expiry = numbers["expires"].map { UnixTime(seconds: Int($0)) }
    return result
  }

  private func finishBox(
    _ fit: String, _ given: [String: Double], _ result: inout DoorTranslation
  ) throws(OptionFault) {
    var (name, enlarges) = Self.fits[fit] ?? (nil, true)
    let ratio = ["crop", "fill", "fillmax"].contains(fit) ? numbers["ar"] : nil
    for (side, other) in [("w", "h"), ("h", "w")] {
      let (most, least) = (numbers["max-" + side], numbers["min-" + side])
      if fit == "crop", given[side] == nil, result[side] == nil, most ?? least != nil {
        guard ratio == nil else { throw .unsupported("max-, min-: not together with ar") }
        // The other side is reached, and what then exceeds this one is cut off.
        (name, enlarges) = (nil, given[other] != nil)
        result[side] = most.map(Argument.written)
        result["min-" + side] = least.map(Argument.written)
        if most != nil { result["min-" + other] = given[other].map(Argument.written) }
      } else if let length = given[side] {
        let limited = fit == "crop" ? min(max(length, least ?? 1), most ?? 8_192) : length
        result[side] = Argument.written(limited)
      }
    }
    let count = ["w", "h"].count { result[$0] != nil }
    if count < 2, let ratio { result["ar"] = Argument.written(ratio) }
    let hasBox = count > 0 || result["ar"] != nil
    result["fit"] = !hasBox || fit == "scale" && count == 1 ? nil : name
    result["enlarge"] = hasBox && enlarges ? "1" : nil
    result["scale"] = hasBox ? result["scale"] ?? "1" : "1"
  }

  /// The focal point's zoom cuts out a part around it, in which the point has another place.
  private func finishPosition(_ fit: String, _ result: inout DoorTranslation) throws(OptionFault) {
    result["position"] = fit == "facearea" ? "attention" : words["crop"]
    guard result["position"] == "focalpoint" else { return }
    var point = ["fp-x", "fp-y"].map { numbers[$0] ?? 0.5 }
    if let zoom = numbers["fp-z"], zoom > 1 {
      guard result["crop"] == nil else { throw .unsupported("fp-z: not together with rect") }
      let part = Argument.share(1 / zoom)
      result["crop"] = ([part, part, "fp"] + point.map(Argument.share)).joined(separator: ",")
      point = point.map { ($0 - min(max($0 - 0.5 / zoom, 0), 1 - 1 / zoom)) * zoom }
    }
    result["position"] = point.map(Argument.share).joined(separator: ",")
  }

  /// Returns what is around the image, by which the box shrinks.
  private func edges(_ sides: inout [String: Double]) throws(OptionFault) -> String? {
    let name = numbers["border"] == nil ? "pad" : "border"
    let edges = ["-top", "-right", "-bottom", "-left"].map {
      numbers[name + $0] ?? numbers[name] ?? 0
    }
    guard edges.contains(where: { $0 > 0 }) else { return nil }
    for (side, both) in [("w", edges[1] + edges[3]), ("h", edges[0] + edges[2])] {
      guard let length = sides[side] else { continue }
      guard length > both else { throw .unsupported("\(name): nothing remains of \(side)") }
      sides[side] = length - both
    }
    return edges.map(Argument.written).joined(separator: ",")
  }

  private func radius(_ mask: String, _ sides: [String: Double]) throws(OptionFault) -> String {
    if mask == "ellipse" { return "max" }
    if let radius = numbers["corner-radius"], radius > 0 { return Argument.written(radius) }
    guard let width = sides["w"], let height = sides["h"] else {
      throw .unsupported("mask: without corner-radius, corners need w and h")
    }
    return Argument.written(max(1, (min(width, height) / 5).rounded()))
  }

  /// Pictor has one background: of the edges, of the box, of the mask, or behind the image.
  private func finishBackground(fills: Bool, _ result: inout DoorTranslation) {
    let given = [
      words["border"], fills && words["fill"] != nil ? words["fill-color"] ?? "ffffff" : nil,
      words["mask"] != nil ? words["mask-bg"] : nil, words["bg"],
    ].compactMap { $0 }
    // White where the format has no alpha.
    let isSeen = fills || result["pad"] != nil || result["radius"] != nil
    result["background"] = given.first ?? (isSeen ? "ffffff00" : nil)
    if words["bg"] != nil { result["flatten"] = "1" }
    if Set(given).count > 1 {
      result.notes.append(DoorNote("bg", .near("one background for edges, box, mask and image")))
    }
  }

  /// The orientation, the rotation and the flip become one turn and one flip.
  private func finishTurn(_ result: inout DoorTranslation) {
    let rotation = Int(words["rot"] ?? "") ?? 0
    let (turn, flip) = Self.turns[Int(words["orient"] ?? "") ?? 0]
    if words["orient"] != nil { result["orient"] = "0" }
    // A flip before a quarter turn is the other one after it.
    let own = rotation % 180 == 0 ? flip : flip == "h" ? "v" : flip == "v" ? "h" : ""
    let flips = Set(words["flip"] ?? "").symmetricDifference(own)
    result["flip"] = flips.isEmpty ? nil : String(flips.sorted())
    result["rotate"] = (turn + rotation) % 360 == 0 ? nil : "\((turn + rotation) % 360)"
  }

  /// Returns the name of the place that words between commas say.
  static func place(_ text: String) -> String {
    let words = text.split(separator: ",").map { String($0) }
    let sides = [["left", "right"], ["top", "bottom"]].compactMap { axis in
      words.first { axis.contains($0) }
    }
    return sides.isEmpty ? "center" : sides.joined(separator: "-")
  }
}

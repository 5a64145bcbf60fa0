// VectorDocument: the elements of an SVG with what each costs and which others it draws.

/// The elements of an SVG, in document order, and what they refer to. Memory and time are in proportion to the source.
struct VectorDocument {
  /// The cost of drawing one element without those that it contains or refers to.
  struct Element {
    let name: String
    var id: String?
    var classes: Set<String> = []
    var parent: Int
    var declarations = VectorDeclarations()
    /// The references of a `use`, a `pattern` or a `feImage`.
    var links: [VectorReference] = []
    /// How often a marker is drawn: once for each vertex, roughly.
    var vertices = 1
    /// Nanoseconds for any element of its size in bytes.
    var plain = 0.0
    /// Nanoseconds besides, for dashes and long texts.
    var extra = 0.0
    /// Bytes of text, if the element is text outside of other text.
    var glyphs = 0
    /// Nanoseconds of layers for each pixel of the drawing.
    var layers = 0.0
    /// Nanoseconds of filters for each pixel of the drawing.
    var perPixel = 0.0
    /// The same at the nominal size; it grows with the square of the scale.
    var perScaledPixel = 0.0
  }

  /// librsvg refuses a document with more elements (`MAX_LOADED_ELEMENTS`).
  private static let maximumElements = 1_000_000
  /// Elements that are drawn only where another refers to them.
  private static let neverDrawn: Set<String> = [
    "filter", "mask", "clipPath", "pattern", "marker", "symbol", "linearGradient",
    "radialGradient",
  ]
  private static let shapes: Set<String> = [
    "path", "rect", "circle", "ellipse", "line", "polyline", "polygon", "text", "image", "use",
  ]

  private(set) var elements: [Element] = []
  private(set) var sheet = VectorStyleSheet()
  /// What this reader does not follow, in words for a message; `nil` in most documents.
  private(set) var opacity: String?
  /// Whether an element has an id that this reader does not know.
  private(set) var hasHiddenIDs = false
  private var dashes: [Double?] = []
  private var open: [Int] = []
  /// The outermost text of each open element; -1 outside of text.
  private var texts: [Int] = []
  private var style: [UInt8] = []

  /// Reads a document.
  init(_ source: UnsafeRawBufferPointer) {
    var scanner = VectorScanner(source)
    while elements.count <= Self.maximumElements, let part = scanner.next() {
      switch part {
      case .open(let tag): add(tag)
      case .close: close()
      case .text(let text, let isLiteral): add(text, isLiteral: isLiteral)
      case .declaration(let text, let isComplete):
        let text = String(decoding: text, as: UTF8.self)
        note(
          isComplete ? VectorEntities.fault(of: text) : "a document type declaration without an end"
        )
      case .instruction(let text):
        let text = String(decoding: text, as: UTF8.self).lowercased()
        if text.hasPrefix("xml-stylesheet"),
          text.filter({ !$0.isWhitespace }).contains("data:") || text.contains("&")
        {
          note("a style sheet in a processing instruction")
        }
      }
    }
    while !open.isEmpty { close() }
    if sheet.hasImports { note("a style sheet in a style sheet") }
  }

  /// Notes what is not followed; the first counts.
  private mutating func note(_ fault: String?) { opacity = opacity ?? fault }

  private mutating func close() {
    guard let index = open.popLast() else { return }
    dashes.removeLast()
    texts.removeLast()
    guard elements[index].name == "style" else { return }
    sheet.add(VectorStyleText.simplified(style))
    style = []
  }

  /// Whether an element is drawn only where another refers to it.
  func isNeverDrawn(_ index: Int) -> Bool { Self.neverDrawn.contains(elements[index].name) }

  private mutating func add(_ tag: VectorTag) {
    var element = Element(name: tag.name, parent: open.last ?? -1)
    element.plain = 5_000
    var data: VectorBytes?
    var numbers: [String: Double] = [:]
    let isPrimitive = tag.name.hasPrefix("fe")
    var faults: [String] = []
    tag.forEachAttribute { name, isPrefixed, value in
      if name == "href", ["use", "pattern", "feImage"].contains(tag.name) {
        element.links += VectorReference(href: value).map { [$0] } ?? []
      }
      guard !isPrefixed else { return }
      if name == "d" || name == "points" {
        data = value
        return
      }
      let isNumber = isPrimitive && ["numOctaves", "radius", "order"].contains(name)
      guard ["id", "class", "style"].contains(name) || isNumber || VectorDeclarations.counts(name)
      else { return }
      guard let text = VectorReference.decoded(value) else {
        if name == "id" {
          hasHiddenIDs = true
        } else if name == "style", !value.contains(UInt8(ascii: "(")) {
          // What an entity may contain is checked where it is declared.
          element.declarations.hasLayer = true
        } else {
          faults.append("an entity in the attribute `\(name)`")
        }
        return
      }
      switch name {
      case "id": element.id = text
      case "class":
        element.classes = Set(text.split(whereSeparator: \.isWhitespace).map(String.init))
      case "style":
        element.declarations.merge(
          VectorDeclarations(VectorStyleText.simplified(Array(text.utf8))[...]))
      default:
        if isNumber { numbers[name] = Self.largest(text) }
        element.declarations.add(name, VectorStyleText.simplified(Array(text.utf8))[...])
      }
    }
    note(faults.first)
    if let data {
      element.plain += 100 * Double(data.count)
      element.vertices = max(1, data.count / 4)
    }
    if element.declarations.hasLayer {
      // Few shapes cover the whole drawing.
      element.layers += Self.shapes.contains(tag.name) ? 0.4 : 1.2
    }
    let dash = element.declarations.dashes ?? dashes.last ?? nil
    if let dash, Self.shapes.contains(tag.name) {
      let length = data.map(VectorPath.length) ?? 10_000
      element.extra += 1_000 * min(length / dash, 1e12)
    }
    if isPrimitive, let filter = open.last, elements[filter].name == "filter" {
      let (perPixel, perScaledPixel) = Self.cost(of: tag.name, numbers)
      elements[filter].perPixel += perPixel
      elements[filter].perScaledPixel += perScaledPixel
    }
    element.perPixel += 65 * Double(element.declarations.functions)
    elements.append(element)
    guard !tag.isEmpty else { return }
    open.append(elements.count - 1)
    dashes.append(dash)
    let text = texts.last ?? -1
    texts.append(text < 0 && tag.name == "text" ? elements.count - 1 : text)
  }

  private mutating func add(_ text: VectorBytes, isLiteral: Bool) {
    guard let parent = open.last else { return }
    if elements[parent].name == "style" {
      if isLiteral {
        style += text
      } else if let text = VectorReference.decoded(text) {
        style += text.utf8
      } else {
        note("an entity in a style sheet")
      }
    } else if let index = texts.last, index >= 0 {
      elements[index].glyphs += Self.glyphs(text)
      let glyphs = Double(elements[index].glyphs)
      elements[index].extra = glyphs * 20_000 + glyphs * glyphs * 30
    }
  }

  /// Returns the length of a text in bytes, with white space between words as one.
  private static func glyphs(_ text: VectorBytes) -> Int {
    var count = 0
    var isBehindSpace = true
    for byte in text {
      let isSpace = VectorTag.isSpace(byte)
      if !isSpace || !isBehindSpace { count += 1 }
      isBehindSpace = isSpace
    }
    return count
  }

  private static func largest(_ value: String) -> Double {
    value.split { $0 == "," || $0.isWhitespace }.compactMap { Double($0) }.filter(\.isFinite).max()
      ?? 0
  }

  /// Returns the cost of a filter primitive, in nanoseconds for each pixel, and for each at the nominal size. The
  /// coefficients are the measured processor time of librsvg 2.54.
  private static func cost(of name: String, _ numbers: [String: Double]) -> (Double, Double) {
    let base = 65.0
    switch name {
    case "feTurbulence": return (base + 50 * max(numbers["numOctaves"] ?? 1, 1), 0)
    case "feMorphology":
      let side = 2 * max(numbers["radius"] ?? 0, 0)
      return (base, 1.4 * side * side)
    case "feConvolveMatrix":
      let side = max(numbers["order"] ?? 3, 1)
      return (base + 3.8 * side * side, 0)
    case "feFuncR", "feFuncG", "feFuncB", "feFuncA", "feMergeNode": return (0, 0)
    default: return (base, 0)
    }
  }
}

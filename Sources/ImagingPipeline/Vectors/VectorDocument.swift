// VectorDocument: the elements of an SVG with what each costs and which others it draws.

/// The elements of an SVG, in document order, and what they refer to. Memory and time are in proportion to the source.
struct VectorDocument {
  /// The cost of drawing one element without those that it contains or refers to.
  struct Element {
    let name: String
    var id: String?
    var classes: [String] = []
    var parent: Int
    var declarations = VectorDeclarations()
    /// The reference of a `use`, a `pattern` or a `feImage`.
    var link: VectorReference?
    /// How often a marker is drawn: once for each vertex, roughly.
    var vertices = 1
    /// Nanoseconds for any element of its size in bytes.
    var plain = 0.0
    /// Nanoseconds besides, for dashes and long texts.
    var extra = 0.0
    /// Nanoseconds for each pixel of the drawing.
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
  /// Whether the document has parts that this reader does not follow: entities that contain elements.
  private(set) var isOpaque = false
  /// Whether the document declares entities of its own.
  private(set) var hasEntities = false
  private var dashes: [Double?] = []
  private var open: [Int] = []
  private var styles = 0

  /// Reads a document.
  init(_ source: UnsafeRawBufferPointer) {
    var scanner = VectorScanner(source)
    while elements.count <= Self.maximumElements, let part = scanner.next() {
      switch part {
      case .open(let tag): add(tag)
      case .close:
        open.removeLast(open.isEmpty ? 0 : 1)
        dashes.removeLast(dashes.isEmpty ? 0 : 1)
      case .text(let text): add(text)
      case .declaration(let text):
        let text = String(decoding: text, as: UTF8.self)
        guard text.contains("<!ENTITY") else { continue }
        hasEntities = true
        // Each declaration begins with a `<`; any other is within a value.
        let count = text.utf8.count { $0 == UInt8(ascii: "<") }
        let declarations = text.split(separator: "<!", omittingEmptySubsequences: false).count - 1
        isOpaque = isOpaque || count > declarations || text.contains("&#")
      }
    }
  }

  /// Whether an element is drawn only where another refers to it.
  func isNeverDrawn(_ index: Int) -> Bool { Self.neverDrawn.contains(elements[index].name) }

  private mutating func add(_ tag: VectorTag) {
    var element = Element(name: tag.name, parent: open.last ?? -1)
    element.plain = 5_000
    var data: VectorBytes?
    var numbers: [String: Double] = [:]
    let isPrimitive = tag.name.hasPrefix("fe")
    tag.forEachAttribute { name, value in
      switch name {
      case "id": element.id = VectorReference.text(of: value)
      case "class":
        element.classes = String(decoding: value.prefix(4_096), as: UTF8.self)
          .split(whereSeparator: \.isWhitespace).map(String.init)
      case "href":
        if ["use", "pattern", "feImage"].contains(tag.name) {
          element.link = VectorReference(href: value)
        }
      case "style": element.declarations.add(VectorDeclarations(value))
      case "d", "points": data = value
      case "numOctaves", "radius", "order": if isPrimitive { numbers[name] = Self.largest(value) }
      default: element.declarations.add(name, value)
      }
    }
    if let data {
      element.plain += 100 * Double(data.count)
      element.vertices = max(1, data.count / 4)
    }
    if element.declarations.hasLayer {
      // Few shapes cover the whole drawing.
      element.perPixel += Self.shapes.contains(tag.name) ? 0.4 : 1.2
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
    elements.append(element)
    guard !tag.isEmpty else { return }
    open.append(elements.count - 1)
    dashes.append(dash)
  }

  private mutating func add(_ text: VectorBytes) {
    guard let parent = open.last else { return }
    switch elements[parent].name {
    case "style":
      guard let last = text.last(where: { !VectorTag.isSpace($0) }) else { return }
      // A rule that ends in another part of the text is not followed.
      if last != UInt8(ascii: "}"), last != UInt8(ascii: ";") { styles += 1 }
      sheet.add(text)
      if styles > 1 { isOpaque = true }
    case "text", "tspan", "textPath", "a":
      let glyphs = Double(text.count)
      elements[parent].extra += glyphs * 20_000 + glyphs * glyphs * 30
    default: break
    }
  }

  private static func largest(_ value: VectorBytes) -> Double {
    String(decoding: value.prefix(256), as: UTF8.self).split { " ,\t\n".contains($0) }
      .compactMap { Double($0) }.filter(\.isFinite).max() ?? 0
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

// ThumborDraft: what an address asks for, as its parts and filters are read.

import Core

/// What an address asks for, in the terms of thumbor: a part of the source is resized, flipped, and
/// then turned. `ThumborGeometry` puts it into Pictor's, where turning comes first.
struct ThumborDraft: Sendable {
  /// A side of the box.
  enum Side: Hashable, Sendable {
    /// As the aspect ratio gives it.
    case free
    /// Pixels.
    case pixels(Int)
    /// The source's own side.
    case original
  }

  /// A point, in pixels of the source or in shares of it.
  struct Point: Hashable, Sendable {
    var x: Double
    var y: Double
    var isShare: Bool
  }

  let dialect: ThumborDialect
  let sources: ThumborSources
  /// What needs no geometry is written here at once.
  var translation = DoorTranslation()

  /// The part of the source.
  var crop: (from: Point, to: Point)?
  var isFitIn = false
  var isFull = false
  var isAdaptive = false
  var isStretched = false
  var width = Side.free
  var height = Side.free
  var turn = ThumborTurn()
  /// Quarters by which the source is turned clockwise before all else.
  var quartersBefore = 0
  /// left, top, right, bottom.
  var padding: [Int]?
  /// The alignment: 0 at the left or upper edge, 1 in the middle, 2 at the other edge.
  var align = (x: 1, y: 1)
  var isSmart = false
  /// The sum of the focal points, each times its weight, and the weights.
  var focus: (sum: Point, weight: Double)?
  var enlarges = false
  var keepsSize = false
  /// By what the box is made smaller.
  var proportion = 1.0
  /// What pads the image up to the box, `rrggbbaa`.
  var fill: String?
  /// Whether the colour of `fill` is behind the image, too.
  var fillsBehind = false
  /// Whether the image was turned by a quarter when it was filled.
  var isTurnedBeforeFill = false
  /// The filter of the highest rank so far (`ThumborFilters.order`).
  private var latest: (rank: Int, name: String)?

  init(_ dialect: ThumborDialect, _ sources: ThumborSources) {
    self.dialect = dialect
    self.sources = sources
  }

  /// Reads what follows `unsafe/` or the signature.
  consuming func translated(_ path: Substring) throws(DoorAnswer) -> DoorTranslation {
    var rest = path
    // imagor's addresses may have more slashes here.
    if dialect == .imagor { rest = rest.drop { $0 == "/" } }
    for part in dialect.parts {
      guard let (segment, tail) = rest.cutAtSlash else { break }
      guard try read(part, part.names[0], [String(segment)]) else { continue }
      rest = tail
    }
    var filters: [ThumborFilters.Call] = []
    if let split = ThumborFilters.split(rest) { (filters, rest) = (split.calls, split.image) }
    guard let image = PercentEncoding.decode(rest.utf8) else {
      throw dialect.refusal("the source is not percent-encoded UTF-8")
    }
    translation["url"] = try sources.url(of: image)
    translation["scale"] = "1"
    if dialect == .thumbor { translation["orient"] = "0" }
    translation["format"] = "source"
    for filter in filters {
      guard let option = dialect.filters.first(where: { $0.names.contains(filter.name) }) else {
        note(filter.name, .ignored("unknown at \(dialect.rawValue)"))
        continue
      }
      guard try read(option, filter.name, filter.arguments) else {
        note(filter.name, .ignored("its arguments are not valid"))
        continue
      }
      noteOrder(of: filter.name)
    }
    do { try writeGeometry() } catch { throw dialect.refusal(error.reason) }
    return translation
  }

  /// Reads an option. Returns whether its arguments are its own, and valid.
  private mutating func read(
    _ option: DoorOption<ThumborDraft>, _ name: String, _ arguments: [String]
  ) throws(DoorAnswer) -> Bool {
    do {
      try option.read(arguments, &self)
    } catch {
      guard error.isUnsupported else { return false }
      throw dialect.refusal(name + ": " + error.reason)
    }
    if case .refused(let reason) = option.standing {
      throw dialect.refusal(name + ": " + reason)
    }
    if option.standing != .exact { note(name, option.standing) }
    return true
  }

  /// Notes how an option fares, once, and not more than anyone reads.
  mutating func note(_ option: String, _ standing: DoorStanding) {
    let note = DoorNote(String(option.prefix(40)), standing)
    guard translation.notes.count < 50, !translation.notes.contains(note) else { return }
    translation.notes.append(note)
  }

  /// Notes that Pictor has its own order of steps.
  private mutating func noteOrder(of name: String) {
    // Without a box nothing is filled.
    guard name != "fill" || isFitIn || padding != nil,
      let rank = ThumborFilters.order.firstIndex(where: { $0.contains(name) })
    else { return }
    if let latest, rank < latest.rank {
      note(name, .near("comes before \(latest.name), also where the address has it later"))
    } else {
      latest = (rank, name)
    }
  }
}

/// A flip and then a turn, which come after the resize.
struct ThumborTurn: Hashable, Sendable {
  /// Whether left and right are swapped.
  var across = false
  /// Whether top and bottom are swapped.
  var down = false
  /// Quarters clockwise, 0 to 3.
  var quarters = 0

  /// Whether width and height are swapped.
  var swapsSides: Bool { quarters % 2 == 1 }
  /// Whether nothing moves.
  var isNone: Bool { self == ThumborTurn() }

  /// Turns further, clockwise.
  mutating func add(quarters more: Int) { quarters = (quarters + more % 4 + 4) % 4 }

  /// Returns where a point is afterwards, if 0 and `end` are the edges.
  func moved<Number: SignedNumeric>(_ x: Number, _ y: Number, end: Number) -> (x: Number, y: Number)
  {
    var point = (x: across ? end - x : x, y: down ? end - y : y)
    for _ in 0..<quarters { point = (end - point.y, point.x) }
    return point
  }

  /// The flip that does the same after the turn.
  var flipAfter: String? {
    let (x, y) = swapsSides ? (down, across) : (across, down)
    return x ? (y ? "hv" : "h") : (y ? "v" : nil)
  }
}

/// Numbers as addresses have them, and as Pictor's parameters do.
enum ThumborNumber {
  /// Reads a whole number in a range; `nil` for another text.
  static func whole(_ text: some StringProtocol, in range: ClosedRange<Int>) -> Int? {
    let digits = text.hasPrefix("-") ? text.dropFirst() : text[...]
    guard digits.isDigits, digits.utf8.count <= 15, let number = Int(text),
      range.contains(number)
    else { return nil }
    return number
  }

  /// Reads a number like `-1.5` or `.5` in a range; `nil` for another text.
  static func decimal(_ text: some StringProtocol, in range: ClosedRange<Double>) -> Double? {
    let digits = text.hasPrefix("-") ? text.dropFirst() : text[...]
    let parts = digits.split(separator: ".", omittingEmptySubsequences: false)
    guard digits.utf8.count <= 20, parts.count <= 2, parts.last?.isDigits == true,
      parts[0].isEmpty || parts[0].isDigits, let number = Double("0" + digits)
    else { return nil }
    let signed = text.hasPrefix("-") ? -number : number
    return range.contains(signed) ? signed : nil
  }
}

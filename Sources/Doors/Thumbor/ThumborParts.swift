// ThumborParts: the table of the parts before the filters, in their order.

import Core

/// The parts of an address. `read` refuses a text that is another part, or the image.
enum ThumborParts {
  private typealias Part = DoorOption<ThumborDraft>

  static let thumbor = [debug, meta, trim, crop, fitIn, sides, across, down, faces]
  static let imagor = [meta, trim, crop, fitIn, stretch, sides, padding, across, down, smart]

  /// The text is not this part.
  private static let another = OptionFault("not this part")

  private static let debug = word("debug", .ignored("thumbor draws focal points")) { _ in }
  private static let meta = word("meta", .near("Pictor's own description of the source")) {
    $0.translation.isDescription = true
  }
  private static let stretch = word("stretch") { $0.isStretched = true }
  private static let smart = word("smart") { $0.isSmart = true }
  private static let faces = word(
    "smart", .near("what attracts attention; detectors find other parts")
  ) { $0.isSmart = true }

  private static let trim = Part(
    "trim", standing: .near("differences are counted by channel, not as a distance of colours")
  ) { given, draft throws(OptionFault) in
    var words = given[0].split(separator: ":", omittingEmptySubsequences: false)
    guard words.removeFirst() == "trim", words.count <= 2 else { throw another }
    try ThumborFilters.trim(words.map(String.init), into: &draft)
  }

  private static let crop = Part("AxB:CxD") { given, draft throws(OptionFault) in
    let numbers = try corners(given[0], isDecimal: draft.dialect == .imagor)
    // A part without an area is the whole image.
    guard numbers[2] > numbers[0], numbers[3] > numbers[1] else { return }
    let isShare = given[0].contains(".") && numbers.allSatisfy { $0 <= 1 }
    let whole = numbers.map { isShare ? $0 : $0.rounded(.down) }
    draft.crop = (
      from: ThumborDraft.Point(x: whole[0], y: whole[1], isShare: isShare),
      to: ThumborDraft.Point(x: whole[2], y: whole[3], isShare: isShare)
    )
  }

  private static let fitIn = Part(
    "adaptive-full-fit-in", "adaptive-fit-in", "full-fit-in", "fit-in"
  ) { given, draft throws(OptionFault) in
    var word = given[0][...]
    guard word.hasSuffix("fit-in") else { throw another }
    word = word.dropLast("fit-in".utf8.count)
    let isAdaptive = word.hasPrefix("adaptive-")
    if isAdaptive { word = word.dropFirst("adaptive-".utf8.count) }
    guard word.isEmpty || word == "full-" else { throw another }
    (draft.isFitIn, draft.isAdaptive, draft.isFull) = (true, isAdaptive, !word.isEmpty)
  }

  private static let sides = Part("ExF", "origxF", "Exorig") { given, draft throws(OptionFault) in
    let words = given[0].split(separator: "x", omittingEmptySubsequences: false)
    guard words.count == 2, given[0].utf8.count <= 64 else { throw another }
    func side(_ word: Substring) throws(OptionFault) -> (side: ThumborDraft.Side, flips: Bool) {
      let flips = word.hasPrefix("-")
      let size = flips ? word.dropFirst() : word
      if size == "orig", draft.dialect == .thumbor { return (.original, flips) }
      guard size.utf8.allSatisfy(\.isDigit) else { throw another }
      // Too large a number is refused later.
      let pixels = size.isEmpty ? 0 : ThumborNumber.whole(size, in: 0...Int.max) ?? 1_000_000_000
      return (pixels == 0 ? .free : .pixels(pixels), flips)
    }
    let (width, height) = (try side(words[0]), try side(words[1]))
    (draft.width, draft.height) = (width.side, height.side)
    (draft.turn.across, draft.turn.down) = (width.flips, height.flips)
  }

  private static let padding = Part("GxH:IxJ", "GxH") { given, draft throws(OptionFault) in
    let text = given[0].contains(":") ? given[0] : given[0] + ":" + given[0]
    let edges = try corners(text, isDecimal: false).map { Int($0) }
    guard edges.allSatisfy(Edges.range.contains) else {
      throw .unsupported("an edge has at most \(Edges.range.upperBound) pixels")
    }
    draft.padding = edges
  }

  private static let across = words("left", "center", "right") { $0.align.x = $1 }
  private static let down = words("top", "middle", "bottom") { $0.align.y = $1 }

  /// A part that is one word.
  private static func word(
    _ name: String, _ standing: DoorStanding = .exact,
    set: @escaping @Sendable (inout ThumborDraft) -> Void
  ) -> DoorOption<ThumborDraft> {
    Part(name, standing: standing) { given, draft throws(OptionFault) in
      guard given == [name] else { throw another }
      set(&draft)
    }
  }

  /// A part that is one of three words, for 0, 1 and 2.
  private static func words(
    _ first: String, _ second: String, _ third: String,
    set: @escaping @Sendable (inout ThumborDraft, Int) -> Void
  ) -> DoorOption<ThumborDraft> {
    Part(first, second, third) { given, draft throws(OptionFault) in
      guard let index = [first, second, third].firstIndex(of: given[0]) else { throw another }
      set(&draft, index)
    }
  }

  /// Reads the four numbers of `AxB:CxD`.
  static func corners(_ text: String, isDecimal: Bool) throws(OptionFault) -> [Double] {
    let points = text.split(separator: ":", omittingEmptySubsequences: false)
    guard points.count == 2, text.utf8.count <= 100 else { throw another }
    let words = points.flatMap { $0.split(separator: "x", omittingEmptySubsequences: false) }
    let range = 0...Double(Selection.cropRange.upperBound)
    let numbers = words.compactMap { word in
      isDecimal || word.isDigits ? ThumborNumber.decimal(word, in: range) : nil
    }
    guard words.count == 4, numbers.count == 4,
      points.allSatisfy({ $0.utf8.contains(UInt8(ascii: "x")) })
    else { throw another }
    return numbers
  }
}

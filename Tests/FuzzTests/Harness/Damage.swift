// Damage: changes bytes at random in ways that parsers are sensitive to.

import TestSupport

enum Damage {
  /// The most bytes of a damaged input.
  private static let most = 1 << 16

  /// Numbers at the edges of fields.
  private static let edges: [UInt64] = [
    0, 1, 2, 7, 8, 15, 16, 0x7f, 0x80, 0xff, 0x100, 0x7fff, 0x8000, 0xffff, 0x1_0000, 0x7fff_ffff,
    0x8000_0000, 0xffff_ffff, 0x7fff_ffff_ffff_ffff, .max,
  ]

  /// Changes bytes in one to four places; one time of eight in none.
  ///
  /// - Parameter words: what the format consists of, inserted and written over bytes.
  static func apply(
    to bytes: inout [UInt8], words: [[UInt8]] = [], using generator: inout SeededGenerator
  ) {
    guard Int.random(in: 0..<8, using: &generator) > 0 else { return }
    for _ in 0..<Int.random(in: 1...4, using: &generator) {
      change(&bytes, words: words, using: &generator)
      if bytes.count > most { bytes.removeLast(bytes.count - most) }
    }
  }

  private static func change(
    _ bytes: inout [UInt8], words: [[UInt8]], using generator: inout SeededGenerator
  ) {
    let place = Int.random(in: 0...bytes.count, using: &generator)
    let block = block(at: place, of: bytes, &generator)
    switch Int.random(in: 0..<12, using: &generator) {
    case 0 where place < bytes.count:
      bytes[place] ^= 1 << UInt8.random(in: 0..<8, using: &generator)
    case 1 where place < bytes.count: bytes[place] = .random(in: 0...255, using: &generator)
    case 2, 3: overwrite(&bytes, at: place, with: edge(&generator))
    case 4:
      let more = (0..<Int.random(in: 1...8, using: &generator)).map { _ in
        UInt8.random(in: 0...255, using: &generator)
      }
      bytes.insert(contentsOf: more, at: place)
    case 5: bytes.removeSubrange(block)
    case 6: bytes.insert(contentsOf: Array(bytes[block]), at: place)
    case 7: swap(&bytes, block: block, using: &generator)
    case 8: bytes.removeLast(bytes.count - place)
    case 9: changeLength(&bytes, at: place, using: &generator)
    case 10:
      guard let word = words.randomElement(using: &generator) else { return }
      bytes.insert(contentsOf: word, at: place)
    default:
      guard let word = words.randomElement(using: &generator) else { return }
      overwrite(&bytes, at: place, with: word)
    }
  }

  /// Returns a block that starts at a place, mostly a short one.
  private static func block(
    at place: Int, of bytes: [UInt8], _ generator: inout SeededGenerator
  ) -> Range<Int> {
    let most = Bool.random(using: &generator) ? 16 : bytes.count
    let count = Int.random(in: 0...min(most, bytes.count - place), using: &generator)
    return place..<place + count
  }

  private static func overwrite(_ bytes: inout [UInt8], at place: Int, with word: [UInt8]) {
    bytes.replaceSubrange(place..<min(place + word.count, bytes.count), with: word)
  }

  /// Returns a number at an edge of 1, 2, 4 or 8 bytes, in either order.
  private static func edge(_ generator: inout SeededGenerator) -> [UInt8] {
    let width = [1, 2, 4, 8].randomElement(using: &generator) ?? 1
    let number = edges.randomElement(using: &generator) ?? 0
    let digits = (0..<width).map { UInt8(truncatingIfNeeded: number >> UInt64(8 * $0)) }
    return Bool.random(using: &generator) ? digits : digits.reversed()
  }

  /// Exchanges a block with the bytes of the same length after it.
  private static func swap(
    _ bytes: inout [UInt8], block: Range<Int>, using generator: inout SeededGenerator
  ) {
    let next = block.upperBound..<min(block.upperBound + block.count, bytes.count)
    bytes.replaceSubrange(block.lowerBound..<next.upperBound, with: bytes[next] + bytes[block])
  }

  /// Adds a little to a number of 2 or 4 bytes, as a wrong length does, or makes it the number of
  /// bytes that are left.
  private static func changeLength(
    _ bytes: inout [UInt8], at place: Int, using generator: inout SeededGenerator
  ) {
    let width = Bool.random(using: &generator) ? 2 : 4
    guard place + width <= bytes.count else { return }
    let isLittle = Bool.random(using: &generator)
    let digits =
      isLittle ? bytes[place..<place + width].reversed() : Array(bytes[place...].prefix(width))
    let number = digits.reduce(0) { $0 << 8 | Int($1) }
    let left = bytes.count - place
    let lies = [number + 1, number - 1, 2 * number, left, left + 1, left - width]
    let lie =
      (lies.randomElement(using: &generator) ?? 0) + Int.random(in: 0...1, using: &generator)
    let written = (0..<width).map { UInt8(truncatingIfNeeded: lie >> (8 * $0)) }
    overwrite(&bytes, at: place, with: isLittle ? written : written.reversed())
  }
}

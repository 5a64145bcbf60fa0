// ByteReaderTests: tests of ByteReader against slices of an array.

import Core
import TestSupport
import Testing

@Suite struct ByteReaderTests {
  @Test(arguments: 0..<10 as Range<UInt64>, [ByteReader.ByteOrder.big, .little])
  func `a random sequence of reads has the results of slices`(
    seed: UInt64, order: ByteReader.ByteOrder
  ) {
    // Given
    var random = SeededGenerator(seed: seed)
    for _ in 0..<300 {
      let count = Int.random(in: 0...40, using: &random)
      let bytes = (0..<count).map { _ in UInt8.random(in: 0...255, using: &random) }
      bytes.withUnsafeBytes { buffer in
        var reader = ByteReader(buffer, order: order)
        var rest = bytes[...]
        // When
        for _ in 0..<20 {
          let width = Int.random(in: -1...9, using: &random)
          let wanted = width >= 0 && width <= rest.count ? Array(rest.prefix(width)) : nil
          switch Int.random(in: 0..<6, using: &random) {
          case 0 where width <= 8:
            #expect((try? reader.number(width)) == wanted.map { Self.number($0, order: order) })
            rest = rest.dropFirst(wanted?.count ?? 0)
          case 1:
            #expect((try? reader.take(width)).map(Array.init) == wanted)
            rest = rest.dropFirst(wanted?.count ?? 0)
          case 2:
            #expect((try? reader.reader(of: width)).map { Array($0.bytes) } == wanted)
            rest = rest.dropFirst(wanted?.count ?? 0)
          case 3:
            #expect(reader.skip(width) == (wanted != nil))
            rest = rest.dropFirst(wanted?.count ?? 0)
          case 4:
            #expect((try? reader.peek()) == rest.first)
            #expect((try? reader.byte()) == rest.popFirst())
          default:
            let offset = Int.random(in: -2...count + 2, using: &random)
            let isInside = offset >= 0 && width >= 0 && offset + width <= count
            let part = isInside ? Array(bytes[offset..<offset + width]) : nil
            #expect((try? reader.part(at: offset, count: width)).map(Array.init) == part)
            guard width <= 8 else { continue }
            #expect(
              (try? reader.number(at: offset, width: width))
                == part.map { Self.number($0, order: order) })
          }
          // Then
          #expect(reader.left == rest.count && reader.isAtEnd == rest.isEmpty)
        }
      }
    }
  }

  private static func number(_ bytes: [UInt8], order: ByteReader.ByteOrder) -> Int {
    let digits = order == .big ? bytes : bytes.reversed()
    return Int(clamping: digits.reduce(UInt64(0)) { $0 << 8 | UInt64($1) })
  }

  @Test func `offsets and lengths near the limits of Int throw`() {
    [UInt8](repeating: 1, count: 4).withUnsafeBytes { buffer in
      var reader = ByteReader(buffer, at: 2)
      #expect(throws: EndOfBytes()) { try reader.part(at: .max, count: .max) }
      #expect(throws: EndOfBytes()) { try reader.part(at: 1, count: .max) }
      #expect(throws: EndOfBytes()) { try reader.number(at: .min, width: 4) }
      reader.position = .max
      #expect(throws: EndOfBytes()) { try reader.byte() }
      #expect(reader.isAtEnd)
    }
  }

  @Test func `a name shows unprintable characters as question marks`() {
    Array("ab\u{1}\u{7f}".utf8).withUnsafeBytes { buffer in
      var reader = ByteReader(buffer)
      #expect((try? reader.name()) == "ab??")
      #expect(throws: EndOfBytes()) { try reader.name() }
    }
  }
}

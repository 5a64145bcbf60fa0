// JPEGDamage: random damage that keeps much of a JPEG's structure.

import TestSupport

enum JPEGDamage {
  /// Returns the segments up to the scan header.
  static func segments(of bytes: [UInt8]) -> [Range<Int>] {
    var segments: [Range<Int>] = []
    var start = 2
    while start + 4 <= bytes.count, bytes[start] == 0xff {
      let end = start + 2 + Int(bytes[start + 2]) << 8 + Int(bytes[start + 3])
      guard end <= bytes.count else { break }
      segments.append(start..<end)
      if bytes[start + 1] == 0xda { break }
      start = end
    }
    return segments
  }

  /// Changes, cuts, inserts or removes bytes, a whole segment, or a marker.
  static func apply(to bytes: inout [UInt8], using generator: inout SeededGenerator) {
    let segments = segments(of: bytes)
    guard let segment = segments.randomElement(using: &generator), bytes.count > 8 else { return }
    let place = Int.random(in: 2..<bytes.count, using: &generator)
    let byte = UInt8.random(in: 0...255, using: &generator)
    switch Int.random(in: 0..<10, using: &generator) {
    case 0: bytes[place] = byte
    case 1: bytes[place] ^= 1 << (byte % 8)
    case 2: bytes.removeLast(bytes.count - place)
    case 3: bytes.removeLast(Int(byte % 6) + 1)
    case 4: bytes.insert(byte, at: place)
    case 5: bytes.removeSubrange(place..<min(place + 1 + Int(byte % 4), bytes.count))
    case 6:
      let copy = Array(bytes[segment])
      bytes.insert(
        contentsOf: copy, at: segments.randomElement(using: &generator)?.lowerBound ?? 2)
    case 7: bytes.removeSubrange(segment)
    case 8:
      bytes[Int.random(in: segment, using: &generator)] = [0, 1, 0x11, 0x22, 0x41, 255][place % 6]
    default: bytes.insert(contentsOf: [0xff, 0xd0 + byte % 13], at: place)
    }
  }
}

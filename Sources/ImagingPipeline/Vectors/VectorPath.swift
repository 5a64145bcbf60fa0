// VectorPath: estimates the length of a path from its data.

/// The data of a path (SVG 1.1, 8.3) or the points of a polygon.
enum VectorPath {
  /// Returns an upper estimate of the length, in user units. Of a curve it is the length of its control polygon, of an arc
  /// the circumference of its ellipse.
  static func length(of data: VectorBytes) -> Double {
    var length = 0.0
    var command = UInt8(ascii: "L")
    var arguments: [Double] = []
    var current = (x: 0.0, y: 0.0)
    var index = data.startIndex
    while index < data.endIndex {
      let byte = data[index]
      if isLetter(byte), byte != UInt8(ascii: "e"), byte != UInt8(ascii: "E") {
        command = byte
        arguments.removeAll(keepingCapacity: true)
        index += 1
      } else if let number = number(in: data, at: &index) {
        arguments.append(number)
        guard arguments.count == count(of: command) else { continue }
        length += add(command, arguments, to: &current)
        arguments.removeAll(keepingCapacity: true)
      } else {
        index += 1
      }
    }
    return length
  }

  private static func isLetter(_ byte: UInt8) -> Bool {
    let lower = byte | 0x20
    return lower >= UInt8(ascii: "a") && lower <= UInt8(ascii: "z")
  }

  /// The number of arguments of a segment.
  private static func count(of command: UInt8) -> Int {
    switch command | 0x20 {
    case UInt8(ascii: "h"), UInt8(ascii: "v"): 1
    case UInt8(ascii: "c"): 6
    case UInt8(ascii: "s"), UInt8(ascii: "q"): 4
    case UInt8(ascii: "a"): 7
    default: 2
    }
  }

  /// Moves the current point by a segment and returns the segment's length.
  private static func add(
    _ command: UInt8, _ arguments: [Double], to current: inout (x: Double, y: Double)
  ) -> Double {
    let isRelative = command & 0x20 != 0
    let start = current
    let origin = isRelative ? start : (x: 0, y: 0)
    func move(_ x: Double, _ y: Double) -> Double {
      let length = abs(x - current.x) + abs(y - current.y)
      current = (x, y)
      return length
    }
    switch command | 0x20 {
    case UInt8(ascii: "h"): return move(origin.x + arguments[0], start.y)
    case UInt8(ascii: "v"): return move(start.x, origin.y + arguments[0])
    case UInt8(ascii: "a"):
      return move(origin.x + arguments[5], origin.y + arguments[6])
        + 2 * .pi * max(abs(arguments[0]), abs(arguments[1]))
    default:
      var length = 0.0
      for pair in stride(from: 0, to: arguments.count - 1, by: 2) {
        length += move(origin.x + arguments[pair], origin.y + arguments[pair + 1])
      }
      return length
    }
  }

  /// Reads a number and moves behind it; `nil` if there is none.
  private static func number(in data: VectorBytes, at index: inout Int) -> Double? {
    let start = index
    var end = index
    var hasPoint = false
    var hasDigit = false
    var mayHaveSign = true
    scan: while end < data.endIndex, end - start < 64 {
      switch data[end] {
      case UInt8(ascii: "+"), UInt8(ascii: "-"):
        if !mayHaveSign { break scan }
        mayHaveSign = false
      case UInt8(ascii: "."):
        if hasPoint { break scan }
        hasPoint = true
        mayHaveSign = false
      case UInt8(ascii: "0")...UInt8(ascii: "9"):
        hasDigit = true
        mayHaveSign = false
      case UInt8(ascii: "e"), UInt8(ascii: "E"):
        if !hasDigit { break scan }
        hasPoint = true
        mayHaveSign = true
      default: break scan
      }
      end += 1
    }
    guard hasDigit else { return nil }
    index = end
    return Double(String(decoding: data[start..<end], as: UTF8.self)).flatMap {
      $0.isFinite ? $0 : nil
    } ?? 0
  }
}

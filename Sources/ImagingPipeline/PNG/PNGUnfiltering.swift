// PNGUnfiltering: undoes the filters of a PNG's rows.

import Glibc

extension PNGFilter {
  /// Undoes the filter of a row.
  ///
  /// - Parameters:
  ///   - row: The row, `count` bytes.
  ///   - above: The row above it without its filter; `nil` for the first row of a pass.
  ///   - back: The bytes of a pixel, at least 1: how far back the filter looks.
  ///   - result: Where the row without its filter goes. May overlap `row` if it begins at least one byte before it.
  func undo(
    _ row: UnsafePointer<UInt8>, above: UnsafePointer<UInt8>?, count: Int, back: Int,
    into result: UnsafeMutablePointer<UInt8>
  ) {
    switch (self, above) {
    case (.none, _), (.up, nil): memmove(result, row, count)
    case (.up, let above?): Self.undoUp(row, above: above, count: count, into: result)
    // Above the first row are zeros: the filter predicts the pixel on the left.
    case (.sub, _), (.paeth, nil): Self.undoSub(row, count: count, back: back, into: result)
    case (.average, _), (.paeth, _):
      undoPixels(row, above: above, count: count, back: back, into: result)
    }
  }

  private static func undoUp(
    _ row: UnsafePointer<UInt8>, above: UnsafePointer<UInt8>, count: Int,
    into result: UnsafeMutablePointer<UInt8>
  ) {
    var index = 0
    while index + 16 <= count {
      let sum = sixteen(row + index) &+ sixteen(above + index)
      UnsafeMutableRawPointer(result + index).storeBytes(of: sum, as: SIMD16<UInt8>.self)
      index += 16
    }
    while index < count {
      result[index] = row[index] &+ above[index]
      index += 1
    }
  }

  private static func undoSub(
    _ row: UnsafePointer<UInt8>, count: Int, back: Int, into result: UnsafeMutablePointer<UInt8>
  ) {
    for index in 0..<min(back, count) { result[index] = row[index] }
    guard back < count else { return }
    for index in back..<count { result[index] = row[index] &+ result[index &- back] }
  }

  /// Undoes `average` or `paeth`: pixels of 3 bytes or more at once.
  private func undoPixels(
    _ row: UnsafePointer<UInt8>, above: UnsafePointer<UInt8>?, count: Int, back: Int,
    into result: UnsafeMutablePointer<UInt8>
  ) {
    var done = 0
    if let above {
      switch back {
      case 3: done = undoPixels(row, above: above, count: count, of: 3, into: result)
      case 4: done = undoPixels(row, above: above, count: count, of: 4, into: result)
      case 6: done = undoPixels(row, above: above, count: count, of: 6, into: result)
      case 8: done = undoPixels(row, above: above, count: count, of: 8, into: result)
      default: break
      }
    }
    for index in done..<count {
      let isFirst = index < back
      result[index] =
        row[index]
        &+ prediction(
          left: isFirst ? 0 : result[index &- back], above: above?[index] ?? 0,
          corner: isFirst ? 0 : above?[index &- back] ?? 0)
    }
  }

  /// Undoes the filter of pixels of `size` bytes, a constant; all but those that are less than a vector from the end.
  ///
  /// - Returns: The bytes that are done.
  @inline(__always)
  private func undoPixels(
    _ row: UnsafePointer<UInt8>, above: UnsafePointer<UInt8>, count: Int, of size: Int,
    into result: UnsafeMutablePointer<UInt8>
  ) -> Int {
    var (left, corner) = (SIMD8<Int16>.zero, SIMD8<Int16>.zero)
    let isPaeth = self == .paeth
    var index = 0
    while index &+ (size > 4 ? 8 : 4) <= count {
      let up = Self.pixel(above + index, of: size)
      let predicted = isPaeth ? Self.paeth(left, up, corner) : (left &+ up) &>> 1
      left = (Self.pixel(row + index, of: size) &+ predicted) & 0xff
      corner = up
      let place = UnsafeMutableRawPointer(result + index)
      let bytes = SIMD8<UInt8>(truncatingIfNeeded: left)
      switch size {
      case 8: place.storeBytes(of: bytes, as: SIMD8<UInt8>.self)
      case 6:
        // No more than the pixel: what follows may be of the row.
        place.storeBytes(of: bytes.lowHalf, as: SIMD4<UInt8>.self)
        place.storeBytes(of: bytes.highHalf.lowHalf, toByteOffset: 4, as: SIMD2<UInt8>.self)
      // The byte after a pixel of three is overwritten by the next one.
      default: place.storeBytes(of: bytes.lowHalf, as: SIMD4<UInt8>.self)
      }
      index &+= size
    }
    return index
  }

  /// The predictor of Paeth (third edition, 9.4) for each byte.
  @inline(__always)
  private static func paeth(
    _ left: SIMD8<Int16>, _ above: SIMD8<Int16>, _ corner: SIMD8<Int16>
  ) -> SIMD8<Int16> {
    let (down, across) = (above &- corner, left &- corner)
    let toLeft = magnitude(down)
    let toAbove = magnitude(across)
    let toCorner = magnitude(down &+ across)
    let far = corner.replacing(with: above, where: toAbove .<= toCorner)
    return far.replacing(with: left, where: (toLeft .<= toAbove) .& (toLeft .<= toCorner))
  }

  @inline(__always)
  private static func magnitude(_ value: SIMD8<Int16>) -> SIMD8<Int16> {
    pointwiseMax(value, 0 &- value)
  }

  /// Loads a pixel; what follows it is in the lanes after it.
  @inline(__always)
  private static func pixel(_ place: UnsafePointer<UInt8>, of size: Int) -> SIMD8<Int16> {
    let place = UnsafeRawPointer(place)
    guard size > 4 else {
      let bytes = place.loadUnaligned(as: SIMD4<UInt8>.self)
      return SIMD8(lowHalf: SIMD4<Int16>(truncatingIfNeeded: bytes), highHalf: .zero)
    }
    return SIMD8<Int16>(truncatingIfNeeded: place.loadUnaligned(as: SIMD8<UInt8>.self))
  }

  @inline(__always)
  private static func sixteen(_ place: UnsafePointer<UInt8>) -> SIMD16<UInt8> {
    UnsafeRawPointer(place).loadUnaligned(as: SIMD16<UInt8>.self)
  }
}

// ScaledJPEGDecoder+Parts: decodes a JPEG on several threads.

import Glibc
import Platform
import Synchronization

extension ScaledJPEGDecoder {
  /// The bytes of codes that are worth a thread. Twice as many take about 2 ms on one.
  public static let leastPart = 48 << 10

  /// The maximum memory in bytes that `run(_:threads:into:)` needs for coefficients. Parts that never fall into step read the
  /// same codes, each by itself.
  public func bytesOfParts(_ source: UnsafeRawBufferPointer, threads: Int) -> Int {
    let words = frame.words(bases)
    let count = units.across * units.down
    // At most ten blocks a unit. Another coefficient takes two bits of the file at least. Where a unit begins: 8 bytes, in
    // a list that doubles.
    return threads * (count * 24 + 4 * min(count * words, count * 10 + 4 * source.count))
  }

  /// Decodes the image on several threads. The pixels are those of `run(_:write:)`.
  ///
  /// - Parameters:
  ///   - threads: The most threads, with the calling one; at least 1.
  ///   - pixels: Where the pixels are written: `size.height` rows of `size.width × bands` bytes.
  /// - Returns: Whether the data is complete and valid. If not, discard the pixels.
  public func run(
    _ source: UnsafeRawBufferPointer, threads: Int, into pixels: UnsafeMutablePointer<UInt8>
  ) -> Bool {
    run(source, threads: threads, leastPart: Self.leastPart, into: pixels) { Parallel.run($0, $1) }
  }

  /// The same with parts of at least `leastPart` bytes, each of which `runParts` runs.
  func run(
    _ source: UnsafeRawBufferPointer, threads: Int, leastPart: Int,
    into pixels: UnsafeMutablePointer<UInt8>, by runParts: (Int, (Int) -> Void) -> Void
  ) -> Bool {
    let rowBytes = size.width * bands
    let codes = frame.start..<endOfCodes(of: source)
    let count = Parallel.count(codes.count, atLeast: leastPart, threads)
    guard count > 1 else {
      return run(source) { y, row in
        (pixels + y * rowBytes).update(from: row, count: rowBytes)
      }
    }
    guard let runs = runs(of: source, codes: codes, parts: count, by: runParts) else {
      return false
    }
    let isValid = Atomic<Bool>(true)
    runParts(threads) { index in
      let rows = Parallel.part(index, of: threads, in: 0..<units.down)
      if !paint(rows, of: runs, into: pixels) { isValid.store(false, ordering: .relaxed) }
    }
    return isValid.load(ordering: .relaxed)
  }

  /// Reads all units, in parts.
  ///
  /// - Returns: `nil` if the data is damaged or incomplete.
  func runs(
    of source: UnsafeRawBufferPointer, codes: Range<Int>, parts count: Int,
    by runParts: (Int, (Int) -> Void) -> Void
  ) -> [JPEGRun]? {
    let parts = parts(of: source, codes: codes, count: count)
    runParts(parts.count) { index in
      parts[index].read(
        limit: units.across * units.down, next: index + 1 < parts.count ? parts[index + 1] : nil)
    }
    return JPEGRun.joined(parts, units: units.across * units.down)
  }

  /// Returns where the codes end: at the first marker that is no restart, or at the end of the file. Other images or a
  /// video may follow.
  func endOfCodes(of source: UnsafeRawBufferPointer) -> Int {
    guard let start = source.baseAddress else { return 0 }
    var place = frame.start
    while place + 1 < source.count,
      let ones = memchr(start + place, 0xff, source.count - 1 - place)
    {
      place = UnsafeRawPointer(ones) - start
      let next = source[place + 1]
      guard next == 0 || 0xd0...0xd7 ~= next || next == 0xff else { return place }
      place += next == 0xff ? 1 : 2
    }
    return source.count
  }

  /// Divides the codes. With restarts, the parts begin after restart markers.
  private func parts(
    of source: UnsafeRawBufferPointer, codes: Range<Int>, count: Int
  ) -> [JPEGPart] {
    var parts: [JPEGPart] = []
    func add(at start: Int, restart: UInt8) {
      let part = JPEGPart(
        source, at: start, frame: frame, bases: bases, restart: restart, isFirst: parts.isEmpty)
      if let part { parts.append(part) }
    }
    add(at: frame.start, restart: 0)
    for index in 0..<count where index > 0 {
      let place = Parallel.part(index, of: count, in: codes)
      if frame.restartInterval == 0 {
        add(at: JPEGPart.firstByte(from: place.lowerBound, in: source), restart: 0)
      } else if let marker = place.dropLast().first(where: {
        source[$0] == 0xff && 0xd0...0xd7 ~= source[$0 + 1]
      }) {
        add(at: marker + 2, restart: (source[marker + 1] - 0xd0 + 1) % 8)
      }
    }
    return parts
  }

  /// Computes the pixels of rows of units.
  private func paint(
    _ unitRows: Range<Int>, of runs: [JPEGRun], into pixels: UnsafeMutablePointer<UInt8>
  ) -> Bool {
    let painter = JPEGUnitPainter(frame, bases: bases)
    let stride = units.across * unit.width
    let plane = stride * unit.height
    let planes = UnsafeMutablePointer<Float>.allocate(capacity: plane * bands)
    planes.initialize(repeating: 0, count: plane * bands)
    // Each pixel is written as 4 bytes; the next pixel overwrites the excess.
    let row = UnsafeMutablePointer<UInt8>.allocate(capacity: size.width * bands + 4)
    defer {
      planes.deallocate()
      row.deallocate()
    }
    var place = JPEGRun.Place(of: unitRows.lowerBound * units.across, in: runs)
    for unitRow in unitRows {
      for column in 0..<units.across {
        guard
          painter.paint(
            place.next(in: runs), to: planes + column * unit.width, stride: stride, plane: plane)
        else { return false }
      }
      let top = unitRow * unit.height
      for y in top..<min(top + unit.height, size.height) {
        let light = UnsafePointer(planes + (y - top) * stride)
        JPEGRow.paint(
          light, colours: bands == 3 ? (light + plane, light + 2 * plane) : nil, width: size.width,
          into: row)
        (pixels + y * size.width * bands).update(from: row, count: size.width * bands)
      }
    }
    return true
  }
}

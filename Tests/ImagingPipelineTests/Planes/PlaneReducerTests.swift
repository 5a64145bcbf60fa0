// PlaneReducerTests: one plane's reduction and conversion, beside floating-point sums.

import Core
import Glibc
import TestSupport
import Testing

@testable import ImagingPipeline

@Suite(.onOwnThreads) struct PlaneReducerTests {
  /// Random samples of any depth, with garbage after each row.
  private struct Noise {
    let size: PixelSize
    let depth: Int
    let values: [Int]
    private let bytes: [UInt8]
    private let stride: Int

    init(width: Int, height: Int, depth: Int) {
      var generator = SeededGenerator(seed: UInt64(width * depth))
      size = PixelSize(width: width, height: height)
      self.depth = depth
      values = (0..<width * height).map { _ in Int.random(in: 0..<1 << depth, using: &generator) }
      let width = depth > 8 ? 2 : 1
      stride = (size.width + 5) * width
      var bytes = [UInt8](repeating: 0xa7, count: stride * height)
      for (index, value) in values.enumerated() {
        let place = index / size.width * stride + index % size.width * width
        bytes[place] = UInt8(value & 255)
        if width == 2 { bytes[place + 1] = UInt8(value >> 8) }
      }
      self.bytes = bytes
    }

    func withPlane<Result>(_ body: (Plane) -> Result) -> Result {
      bytes.withUnsafeBytes { bytes in
        guard let start = bytes.baseAddress else { preconditionFailure("no bytes") }
        return body(Plane(start: start, stride: stride, size: size, depth: depth))
      }
    }
  }

  @Test(arguments: [8, 10, 12])
  func `a plane is reduced or enlarged as Lanczos3 does`(depth: Int) {
    for (width, height) in [(40, 30), (97, 61), (1, 1), (30, 7), (150, 100), (96, 60)] {
      // Given: also a window with edges within samples
      let noise = Noise(width: 97, height: 61, depth: depth)
      for window in [Window(noise.size), Self.window(3.5, 2, 80.5, 51)] {
        // When
        let target = PixelSize(width: width, height: height)
        let made = noise.withPlane { plane in
          var reducer = PlaneReducer(of: plane, showing: window, to: target)
          var values: [Int16] = []
          var row = [Int16](repeating: 0, count: width)
          for y in 0..<height {
            reducer.read(y, into: &row)
            values += row
          }
          return values
        }
        // Then: in steps of 8 bits. Boxes come before Lanczos3 where the factor is 4 or more
        let exact = Self.lanczos(noise, showing: window, to: target)
        let tolerance = width < 12 || height < 8 ? 24.0 : 0.1
        for (value, exact) in zip(made, exact) {
          #expect(abs(Double(value) / 64 - exact / Double(1 << (depth - 8))) < tolerance)
        }
      }
    }
  }

  @Test(arguments: [1, 2, 5, 6, 9], [8, 10])
  func `values are converted to RGB as H.273 has it`(coefficients: Int, depth: Int) throws {
    // Table 4 of H.273
    let shares = [1: (0.2126, 0.0722), 9: (0.2627, 0.0593)][coefficients] ?? (0.299, 0.114)
    for isFullRange in [true, false] {
      let matrix = try #require(
        ColourMatrix(.init(coefficients: coefficients, isFullRange: isFullRange), depth: depth))
      // Given
      let noise = Noise(width: 201, height: 3, depth: depth)
      let rows = (0..<3).map { plane in
        (0..<208).map { x in
          x < 201 ? Int16(noise.values[plane * 201 + x] << (14 - depth)) : 0
        }
      }
      // When
      var pixels = [UInt8](repeating: 0, count: 208 * 3 + 1)
      rows[0].withUnsafeBufferPointer { y in
        rows[1].withUnsafeBufferPointer { cb in
          rows[2].withUnsafeBufferPointer { cr in
            guard let y = y.baseAddress, let cb = cb.baseAddress, let cr = cr.baseAddress else {
              return
            }
            matrix.convert((y, cb, cr), width: 201, to: &pixels)
          }
        }
      }
      // Then
      let most = Double(1 << depth - 1)
      let unit = Double(1 << (depth - 8))
      for x in 0..<201 {
        let sample = (0..<3).map { Double(noise.values[$0 * 201 + x]) }
        let y = isFullRange ? sample[0] / most : (sample[0] / unit - 16) / 219
        let differences = sample[1...].map {
          isFullRange ? ($0 - 128 * unit) / most : ($0 / unit - 128) / 224
        }
        let red = y + 2 * (1 - shares.0) * differences[1]
        let blue = y + 2 * (1 - shares.1) * differences[0]
        let green = (y - shares.0 * red - shares.1 * blue) / (1 - shares.0 - shares.1)
        for (band, value) in [red, green, blue].enumerated() {
          let exact = min(max(value * 255, 0), 255)
          #expect(abs(Double(pixels[x * 3 + band]) - exact) < 0.6)
        }
      }
    }
  }

  @Test(arguments: [0, 3, 4, 8, 10, 14, 255])
  func `other colour models have no such matrix`(coefficients: Int) {
    #expect(ColourMatrix(.init(coefficients: coefficients, isFullRange: true), depth: 8) == nil)
    #expect(!ColourMatrix.exists(for: coefficients))
  }

  // MARK: Reference

  private static func window(_ x: Double, _ y: Double, _ width: Double, _ height: Double) -> Window
  {
    var window = Window(PixelSize(width: 1, height: 1))
    (window.x, window.y) = (x, y)
    (window.width, window.height) = (width, height)
    return window
  }

  /// Computes the separable sums in floating point, in samples of the plane.
  private static func lanczos(
    _ noise: Noise, showing window: Window, to target: PixelSize
  ) -> [Double] {
    let across = weights(
      noise.size.width, start: window.x, span: window.width, target: target.width)
    let down = weights(
      noise.size.height, start: window.y, span: window.height, target: target.height)
    let rows = (0..<noise.size.height).map { y in
      across.map { taps in
        taps.reduce(0) { $0 + $1.1 * Double(noise.values[y * noise.size.width + $1.0]) }
      }
    }
    return down.flatMap { taps in
      (0..<target.width).map { x in taps.reduce(0) { $0 + $1.1 * rows[$1.0][x] } }
    }
  }

  private static func weights(
    _ source: Int, start: Double, span: Double, target: Int
  ) -> [[(Int, Double)]] {
    let factor = span / Double(target)
    // Only what the window touches is seen.
    let seen = Int(start)..<min(source, Int((start + span).rounded(.up)))
    return (0..<target).map { index in
      let middle = start + (Double(index) + 0.5) * factor
      let all = seen.map { pixel -> (Int, Double) in
        let x = abs(Double(pixel) + 0.5 - middle) / max(1, factor)
        let sinc = { (x: Double) in x < 1e-9 ? 1 : sin(.pi * x) / (.pi * x) }
        return (pixel, x < 3 ? sinc(x) * sinc(x / 3) : 0)
      }
      let sum = all.reduce(0) { $0 + $1.1 }
      return all.map { ($0.0, $0.1 / sum) }
    }
  }
}

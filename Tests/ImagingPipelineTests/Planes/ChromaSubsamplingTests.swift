// ChromaSubsamplingTests: luma and halved colours, compared with floating-point sums.

import Model
import TestSupport
import Testing

@testable import ImagingPipeline

@Suite struct ChromaSubsamplingTests {
  /// A plane with a byte around each row that must not change.
  private struct Canvas {
    static let guardByte: UInt8 = 0xa5
    let size: PixelSize
    var bytes: [UInt8]

    init(_ size: PixelSize) {
      self.size = size
      bytes = Array(repeating: Self.guardByte, count: (size.width + 2) * (size.height + 2))
    }

    var stride: Int { size.width + 2 }

    mutating func withSamples(_ body: (ChromaSubsampling.Samples) throws -> Void) throws {
      let stride = stride
      try bytes.withUnsafeMutableBufferPointer { bytes in
        let first = try #require(bytes.baseAddress) + stride + 1
        try body(ChromaSubsampling.Samples(first, stride: CInt(stride)))
      }
    }

    subscript(x: Int, y: Int) -> UInt8 { bytes[(y + 1) * stride + x + 1] }

    /// Whether all bytes around the plane are as they were.
    var isIntact: Bool {
      bytes.indices.allSatisfy { index in
        let (x, y) = (index % stride, index / stride)
        let isInside = 1...size.width ~= x && 1...size.height ~= y
        return isInside || bytes[index] == Self.guardByte
      }
    }
  }

  /// Converts pixels that end where readable memory ends.
  private func converted(
    _ pixels: Pixels, by subsampling: ChromaSubsampling
  ) throws -> (luma: Canvas, blue: Canvas, red: Canvas) {
    let size = pixels.size
    let half = PixelSize(width: (size.width + 1) / 2, height: (size.height + 1) / 2)
    var (luma, blue, red) = (Canvas(size), Canvas(half), Canvas(half))
    let source = try GuardedBytes(pixels.values)
    try luma.withSamples { y in
      try blue.withSamples { cb in
        try red.withSamples { cr in
          let planes = ChromaSubsampling.Planes(luma: y, cb: cb, cr: cr)
          try source.withBytes { bytes in
            let start = try #require(bytes.baseAddress).assumingMemoryBound(to: UInt8.self)
            subsampling.convert(start, size, to: planes)
          }
        }
      }
    }
    return (luma, blue, red)
  }

  private static let sizes: [PixelSize] = (1...26).flatMap { width in
    (1...5).map { PixelSize(width: width, height: $0) }
  }

  @Test func `every sample is the rounded sum, at any size`() throws {
    var chance = SeededGenerator(seed: 7)
    for size in Self.sizes {
      let pixels = Pixels(width: size.width, height: size.height) { _, _ in
        // Extremes are likelier than by chance.
        (0..<3).map { _ in
          [0, 255, UInt8.random(in: 0...255, using: &chance)][Int.random(in: 0...2, using: &chance)]
        }
      }
      let planes = try converted(pixels, by: .fullRange)
      #expect(planes.luma.isIntact && planes.blue.isIntact && planes.red.isIntact, "\(size)")
      func level(_ x: Int, _ y: Int) -> [Double] {
        pixels.rgb(x: min(x, size.width - 1), y: min(y, size.height - 1)).map(Double.init)
      }
      func luma(_ level: [Double]) -> Double {
        0.299 * level[0] + 0.587 * level[1] + 0.114 * level[2]
      }
      var worst = 0.0
      for y in 0..<size.height {
        for x in 0..<size.width {
          let wanted = luma(level(x, y))
          worst = max(worst, abs(Double(planes.luma[x, y]) - wanted))
        }
      }
      for y in 0..<(size.height + 1) / 2 {
        for x in 0..<(size.width + 1) / 2 {
          let square = [(0, 0), (1, 0), (0, 1), (1, 1)].map { level(2 * x + $0.0, 2 * y + $0.1) }
          let mean = (0..<3).map { band in square.map { $0[band] }.reduce(0, +) / 4 }
          for (band, share, plane) in [(2, 0.114, planes.blue), (0, 0.299, planes.red)] {
            let wanted = (mean[band] - luma(mean)) / (1 - share) / 2 + 128
            worst = max(worst, abs(Double(plane[x, y]) - min(wanted, 255)))
          }
        }
      }
      // Half a level of rounding, and the weights' own.
      #expect(worst < 0.52, "\(size)")
    }
  }
}

// JobCostTests: what a job takes is estimated from headers, and bounds what is begun with.

import ImagingWire
import Model
import TestSupport
import Testing

@testable import ImagingPipeline

@Suite(.onOwnThreads) struct JobCostTests {
  private static func animation(_ format: String) throws -> [UInt8] {
    format == "gif"
      ? try TestImages.animation(
        (0..<20).map { _ in Pixels.scene(width: 60, height: 40) }, as: ".gif")
      : try TestImages.animatedWebP(width: 60, height: 40, frames: 20)
  }

  @Test(arguments: ["gif", "webp"])
  func `the cost of an animation grows with its frames, and is higher as a GIF`(format: String)
    throws
  {
    // Given: 20 frames, whose colours take 200 ms as a GIF; as a WebP they take 5 ms
    let source = try Self.animation(format)
    var limits = ImagingLimits()
    limits.maximumSeconds = 0.1
    // When, then: the variant is to blame, and others can be had
    let error = Made.error(source, limits: limits) {
      $0.format = .gif
      $0.width = 50
    }
    guard case .ofVariant(.tooCostly)? = error else {
      Issue.record("\(String(describing: error))")
      return
    }
    #expect(Made.error(source, limits: limits) { $0.format = .webp } == nil)
    #expect(Made.error(source, limits: limits) { $0.frame = 0 } == nil)
    #expect(Made.error(source, limits: limits) { $0.product = .info(nil) } == nil)
  }

  @Test(arguments: [
    "jpeg", "png", "gif", "webp", "tiff", "avif", "heic", "jxl", "jp2",
  ])
  func `decoding has a cost in every format`(kind: String) throws {
    var limits = ImagingLimits()
    limits.maximumSeconds = 1e-9
    let error = Made.error(try HostileTests.source(kind), limits: limits) { $0.width = 8 }
    #expect(error?.code == "too_costly" && error?.isOfSource == true)
  }

  /// Returns the estimated processor time of a job, in seconds.
  private func seconds(of source: [UInt8], width: Int) throws -> Double {
    let pipeline = try Pipeline()
    var costs: [JobCost] = []
    var transform = Transform()
    transform.sizing.width = width
    do {
      try source.withUnsafeBytes { bytes in
        _ = try pipeline.process(
          bytes, transform: transform, density: 1, limits: ImagingLimits(),
          admits: {
            costs.append($0)
            return false
          })
      }
    } catch ImageError.cancelled {}
    return try #require(costs.last?.seconds)
  }

  @Test func `a JPEG that is decoded at an eighth of its size costs a fraction`() throws {
    // Given: 750,000 pixels, 15 ns each when they are decoded
    let scene = Pixels.scene(width: 100, height: 75)
    let source = try TestImages.encode(scene, as: ".jpg", zoom: 10)
    let progressive = try TestImages.encode(scene, as: ".jpg[interlace]", zoom: 10)
    // When, then
    #expect(try seconds(of: source, width: 1_000) > 0.011)
    #expect(try seconds(of: source, width: 100) < 0.005)
    // Its coefficients are read all the same.
    #expect(try seconds(of: progressive, width: 1_000) > 0.015)
    #expect(try seconds(of: progressive, width: 100) < 0.008)
  }

  @Test func `a search for quality costs several encodes`() throws {
    let source = try TestImages.jpeg(width: 300, height: 200)
    var limits = ImagingLimits()
    // 60,000 pixels: 0.6 ms to decode, 0.5 to encode once.
    limits.maximumSeconds = 0.002
    #expect(Made.error(source, limits: limits) { $0.format = .jpeg } == nil)
    let error = Made.error(source, limits: limits) {
      $0.format = .jpeg
      $0.maxBytes = 9_000
    }
    #expect(error?.code == "too_costly")
  }
}

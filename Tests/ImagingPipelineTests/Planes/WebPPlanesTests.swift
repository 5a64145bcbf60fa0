// WebPPlanesTests: WebPs reduced before their conversion to RGB, beside libwebp's order.

import Model
import TestSupport
import Testing

@testable import ImagingPipeline

@Suite(.onOwnThreads) struct WebPPlanesTests {
  private static let scene = Pixels.textured(width: 331, height: 219)

  private static func webp(_ options: String = "") throws -> [UInt8] {
    try TestImages.encode(scene, as: ".webp[Q=95,effort=1\(options)]")
  }

  private func isPlanar(_ webp: [UInt8]) throws -> Bool {
    let size = try Pixels(decoding: webp).size
    return webp.withUnsafeBytes { WebPPlanes($0, size: size, isSmoothed: true) != nil }
  }

  @Test(arguments: [330, 300, 240, 200, 90, 37, 5, 1])
  func `a WebP looks like one that is decoded whole`(width: Int) throws {
    let webp = try Self.webp()
    #expect(try isPlanar(webp))
    let (made, reference) = try PlanarSource.both(webp) { $0.width = width }
    #expect(made.psnr(to: reference) > 36)
  }

  @Test func `regions, turns and other shapes look the same`() throws {
    let webp = try Self.webp()
    let changes: [(inout Transform) -> Void] = [
      {
        $0.crop = PixelArea(x: 101, y: 33, size: PixelSize(width: 203, height: 151))
        $0.width = 90
      },
      {
        $0.rotation = .threeQuarters
        $0.width = 73
      },
      {
        $0.width = 60
        $0.height = 210
        $0.fit = .fill
      },
    ]
    for (index, change) in changes.enumerated() {
      let (made, reference) = try PlanarSource.both(webp, change: change)
      #expect(made.psnr(to: reference) > 36, "\(index)")
    }
  }

  @Test func `a profile is applied after the reduction`() throws {
    let webp = try Self.webp(",profile=p3")
    #expect(try isPlanar(webp))
    let png = try TestImages.encode(Self.scene, as: ".png[profile=p3]")
    let (made, reference) = try PlanarSource.results(of: webp, png)
    #expect(made.psnr(to: reference) > 32)
  }

  @Test func `lossless, alpha, frames and damage are left to libvips`() throws {
    let webp = try Self.webp()
    #expect(try !isPlanar(try Self.webp(",lossless")))
    #expect(try !isPlanar(try TestImages.webp(width: 60, height: 40, alpha: true)))
    let frames = try TestImages.bareWebP(width: 60, height: 40, frames: 3)
    let size = PixelSize(width: 60, height: 40)
    #expect(frames.withUnsafeBytes { WebPPlanes($0, size: size, isSmoothed: true) == nil })
    let half = Array(webp.prefix(webp.count / 2))
    #expect(
      half.withUnsafeBytes { WebPPlanes($0, size: Self.scene.size, isSmoothed: true) == nil })
    #expect(Made.error(half) { $0.width = 100 } != nil)
    #expect(webp.withUnsafeBytes { WebPPlanes($0, size: size, isSmoothed: true) == nil })
  }
}

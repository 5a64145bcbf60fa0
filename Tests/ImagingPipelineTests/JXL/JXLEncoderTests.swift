// JXLEncoderTests: JPEG XLs that libjxl makes without libvips, compared with those that libvips has it make.

import ImagingWire
import Model
import Platform
import TestSupport
import Testing

@testable import ImagingPipeline

@Suite(.onOwnThreads) struct JXLEncoderTests {
  private static func made(
    _ pixels: Pixels, quality: Int = 77, effort: Int = 5, threads: Int = 1
  ) throws -> [UInt8] {
    var limits = ImagingLimits()
    limits.efforts.jxl = effort
    limits.maximumThreads = threads
    return try Made(try TestImages.encode(pixels, as: ".png"), limits: limits) {
      $0.format = .jxl
      $0.quality = quality
    }.bytes
  }

  private static func theirs(
    _ pixels: Pixels, distance: Double = 2.262, effort: Int = 5
  ) throws -> [UInt8] {
    try TestImages.encode(pixels, as: ".jxl[distance=\(distance),effort=\(effort),strip]")
  }

  /// libvips takes a distance of at most 15.
  @Test(
    arguments: [
      (12, 10.852155269719665), (29, 6.712179909437029), (30, 6.68), (50, 4.8), (77, 2.262),
      (90, 1.04), (100, 0.1),
    ], [3, 4, 5, 7])
  func `a JPEG XL has libvips's bytes of the same distance`(
    quality: (Int, distance: Double), effort: Int
  ) throws {
    let scene = Pixels.textured(width: 150, height: 110)
    let made = try Self.made(scene, quality: quality.0, effort: effort)
    let isSame = try made == Self.theirs(scene, distance: quality.distance, effort: effort)
    #expect(isSame)
  }

  /// Groups of libjxl have 256 pixels a side.
  @Test(arguments: [
    PixelSize(width: 1, height: 1), PixelSize(width: 2, height: 1), PixelSize(width: 1, height: 7),
    PixelSize(width: 64, height: 65), PixelSize(width: 256, height: 256),
    PixelSize(width: 257, height: 513), PixelSize(width: 600, height: 530),
    PixelSize(width: 1_003, height: 40),
  ])
  func `a JPEG XL has libvips's bytes at any size and with any number of threads`(
    size: PixelSize
  ) throws {
    let scene = Pixels.textured(width: size.width, height: size.height)
    let theirs = try Self.theirs(scene)
    for threads in [1, 2, 3, 4] {
      let isSame = try Self.made(scene, threads: threads) == theirs
      #expect(isSame, "\(threads)")
    }
  }

  @Test(arguments: [3, 4, 6, 7, 8, 9])
  func `the number of threads changes nothing at any effort`(effort: Int) throws {
    let scene = Pixels.textured(width: 530, height: 300)
    let one = try Self.made(scene, effort: effort)
    let isSame = try Self.made(scene, effort: effort, threads: 3) == one
    #expect(isSame)
  }

  @Test(arguments: [1, 2, 3, 4])
  func `a JPEG XL has libvips's bytes with alpha and in grey`(bands: Int) throws {
    let scene = Pixels(width: 90, height: 60, bands: bands) { x, y in
      (0..<bands).map { UInt8(40 + 30 * $0 + x / (1 + $0) + y / 2) }
    }
    let made = try Self.made(scene)
    let isSame = try made == Self.theirs(scene)
    #expect(isSame)
    #expect(try Pixels(decoding: made).bands == bands)
  }

  @Test func `kept metadata changes nothing`() throws {
    let photo = try TestImages.heif(
      .scene(width: 90, height: 60), isAVIF: false, exifOrientation: 1)
    let kept = try Made(photo) {
      $0.format = .jpeg
      $0.output.stripsMetadata = false
    }
    #expect(kept.bytes.firstRange(of: Array("Exif".utf8)) != nil)
    // At this quality libvips's file would have several times the bytes.
    let files = try [true, false].map { isBare in
      try Made(photo) {
        $0.format = .jxl
        $0.quality = 2
        $0.output.stripsMetadata = isBare
      }.bytes
    }
    #expect(files[0] == files[1])
  }

  @Test func `the lowest qualities have the fewest bytes`() throws {
    let scene = Pixels.textured(width: 200, height: 150)
    var last = 0
    for quality in [1, 2, 4, 5, 8, 15, 29, 30, 60, 100] {
      let file = try Self.made(scene, quality: quality)
      #expect(file.count >= last, "\(quality)")
      last = file.count
    }
  }

  @Test func `deep sources and effects look like their PNG, and a limit of bytes is kept`() throws {
    let scene = Pixels.textured(width: 300, height: 200)
    let png = try TestImages.encode(scene, as: ".png")
    let deep = try TestImages.encode(scene, as: ".png", sixteenBits: true)
    let changes: [(source: [UInt8], change: (inout Transform) -> Void)] = [
      (png, { $0.effects.blur = 2 }), (png, { $0.rotation = .quarter }), (deep, { _ in }),
    ]
    var limits = ImagingLimits()
    limits.efforts.jxl = 5
    for (index, (source, change)) in changes.enumerated() {
      let file = try Made(source, limits: limits) {
        $0.format = .jxl
        change(&$0)
      }
      let reference = try Made(source) {
        $0.format = .png
        change(&$0)
      }
      #expect(try file.pixels().psnr(to: reference.pixels()) > 28, "\(index)")
    }
    // Noise would look as much like itself.
    #expect(try Made(deep) { $0.format = .png }.pixels().values == scene.values)
    #expect(try Made(png) { $0.format = .jxl }.bytes.count > 4_000)
    let small = try Made(png) {
      $0.format = .jxl
      $0.maxBytes = 4_000
    }
    #expect(small.bytes.count <= 4_000 && small.format == .jxl)
  }

  /// What libjxl's side of a computation sees: how often each value came, on which threads.
  private final class Work {
    let seen = Lock((begun: [Int](), values: [Int](repeating: 0, count: 40), threads: Set<Int>()))
  }

  @Test(arguments: [(1, 0, 7), (2, 0, 40), (4, 5, 8), (3, 9, 10), (4, 3, 3)])
  func `each part runs once, on threads that were announced`(
    threads: Int, start: UInt32, end: UInt32
  ) {
    let work = Work()
    let status = jxlRunner(
      UnsafeMutableRawPointer(bitPattern: threads), Unmanaged.passUnretained(work).toOpaque(),
      { work, count in
        guard let work else { return -1 }
        let own = Unmanaged<Work>.fromOpaque(work).takeUnretainedValue()
        own.seen.withLock { $0.begun.append(count) }
        return 0
      },
      { work, value, thread in
        guard let work else { return }
        let own = Unmanaged<Work>.fromOpaque(work).takeUnretainedValue()
        own.seen.withLock {
          $0.values[Int(value)] += 1
          $0.threads.insert(thread)
        }
      }, start, end)
    #expect(status == 0)
    let seen = work.seen.withLock { $0 }
    let count = min(threads, Int(end - start))
    #expect(seen.begun == (count > 0 ? [count] : []))
    let wanted = (0..<40).map { Int(start) <= $0 && $0 < Int(end) ? 1 : 0 }
    #expect(seen.values == wanted)
    #expect(seen.threads.allSatisfy { (0..<max(count, 1)).contains($0) })
  }

  @Test func `a computation that cannot begin runs no part`() {
    let status = jxlRunner(
      UnsafeMutableRawPointer(bitPattern: 2), nil, { _, _ in 5 },
      { _, _, _ in Issue.record("ran") }, 0, 9)
    #expect(status == 5)
  }
}

// MemoryFuzzTests: no answer depends on what a worker's memory held before.

import CLinux
import ImagingWire
import Model
import TestSupport
import Testing

@Suite(
  .onOwnThreads, .enabled(if: !TestBuild.isAddressSanitized, "a sanitizer has its own allocator"))
struct MemoryFuzzTests {
  private static let limits: ImagingLimits = {
    var limits = ImagingLimits()
    // All damage is tolerated: decoders that continue after it leave most pixels unwritten.
    limits.failOn = .none
    limits.maximumPixels = 400_000
    limits.maximumFrames = 20
    return limits
  }()

  private static func oracle() throws -> ImagingOracle {
    try ImagingOracle(
      program: TestBuild.programFolder + "/pictor-imager",
      other: try TestImages.encode(
        Pixels(width: 300, height: 200, bands: 3) { x, y in
          [UInt8((x * 7 + y * 13) & 255), UInt8((x * y) & 255), UInt8((x ^ y) & 255)]
        }, as: ".png[compression=1]"))
  }

  /// Checks the answers to an input: all its pixels, and those of a small result.
  private static func check(_ input: [UInt8], with oracle: ImagingOracle) throws -> Bool {
    var all = Transform()
    all.output.format = .png
    var small = all
    small.sizing.width = 20
    let answers = try [all, small].map { try oracle.answers(to: input, $0, limits: limits) }
    for (first, second) in answers {
      try hold(first == second, "the answer depends on memory: \(first), \(second)")
    }
    if case .image? = answers.first?.0 { return true }
    return false
  }

  @Test func `answers do not depend on what memory held, whole inputs`() throws {
    let oracle = try Self.oracle()
    for seed in try MemorySeeds.all.get() {
      #expect(try Self.check(seed.bytes, with: oracle) == seed.isDecoded, "\(seed.name)")
    }
    #expect(oracle.deaths == 0)
  }

  @Test func `answers do not depend on what memory held, damaged inputs`() throws {
    let oracle = try Self.oracle()
    let seeds = try MemorySeeds.all.get()
    var decoded = 0
    try Fuzz.run(
      "memory", usual: 250,
      make: { generator in
        var bytes = seeds[generator.number(0...seeds.count - 1)].bytes
        guard generator.isOne(of: 2) else {
          Damage.apply(to: &bytes, words: FileSeeds.words, using: &generator)
          return bytes
        }
        // In the headers, where sizes are.
        var head = Array(bytes.prefix(200))
        Damage.apply(to: &head, words: FileSeeds.words, using: &generator)
        return head + bytes.dropFirst(200)
      },
      check: { decoded += try Self.check($0, with: oracle) ? 1 : 0 })
    #expect(decoded > 0)
    if FuzzSeeds.isLongRun { print("memory: \(decoded) decoded, \(oracle.deaths) workers died") }
  }

  @Test func `a decoder that leaves pixels unwritten shows what memory held`() throws {
    // given: an image that libvips writes in part, decoded without check and the worker's malloc
    let image = try MemorySeeds.beside()
    // M_PERTURB of mallopt(3)
    let perturb: CInt = -6
    defer { mallopt(perturb, 0) }
    // when
    mallopt(perturb, 0x5a)
    let first = try Pixels(decoding: image)
    mallopt(perturb, 0xc3)
    let second = try Pixels(decoding: image)
    // then
    #expect(first.values != second.values)
  }
}

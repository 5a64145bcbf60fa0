// WishesTests: any combination of parameters gives an image, deterministically.

import Core
import TestSupport
import Testing

@Suite(.onOwnThreads) struct WishesTests {
  private static func sources() throws -> [[UInt8]] {
    [
      try TestImages.encode(.textured(width: 1, height: 1, bands: 4), as: ".png"),
      try TestImages.encode(.textured(width: 37, height: 23, bands: 4), as: ".png"),
      try TestImages.encode(.textured(width: 2, height: 61, bands: 1), as: ".png"),
      try TestImages.encode(
        .textured(width: 40, height: 30, bands: 2), as: ".png", sixteenBits: true),
      try TestImages.jpeg(width: 160, height: 120, orientation: 5, progressive: true),
      try TestImages.jpeg(width: 320, height: 240, orientation: 8, profile: "p3"),
      try TestImages.webp(width: 150, height: 100, alpha: true),
      try TestImages.gif(width: 24, height: 18, frames: 3), TestImages.svg(width: 30, height: 20),
    ]
  }

  private static func transform(_ random: inout SeededGenerator) -> Transform {
    var transform = Transform()
    func rarely() -> Bool { Int.random(in: 0..<4, using: &random) == 0 }
    func side() -> Int { Int.random(in: 1...90, using: &random) }
    if rarely() { transform.width = side() }
    if rarely() { transform.height = side() }
    if rarely() { transform.scale = Double.random(in: 0.01...3, using: &random) }
    transform.fit = Fit.allCases.randomElement(using: &random) ?? .inside
    transform.position = Position.allCases.randomElement(using: &random) ?? .center
    if rarely() {
      transform.focalPoint = FocalPoint(
        x: .random(in: 0...1, using: &random), y: .random(in: 0...1, using: &random))
    }
    transform.rotation = Rotation.allCases.randomElement(using: &random) ?? .none
    transform.flip = Flip.allCases.randomElement(using: &random) ?? .none
    if rarely() {
      transform.crop = PixelArea(
        x: .random(in: 0...9, using: &random), y: .random(in: 0...9, using: &random),
        size: PixelSize(width: side(), height: side()))
    }
    if rarely() { transform.sizing.angle = .random(in: 0...360, using: &random) }
    if rarely() { transform.output.profile = .keep }
    if rarely() { transform.trim = .random(in: 1...255, using: &random) }
    transform.enlarge = rarely()
    transform.format = [nil, .png, .jpeg, .webp].randomElement(using: &random) ?? nil
    if rarely() { transform.limitBytes = .random(in: 1...9_000, using: &random) }
    if rarely() { transform.background = Color(red: 9, green: 99, blue: 0, alpha: 40) }
    if rarely() { transform.effects.blur = .random(in: 0.3...250, using: &random) }
    if rarely() { transform.effects.sharpen = .random(in: 0.1...10, using: &random) }
    if rarely() { transform.effects.radius = rarely() ? .maximum : .points(side()) }
    if rarely() { transform.effects.tint = Color(red: 200, green: 0, blue: 9, alpha: 99) }
    transform.effects.isGrayscale = rarely()
    if rarely() { transform.effects.brightness = .random(in: 0...10, using: &random) }
    if rarely() { transform.effects.saturation = .random(in: 0...10, using: &random) }
    return transform
  }

  @Test(arguments: 0..<9)
  func `random parameters give an image of the stated size, deterministically`(
    index: Int
  ) throws {
    var random = SeededGenerator(seed: UInt64(index + 1))
    let source = try Self.sources()[index]
    for round in 0..<16 {
      let wish = Self.transform(&random)
      let text = "round \(round): \(wish.canonicalText)"
      if let error = Made.error(source, change: { $0 = wish }) {
        // A crop of a small image may lie outside.
        #expect(error.parameter == "crop" && wish.crop != nil, "\(text): \(error)")
        continue
      }
      let made = try Made(source) { $0 = wish }
      #expect(try made.pixels(frame: made.frames > 1 ? 0 : nil).size == made.size, "\(text)")
      if round.isMultiple(of: 4) {
        #expect(try Made(source) { $0 = wish }.bytes == made.bytes, "\(text)")
      }
    }
  }
}

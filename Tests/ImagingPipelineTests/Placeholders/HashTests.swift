// HashTests: BlurHash and ThumbHash, compared with the reference implementations.

import FoundationEssentials
import Model
import TestSupport
import Testing

@testable import ImagingPipeline

/// The vectors come from the PyPI packages blurhash-python 1.2.2 (woltapp's C) and thumbhash-rs
/// 0.1.0 (evanw's Rust), for images with the pixels of `pattern`. ThumbHash has no vectors for
/// images of one colour: their amplitudes are rounding errors, scaled up to 4 bits.
@Suite(.onOwnThreads) struct HashTests {
  private static func pattern(width: Int, height: Int, alpha: Bool = false) -> SmallImage {
    SmallImage(PixelSize(width: width, height: height)) { x, y in
      [
        UInt8((x * 7 + y * 3) % 256), UInt8((255 - x * 5 + y * 2) & 255), UInt8(x * y % 256),
        alpha ? UInt8((x * x + y * 11) % 256) : 255,
      ]
    }
  }

  private static func pixel(_ image: SmallImage, x: Int, y: Int) -> [UInt8] {
    let start = (y * image.size.width + x) * 4
    return Array(image.values[start..<start + 4])
  }

  // MARK: BlurHash

  @Test(arguments: [
    (32, 24, 4, 3, "LlHpE^3eU{vPTATpx@OrSHs;S~ov"), (32, 24, 1, 1, "00HpE^"),
    (32, 24, 3, 4, "TlHpE^3eU{TATpx@SHs;S~otX9js"),
    (24, 32, 4, 3, "LbGKKT0yqKawCEt^kWZ;jokWgggb"), (20, 20, 4, 3, "LfCJsQ9?l[ilPIptkqadbCkXgFgL"),
    (
      20, 20, 9, 9,
      "|fCJsQ9?l[ilVtoxV]ofV[PIptkqadi%a5i{a#j[bCkXgFgLgLf#eseoerpHbWf9fkf#g3f}g1f7bWkCf+f#fmfOf*g1f~o_bHf5fmf#f*f*fhflX5k8f+fhfkfkf#f+fho{bHf5f*f*f#fSjra~X4kUf*fQf6fSfhflfj"
    ),
    (40, 5, 4, 3, "LxG,E48jOq,;%XO;kSoefhbaocbZ"), (3, 2, 4, 3, "L~1BG,hCZUlMlyg]f%g]g]g]g]g]"),
    (1, 1, 4, 3, "L~09dghVhVhVhVhVhVhVhVhVhVhV"),
  ])
  func `a BlurHash matches the reference`(
    width: Int, height: Int, across: Int, down: Int, text: String
  ) throws {
    let hash = BlurHash(of: Self.pattern(width: width, height: height), across: across, down: down)
    #expect(hash.text == text)
  }

  @Test func `the BlurHash of a white image matches the reference`() {
    let white = SmallImage(PixelSize(width: 16, height: 16)) { _, _ in [255, 255, 255, 255] }
    #expect(BlurHash(of: white).text == "LKTSUA~qfQ~q~qoffQoffQfQfQfQ")
  }

  @Test func `the specification's BlurHash is drawn like the reference`() throws {
    // given
    let hash = BlurHash(text: "LEHV6nWB2yk8pyo0adR*.7kCMdnj")
    // when
    let image = hash.image(PixelSize(width: 32, height: 32))
    // then
    let expected: [(Int, Int, [UInt8])] = [
      (0, 0, [135, 164, 177]), (31, 0, [137, 166, 181]), (0, 31, [136, 144, 147]),
      (31, 31, [133, 142, 147]), (16, 16, [158, 125, 108]), (7, 20, [139, 135, 138]),
    ]
    for (x, y, color) in expected { #expect(Self.pixel(image, x: x, y: y) == color + [255]) }
  }

  // MARK: ThumbHash

  @Test(arguments: [
    (32, 24, false, "oMkJLZAQVXiFemiVmGeIh1evDExi"),
    (32, 24, true, "oNmFFIYHEFWni5ZoaPPa8DV4dyghIGKYBg=="),
    (24, 32, false, "X8kNJRBAdpV4Z5h4iId3iIHffQ10"),
    (24, 32, true, "n8mJFAYXUGaJh6qHBsX991BIdHpnBRFVCQ=="),
    (20, 20, false, "3GkNNw5AdneVeXeXh4iHeIiHePao9zEI"),
    (20, 20, true, "nHmJHQgXUIa3eYaId0afmS+lVpUgs4SJdw=="),
    (40, 5, false, "2roFKaAEGjmjiXiILl8Hdnc="),
    (40, 5, true, "2+qBEYoWFh+wmIYOTwaIeBBCZnd3eIc="),
  ])
  func `a ThumbHash matches the reference`(
    width: Int, height: Int, alpha: Bool, text: String
  ) {
    let hash = ThumbHash(of: Self.pattern(width: width, height: height, alpha: alpha))
    #expect(Data(hash.bytes).base64EncodedString() == text)
  }

  @Test func `the ThumbHash of a transparent image matches the reference`() {
    let clear = SmallImage(PixelSize(width: 16, height: 16)) { _, _ in [0, 0, 0, 0] }
    #expect(
      Data(ThumbHash(of: clear).bytes).base64EncodedString()
        == "AAiCBQAAAAAAAAAAAAAAAAAAAAAAAAAAAA==")
  }

  @Test(arguments: [
    (
      (32, 24, false), (32, 23),
      [[0, 172, 0, 255], [191, 85, 35, 255], [63, 43, 58, 255], [143, 80, 76, 255]]
    ),
    (
      (24, 32, true), (26, 32),
      [[97, 136, 44, 0], [157, 171, 80, 109], [120, 77, 80, 55], [205, 179, 103, 100]]
    ),
    (
      (40, 5, false), (32, 5),
      [[0, 241, 0, 255], [118, 34, 2, 255], [0, 197, 22, 255], [99, 14, 111, 255]]
    ),
  ])
  func `a ThumbHash is drawn like the reference`(
    source: (Int, Int, Bool), size: (Int, Int), corners: [[Int]]
  ) {
    let image = ThumbHash(of: Self.pattern(width: source.0, height: source.1, alpha: source.2))
      .image
    #expect(image.size == PixelSize(width: size.0, height: size.1))
    let right = size.0 - 1
    let bottom = size.1 - 1
    for ((x, y), corner) in zip([(0, 0), (right, 0), (0, bottom), (right, bottom)], corners) {
      // The reference uses 32-bit floats.
      #expect(isClose(Self.pixel(image, x: x, y: y), to: corner.map { UInt8($0) }, within: 1))
    }
  }
}

// SourceCostTests: excessive decoding cost is detected before decoding.

import ImagingWire
import Model
import TestSupport
import Testing

@testable import ImagingPipeline

@Suite(.onOwnThreads) struct SourceCostTests {
  private func scans(of bytes: [UInt8]) -> Int {
    bytes.withUnsafeBytes { SourceCost.scans(of: $0) }
  }

  @Test func `a JPEG with hundreds of scans of many megapixels is too costly, one with few is not`()
    throws
  {
    // Given: a progressive JPEG, which has 6 to 12 scans
    let whole = try TestImages.jpeg(width: 64, height: 48, progressive: true)
    let few = scans(of: whole)
    #expect((6...12).contains(few))
    #expect(Made.error(whole) == nil)
    // The last scan is repeated, and the header claims 144 megapixels
    let last = try #require(whole.indices.last { whole[$0...].starts(with: [0xff, 0xda]) })
    let scan = whole[last..<whole.count - 2]
    var bytes = Array(whole.dropLast(2)) + (0..<200).flatMap { _ in scan } + [0xff, 0xd9]
    #expect(scans(of: bytes) == few + 200)
    let frame = try #require(bytes.indices.first { bytes[$0...].starts(with: [0xff, 0xc2]) })
    bytes.replaceSubrange(frame + 5..<frame + 9, with: [0x2e, 0xe0, 0x2e, 0xe0])
    // When
    let error = Made.error(bytes) { $0.width = 40 }
    // Then: the fault is the source's, not its description's
    #expect(error?.code == "too_costly" && error?.isOfSource == true)
    #expect(Made.error(bytes) { $0.product = .info(nil) } == nil)
  }

  private static func svg(_ filter: String, uses: Int = 1, style: String = "") -> [UInt8] {
    let shape = ##"<rect width="1000" height="1000" fill="red" filter="url(#f)"/>"##
    return Array(
      (##"<svg xmlns="http://www.w3.org/2000/svg" width="1000" height="1000"><style>"## + style
        + ##"</style><filter id="f" x="0" y="0" width="1" height="1">"## + filter + "</filter>"
        + String(repeating: shape, count: uses) + "</svg>").utf8)
  }

  @Test(arguments: [
    (##"<feMorphology radius="20"/>"##, 1, ""), (##"<feGaussianBlur stdDeviation="9"/>"##, 40, ""),
    (##"<feTurbulence numOctaves="300"/>"##, 1, ""), (##"<feConvolveMatrix order="60"/>"##, 1, ""),
    (##"<fe:feOffset dx="1"/>"##, 30, "rect { filter: url(#f) }"),
  ])
  func `an SVG with filters is drawn small, and too costly as a large variant`(
    filter: String, uses: Int, style: String
  ) {
    let bytes = Self.svg(filter, uses: uses, style: style)
    func error(_ width: Int) -> ImageError? {
      bytes.withUnsafeBytes { bytes in
        let size = PixelSize(width: width, height: width)
        do throws(ImageError) {
          try VectorCost.check(bytes, drawn: size, nominal: PixelSize(width: 1_000, height: 1_000))
          return nil
        } catch {
          return error
        }
      }
    }
    #expect(error(100) == nil)
    guard case .ofVariant(.tooCostly) = error(4_000) else {
      Issue.record("\(String(describing: error(4_000)))")
      return
    }
  }

  @Test func `the pipeline refuses a costly filter at a large size only`() {
    let bytes = Self.svg(##"<feMorphology radius="20"/>"##)
    #expect(Made.error(bytes) { $0.width = 100 } == nil)
    #expect(Made.error(bytes) { $0.width = 3_000 }?.code == "too_costly")
  }

  @Test(arguments: [
    "url(#f)", "url('#f')", "url(  #f)", "url(&#35;f)", "url(&#x23;f)", "blur(0) url(#f)",
    ##"url(\23 f)"##,
  ])
  func `a filter counts in every form of reference`(reference: String) {
    let svg =
      ##"<svg xmlns="http://www.w3.org/2000/svg"><filter id="f"><feTurbulence numOctaves="300"/>"##
      + ##"</filter><rect filter="\##(reference)"/></svg>"##
    Array(svg.utf8).withUnsafeBytes {
      #expect(VectorCost($0).seconds(drawn: PixelSize(width: 4_000, height: 4_000), scale: 1) > 4)
    }
  }

  @Test func `a vector image without filters has no cost, whatever its references`() {
    let gradient =
      ##"<svg xmlns="http://www.w3.org/2000/svg"><linearGradient id="f"/>"##
      + ##"<path fill="url(#f)"/></svg>"##
    Array(gradient.utf8).withUnsafeBytes {
      #expect(VectorCost($0).seconds(drawn: PixelSize(width: 9_000, height: 9_000), scale: 9) == 0)
    }
  }
}

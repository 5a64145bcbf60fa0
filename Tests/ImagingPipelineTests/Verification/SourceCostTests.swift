// SourceCostTests: excessive decoding cost is detected before decoding.

import ImagingWire
import Model
import TestSupport
import Testing

@testable import ImagingPipeline

@Suite(.onOwnThreads) struct SourceCostTests {
  private func scans(of bytes: [UInt8]) -> Int {
    bytes.withUnsafeBytes { SourceCost.counts(of: $0).scans }
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
}

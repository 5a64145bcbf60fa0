// EncodedCheckTests: results whose header is not that of the job are internal errors.

import Model
import TestSupport
import Testing

@testable import ImagingPipeline

@Suite(.onOwnThreads) struct EncodedCheckTests {
  private static let size = PixelSize(width: 40, height: 30)

  /// Starts libvips, which two threads must not do at the same time.
  init() { TestImages.start() }

  /// Returns the error's code; `nil` if the bytes pass.
  private func fault(
    _ bytes: [UInt8], _ size: PixelSize = size, as format: ImageFormat, isEncodedHere: Bool
  ) throws -> String? {
    let encoded = Encoded(bytes: try GLibBytes(copying: bytes), size: size, quality: nil)
    do throws(ImageError) {
      try encoded.check(as: format, isEncodedHere: isEncodedHere)
      return nil
    } catch {
      return error.code
    }
  }

  @Test(arguments: [ImageFormat.jpeg, .png, .webp, .gif, .tiff], [false, true])
  func `a result of another size or format is refused`(
    format: ImageFormat, isEncodedHere: Bool
  ) throws {
    let bytes = try TestImages.encode(
      .scene(width: 40, height: 30), as: format == .tiff ? ".tif" : ".\(format.rawValue)")
    #expect(try fault(bytes, as: format, isEncodedHere: isEncodedHere) == nil)
    #expect(
      try fault(
        bytes, PixelSize(width: 30, height: 40), as: format, isEncodedHere: isEncodedHere)
        == "internal")
    let other: ImageFormat = format == .png ? .jpeg : .png
    #expect(try fault(bytes, as: other, isEncodedHere: isEncodedHere) == "internal")
  }

  @Test func `a source's own JPEG that ends before its scan is refused`() throws {
    let bytes = try TestImages.encode(.scene(width: 40, height: 30), as: ".jpg")
    let scan = try #require(bytes.firstRange(of: [0xff, 0xda]))
    #expect(
      try fault(Array(bytes[..<scan.lowerBound]), as: .jpeg, isEncodedHere: false) == "internal")
  }
}

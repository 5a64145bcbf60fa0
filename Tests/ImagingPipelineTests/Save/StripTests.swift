// StripTests: metadata is stripped by default, and still valid with `strip=0`.

import CVips
import Core
import TestSupport
import Testing

@testable import ImagingPipeline

@Suite(.onOwnThreads) struct StripTests {
  private static let traces = [
    TestImages.exifMark, TestImages.xmpMark, TestImages.iptcMark, TestImages.thumbnailMark, "Exif",
    "EXIF",
    "eXIf", "XMP", "xmpmeta", "8BIM", "Photoshop", "ICC_PROFILE", "ICCP", "iCCP", "acsp",
  ]

  @Test(arguments: ImageFormat.outputs)
  func `metadata is stripped from every format`(format: ImageFormat) throws {
    for suffix in [".jpg", ".png", ".webp", ".tif", ".avif"] {
      // given
      let source = try TestImages.described(width: 60, height: 40, as: suffix)
      // when
      let made = try Made(source) { $0.format = format }
      // then
      for trace in Self.traces {
        let isThere = made.bytes.contains(trace)
        #expect(!isThere, "\(trace) from \(suffix)")
      }
      // libjxl creates a profile on request from the numbers in the codestream.
      let found = try TestImages.metadata(of: made.bytes).keys.filter {
        format != .jxl || $0 != "icc-profile-data"
      }
      #expect(found.isEmpty, "from \(suffix)")
    }
  }

  @Test(arguments: [ImageFormat.jpeg, .png, .webp, .avif, .tiff])
  func `strip=0 keeps Exif, XMP and IPTC if the format supports them, with an upright orientation`(
    format: ImageFormat
  ) throws {
    for suffix in [".jpg", ".png", ".webp"] {
      // given
      let source = try TestImages.described(width: 60, height: 40, as: suffix)
      // when
      let made = try Made(source) {
        $0.format = format
        $0.stripsMetadata = false
      }
      // then
      let found = try TestImages.metadata(of: made.bytes)
      let exif = found["exif-data"] ?? []
      #expect(exif.contains(TestImages.exifMark) == (format != .tiff))
      #expect(TestImages.orientation(inExif: exif) == (format == .tiff ? 0 : 1))
      let xmp = try #require(found["xmp-data"])
      #expect(xmp.contains(TestImages.xmpMark) && xmp.contains(#"tiff:Orientation="1""#))
      let iptc = found[format == .tiff ? "photoshop-data" : "iptc-data"] ?? []
      let holdsIPTC = suffix == ".jpg" && [.jpeg, .tiff].contains(format)
      #expect(iptc.contains(TestImages.iptcMark) == holdsIPTC)
      #expect(iptc.starts(with: "Photoshop".utf8) == (holdsIPTC && format == .jpeg))
      #expect(!made.bytes.contains(TestImages.thumbnailMark) && found["jpeg-thumbnail-data"] == nil)
      // The pixels are sRGB and upright.
      #expect(!made.bytes.contains("acsp") && found["icc-profile-data"] == nil)
      #expect(made.size == PixelSize(width: 60, height: 40))
      #expect(try made.pixels().corners[0][0] > 180)
    }
  }

  @Test func `metadata of a TIFF and an AVIF is kept`() throws {
    // given
    let tiff = try TestImages.described(width: 60, height: 40, as: ".tif")
    let avif = try TestImages.described(width: 60, height: 40, as: ".avif")
    // when
    let made = try [tiff, avif].map {
      try Made($0) {
        $0.format = .jpeg
        $0.stripsMetadata = false
      }
    }
    // then: a TIFF's Exif is its own directory, which libvips does not pass on
    #expect(made.allSatisfy { $0.bytes.contains(TestImages.xmpMark) })
    #expect(made[0].bytes.contains(TestImages.iptcMark))
    #expect(made[1].bytes.contains(TestImages.exifMark))
  }

  @Test func `strip=0 does not change results without metadata`() throws {
    let plain = try TestImages.jpeg(width: 60, height: 40, bare: true)
    let described = try TestImages.described(width: 60, height: 40, as: ".jpg")
    for format in ImageFormat.outputs {
      let stripped = try Made(plain) { $0.format = format }
      let kept = try Made(plain) {
        $0.format = format
        $0.stripsMetadata = false
      }
      #expect(stripped.bytes == kept.bytes)
    }
    // libvips 8.16 writes metadata into a JPEG XL.
    for format in [ImageFormat.gif] + (vips_version(1) < 16 ? [.jxl] : []) {
      let kept = try Made(described, format: format) { $0.stripsMetadata = false }
      #expect(Self.traces.allSatisfy { !kept.bytes.contains($0) })
    }
  }

  @Test func `XMP with a thumbnail is dropped`() throws {
    // given
    let source = try TestImages.described(width: 60, height: 40, as: ".jpg", xmpThumbnail: true)
    #expect(source.contains(TestImages.xmpMark))
    // when
    let made = try Made(source) { $0.stripsMetadata = false }
    // then
    #expect(made.bytes.contains(TestImages.exifMark) && !made.bytes.contains(TestImages.xmpMark))
  }

  @Test func `the orientation in XMP is reset in every notation, and the rest is unchanged`() {
    for (packet, upright) in [
      (#"<a tiff:Orientation="6" b="3"/>"#, #"<a tiff:Orientation="1" b="3"/>"#),
      (#"<a tiff:Orientation = '8'/>"#, #"<a tiff:Orientation = '1'/>"#),
      (
        "<tiff:Orientation>6</tiff:Orientation><b>5</b>",
        "<tiff:Orientation>1</tiff:Orientation><b>5</b>"
      ),
      (#"<a tiff:Orientation="" b="3"/>"#, #"<a tiff:Orientation="" b="3"/>"#),
      ("tiff:Orientation", "tiff:Orientation"),
    ] {
      #expect(
        XMP.cleaned(Array(packet.utf8)).map { String(decoding: $0, as: UTF8.self) } == upright)
    }
  }

  @Test func `damaged metadata is dropped or kept in part`() throws {
    // given
    let source = try TestImages.described(width: 60, height: 40, as: ".jpg")
    let found = try TestImages.metadata(of: source)
    let exif = try #require(found["exif-data"])
    let iptc = try #require(found["iptc-data"])
    #expect(IPTC(iptc)?.segment.contains(TestImages.iptcMark) == true)
    #expect(IPTC(iptc)?.segment.contains(TestImages.thumbnailMark) == false)
    #expect(Exif.cleaned(exif)?.contains(TestImages.exifMark) == true)
    #expect(Exif.cleaned(exif)?.contains(TestImages.thumbnailMark) == false)
    // when, then: no access past the end
    for count in 0..<exif.count { _ = Exif.cleaned(Array(exif.prefix(count))) }
    for count in 0..<iptc.count - 1 { #expect(IPTC(Array(iptc.prefix(count))) == nil) }
    // The last byte is padding.
    #expect(IPTC(iptc.dropLast())?.segment == IPTC(iptc)?.segment)
    var generator = SeededGenerator(seed: 7)
    for _ in 0..<3000 {
      var exif = exif
      var iptc = iptc
      for _ in 0..<3 {
        exif[.random(in: 0..<exif.count, using: &generator)] = .random(
          in: 0...255, using: &generator)
        iptc[.random(in: 0..<iptc.count, using: &generator)] = .random(
          in: 0...255, using: &generator)
      }
      #expect(Exif.cleaned(exif)?.count ?? exif.count == exif.count)
      #expect(IPTC(iptc)?.segment.count ?? 0 <= iptc.count + 14)
    }
  }
}

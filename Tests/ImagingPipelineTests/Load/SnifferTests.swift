// SnifferTests: format detection, and rejection of unknown formats.

import Core
import TestSupport
import Testing

@testable import ImagingPipeline

@Suite(.onOwnThreads) struct SnifferTests {
  private func sniff(_ bytes: [UInt8]) -> ImageFormat? {
    bytes.withUnsafeBytes { FormatSigns.format(of: $0) }
  }

  private func sniff(_ text: String) -> ImageFormat? { sniff(Array(text.utf8)) }

  @Test func `every raster format is detected from its first bytes`() throws {
    #expect(sniff(try TestImages.jpeg(width: 8, height: 8)) == .jpeg)
    #expect(sniff(try TestImages.png(width: 8, height: 8)) == .png)
    #expect(sniff(try TestImages.gif(width: 8, height: 8, frames: 2)) == .gif)
    #expect(sniff(try TestImages.webp(width: 8, height: 8)) == .webp)
    #expect(sniff(try TestImages.tiff(width: 8, height: 8)) == .tiff)
    #expect(sniff(try TestImages.avif(width: 64, height: 64)) == .avif)
    #expect(sniff(try TestImages.heic(width: 64, height: 64)) == .heic)
    let scene = Pixels.scene(width: 8, height: 8)
    #expect(sniff(try TestImages.jxl(scene)) == .jxl)
    #expect(sniff(try TestImages.encode(scene, as: ".jxl")) == .jxl)
    #expect(sniff(try TestImages.encode(scene, as: ".jp2")) == .jp2)
    #expect(sniff([0xff, 0x4f, 0xff, 0x51, 0, 47]) == .jp2)
    var bitmap = CodedBitmap(size: PixelSize(width: 2, height: 2), depth: 24)
    bitmap.pixels = [1, 2, 3, 4]
    #expect(sniff(bitmap.file) == .bmp)
    #expect(sniff(CodedBitmap.icon(of: [bitmap.icon])) == .ico)
  }

  @Test func `a format without a signature is detected by a plausible header`() {
    // given: letters and zeros that also start other files
    let text = Array("BMW, BMP and other words that begin like bitmaps".utf8)
    var icon = CodedBitmap.icon(of: [[UInt8](repeating: 0, count: 40)])
    #expect(sniff(text) == nil)
    #expect(sniff(icon) == .ico)
    // when: no image, or an image inside the directory
    icon[4] = 0
    #expect(sniff(icon) == nil)
    icon[4] = 1
    icon[18] = 10
    #expect(sniff(icon) == nil)
  }

  @Test(arguments: [
    "<svg xmlns='http://www.w3.org/2000/svg'/>",
    "<svg>", "<svg\n width='1'/>", "  \r\n\t<svg >",
    "\u{feff}<svg xmlns=''/>",
    "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<svg />",
    "<?xml version='1.0'?><!-- a > b --><!-- <html> --><svg/>",
    "<!DOCTYPE svg PUBLIC \"-//W3C//DTD SVG 1.1//EN\" \"http://www.w3.org/x.dtd\"><svg/>",
    "<!DOCTYPE svg [<!ENTITY a \"b\"> <!ENTITY c 'd'>]>\n<svg/>",
    "\u{feff}<?xml version='1.0'?>\n<!--x-->\n<!DOCTYPE svg>\n<!--y--><?z?><svg/>",
  ])
  func `an SVG is detected after any XML prologue`(text: String) {
    #expect(sniff(text) == .svg)
  }

  @Test(arguments: [
    "", "<", "<sv", "<svgfoo>", "<html><svg/></html>", "hello <svg>", "<?xml version='1.0'?>",
    "<!-- never closed <svg>", "<!DOCTYPE svg [ <svg/>", "<?xml <svg/>",
  ])
  func `other text is not detected as SVG`(text: String) {
    #expect(sniff(text) == nil)
  }

  @Test func `an SVG is detected only within the first 64 KiB`() {
    #expect(sniff("<!--" + String(repeating: " ", count: 60_000) + "--><svg/>") == .svg)
    #expect(sniff("<!--" + String(repeating: " ", count: 70_000) + "--><svg/>") == nil)
  }

  @Test func `HEIC and AVIF are detected by major and compatible brands`() {
    func box(_ major: String, compatible: [String]) -> [UInt8] {
      let count = 16 + 4 * compatible.count
      return [0, 0, 0, UInt8(count)] + Array("ftyp\(major)".utf8) + [0, 0, 0, 0]
        + compatible.flatMap { Array($0.utf8) } + [0, 0, 0, 0]
    }
    #expect(sniff(box("avif", compatible: ["mif1", "miaf"])) == .avif)
    #expect(sniff(box("mif1", compatible: ["miaf", "avif"])) == .avif)
    #expect(sniff(box("avis", compatible: [])) == .avif)
    #expect(sniff(box("heic", compatible: ["mif1"])) == .heic)
    #expect(sniff(box("mif1", compatible: ["heic"])) == .heic)
    #expect(sniff(box("mif1", compatible: [])) == .heic)
    #expect(sniff(box("isom", compatible: ["mp42"])) == nil)
    #expect(sniff([0, 0, 0, 8] + Array("ftyp".utf8)) == nil)
  }

  @Test(arguments: [
    Array("2 2\n1 2\n3 4".utf8), Array("%PDF-1.7\n".utf8), Array("P6\n1 1\n255\nabc".utf8),
    [0x42, 0x4d, 0x3a, 0, 0, 0, 0, 0, 0, 0, 0x36, 0, 0, 0, 0x28, 0, 0, 0],  // BMP
    [0, 0, 1, 0, 1, 0, 16, 16], Array("SIMPLE  =                    T".utf8),
    Array("#?RADIANCE\n".utf8), Array("8BPS".utf8), [], [0xff], [0x89, 0x50],
    Array("RIFF\0\0\0\0WAVE".utf8), Array("GIF88a".utf8), Array("<html></html>".utf8),
    [0x1f, 0x8b, 8, 0, 0, 0, 0, 0], [0x76, 0x2f, 0x31, 0x01, 2, 0, 0, 0],  // EXR
    Array("%!PS-Adobe-3.0".utf8), Array("push graphic-context".utf8), Array("/* XPM */".utf8),
    Array("a,b\n1,2\n".utf8), Array("MATLAB 5.0 MAT-file".utf8), Array("8BPS\0\u{1}\0\0".utf8),
    [0, 0, 2, 0, 1, 0, 16, 16], Array("\0\0\0\u{c}JXL \r\n\n\n".utf8),
  ])
  func `unknown bytes are refused before any loader`(bytes: [UInt8]) {
    #expect(Made.error(bytes)?.code == "unsupported_format")
  }

  @Test(arguments: [
    ("<!DOCTYPE html><title>\n Under  repair </title>", "an HTML page, 'Under repair'"),
    ("  <HTML><head><Title lang=en>502</TITLE>", "an HTML page, '502'"),
    ("<html><p>no title</p></html>", "an HTML page"), ("<html><title", "an HTML page"),
    ("a,b", "3 bytes starting 61 2c 62"),
  ])
  func `the detail says what was sent in place of an image`(text: String, detail: String) {
    #expect(Made.error(Array(text.utf8)) == .unsupportedFormat(detail: detail))
  }

  @Test func `a disabled format is refused like an unknown one`() throws {
    // given
    let tiff = try TestImages.tiff(width: 8, height: 8)
    let limits = ImagingLimits { $0.formats = [.jpeg, .png] }
    // when
    let error = Made.error(tiff, limits: limits)
    // then
    #expect(error == .unsupportedFormat(detail: "tiff is disabled"))
    #expect(Made.error(tiff) == nil)
  }
}

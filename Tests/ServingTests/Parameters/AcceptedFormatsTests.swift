// AcceptedFormatsTests: tests of AcceptScanner with Accept fields of browsers and invalid ones.

import Core
import TestSupport
import Testing

@testable import Serving

@Suite(.onOwnThreads) struct AcceptedFormatsTests {
  private func formats(_ lines: String...) -> [ImageFormat] {
    var scanner = AcceptScanner()
    for line in lines { Array(line.utf8).withUnsafeBytes { scanner.read($0) } }
    return ImageFormat.negotiable.filter(scanner.formats.contains)
  }

  @Test(arguments: [
    // Chrome 120, Firefox 128 and 90, Safari 17 and 13, Edge's image requests, curl, wget, OkHttp.
    (
      "image/avif,image/webp,image/apng,image/svg+xml,image/*,*/*;q=0.8",
      [ImageFormat.avif, .webp]
    ),
    (
      "image/avif,image/webp,image/png,image/svg+xml,image/*;q=0.8,*/*;q=0.5", [.avif, .webp]
    ),
    ("image/webp,*/*", [.webp]),
    (
      "image/webp,image/avif,image/jxl,image/heic,image/heic-sequence,video/*;q=0.8,image/png,"
        + "image/svg+xml,image/*;q=0.8,*/*;q=0.5", [.avif, .webp, .jxl]
    ),
    ("image/png,image/svg+xml,image/*;q=0.8,video/*;q=0.8,*/*;q=0.5", []),
    ("*/*", []), ("image/*", []), ("image/*;q=1, */*;q=0.1", []), ("", []),
  ])
  func `the Accept fields of browsers yield their named formats`(
    line: String, expected: [ImageFormat]
  ) {
    #expect(formats(line) == expected)
  }

  @Test func `all Accept lines form one list, and spaces and case are ignored`() {
    #expect(formats("image/png", "IMAGE/WebP \t;\tq=0.5 ,,", " , image/jxl") == [.webp, .jxl])
  }

  @Test(arguments: [
    "image/avif;q=2", "image/avif;q=1.001", "image/avif;q=", "image/avif;q=-1",
    "image/avif;q=0.0001",
    "image/avif;q=x", "image/avif;q=\"0\"", "image/avifs", "image/avi",
    "image /avif", "ximage/avif", "text/html;a=\"image/avif\"", "text/html;a=\", image/avif\"",
    "text/html;a=\"\\\", image/avif, \"", "text/html;a=\", image/avif", ";image/avif",
    "\"image/avif\"",
    "\\", "\"\\",
  ])
  func `malformed Accept entries name no format`(line: String) {
    #expect(formats(line) == [])
  }

  @Test func `other media type parameters are ignored`() {
    #expect(formats("image/avif;level=\"a,b;q=0\";q=0.3, image/webp;quality=0") == [.avif, .webp])
  }

  @Test func `only offered formats are part of the key`() throws {
    var configuration = ServerConfiguration()
    configuration.imaging.autoFormats = [.webp, .avif]
    let rules = RequestRules(configuration)
    let plain = try makeRequest()
    #expect(rules.request(plain, accepting: AcceptedFormats()).key == plain.key)
    #expect(rules.request(plain, accepting: AcceptedFormats([.jxl])).key == plain.key)
    let all = rules.request(plain, accepting: AcceptedFormats(ImageFormat.negotiable))
    // In the operator's order.
    #expect(all.transform.accepted == [.webp, .avif])
    #expect(all.key.text == imageURL + " auto=webp,avif")
    #expect(all.key.source == plain.key.source)
    let named = plain.naming(.png)
    #expect(rules.request(named, accepting: AcceptedFormats([.webp])).key == named.key)
    configuration.imaging.autoFormats = []
    #expect(
      RequestRules(configuration).request(plain, accepting: AcceptedFormats([.webp])).key
        == plain.key)
  }
}

// S3RequestTests: names and times of requests.

import Model
import Testing

@testable import Sharing

@Suite struct S3RequestTests {
  @Test(arguments: [
    ("v:0123abcd", "v/01/23abcd"), ("s:ff00", "s/ff/00"), ("v:ab", "v/ab"), ("plain", "plain"),
    ("a:b:c-d/e", "a/b/:c-d/e".replacing(":", with: "/")),
  ])
  func `names are spread by the first digits of their digest`(name: String, path: String) {
    #expect(S3Request.path(of: name) == path)
  }

  @Test(arguments: [
    (0, "1970-01-01T00:00:00Z"), (951_782_400, "2000-02-29T00:00:00Z"),
    (1_795_618_799, "2026-11-25T14:59:59Z"), (253_402_300_799, "9999-12-31T23:59:59Z"),
  ])
  func `times are written as RFC 3339 does`(seconds: Int, text: String) {
    #expect(S3Request.text(of: UnixTime(seconds: seconds)) == text)
  }
}

// ByteRangeTests: tests of the ranges that requests ask for.

import Testing

@testable import Serving

@Suite struct ByteRangeTests {
  @Test(arguments: [
    ("bytes=0-0", "bytes 0-0/10"), ("bytes=0-", "bytes 0-9/10"), ("Bytes= 3-5 ", "bytes 3-5/10"),
    ("bytes=9-999999999999999999999", "bytes 9-9/10"), ("bytes=-3", "bytes 7-9/10"),
    ("bytes=-30", "bytes 0-9/10"), ("bytes=10-", "bytes */10"), ("bytes=10-11", "bytes */10"),
    ("bytes=-0", "bytes */10"),
    // Anything else is the whole.
    ("bytes=5-3", nil), ("bytes=", nil), ("bytes=-", nil), ("bytes=1", nil), ("bytes=0-1,3-4", nil),
    ("bytes=a-b", nil), ("bytes=0x1-2", nil), ("bytes=+1-2", nil), ("items=0-1", nil), ("", nil),
    ("bytes=--1", nil), ("bytes=1--2", nil), ("0-1", nil),
  ])
  func `a field names a part, nothing, or the whole`(field: String, range: String?) {
    #expect(ByteRange(field, of: 10)?.description == range)
  }

  @Test func `an image without bytes has no part`() {
    for field in ["bytes=0-", "bytes=-1", "bytes=0-0"] {
      #expect(ByteRange(field, of: 0) == .beyond(0))
    }
  }
}

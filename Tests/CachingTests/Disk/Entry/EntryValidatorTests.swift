// EntryValidatorTests: how an entry on disk keeps the validators of a variant.

import Core
import TestSupport
import Testing

@testable import Caching

struct EntryValidatorTests {
  /// Returns an entry as all versions have written it, byte for byte.
  private func entry(etag: String, lastModified: String?) -> [UInt8] {
    func field(_ tag: UInt8, value: [UInt8]) -> [UInt8] {
      [tag, UInt8(value.count), 0, 0, 0] + value
    }
    func numbers(_ values: [UInt8]) -> [UInt8] { values.flatMap { [$0, 0, 0, 0, 0, 0, 0, 0] } }
    let image =
      field(3, value: Array("webp".utf8)) + field(4, value: numbers([3, 4]))
      + field(5, value: numbers([1])) + field(6, value: [0, 0, 0, 0, 0, 0, 0xf0, 0x3f])
    return field(1, value: Array("https://a.example/ w=1".utf8))
      + field(2, value: numbers([9, 0, 60, 1, 1, 0, 0, 0, 1, 60, 60])) + image
      + field(8, value: Array(etag.utf8))
      + (lastModified.map { field(9, value: Array($0.utf8)) } ?? [])
  }

  private func read(_ bytes: [UInt8]) -> (metadata: EntryMetadata, info: VariantInfo)? {
    guard let metadata = bytes.withUnsafeBytes({ EntryMetadata(kind: .variant, decoding: $0) }),
      case .variant(let info) = metadata.content
    else { return nil }
    return (metadata, info)
  }

  @Test(
    arguments: ["\"0123456789abcdef0123456789abcdef\"", "\"fedcba9876543210\"", "\"e\"", ""],
    [
      "Sun, 06 Nov 1994 08:49:37 GMT", "Sat, 01 Jan 0000 00:00:00 GMT",
      "Fri, 31 Dec 9999 23:59:59 GMT", nil,
    ])
  func `validators are read from an entry of any version and written as they were`(
    etag: String, lastModified: String?
  ) throws {
    let bytes = entry(etag: etag, lastModified: lastModified)
    let (metadata, info) = try #require(read(bytes))
    #expect(info.etag.description == etag)
    #expect(info.lastModified.map(HTTPDate.text) == lastModified)
    #expect(metadata.encoded() == bytes)
  }

  @Test func `a date in another form is read, and an invalid one is dropped`() throws {
    for text in ["Sunday, 06-Nov-94 08:49:37 GMT", "Mon, 06 Nov 1994 08:49:37 GMT"] {
      let info = try #require(read(entry(etag: "\"e\"", lastModified: text))).info
      #expect(info.lastModified == UnixTime(seconds: 784_111_777))
    }
    for text in ["", "yesterday", "Sun, 06 Nov 1994 25:49:37 GMT"] {
      let info = try #require(read(entry(etag: "\"e\"", lastModified: text))).info
      #expect(info.lastModified == nil)
    }
  }
}

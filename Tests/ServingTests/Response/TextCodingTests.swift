// TextCodingTests: which clients get texts compressed, and that the texts are the same.

import CDeflate
import Core
import TestSupport
import Testing

@testable import Serving

@Suite(.onOwnThreads) struct TextCodingTests {
  @Test(arguments: [
    ("gzip", true), ("GZIP", true), ("x-gzip", true), ("gzip, deflate, br, zstd", true),
    ("br;q=1.0, gzip;q=0.8, *;q=0.1", true), ("deflate,gzip ; q=0.001", true), ("*", true),
    ("*;q=0.5", true), ("identity;q=0.5, *", true), ("gzip;q=1.000, identity", true),
    ("identity;q=0, gzip", true), ("identity;q=0.5, gzip;q=0.5", true), (", ,gzip,", true),
    ("", false), ("identity", false), ("deflate, br", false), ("gzip;q=0", false),
    ("gzip;q=0.000", false), ("gzip;q=0, *", false), ("*;q=0", false), ("identity, *;q=0", false),
    ("identity;q=0.9, gzip;q=0.8", false), ("identity, gzip;q=0.5", false),
    ("gzip;q=2", false), ("gzip;q=1.001", false), ("gzip;q=0.1234", false), ("gzip;q=.5", false),
    ("gzip;q=-1", false), ("gzip;q=", false), ("gzip;q=1;q=0", false), ("gzipped", false),
    ("xgzip", false), ("gzip identity", false), ("\"gzip\"", false),
    ("gzip" + String(repeating: ",a", count: 498), true),
    ("gzip" + String(repeating: ",a", count: 499), false),
  ])
  func `Accept-Encoding decides, with weights`(field: String, isCoded: Bool) async throws {
    #expect(WeightedElement.list(field).prefersGzip == isCoded)
    try await withClient { client in
      let answer = try client.get(
        "/openapi.json", headers: field.isEmpty ? [:] : ["Accept-Encoding": field])
      #expect(answer["Content-Encoding"] == (isCoded ? "gzip" : nil))
      #expect(answer["Vary"] == "Accept-Encoding")
    }
  }

  @Test func `several fields are one list`() async throws {
    try await withClient { client in
      let answer = try client.get(
        "/stats", headers: ["Accept-Encoding": "identity;q=0.1", "accept-encoding": "gzip;q=0.2"])
      #expect(answer["Content-Encoding"] == "gzip")
    }
  }

  @Test func `each text is the same in both forms, and each form has its tag`() async throws {
    let gzip: KeyValuePairs = ["Accept-Encoding": "gzip"]
    try await withServer {
      $0.statsLifetime = .seconds(3_600)
      $0.corsOrigins = ["https://a.example", "https://b.example"]
    } body: { server in
      let client = try HTTPClient(port: server.port)
      let files = [
        "/", "/page/page.css", "/page/page.js", "/page/parameters.json", "/openapi.json",
      ]
      for path in files + ["/stats", "/metrics"] {
        let plain = try client.get(path)
        let coded = try client.get(path, headers: gzip)
        #expect(plain["Content-Encoding"] == nil && coded["Content-Encoding"] == "gzip")
        #expect(coded.body.count * 2 < plain.body.count, "\(path)")
        #expect(try decompressed(coded.body, plain.body.count) == plain.body, "\(path)")
        #expect(coded["Content-Type"] == plain["Content-Type"])
        for answer in [plain, coded] {
          #expect(
            answer["Vary"]
              == (path == "/metrics"
                ? "Accept, Accept-Encoding, Origin" : "Accept-Encoding, Origin"))
        }
        // HEAD is GET without the body.
        for answer in [plain, coded] {
          let isCoded = answer["Content-Encoding"] != nil
          let head = try client.head(path, headers: isCoded ? gzip : [:])
          #expect(head.status == 200 && head.body.isEmpty)
          for name in ["Content-Length", "Content-Encoding", "ETag", "Vary", "Content-Type"] {
            #expect(head[name] == answer[name], "\(path) \(name)")
          }
        }
        guard files.contains(path) else { continue }
        let tags = [try #require(plain["ETag"]), try #require(coded["ETag"])]
        #expect(tags[0] != tags[1] && tags.allSatisfy { $0.hasPrefix("\"") })
        for (place, tag) in tags.enumerated() {
          let same = try client.get(path, headers: ["If-None-Match": tag])
          #expect(same.status == (place == 0 ? 304 : 200))
          let other = try client.get(
            path, headers: ["If-None-Match": tag, "Accept-Encoding": "gzip"])
          #expect(other.status == (place == 1 ? 304 : 200))
          #expect(other["ETag"] == tags[1] && other["Vary"] == coded["Vary"])
        }
      }
    }
  }

  @Test(arguments: ["/robots.txt", "/livez", "/readyz", "/image", "/nowhere"])
  func `short texts are sent as they are`(path: String) async throws {
    try await withClient { client in
      let answer = try client.get(path, headers: ["Accept-Encoding": "gzip"])
      #expect(answer["Content-Encoding"] == nil && !answer.body.isEmpty)
    }
  }

  @Test func `only what shrinks is compressed`() throws {
    let short = CodedText(Array(repeating: 7, count: CodedText.shortest - 1))
    #expect(short.gzip == nil)
    let text = CodedText(Array(repeating: 7, count: CodedText.shortest))
    #expect(try decompressed(try #require(text.gzip), text.plain.count) == text.plain)
    var random = SeededGenerator(seed: 39)
    let noise = CodedText((0..<5_000).map { _ in UInt8.random(in: 0...255, using: &random) })
    #expect(noise.gzip == nil && noise.plain.count == 5_000)
  }

  private func decompressed(_ bytes: [UInt8], _ count: Int) throws -> [UInt8] {
    let decompressor = try #require(libdeflate_alloc_decompressor())
    defer { libdeflate_free_decompressor(decompressor) }
    return [UInt8](unsafeUninitializedCapacity: count) { room, used in
      let result = libdeflate_gzip_decompress(
        decompressor, bytes, bytes.count, room.baseAddress, room.count, &used)
      if result != LIBDEFLATE_SUCCESS { used = 0 }
    }
  }
}

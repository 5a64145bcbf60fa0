// Bodies with wrong digests, and bodies with an unrequested coding, with the real program.

import Model
import TestSupport
import Testing

@Suite(.onOwnThreads) struct BodyIntegrityTests {
  private let folder: TemporaryFolder
  private let origin: Origin
  private let pictor: PictorProcess
  private let image: [UInt8]
  private static let wrong = "FeKw08M4keuw8e9gnsQZQgwg4yDOlMZfvIwzEkSOsiU="

  init() throws {
    folder = try TemporaryFolder()
    origin = try Origin()
    pictor = try PictorProcess(in: folder)
    image = try TestImages.jpeg(width: 400, height: 300, bare: true)
  }

  @Test func `a body with a wrong digest is refused and loaded again`()
    throws
  {
    // Given
    for (number, field) in [
      "Content-Digest: sha-256=:\(Self.wrong):", "Repr-Digest: sha-256=:\(Self.wrong):",
      "Content-MD5: JfnnlDI7RTiF9RgfG2JNCw==", "x-amz-checksum-sha256: \(Self.wrong)",
      "x-amz-checksum-sha1: 98O8HYCOBHMq32eZZczDTKeuNEE=", "x-amz-checksum-crc32: y/Q5Jg==",
      "x-amz-checksum-crc32c: 4waSgw==",
    ].enumerated() {
      origin.serve("/\(number).jpg", bytes: image, headers: [field])
      // When
      let answers = try (0..<2).map { _ in try pictor.get(origin.target("/\(number).jpg")) }
      // Then
      for answer in answers {
        #expect(answer.status == 502 && answer.text.contains("source_incomplete"), "\(field)")
        #expect(answer["cache-control"] == "no-store")
      }
      #expect(origin.requests(to: "/\(number).jpg") == 2)
    }
  }

  @Test func `a streamed body with a wrong digest is aborted before its end`() throws {
    // Given
    origin.serve("/a.jpg", bytes: image, headers: ["Content-Digest: sha-256=:\(Self.wrong):"])
    // When
    let client = try pictor.ask(
      origin.target("/a.jpg", adding: "&format=jpeg&progressive=1"),
      headers: ["Connection": "close"])
    // Then: an error, if the fault was found in time, or a connection that ends one byte early
    let answer = try client.readToEnd()
    #expect(!Array(answer.suffix(image.count)).elementsEqual(image))
    #expect(try pictor.get(origin.target("/a.jpg", adding: "&w=10")).status == 502)
  }
}

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
    let client = try pictor.connect()
    try client.send(
      HTTPClient.text(
        "GET", target: origin.target("/a.jpg", adding: "&format=jpeg&progressive=1"),
        headers: ["Connection": "close"]))
    // Then: an error, if the fault was found in time, or a connection that ends one byte early
    let answer = try client.readToEnd()
    #expect(!Array(answer.suffix(image.count)).elementsEqual(image))
    #expect(try pictor.get(origin.target("/a.jpg", adding: "&w=10")).status == 502)
  }

  @Test(arguments: TestCoding.allCases)
  func `an unrequested content coding is decoded`(coding: TestCoding) throws {
    // Given
    origin.serve("/a.jpg", bytes: coding.encode(image), headers: [coding.field])
    origin.serve("/b.jpg", bytes: image)
    // When
    let decoded = try pictor.get(origin.target("/a.jpg", adding: "&w=100"))
    let plain = try pictor.get(origin.target("/b.jpg", adding: "&w=100"))
    let coming = try pictor.get(origin.target("/a.jpg", adding: "&format=jpeg&progressive=1"))
    // Then
    #expect(decoded.status == 200 && decoded.body == plain.body)
    #expect(coming.status == 200 && coming.body == image)
    #expect(
      origin.received(at: "/a.jpg").allSatisfy { $0.headers["accept-encoding"] == "identity" })
  }

  @Test(arguments: TestCoding.allCases)
  func `digests of a coded body cover the coded bytes`(coding: TestCoding) throws {
    let coded = coding.encode(image)
    for field in DigestField.allCases {
      // Given: right ones, and wrong ones, which are those of the decoded bytes
      let right = "/right-\(field).jpg"
      let wrong = "/wrong-\(field).jpg"
      origin.serve(right, bytes: coded, headers: [coding.field, field.line(for: coded)])
      origin.serve(wrong, bytes: coded, headers: [coding.field, field.line(for: image)])
      // When
      let coming = try pictor.get(origin.target(right, adding: "&format=jpeg&progressive=1"))
      let small = try pictor.get(origin.target(right, adding: "&w=100"))
      let client = try pictor.connect()
      try client.send(
        HTTPClient.text(
          "GET", target: origin.target(wrong, adding: "&format=jpeg&progressive=1"),
          headers: ["Connection": "close"]))
      let wrongComing = try client.readToEnd()
      let refused = try (0..<2).map { _ in try pictor.get(origin.target(wrong, adding: "&w=100")) }
      // Then
      #expect(coming.status == 200 && coming.body == image, "\(field)")
      #expect(small.status == 200, "\(field)")
      #expect(!Array(wrongComing.suffix(image.count)).elementsEqual(image), "\(field)")
      for answer in refused {
        #expect(answer.status == 502 && answer.text.contains("source_incomplete"), "\(field)")
      }
      // And nothing of the wrong body was stored.
      #expect(origin.requests(to: wrong) == 3, "\(field)")
    }
  }

  @Test func `a coded body that ends early is refused`() throws {
    for coding in TestCoding.allCases {
      // Given
      let coded = coding.encode(image)
      origin.serve("/\(coding).jpg", bytes: Array(coded.dropLast()), headers: [coding.field])
      // When
      let answers = try (0..<2).map { _ in try pictor.get(origin.target("/\(coding).jpg")) }
      // Then
      for answer in answers {
        #expect(answer.status == 502 && answer.text.contains("source_incomplete"), "\(coding)")
      }
      #expect(origin.requests(to: "/\(coding).jpg") == 2)
    }
  }
}

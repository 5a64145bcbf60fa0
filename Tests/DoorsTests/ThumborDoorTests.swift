// ThumborDoorTests: signatures, sources and answers of thumbor's and imagor's doors.

import Core
import Testing

@testable import Doors

@Suite struct ThumborDoorTests {
  private func options(
    key: String? = nil, base: String = "", _ change: (inout DoorOptions) -> Void = { _ in }
  ) -> DoorOptions {
    var options = DoorOptions()
    options.keys = key.map { [Array($0.utf8)] } ?? []
    options.baseURL = base
    change(&options)
    return options
  }

  /// Returns the translation, or the refusal's status and reason.
  private func translated(
    _ door: some Door, _ path: String, query: String = ""
  ) -> Result<DoorTranslation, DoorAnswer> {
    do { return .success(try door.translate(DoorAddress(path: path, query: query))) } catch {
      return .failure(error)
    }
  }

  private func url(_ door: some Door, _ path: String, query: String = "") -> String? {
    try? translated(door, path, query: query).get()["url"]
  }

  private func refusal(_ door: some Door, _ path: String) -> DoorAnswer? {
    if case .failure(let answer) = translated(door, path) { return answer }
    return nil
  }

  // MARK: Signatures

  /// The peers' own examples: peer, key, digest, characters, address.
  static let signed: [(Peer, String, String, Int, String)] = [
    (.thumbor, "secret", "sha1", 0, "/FVmGvJQS1ysrZ-iR07eetE8bcz4=/300x200/127.0.0.1:8898/a.jpg"),
    (.thumbor, "secret", "sha1", 0, "/FVmGvJQS1ysrZ-iR07eetE8bcz4%3D/300x200/127.0.0.1:8898/a.jpg"),
    (.thumbor, "secret", "sha1", 0, "/FVmGvJQS1ysrZ-iR07eetE8bcz4/300x200/127.0.0.1:8898/a.jpg"),
    (.imagor, "1234", "sha1", 0, "/_-19cQt1szHeUV0WyWFntvTImDI=/foo.jpg"),
    (.imagor, "1234", "sha256", 40, "/91DBDJtTFePFnbaj5Qq8JLvq5sM5VTipE685f4Gp/foo.jpg"),
    (
      .imagor, "mysecret", "sha1", 0,
      "/cST4Ko5_FqwT3BDn-Wf4gO3RFSk=/500x500/top/raw.githubusercontent.com/cshum/imagor/master/"
        + "testdata/gopher.png"
    ),
    (
      .imagor, "mysecret", "sha256", 40,
      "/IGEn3TxngivD0jy4uuiZim2bdUCvhcnVi1Nm0xGy/500x500/top/raw.githubusercontent.com/cshum/"
        + "imagor/master/testdata/gopher.png"
    ),
    (
      .imagor, "1234", "sha1", 0,
      "/VTAq7YIRbEXgtwAcsTMhAjvBuT8=/meta/10x11:12x13/fit-in/-300x-200/5x6/left/top/smart/"
        + "filters:some_filter()/img"
    ),
  ]

  @Test(arguments: signed.indices)
  func `examples are accepted and every altered byte is refused`(_ index: Int) throws {
    let (peer, key, digest, length, path) = Self.signed[index]
    let front = ThumborDoor(
      peer,
      options(key: key) {
        $0.digest = digest
        $0.signatureBytes = length
      })
    let translation = try front.translate(DoorAddress(path: path, query: "v=1"))
    #expect(translation.isSigned)
    var bytes = Array(path.utf8)
    for place in bytes.indices.dropFirst() {
      let byte = bytes[place]
      // `%3d` is `%3D`.
      if byte == UInt8(ascii: "D"), bytes[place - 1] == UInt8(ascii: "3") { continue }
      for other in [byte ^ 1, byte ^ 0x20] {
        bytes[place] = other
        let altered = DoorAddress(path: String(decoding: bytes, as: UTF8.self))
        #expect(throws: DoorAnswer.self) { _ = try front.translate(altered) }
      }
      bytes[place] = byte
    }
  }

  @Test func `every key of a rotation is accepted`() {
    let door = ThumborDoor(.imagor, options(key: "old") { $0.keys.append(Array("1234".utf8)) })
    #expect(url(door, "/_-19cQt1szHeUV0WyWFntvTImDI=/foo.jpg") == "https://foo.jpg")
  }

  @Test func `a signature is not cut unless the options say so`() {
    let door = ThumborDoor(.imagor, options(key: "1234"))
    #expect(refusal(door, "/_-19cQt1szHeUV0WyWFntvTIm/foo.jpg")?.status == 403)
    #expect(refusal(door, "//foo.jpg")?.status == 403)
  }

  @Test func `sha512 is verified`() {
    // From RFC 4231's key and text of case 2.
    let code = HMAC.code(
      of: Array("what do ya want for nothing?".utf8), key: Array("Jefe".utf8), digest: .sha512)
    #expect(code.prefix(4).map { $0.hexadecimal(2) }.joined() == "164b7a7b")
    #expect(code.count == 64)
    let sha1 = HMAC.code(
      of: Array("what do ya want for nothing?".utf8), key: Array("Jefe".utf8), digest: .sha1)
    #expect(
      sha1.map { $0.hexadecimal(2) }.joined() == "effcdf6ae5eb2fa2d27416d5f184df9c259a7c79")
  }

  @Test func `unsafe needs no key or the operator's word`() {
    let path = "/unsafe/a.com/b.jpg"
    #expect(url(ThumborDoor(.thumbor, options()), path) == "http://a.com/b.jpg")
    #expect(refusal(ThumborDoor(.thumbor, options(key: "k")), path)?.status == 400)
    #expect(refusal(ThumborDoor(.imagor, options(key: "k")), path)?.status == 403)
    let both = ThumborDoor(.thumbor, options(key: "k") { $0.allowsUnsigned = true })
    let translation = try? translated(both, path).get()
    #expect(translation?.isSigned == false)
    #expect(translation?["url"] == "http://a.com/b.jpg")
    // Without keys no signature can be verified.
    #expect(
      refusal(ThumborDoor(.imagor, options()), "/_-19cQt1szHeUV0WyWFntvTImDI=/foo.jpg")?.status
        == 403)
  }

  // MARK: Sources

  @Test(arguments: [
    ("a.com/b.jpg", "http://a.com/b.jpg", "https://a.com/b.jpg"),
    ("http://a.com/b.jpg", "http://a.com/b.jpg", "http://a.com/b.jpg"),
    ("https:/a.com/b.jpg", "https://a.com/b.jpg", "https://a.com/b.jpg"),
    ("a.com:8080/b.jpg", "http://a.com:8080/b.jpg", "https://a.com:8080/b.jpg"),
    (
      "https%3A%2F%2Fa.com%2Fb%20c.jpg%3Fx%3D1", "https://a.com/b c.jpg?x=1",
      "https://a.com/b c.jpg?x=1"
    ),
    ("a.com/b%2520c.jpg", "http://a.com/b%20c.jpg", "https://a.com/b%20c.jpg"),
    ("s3://bucket/key", "s3://bucket/key", "s3://bucket/key"),
    ("b64:YS5jb20vYi5qcGc=/", "http://b64:YS5jb20vYi5qcGc=/", "https://a.com/b.jpg"),
    ("b64:YS5jb20vYi5qcGc", "http://b64:YS5jb20vYi5qcGc", "https://a.com/b.jpg"),
  ])
  func `sources without a base`(_ image: String, _ thumbor: String, _ imagor: String) {
    // The query is not part of the source at either peer.
    #expect(url(ThumborDoor(.thumbor, options()), "/unsafe/30x/" + image, query: "y=2") == thumbor)
    #expect(url(ThumborDoor(.imagor, options()), "/unsafe/30x/" + image, query: "y=2") == imagor)
  }

  @Test(arguments: [
    ("https://cdn.com", "a/b.jpg", "https://cdn.com/a/b.jpg"),
    ("https://cdn.com/x/", "/a.jpg", "https://cdn.com/x/a.jpg"),
    ("https://cdn.com/x", "http://a.com/b.jpg", "http://a.com/b.jpg"),
    ("local://", "a%20b%3F.jpg", "local:///a%20b%3F.jpg"),
    ("local:///deep/", "ä.jpg", "local:///deep/%C3%A4.jpg"),
    ("s3://bucket", "a/b.jpg", "s3://bucket/a/b.jpg"),
  ])
  func `sources with a base`(_ base: String, _ image: String, _ expected: String) {
    #expect(url(ThumborDoor(.imagor, options(base: base)), "/unsafe/30x/" + image) == expected)
  }

  @Test func `sources stay below their base`() {
    let door = ThumborDoor(.thumbor, options(base: "https://cdn.com/public"))
    for image in ["../secret.jpg", "a/..", "a/%2E%2E/b.jpg", "a/..%2Fb.jpg"] {
      #expect(refusal(door, "/unsafe/" + image)?.status == 400, "\(image)")
    }
    #expect(url(door, "/unsafe/a..b/c.jpg") == "https://cdn.com/public/a..b/c.jpg")
  }

  @Test func `sources are replaced and limited`() {
    let door = ThumborDoor(
      .imagor,
      options {
        $0.replacements = [
          .init(pattern: "bucket-*/", text: "s3://bucket/"),
          .init(pattern: "old.com", text: "https://new.com"),
        ]
        $0.allowedSources = ["s3://bucket/", "https://*.com/pub/"]
      })
    #expect(url(door, "/unsafe/bucket-7/a.jpg") == "s3://bucket/a.jpg")
    #expect(url(door, "/unsafe/old.com/pub/a.jpg") == "https://new.com/pub/a.jpg")
    for image in ["new.com/a.jpg", "new.com/pub/../a.jpg", "a/b.com/pub/", "http://new.com/pub/a"] {
      let answer = refusal(door, "/unsafe/" + image)
      #expect(answer?.status == 403, "\(image)")
      #expect(answer?.body == #"{"message":"http source not allowed","status":403}"#)
    }
    let filter = "filters:watermark(evil.org/w.png,0,0,0)"
    #expect(refusal(door, "/unsafe/\(filter)/new.com/pub/a.jpg")?.status == 400)
  }

  @Test(arguments: [
    ("", "abc", "abc"), ("ab", "abc", "c"), ("*c", "abcc", ""), ("a*/c", "ab/c/d", "/d"),
    ("a*c", "ab/c", nil), ("abcd", "abc", nil), ("*", "", ""), ("*c", "abcd", "d"),
    ("*b", "aaa", nil),
  ])
  func `beginnings with stars`(_ pattern: String, _ text: String, _ rest: String?) {
    let match = SourcePrefix(pattern).match(text)
    #expect(match.map { String(decoding: $0.rest, as: UTF8.self) } == rest)
  }

  // MARK: Answers

  @Test func `refusals have the peer's form`() {
    for path in [
      "", "/", "/unsafe", "/unsafe/", "/bad", "/300x200/a.jpg", "/image/id/a.jpg",
      "/unsafe/300x200/", "/unsafe/smart/",
    ] {
      let answer = refusal(ThumborDoor(.thumbor, options()), path)
      #expect(answer?.status == 400, "\(path)")
      #expect(answer?.contentType == "text/html; charset=UTF-8")
      #expect(answer?.body == "")
    }
    let mismatch = refusal(ThumborDoor(.imagor, options()), "/300x200/a.jpg")
    #expect(mismatch?.status == 403)
    #expect(mismatch?.contentType == "application/json")
    #expect(mismatch?.body == #"{"message":"url signature mismatch","status":403}"#)
    let label = refusal(ThumborDoor(.imagor, options()), "/unsafe/filters:label(a,1,1)/b.com/c.jpg")
    #expect(label?.body == #"{"message":"invalid","status":400}"#)
    #expect(label?.reason.hasPrefix("label: ") == true)
    #expect(
      refusal(ThumborDoor(.imagor, options()), "/params/unsafe/a.jpg")?.reason.hasPrefix("params")
        == true)
  }

  @Test func `the health check is answered`() {
    let answer = refusal(ThumborDoor(.thumbor, options(key: "k")), "/healthcheck")
    #expect(answer?.status == 200)
    #expect(answer?.body == "WORKING")
    #expect(refusal(ThumborDoor(.imagor, options()), "/healthcheck")?.status == 200)
  }

  @Test(arguments: [
    (ImageError.sourceNotFound(status: 404), 404, 404), (.sourceError(status: 403), 404, 403),
    (.invalidURL("x", reason: "y"), 400, 400), (.undecodable(detail: ""), 400, 406),
    (.forbiddenSource(reason: "", detail: ""), 400, 403), (.expiredSignature(1), 400, 410),
    (.sourceTimeout(detail: ""), 504, 408), (.sourceUnreachable(detail: ""), 500, 502),
    (.tooManyPixels(pixels: 2, limit: 1), 400, 422),
    (.watermark(.sourceNotFound(status: 404)), 400, 502),
    (.internal(detail: ""), 500, 500), (.draining, 503, 503),
    (.remembered(.sourceNotFound(status: 410), seconds: 1, isRepeated: true), 404, 404),
  ])
  func failuresHaveThePeersStatus(_ error: ImageError, _ thumbor: Int, _ imagor: Int) {
    #expect(ThumborDoor(.thumbor, options()).answer(to: error).status == thumbor)
    #expect(ThumborDoor(.imagor, options()).answer(to: error).status == imagor)
  }

  @Test func `answers have the peer's body and say when to try again`() {
    let missing = ThumborDoor(.imagor, options()).answer(to: .sourceNotFound(status: 404))
    #expect(missing.body == #"{"message":"not found","status":404}"#)
    let error = ImageError.overloaded(queue: "imaging", retryAfter: 3)
    let answer = ThumborDoor(.thumbor, options()).answer(to: error)
    #expect(answer.status == 503)
    #expect(answer.fields.map(\.value) == ["3"])
    #expect(
      ThumborDoor(.imagor, options()).answer(to: error).body
        == #"{"message":"too many requests","status":429}"#)
  }

  // MARK: Numbers and lengths

  @Test func `expiry is in milliseconds`() throws {
    let translation = try ThumborDoor(.imagor, options()).translate(
      DoorAddress(path: "/unsafe/filters:expire(1700000000999)/a.com/b.jpg"))
    #expect(translation.expiry == UnixTime(seconds: 1_700_000_000))
  }

  @Test(arguments: [
    (0.0, "0"), (1.5, "1.5"), (0.07, "0.07"), (100, "100"), (-0.25, "-0.25"), (0.0000004, "0"),
    (12.3456789, "12.345679"), (-0.0000001, "0"), (0.00004, "0.00004"),
    (1e300, "1000000000000"),
  ])
  func `numbers are written`(_ number: Double, _ text: String) {
    #expect(number.written == text)
  }

  @Test(arguments: [
    "", "-", ".", "1.", "nan", "inf", "1e5", "0x1", "1.2.3", "--1", "+1", "1999999999999999999999",
    "٣",
  ])
  func `other texts are no numbers`(_ text: String) {
    let given = Arguments(texts: [text])
    #expect(throws: DoorFault.self) { try given.decimal(0, -1e9...1e9) }
    #expect(throws: DoorFault.self) { try given.integer(0, 0...Int.max) }
  }

  @Test func `long addresses are read`() {
    let door = ThumborDoor(.imagor, options())
    for piece in ["filters:", "a(", "a():", "(", "x", "1x1:", "trim/", "a,", "%28"] {
      let path = "/unsafe/filters:" + String(repeating: piece, count: 8_000 / piece.utf8.count)
      let translation = try? translated(door, path + "b(1)/a.com/b.jpg").get()
      #expect((translation?.notes.count ?? 0) <= 50)
    }
  }
}

// PartsTests: tests of small parts without a socket: targets, memo, dates, names, heads, states.

import Model
import Telemetry
import Testing

@testable import Serving

struct PartsTests {
  private func target(_ text: String) -> RequestTarget {
    let raw = Array(text.utf8)
    return RequestTarget(
      raw: raw, hash: raw.withUnsafeBytes { RequestMemo.hash($0) },
      rules: RequestRules(ServerConfiguration()))
  }

  @Test func `a target leads to its route in origin and in absolute form`() {
    #expect(target("/image?url=https://h/a").route == .image)
    #expect(target("/im%61ge?url=https://h/a").key != nil)
    #expect(target("http://any:80/image?url=https://h/a").key != nil)
    #expect(target("/stats").route == .stats)
    #expect(target("http://any").route == nil)
    for nowhere in ["/", "", "*", "/image/", "/Image", "/image%00", "/%zz", "//image"] {
      #expect(target(nowhere).route == nil, "\(nowhere)")
    }
  }

  @Test func `a memo gives back what it was given, and no more than it may keep`() {
    let memo = RequestMemo(limit: 64 << 10)
    var found = 0
    for number in 0..<1_000 {
      let made = target("/image?url=https://h/\(number)")
      memo.remember(made)
      let hit = made.raw.withUnsafeBytes { memo.target($0, hash: made.hash) }
      #expect(hit === made || hit == nil)
    }
    for number in 0..<1_000 {
      let made = target("/image?url=https://h/\(number)")
      if let hit = made.raw.withUnsafeBytes({ memo.target($0, hash: made.hash) }) {
        found += 1
        #expect(hit.raw == made.raw)
      }
    }
    #expect(found > 8 && found < 64)
  }

  @Test func `a frequent target is not pushed out by rare ones`() {
    let memo = RequestMemo(limit: 64 << 10)
    let frequent = target("/image?url=https://h/frequent")
    memo.remember(frequent)
    var misses = 0
    for number in 0..<2_000 {
      if number % 2 == 0 {
        let isKnown = frequent.raw.withUnsafeBytes {
          memo.target($0, hash: frequent.hash) === frequent
        }
        if !isKnown {
          misses += 1
          memo.remember(frequent)
        }
      } else {
        memo.remember(target("/image?url=https://h/\(number)"))
      }
    }
    #expect(misses <= 4)
  }

  @Test func `one long target more than fits pushes out a few and not all`() {
    // Given a memo full of long targets
    let memo = RequestMemo(limit: 2 << 20)
    func long(_ number: Int) -> RequestTarget {
      target("/image?url=https://h/\(number)/" + String(repeating: "a", count: 1_900))
    }
    func isKept(_ target: RequestTarget) -> Bool {
      target.raw.withUnsafeBytes { memo.target($0, hash: target.hash) } != nil
    }
    var targets: [RequestTarget] = []
    var (before, mostGone, remembered) = (0, 0, 0)
    for number in 0..<1_000 {
      // When one more comes
      let more = long(number)
      memo.remember(more)
      targets.append(more)
      // Then most of the others stay.
      let kept = targets.count(where: isKept)
      mostGone = max(mostGone, before + 1 - kept)
      if isKept(more) { remembered += 1 }
      before = kept
    }
    #expect(mostGone <= RequestMemo.releasedAtOnce + 1)
    #expect(before > 100)
    #expect(remembered == 1_000)
  }

  @Test func `targets with one hash are told apart, and errors are not kept`() {
    let memo = RequestMemo(limit: 64 << 10)
    let one = RequestTarget(
      raw: Array("/image?url=https://h/a".utf8), hash: 5, rules: RequestRules(ServerConfiguration())
    )
    let two = Array("/image?url=https://h/b".utf8)
    memo.remember(one)
    #expect(two.withUnsafeBytes { memo.target($0, hash: 5) } == nil)
    let bad = RequestTarget(
      raw: Array("/image?x=1".utf8), hash: 6, rules: RequestRules(ServerConfiguration()))
    memo.remember(bad)
    #expect(bad.raw.withUnsafeBytes { memo.target($0, hash: 6) } == nil)
  }

  @Test(arguments: [
    ("https://h/a/photo.png", "inline; filename=\"photo.jpg\""),
    ("https://h/", "inline; filename=\"image.jpg\""),
    ("https://h/.hidden", "inline; filename=\".hidden.jpg\""),
    ("https://h/a.b.c?x=y", "inline; filename=\"a.b.jpg\""),
    ("https://h/a%20b.png", "inline; filename=\"a b.jpg\""),
    (
      "https://h/a%22%0D%0Ab%5C%2Fc.png",
      "inline; filename=\"a_bc.jpg\"; filename*=UTF-8''a%22bc.jpg"
    ),
    ("https://h/%C3%A9.png", "inline; filename=\"_.jpg\"; filename*=UTF-8''%C3%A9.jpg"),
    ("https://h/..%2F..", "inline; filename=\"image.jpg\""),
  ])
  func `a file name is offered and cannot do harm`(url: String, expected: String) throws {
    let source = try SourceURL(parsing: url)
    #expect(ContentDisposition.inline(source: source, format: .jpeg) == expected)
  }

  @Test func `a file name is short however many marks its characters have`() throws {
    let name = "a" + String(repeating: "%CC%81", count: 1_300)
    let source = try SourceURL(parsing: "https://h/\(name).png")
    #expect(ContentDisposition.inline(source: source, format: .jpeg).utf8.count < 1_500)
  }

  @Test func `a header value with a line break is left out`() {
    var head = ResponseHead(date: UnixTime(seconds: 0), id: RequestID())
    let before = head.bytes
    head.add("ETag", "\"a\"\r\nSet-Cookie: x")
    head.add("ETag", "")
    #expect(head.bytes == before)
    head.add("ETag", "\"a\"")
    #expect(String(decoding: head.bytes.suffix(11), as: UTF8.self) == "\r\nETag: \"a\"")
  }

  @Test func `densities are written without needless digits`() {
    #expect(ResponseHead.decimal(2) == "2")
    #expect(ResponseHead.decimal(0.5) == "0.5")
    #expect(ResponseHead.decimal(1.0 / 3) == "0.333")
    #expect(ResponseHead.decimal(1.05) == "1.05")
    // A density is never 0, however small.
    #expect(ResponseHead.decimal(0.000_1) == "0.001")
  }

  @Test func `the first end of an exchange decides, and resumes once`() throws {
    var state = SuspendedRequestState()
    #expect(state.workStarted() == [])
    #expect(state.interrupted(.failure(.deadlineExceeded)) == [.resume, .cancelWork])
    #expect(state.interrupted(.gone) == [])
    #expect(state.workEnded(.failure(.cancelled)) == [])
    guard case .failure(.deadlineExceeded)? = state.decided() else {
      Issue.record("the deadline did not decide")
      return
    }
  }

  @Test func `work that ends first is not cancelled`() {
    var state = SuspendedRequestState()
    #expect(state.workStarted() == [])
    #expect(state.workEnded(.failure(.sourceNotFound(status: 404))) == .resume)
    #expect(state.interrupted(.gone) == [])
  }

  @Test func `work that ends before it is known to have started is left alone`() {
    var state = SuspendedRequestState()
    #expect(state.workEnded(.failure(.draining)) == .resume)
    #expect(state.workStarted() == [])
  }

  @Test func `work that starts too late is cancelled at once`() {
    var state = SuspendedRequestState()
    #expect(state.interrupted(.gone) == .resume)
    #expect(state.workStarted() == .cancelWork)
  }
}

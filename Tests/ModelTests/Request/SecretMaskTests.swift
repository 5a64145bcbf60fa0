// Tests of SecretMask: what is masked in any spelling, what is left, and in linear time.

import TestSupport
import Testing

@testable import Core

struct SecretMaskTests {
  @Test(arguments: [
    ("http://user:pass@host/a.jpg", "http://***@host/a.jpg"),
    ("https://token@host", "https://***@host"),
    ("ftp://user:p:a@ss@host/", "ftp://***@host/"),
    ("//user:pass@host/a", "//***@host/a"),
    ("http:\\\\user:pass@host\\a", "http:\\\\***@host\\a"),
    ("http:/user:pass@host/a", "http:/***@host/a"),
    ("user:pass@host/a", "***@host/a"),
    ("http://user:p%2Fss%40@host/", "http://***@host/"),
    // What should have been encoded and was not.
    ("http://user:p/ss@host/", "http://***@host/"),
    ("http://user:p?ss@host/", "http://***@host/"),
    ("http://user:p#ss@host/", "http://***@host/"),
    ("http://user:p&ss@host/", "http://***@host/"),
    ("the URL 'http://us er:p ss@host/' is bad", "the URL 'http://***@host/' is bad"),
    // As a parameter, encoded once, twice and thrice.
    ("/image?url=http://user:pass@host/&w=3", "/image?url=http://***@host/&w=3"),
    (
      "/image?url=http%3A%2F%2Fuser%3Apass%40host%2Fa&w=3",
      "/image?url=http%3A%2F%2F***%40host%2Fa&w=3"
    ),
    ("/image?url=user%3Apass%40host%2Fa", "/image?url=***%40host%2Fa"),
    ("u=http%253A%252F%252Fuser%253Apass%2540host", "u=http%253A%252F%252F***%2540host"),
    ("u=http%25253A%25252F%25252Fu%25253Ap%252540h", "u=http%25253A%25252F%25252F***%252540h"),
    ("http://h/?u=http://user:pass@other/", "http://h/?u=http://***@other/"),
  ])
  func `user information is masked in every spelling`(text: String, masked: String) {
    #expect(SecretMask.masked(text) == masked)
    #expect(SecretMask.masked(masked) == masked)
  }

  @Test(arguments: [
    ("https://h/a?sig=abc&w=3", "https://h/a?sig=***&w=3"),
    ("https://h/a?w=3&X-Amz-Signature=0f#x", "https://h/a?w=3&X-Amz-Signature=***#x"),
    ("https://h/a?access_token=a;b=c", "https://h/a?access_token=***"),
    ("https://h/a?PassWord=x y", "https://h/a?PassWord=*** y"),
    ("token=a%26b&w=1", "token=***&w=1"),
    (
      "/image?url=https%3A%2F%2Fh%2Fa%3Fsig%3Dabc%26w%3D3&h=4",
      "/image?url=https%3A%2F%2Fh%2Fa%3Fsig%3D***%26w%3D3&h=4"
    ),
    (
      "/image?url=https%3A%2F%2Fh%2Fa%3Fsig%3Da%2526b&h=4",
      "/image?url=https%3A%2F%2Fh%2Fa%3Fsig%3D***&h=4"
    ),
    (
      "https://h/?X-Goog-Credential=a&api-key=b&client_secret=c",
      "https://h/?X-Goog-Credential=***&api-key=***&client_secret=***"
    ),
  ])
  func `secret parameters are masked by name`(text: String, masked: String) {
    #expect(SecretMask.masked(text) == masked)
    #expect(SecretMask.masked(masked) == masked)
  }

  @Test(arguments: [
    "https://example.com/logo@2x.png", "https://example.com:8080/logo@2x.png?w=3",
    "https://[::1]:80/logo@3x.png", "/image?url=https%3A%2F%2Fh%3A80%2Flogo%402x.png&w=3",
    "https://h/?keyword=a&design=b&author=c&passage=d", "mail@example.com", "a=b", "100%", "%zz%",
    "http://host:80&w=3", "", "@", "://", "=",
  ])
  func `text without secrets is unchanged`(text: String) {
    #expect(SecretMask.masked(text) == text)
  }

  @Test(arguments: [
    ("/image?url=http%3A%2F%2Fme%3Apass", "/image?url=http%3A%2F%2F***"),
    ("http://me:pa", "http://***"), ("http://h/a?sig=ab", "http://h/a?sig=***"),
    ("/image?url=me:pa", "/image?url=***"),
    ("/image?url=http%3A%2F%2Fh%3A80%2Fa.jp", "/image?url=http%3A%2F%2Fh%3A80%2Fa.jp"),
    ("https://h/logo.pn", "https://h/logo.pn"),
  ])
  func `a truncated URL is masked where a password may begin`(text: String, masked: String) {
    #expect(SecretMask.maskedBeginning(text) == masked)
  }

  @Test func `an operator's list keeps parameters and masks user information`() {
    let text = "https://h/a?sig=abc&u=http://me:pass@h/"
    #expect(SecretMask.withoutUsers(text) == "https://h/a?sig=abc&u=http://***@h/")
  }

  @Test func `passwords are masked in random spellings of a URL`() {
    var random = SeededGenerator(seed: 18)
    let secret = "m4rk"
    let marks = ["", ":", "@", "%2F", "%40", "=", "'", "!", "*", "é", "%25"]
    for _ in 0..<4_000 {
      let password =
        (marks.randomElement(using: &random) ?? "") + secret
        + (marks.randomElement(using: &random) ?? "")
      var text =
        "\(["http", "https", "ftp", "HTTP"].randomElement(using: &random) ?? "")://"
        + "user\(Int.random(in: 0...9, using: &random)):\(password)@host/a@2x.png?w=1"
      for _ in 0..<Int.random(in: 0...3, using: &random) { text = Self.encoded(text) }
      text = ["", "/image?url=", "the URL '"].randomElement(using: &random).map { $0 + text } ?? ""
      #expect(!SecretMask.masked(text).contains(secret), "\(text)")
    }
  }

  @Test func `the quick look finds each text in which the scan finds a secret`() {
    var random = SeededGenerator(seed: 19)
    let pieces =
      [
        "@", "=", "%", "%40", "%3D", "%3d", "%25", "%253D", "40", "3D", "&", "?", "%3F", "%26",
        "%3f", "/", "://", ":",
        " ", "'",
      ]
      + ["api-key", "api_key-", "KEY", "to.ken", "é", "w", "url"]
      + SecretMask.names.sorted() + SecretMask.nameEnds
    for _ in 0..<20_000 {
      let text = (0..<Int.random(in: 1...7, using: &random)).map { _ in
        pieces.randomElement(using: &random) ?? ""
      }.joined()
      for withParameters in [true, false] {
        let masked = SecretMask.maskAll(text, withParameters: withParameters)
        let found = withParameters ? SecretMask.masked(text) : SecretMask.withoutUsers(text)
        #expect(found == masked, "\(text)")
      }
    }
  }

  @Test(arguments: [
    "/image?url=http://images.example/photos/a.jpg&w=300&h=200&format=webp&quality=80",
    "/image?url=http%3A%2F%2Fimages.example%2Fphotos%2Fa.jpg%3Fv%3D3&scale=0.5", "request",
  ])
  func `usual request targets need no scan`(text: String) {
    var text = text
    #expect(text.withUTF8 { !SecretMask.mayHoldSecret($0, withParameters: true) })
  }

  @Test func `masking takes linear time for hostile text`() {
    // What would take a minute if the time grew with the square of the length.
    let hostile = ["@", "a:@", "://a:b", "//", "=", "sig=", "'", "%25", "a:'@ ", "%2540"]
    for piece in hostile {
      let text = String(repeating: piece, count: 400_000 / piece.utf8.count)
      #expect(SecretMask.masked("x:" + text).utf8.count > 0)
    }
  }

  private static func encoded(_ text: String) -> String {
    text.utf8.map { byte in
      switch byte {
      case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "0")...UInt8(ascii: "9"):
        String(UnicodeScalar(byte))
      default: "%" + (byte < 16 ? "0" : "") + String(byte, radix: 16)
      }
    }.joined()
  }
}

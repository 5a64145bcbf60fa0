// SignCommandTests: tests of the sign command.

@testable import Core
import TestSupport
import Testing

@testable import Commanding

@Suite(.onOwnThreads) struct SignCommandTests {
  private let printed = Printed()
  private let secret = String(repeating: "k", count: 32)
  private let now = UnixTime(seconds: 1_800_000_000)

  /// Returns the exit status of `pictor sign`.
  private func run(
    _ urls: String..., expiresIn: Duration? = nil, key: String? = nil
  ) throws -> CInt {
    var settings = SigningSettings()
    settings.keys = [
      SigningSettings.Key(id: "main", secret: .environment("KEY")),
      SigningSettings.Key(id: "old", secret: .literal(secret + "old")),
    ]
    var order = SigningOrder()
    order.urls = urls
    order.expiresIn = expiresIn
    order.key = key
    var command = try SignCommand(settings, environment: ["KEY": secret], order: order)
    command.console = printed.console()
    command.now = now
    return command.run()
  }

  private var lines: [String] { printed.output.split(separator: "\n").map(String.init) }

  /// Whether a server with both keys accepts the query of a URL.
  private func isAccepted(_ url: String, path: String) throws -> Bool {
    let query = url.drop { $0 != "?" }.dropFirst()
    let text = try #require(SignedText(path: path, query: query.utf8))
    let signer = URLSigner(keys: [
      SigningKey(id: "main", secret: secret), SigningKey(id: "old", secret: secret + "old"),
    ])
    do throws(SignatureFault) {
      try signer.verify(text)
      return true
    } catch {
      return false
    }
  }

  @Test func `each URL is written with its signature, and otherwise as it was`() throws {
    let urls = [
      "/image?url=local:///a.jpg&w=300", "https://img.example/image?w=3&url=http%3a%2f%2fh%2Fé",
      "http://h:8080/some/prefix/info?url=https://h/a",
    ]
    #expect(try run(urls[0], urls[1], urls[2]) == 0)
    #expect(lines.count == 3)
    for (line, url) in zip(lines, urls) {
      #expect(line.hasPrefix(url + "&sig=main."))
      #expect(try isAccepted(line, path: url.contains("/info") ? "/info" : "/image"))
      #expect(try !isAccepted(line, path: url.contains("/info") ? "/image" : "/info"))
    }
  }

  @Test func `the expiry counts from now and replaces another one`() throws {
    let url = "/image?exp=5&url=a&sig=x.y&w=1"
    #expect(try run(url, expiresIn: .seconds(90)) == 0)
    #expect(lines[0].hasPrefix("/image?url=a&w=1&exp=1800000090&sig=main."))
    #expect(try run(url) == 0)
    #expect(lines[1].hasPrefix("/image?exp=5&url=a&w=1&sig=main."))
    for line in lines { #expect(try isAccepted(line, path: "/image")) }
  }

  @Test func `another key than the first can be named`() throws {
    #expect(try run("/image?url=a", key: "old") == 0)
    #expect(try lines[0].contains("&sig=old.") && (isAccepted(lines[0], path: "/image")))
    #expect {
      _ = try run("/image?url=a", key: "none")
    } throws: {
      "\($0)" == "--key: 'none' is not one of main, old"
    }
  }

  @Test(arguments: [
    "https://example.org/a.jpg", "/image", "/image?", "/stats?url=a", "image?url=a",
    "https://image?url=a", "/imagex?url=a", "/image?url=a b", "/image?url=a#b", "/image?url=%zz",
    "/image?url=a\nb", "ftp://h/image?url=a", "",
  ])
  func `what cannot be signed is reported, and the rest is signed`(url: String) throws {
    #expect(try run("/image?url=a", url, "/image?url=b") == 1)
    #expect(lines.count == 2)
    #expect(printed.errors.split(separator: "\n").count == 1)
    #expect(printed.errors.hasPrefix("pictor: "))
  }

  @Test func `without a key nothing is signed`() {
    #expect {
      _ = try SignCommand(SigningSettings(), environment: [:], order: SigningOrder())
    } throws: {
      "\($0)" == "signing.keys: a key of the server is required"
    }
  }
}

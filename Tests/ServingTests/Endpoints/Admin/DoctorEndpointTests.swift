// DoctorEndpointTests: tests of `POST /admin/doctor`.

import TestSupport
import Testing

@testable import Core
@testable import Serving

@Suite(.onOwnThreads) struct DoctorEndpointTests {
  private let services = TestServices()
  private let url = "url=https%3A%2F%2Fh%2Fa.jpg"

  private func ask(
    _ query: String, scopes: Set<OperatorScope> = [.write],
    configure: @escaping (inout ServerConfiguration) -> Void = { _ in }
  ) async throws -> (status: Int, text: String) {
    try await withClient(services: services) {
      var holder = Operator(name: "o", token: operatorToken)
      holder.scopes = scopes
      $0.operators = [holder]
      configure(&$0)
    } body: { client in
      let answer = try client.request(
        "POST", target: "/admin/doctor?" + query,
        headers: ["Authorization": "Bearer " + operatorToken, "Cookie": "secret"])
      return (answer.status, answer.text)
    }
  }

  @Test func `it needs the scope write, since it asks an origin`() async throws {
    for scopes in [[.read], [.purge], [.read, .purge]] as [Set<OperatorScope>] {
      let (status, text) = try await ask(url, scopes: scopes)
      #expect(status == 403 && text.contains("insufficient_scope"))
    }
    #expect(services.diagnosed.withLock { $0.isEmpty })
    #expect(try await ask(url).status == 200)
    #expect(services.diagnosed.withLock { $0.count } == 1)
  }

  @Test func `the answer has the steps, and the operator's fields are not the source's`()
    async throws
  {
    let own = try #require(HostPattern("h"))
    var diagnosis = Diagnosis(of: "http://user:password@h/a.jpg")
    diagnosis.add(.name, in: .microseconds(1_260), found: "192.0.2.1")
    diagnosis.end(.connect, in: .seconds(5), with: .sourceTimeout(detail: "late", key: "k"))
    services.diagnosis.withLock { [diagnosis] in $0 = .success(diagnosis) }
    let (status, text) = try await ask(url) {
      var rule = HostRule(host: own, tags: ["shop"])
      rule.forwardedHeaders = ["cookie"]
      $0.keyFilter = CacheKeyFilter(rules: [rule])
    }
    #expect(status == 200)
    for part in [
      "\"ok\" : false,\n  \"steps\"", #""ms" : 1.3"#, #""ms" : 5000"#, #""rule" : "k""#,
      #""rule" : "download.connect_timeout""#, #""url" : "http://***@h/a.jpg""#,
      #""found" : "source_timeout: late (see k in the configuration)""#,
    ] {
      #expect(text.contains(part), "\(part) in \(text)")
    }
    let request = try #require(services.diagnosed.withLock { $0.last })
    #expect(request.transform.product == .info(nil))
    #expect(request.forwarded.isEmpty)
  }

  @Test func `wrong use and a loop are errors, and a refused source is a result`() async throws {
    #expect(try await ask("").status == 400)
    #expect(try await ask("url=ftp%3A%2F%2Fh%2F").status == 400)
    #expect(try await ask(url + "&w=3").status == 400)
    #expect(try await ask(url + "&" + url).status == 400)
    let (status, text) = try await ask(url) {
      $0.sourceRules = { text, _ throws(ImageError) in
        throw .forbiddenSource(reason: "not here", detail: text, key: "sources.allow")
      }
    }
    #expect(status == 200 && text.contains(#""rule" : "sources.allow""#), "\(text)")
    #expect(services.diagnosed.withLock { $0.isEmpty })
    services.diagnosis.withLock { $0 = .failure(.draining) }
    #expect(try await ask(url).status == 503)
  }
}

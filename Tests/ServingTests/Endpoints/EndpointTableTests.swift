// EndpointTableTests: clients see what the endpoint table defines.

import Core
import TestSupport
import Testing

@testable import Serving

@Suite(.onOwnThreads) struct EndpointTableTests {
  private let token = "correct-horse-battery"

  /// Returns a path that leads to an endpoint.
  private func samplePath(of endpoint: any Endpoint) -> String {
    switch endpoint.path {
    case .exact(let path): path
    case .item(let parent): parent + "x"
    }
  }

  @Test func `each path leads to exactly one endpoint`() {
    let all = EndpointTable.everyone.endpoints
    for endpoint in all {
      let path = samplePath(of: endpoint)
      #expect(all.count { $0.path.name(in: path) != nil } == 1, "\(path)")
      #expect(EndpointTable.everyone.find(path)?.endpoint.path == endpoint.path)
      #expect(EndpointTable.everyone.find(path + "/") == nil)
      #expect(EndpointTable.everyone.find(path + "/x/y") == nil)
    }
    #expect(EndpointTable.everyone.find("") == nil)
  }

  @Test func `an item path has one segment after its parent`() {
    let path = EndpointPath.item(under: "/admin/prefetch/")
    #expect(path.name(in: "/admin/prefetch/7f") == "7f")
    for other in ["/admin/prefetch", "/admin/prefetch/", "/admin/prefetch/7f/", "/admin/x/7f"] {
      #expect(path.name(in: other) == nil, "\(other)")
    }
    #expect(EndpointPath.exact("/stats").name(in: "/stats")?.isEmpty == true)
  }

  @Test func `open endpoints discard request bodies`() {
    let configuration = ServerConfiguration()
    for endpoint in EndpointTable.everyone.endpoints where endpoint.access == .open {
      for method in endpoint.methods {
        #expect(endpoint.bodyPolicy(for: method, in: configuration) == .discard)
      }
    }
  }

  @Test func `request bodies are kept only for allowed methods`() {
    let configuration = ServerConfiguration()
    let all: [Method] = [.get, .head, .post, .put, .delete, .options, .other]
    for endpoint in EndpointTable.everyone.endpoints {
      for method in all where endpoint.bodyPolicy(for: method, in: configuration) != .discard {
        #expect(endpoint.methods.contains(method) && method.hasBody)
      }
    }
  }

  @Test func `access, methods and Allow follow the endpoint table`() async throws {
    try await withServer(TestProvider(), configure: { $0.operatorTokens = [token] }) { server in
      let client = try HTTPClient(port: server.port)
      for endpoint in EndpointTable.everyone.endpoints {
        let path = samplePath(of: endpoint)
        let allow = Method.allow(endpoint.methods)

        // When a client without a token sends a method that no endpoint allows
        let anyone = try client.request("PATCH", target: path)
        // Then the response states the allowed methods, unless the endpoint is for operators.
        if endpoint.access == .operators {
          #expect(anyone.status == 401 && anyone.text.contains("\"code\":\"unauthorized\""))
          #expect(anyone["WWW-Authenticate"] == "Bearer")
          #expect(anyone["Allow"] == nil)
        } else {
          #expect(anyone.status == 405)
          #expect(anyone["Allow"] == allow)
        }

        let operatorsAnswer = try client.request(
          "PATCH", target: path, headers: ["Authorization": "Bearer " + token])
        #expect(operatorsAnswer.status == 405)
        #expect(operatorsAnswer["Allow"] == allow)

        let options = try client.request("OPTIONS", target: path)
        #expect(options.status == 204)
        #expect(options["Allow"] == allow)
      }
    }
  }

  @Test func `without operators the admin endpoints do not exist`() async throws {
    try await withServer(TestProvider()) { server in
      let client = try HTTPClient(port: server.port)
      for endpoint in EndpointTable.everyone.endpoints where endpoint.access == .operators {
        let path = samplePath(of: endpoint)
        #expect(
          try client.get(path, headers: ["Authorization": "Bearer " + token]).status == 404)
        #expect(try client.request("OPTIONS", target: path)["Allow"] == "GET, HEAD, OPTIONS")
      }
    }
  }
}

// EndpointTableTests: clients see what the endpoint table defines.

import Core
import TestSupport
import Testing

@testable import Serving

@Suite(.onOwnThreads) struct EndpointTableTests {
  @Test func `each path leads to exactly one endpoint`() {
    let all = EndpointTable.everyone.endpoints
    for endpoint in all {
      let path = endpoint.samplePath
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
    try await withOperators { client, header in
      for endpoint in EndpointTable.everyone.endpoints {
        let allow = Method.allow(endpoint.methods)
        // When a client without a token sends a method that no endpoint allows
        let anyone = try client.request("PATCH", target: endpoint.samplePath)
        // Then the response states the allowed methods, unless the endpoint is for operators.
        let isOpen = endpoint.access == .open
        #expect(anyone.status == (isOpen ? 405 : 401))
        #expect(anyone["Allow"] == (isOpen ? allow : nil))
        #expect(anyone["WWW-Authenticate"] == (isOpen ? nil : "Bearer"))
        #expect(isOpen || anyone.text.contains("\"code\":\"unauthorized\""))
        for (method, status) in [("PATCH", 405), ("OPTIONS", 204)] {
          let answer = try client.request(method, target: endpoint.samplePath, headers: header)
          #expect(answer.status == status && answer["Allow"] == allow)
        }
      }
    }
  }

  @Test func `without operators the admin endpoints do not exist`() async throws {
    try await withClient { client in
      for endpoint in EndpointTable.everyone.endpoints where endpoint.access == .operators {
        let path = endpoint.samplePath
        #expect(try client.get(path, headers: operatorHeader).status == 404)
        let options = try client.request("OPTIONS", target: path)
        #expect(options.status == 204 && options["Allow"] == "GET, HEAD, OPTIONS")
        #expect(options["Access-Control-Allow-Headers"]?.contains("Authorization") == false)
      }
    }
  }
}

// AdminParameterTests: admin parameters, as a matrix of endpoints, methods and names.

import Core
import TestSupport
import Testing

@testable import Serving

@Suite(.onOwnThreads) struct AdminParameterTests {
  /// Each parameter of an admin endpoint with two of its values, and a name that no endpoint has.
  private static let values = [
    ("tier", "memory", "disk"), ("interval", "0.1", "0.2"), ("url", "https://h/a", "https://h/b"),
    ("prefix", "https://h/a", "https://h/b"), ("host", "a", "b"), ("tag", "a", "b"),
    ("w", "1", "2"), ("unknown", "1", "2"),
  ]

  private let services = TestServices()

  /// Asks each admin endpoint with each of its methods.
  private func withMatrix(
    _ check: (_ ask: (String) throws -> HTTPAnswer, _ method: Method) throws -> Void
  ) async throws {
    try await withOperators(services) { client, header in
      for endpoint in EndpointTable.everyone.endpoints where endpoint.access == .operators {
        for method in endpoint.methods where method != .head {
          try check(
            {
              try client.request(method.rawValue, target: endpoint.samplePath + $0, headers: header)
            }, method)
        }
      }
    }
  }

  @Test(arguments: ["0x1p-1", "1e-1", "-0", "%2B0.5", "nan", "1.1", ".", ""])
  func `an interval is written with digits and a point alone`(text: String) throws {
    let query = try AdminQuery(Array("interval=\(text)".utf8)[...], allowed: ["interval"])
    #expect(throws: ImageError.self) { try query.fraction("interval") }
  }

  @Test func `no admin endpoint takes a parameter twice`() async throws {
    services.statuses.withLock { $0["x"] = PrefetchStatus(id: "x", total: 1) }
    try await withMatrix { ask, method in
      for (name, first, second) in Self.values {
        for target in ["?\(name)=\(first)&\(name)=\(second)", "?\(name)=\(first)&\(name)=\(first)"]
        {
          let answer = try ask(target)
          #expect(answer.status == 400, "\(method) \(target)")
          #expect(answer.text.contains("parameter\":"), "\(method) \(target)")
          #expect(answer.text.contains(name), "\(method) \(target)")
        }
      }
    }
    #expect(services.cancelled.value == 0 && !services.isPaused.withLock { $0 })
    #expect(services.cleared.withLock { $0.isEmpty } && services.purged.withLock { $0.isEmpty })
    #expect(services.statuses.withLock { $0["x"]?.state } != .cancelled)
  }

  @Test func `no admin endpoint ignores an unknown parameter`() async throws {
    try await withMatrix { ask, method in
      let answer = try ask("?unknown=1")
      #expect(answer.status == 400 && answer.text.contains("unknown_parameter"), "\(method)")
    }
    #expect(services.cancelled.value == 0 && !services.isPaused.withLock { $0 })
  }

  @Test func `a name counts as repeated however it is encoded`() async throws {
    try await withMatrix { ask, method in
      let answer = try ask("?tier=disk&%74ier=disk")
      #expect(answer.status == 400, "\(method)")
    }
    #expect(services.cleared.withLock { $0.isEmpty })
  }
}

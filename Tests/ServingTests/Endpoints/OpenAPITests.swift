// OpenAPITests: /openapi.json says what the tables say, for each listener.

@testable import Core
import FoundationEssentials
import TestSupport
import Testing

@testable import Serving

@Suite(.onOwnThreads) struct OpenAPITests {
  private typealias Object = [String: RawValue]

  private func document(_ bytes: [UInt8]) throws -> RawValue {
    try #require(RawValue(json5: String(decoding: bytes, as: UTF8.self)))
  }

  /// The description of a server with one operator.
  private var wholeBytes: [UInt8] {
    OpenAPI(.everyone, hasOperators: true, rules: RequestRules(ServerConfiguration())).bytes
  }

  /// With `PICTOR_WRITE_FILES` in the environment, the file is written: `make generated`.
  @Test func `the repository's copy is that of the default configuration with an operator`() throws
  {
    let root = "/" + #filePath.split(separator: "/").dropLast(4).joined(separator: "/")
    let url = URL(filePath: root + "/config/openapi.json")
    if ProcessInfo.processInfo.environment["PICTOR_WRITE_FILES"] != nil {
      try Data(wholeBytes).write(to: url)
    }
    #expect(
      (try? Data(contentsOf: url)) == Data(wholeBytes), "make generated writes config/openapi.json")
  }

  @Test func `it has each method of each endpoint, and no other`() throws {
    let paths = try document(wholeBytes)["paths"].members
    var ids: Set<String> = []
    for endpoint in EndpointTable.everyone.endpoints {
      let item = paths[endpoint.path.template]?.members ?? [:]
      let operations = endpoint.methods.filter { $0 != .head }.compactMap { method in
        endpoint.operation(for: method).map { (method.rawValue.lowercased(), $0, method) }
      }
      #expect(Set(item.keys) == Set(operations.map(\.0)), "\(endpoint.path)")
      for (name, operation, method) in operations {
        let found = try #require(item[name])
        #expect(found["summary"].text == operation.summary)
        #expect(ids.insert(try #require(found["operationId"].text)).inserted)
        let isForOperators = endpoint.access == .operators
        #expect(found.members.keys.contains("security") == isForOperators)
        let scope = endpoint.scope(for: method).rawValue
        #expect(
          found["description"].text?.contains("scope \(scope).") == (isForOperators ? true : nil))
      }
    }
    // Only the page and what browsers ask for is no part of it.
    let others = EndpointTable.everyone.endpoints.filter { $0.operation(for: .get) == nil }
    #expect(
      others.map(\.path.template) == ["/robots.txt", "/favicon.ico", "/", "/page/{name}"])
  }

  @Test func `names of the configuration are not in it`() throws {
    var configuration = ServerConfiguration()
    configuration.presets = ["secret-preset": "w=9"]
    configuration.watermarks = ["secret-mark": try SourceURL(parsing: "https://h/mark.png")]
    let rules = RequestRules(configuration)
    let bytes = OpenAPI(.everyone, hasOperators: true, rules: rules).bytes
    #expect(!String(decoding: bytes, as: UTF8.self).contains("secret-"))
    #expect(rules.presets.count == 1 && rules.watermarks.count == 1)
  }

  @Test func `each parameter has a schema of its values`() throws {
    let components = try document(wholeBytes)["components"]
    let parameters = components["parameters"].members
    #expect(Set(parameters.keys) == Set(ImageParameter.table.map(\.name)))
    func schema(_ name: String) -> RawValue { parameters[name]?["schema"] ?? .null }
    #expect(schema("fit")["enum"].list?.contains("cover-down") == true)
    #expect(schema("h")["minimum"].integer == 1 && schema("h")["maximum"].integer == 65_535)
    #expect(schema("watermark_scale")["exclusiveMinimum"].number == 0)
    #expect(schema("background")["pattern"].text != nil)
    #expect(parameters["url"]?["required"] == .boolean(true))
    // auto or a number
    let width = schema("w")
    guard case .array(let kinds) = width["anyOf"] else { return #expect(Bool(false)) }
    #expect(kinds.first?["enum"].list == ["auto"] && kinds.last?["type"].text == "integer")
    // /info has those of loading alone
    let paths = try document(wholeBytes)["paths"]
    func names(_ path: String) -> [String] {
      guard case .array(let list) = paths[path]["get"]["parameters"] else { return [] }
      return list.compactMap { $0["$ref"].text?.split(separator: "/").last.map(String.init) }
    }
    #expect(names("/image") == ImageParameter.table.map(\.name))
    #expect(names("/info") == ImageParameter.table.filter(\.isForInfo).map(\.name))
    #expect(names("/admin/explain") == names("/image"))
  }

  @Test func `an error's body has the documented codes`() async throws {
    let error = try document(wholeBytes)["components"]["schemas"]["Error"]["properties"]["error"]
    let codes = try #require(error["properties"]["code"]["enum"].list)
    #expect(codes == ImageError.codes && Set(codes).count == codes.count)
    #expect(!codes.contains(ImageError.cancelled.code) && codes.contains(ImageError.draining.code))
    try await withClient { client in
      let body = try document(client.get("/image").body)["error"].members
      #expect(Set(body.keys).isSuperset(of: error["required"].list ?? ["?"]))
      #expect(codes.contains(try #require(body["code"]?.text)))
    }
  }

  @Test(arguments: [true, false])
  func `each listener describes itself, with or without the page`(hasPage: Bool) async throws {
    func paths(_ port: Int) throws -> Set<String> {
      let answer = try HTTPClient(port: port).get("/openapi.json")
      #expect(answer.status == 200 && answer["Content-Type"] == "application/json")
      return Set(try document(answer.body)["paths"].members.keys)
    }
    try await withServer {
      $0.page = hasPage
      $0.operatorTokens = [operatorToken]
      $0.operatorAddress = ListenAddress("127.0.0.1:0")
    } body: { server in
      #expect(
        try paths(server.port)
          == ["/image", "/info", "/livez", "/readyz", "/openapi.json", "/stats"])
      let operators = try paths(try #require(server.operatorPort))
      #expect(operators.isSuperset(of: ["/metrics", "/admin/prefetch/{name}", "/openapi.json"]))
      #expect(operators.isDisjoint(with: ["/image", "/info", "/"]))
    }
    try await withServer(TestProvider(), configure: { $0.page = hasPage }) { server in
      let all = try paths(server.port)
      #expect(
        all.isSuperset(of: ["/image", "/metrics"]) && !all.contains { $0.hasPrefix("/admin") })
    }
  }

  @Test func `where bodies are sources, it has POST, and no url is required`() async throws {
    try await withClient(configure: { $0.sources.bodies = .all }) { client in
      let found = try document(client.get("/openapi.json").body)
      #expect(found["paths"]["/image"]["post"]["requestBody"]["required"] == .boolean(true))
      #expect(found["components"]["parameters"]["url"]["required"] == .boolean(false))
    }
  }
}

extension RawValue {
  fileprivate var members: [String: RawValue] {
    if case .object(let members) = self { members } else { [:] }
  }

  fileprivate subscript(name: String) -> RawValue { members[name] ?? .null }
}

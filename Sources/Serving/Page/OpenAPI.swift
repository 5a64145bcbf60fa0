// OpenAPI: describes the interface to programs (OpenAPI 3.1), from the tables of endpoints and
// parameters.

import Core

/// `/openapi.json`: the description of the listener's interface, which is made at the start.
struct OpenAPIEndpoint: Endpoint {
  let path = EndpointPath.exact("/openapi.json")
  let access = EndpointAccess.open

  func operation(for method: Method) -> Operation? {
    Operation(summary: "This description")
  }

  func handle(_ context: RequestContext) -> Disposition { .page(context.policy.openAPI) }
}

/// A description of the endpoints of a listener (https://spec.openapis.org/oas/v3.1.1.html).
struct OpenAPI {
  private let endpoints: [any Endpoint]
  private let rules: RequestRules

  /// - Parameter hasOperators: Whether there are the endpoints that need a token.
  init(_ table: EndpointTable, hasOperators: Bool, rules: RequestRules) {
    endpoints = table.endpoints.filter { hasOperators || $0.access == .open }
    self.rules = rules
  }

  /// The JSON of the description.
  var bytes: [UInt8] {
    // It can be encoded: it has no infinite number.
    JSON.bytes(of: document, isForPeople: true) ?? []
  }

  private var document: JSONValue {
    [
      "openapi": "3.1.1",
      "info": [
        "title": "Pictor", "version": .text(pictorVersion),
        "license": ["name": "Apache-2.0", "identifier": "Apache-2.0"],
        "description": """
        An image server. HEAD is allowed where GET is, and OPTIONS everywhere. \
        docs/http-api.md says more.
        """,
      ],
      // Beside this document, also behind a proxy that adds a path.
      "servers": [["url": "."]],
      "paths": .object(paths),
      "components": [
        "parameters": .object(
          Dictionary(
            uniqueKeysWithValues: ImageParameter.table.map { ($0.name, parameter($0)) })),
        "headers": .object(
          Self.headers.mapValues { ["description": .text($0), "schema": Self.string] }),
        "schemas": ["Error": Self.errorSchema],
        "responses": ["Error": answer("An error", ["application/json"], Self.errorReference)],
        "securitySchemes": [
          "operator": [
            "type": "http", "scheme": "bearer", "description": "A token of admin.tokens",
          ]
        ],
      ],
    ]
  }

  private var paths: [String: JSONValue] {
    var paths: [String: JSONValue] = [:]
    for endpoint in endpoints {
      var item: [String: JSONValue] = [:]
      for method in endpoint.methods where method != .head {
        guard let operation = endpoint.operation(for: method) else { continue }
        item[method.rawValue.lowercased()] = describe(operation, method, of: endpoint)
      }
      if !item.isEmpty { paths[endpoint.path.template] = .object(item) }
    }
    return paths
  }

  private func describe(
    _ operation: Operation, _ method: Method, of endpoint: any Endpoint
  ) -> JSONValue {
    let template = endpoint.path.template
    let words = template.split { !$0.isLetter }.map { $0.lowercased() }
    var parameters: [JSONValue] = []
    if template.contains("{name}") {
      parameters.append(["name": "name", "in": "path", "required": true, "schema": Self.string])
    }
    let kind = endpoint.imageQuery ?? (operation.takesImageQuery ? .image : nil)
    if let kind {
      parameters += ImageParameter.table.filter {
        // A body is a source without a URL.
        (kind == .image || $0.isForInfo) && (method != .post || $0.name != "url")
      }.map { ["$ref": .text("#/components/parameters/\($0.name)")] }
    }
    parameters += operation.query.map {
      ["name": .text($0.key), "in": "query", "description": .text($0.value), "schema": Self.string]
    }
    var answers: [String: JSONValue] = ["default": ["$ref": "#/components/responses/Error"]]
    for status in operation.statuses {
      answers["\(status)"] = answer(
        kind == nil ? "Success" : "The answer, perhaps from a cache", operation.answers)
    }
    if endpoint.imageQuery != nil {
      answers["304"] = ["description": "The client's copy is the current one"]
    }
    var description: [String: JSONValue] = [
      "operationId": .text(([method.rawValue.lowercased()] + words).joined(separator: "_")),
      "summary": .text(operation.summary), "parameters": .list(parameters),
      "responses": .object(answers),
    ]
    if let type = operation.body {
      description["requestBody"] = [
        "required": true, "content": [type: ["schema": schema(ofBody: type)]],
      ]
    }
    if endpoint.access == .operators {
      description["security"] = [["operator": []]]
      description["description"] = .text(
        "Needs a token with the scope \(endpoint.scope(for: method).rawValue).")
    }
    return .object(description)
  }

  private func schema(ofBody type: String) -> JSONValue {
    switch type {
    case "application/json": ["type": "object"]
    case _ where type.hasPrefix("text/"): Self.string
    default: ["type": "string", "format": "binary"]
    }
  }

  private func answer(
    _ description: JSONValue, _ types: [String], _ schema: JSONValue? = nil
  ) -> JSONValue {
    [
      "description": description,
      "content": .members(types) { ["schema": schema ?? self.schema(ofBody: $0)] },
      "headers": .members(Self.headers.keys) { ["$ref": .text("#/components/headers/\($0)")] },
    ]
  }

  // MARK: Components

  private static let string: JSONValue = ["type": "string"]
  private static let errorReference: JSONValue = ["$ref": "#/components/schemas/Error"]

  private static let headers = [
    "X-Request-ID": "The request's id, as in the log", "ETag": "A validator of the body",
    "Cache-Status": "How the cache answered (RFC 9211)",
    "Server-Timing": "The milliseconds of each stage",
    "Retry-After": "Seconds until another attempt makes sense",
  ]

  private static var errorSchema: JSONValue {
    [
      "type": "object", "required": ["error"],
      "properties": [
        "error": [
          "type": "object", "required": ["code", "message", "request_id"],
          "properties": [
            "code": ["type": "string", "enum": .list(ImageError.codes.map { .text($0) })],
            "message": string, "parameter": string, "request_id": string,
          ],
        ]
      ],
    ]
  }

  private func parameter(_ parameter: ImageParameter) -> JSONValue {
    // The operator's names are the page's to show, which can be turned off.
    let values =
      ["preset", "watermark"].contains(parameter.name)
      ? AllowedValues(text: "one of the configured names", form: .text) : parameter.allowed(rules)
    var help = "\(parameter.help). Allowed: \(values.text)."
    if let unit = values.unit { help += " In \(unit)." }
    // As `default` of the schema, clients would send it.
    if let standard = parameter.standard { help += " Without it: \(standard)." }
    // The body of a POST, or a preset, may stand for it.
    let isRequired = parameter.name == "url" && rules.bodies == .off
    return [
      "name": .text(parameter.name), "in": "query", "description": .text(help),
      "required": .flag(isRequired), "schema": Self.schema(of: values),
    ]
  }

  /// Returns the schema of a parameter's values: what they have in common, or one of several.
  private static func schema(of values: AllowedValues) -> JSONValue {
    var schemas: [JSONValue] = []
    if !values.names.isEmpty {
      schemas.append(["type": "string", "enum": .list(values.names.map { .text($0) })])
    }
    if let numbers = values.numbers.map(PageDescription.Numbers.init) {
      var schema: [String: JSONValue] = ["type": numbers.whole ? "integer" : "number"]
      schema[numbers.above ? "exclusiveMinimum" : "minimum"] = .number(numbers.minimum)
      schema["maximum"] = numbers.maximum.map { .number($0) }
      schemas.append(.object(schema))
    }
    switch values.form {
    case .color:
      schemas.append(
        ["type": "string", "pattern": "^([0-9A-Fa-f]{3}|[0-9A-Fa-f]{6}([0-9A-Fa-f]{2})?)$"])
    case .url: schemas.append(["type": "string", "format": "uri-reference"])
    case .text, .point, .ratio, .area: schemas.append(string)
    case nil: break
    }
    return schemas.count == 1 ? schemas[0] : schemas.isEmpty ? string : ["anyOf": .list(schemas)]
  }
}

/// A value of JSON.
private indirect enum JSONValue: Encodable {
  case text(String), number(Double), flag(Bool)
  case list([JSONValue])
  case object([String: JSONValue])

  /// An object with a member for each name.
  static func members(
    _ names: some Sequence<String>, _ value: (String) -> JSONValue
  ) -> JSONValue {
    .object(Dictionary(uniqueKeysWithValues: names.map { ($0, value($0)) }))
  }

  func encode(to encoder: any Encoder) throws {
    var container = encoder.singleValueContainer()
    switch self {
    case .text(let text): try container.encode(text)
    case .number(let number): try container.encode(number)
    case .flag(let flag): try container.encode(flag)
    case .list(let values): try container.encode(values)
    case .object(let members): try container.encode(members)
    }
  }
}

extension JSONValue: ExpressibleByStringInterpolation, ExpressibleByBooleanLiteral,
  ExpressibleByArrayLiteral, ExpressibleByDictionaryLiteral
{
  init(stringLiteral text: String) { self = .text(text) }
  init(booleanLiteral flag: Bool) { self = .flag(flag) }
  init(arrayLiteral values: JSONValue...) { self = .list(values) }
  init(dictionaryLiteral members: (String, JSONValue)...) {
    self = .object(Dictionary(uniqueKeysWithValues: members))
  }
}

// HostRuleTable: the table of a host rule's members, conflicts between them, and their secrets.

extension ValueKind<[HostRule]> {
  /// Host rules: a list in a file, otherwise the JSON5 text of a list. Mistakes are told by member
  /// and rule, from 1.
  static var rules: ValueKind {
    ValueKind(
      allowed: "a list of rules such as { host: \"example.com\" }", isSecret: true,
      schema: #""type": "array", "items": { "type": "object", "required": ["host"] }"#,
      read: { value throws(MemberProblems) in
        guard case .array(let items) = try value.structure("list") else { return nil }
        var problems: [MemberProblem] = []
        let rules = items.enumerated().compactMap { index, item -> HostRule? in
          var rule = HostRule.standard
          var found = [MemberProblem("not an object")]
          if case .object(let members) = item {
            found = Setting.apply(
              members, by: HostRule.members, requiring: "host", to: &rule)
            if members["keep_parameters"] != nil, members["drop_parameters"] != nil {
              found.append(
                MemberProblem(at: ", drop_parameters", "it cannot be combined with keep_parameters")
              )
            }
            // A mistaken member does not count as a conflict.
            if found.isEmpty, let (member, problem) = rule.conflict {
              found.append(MemberProblem(at: ", \(member)", problem))
            }
          }
          problems += found.map { $0.inside(": rule \(index + 1)") }
          return rule
        }
        guard problems.isEmpty else { throw MemberProblems(problems) }
        return rules
      },
      write: { rules in
        let texts = rules.map {
          Setting.literal(of: $0, by: HostRule.members, requiring: "host", unlike: .standard)
        }
        return "[" + texts.joined(separator: ", ") + "]"
      })
  }
}

extension HostRule {
  /// The rule that changes nothing.
  fileprivate static let standard = HostRule(host: .all)

  /// All members, in the order in which they are written.
  static let members: [Setting<HostRule>] = [
    .key(
      "host", \.host,
      ValueKind(
        allowed: "a host such as example.com or *.example.com, or * for all",
        read: { $0.text.flatMap(HostPattern.init) }, write: { JSON5.quoted($0.description) })),
    .key("keep_parameters", \.keptParameters, .optional(parameterNames)),
    .key("drop_parameters", \.droppedParameters, .optional(parameterNames)),
    .key(
      "tags", \.tags, .list(of: "names of up to 64 letters, digits, -, _, . and :", where: isTag)),
    .key("default_lifetime", \.freshness.defaultLifetime, .lifetime),
    .key("heuristic_lifetime", \.freshness.heuristicLifetime, .lifetime),
    .key("client_default", \.freshness.clientDefault, .lifetime),
    .key("minimum_lifetime", \.freshness.minimumLifetime, .lifetime),
    .key("maximum_lifetime", \.freshness.maximumLifetime, .lifetime),
    .key("stale_while_revalidate", \.freshness.staleWhileRevalidate, .lifetime),
    .key("stale_if_error", \.freshness.staleIfError, .lifetime),
    .key("headers", \.written.headers, .originFields),
    // Secret, because an operator may write a field's value here by mistake.
    .key("drop_headers", \.droppedHeaders, .list(of: fieldNames, where: isField).secret),
    .key("forward_headers", \.forwardedHeaders, .list(of: fieldNames, where: isField).secret),
    .key(
      "user", \.written.user,
      .optional(
        .text("a name without a colon") { HeaderField(user: $0, password: "") != nil }.secret)),
    .key("password", \.written.password, .optional(.reference)),
    .key("token", \.written.token, .optional(.reference)),
    .key(
      "credentials_to", \.credentialOrigins,
      .parsedList(of: "https, https:PORT, http or http:PORT") { CredentialOrigin($0) }),
    .key("cookies", \.keepsCookies, .flag),
    .key("allow_invalid_certificates", \.allowsInvalidCertificates, .flag),
    .key("proxy", \.written.proxy, .optional(.ruleProxy)),
    .key("s3", \.store, .optional(.store)),
  ]

  private static let parameterNames = ValueKind.parsedList(of: "names such as id or utm_*") {
    ParameterPattern($0)
  }
  private static let fieldNames = "header names except those for framing, conditions and loops"

  @Sendable private static func isTag(_ text: String) -> Bool {
    (1...64).contains(text.utf8.count) && text.isPlain(with: "-_.:")
  }

  /// Whether a rule may set a field. Others belong to the message and its connection, or change the
  /// kind of response (RFC 9110, sections 7.6.1, 8.4, 13.1 and 14.2; RFC 9112).
  @Sendable static func isField(_ name: String) -> Bool {
    let lower = name.lowercased()
    return HeaderField.isName(name) && !lower.hasPrefix("if-")
      && ![
        "host", "content-length", "transfer-encoding", "connection", "keep-alive", "te", "trailer",
        "upgrade", "range", "accept-encoding", "expect", "proxy-authorization",
        "proxy-authenticate", "proxy-connection", "http2-settings", "cdn-loop",
      ].contains(lower)
  }

  /// Whether the field identifies the client.
  static func isCredential(_ name: String) -> Bool {
    ["authorization", "cookie"].contains(name.lowercased())
  }

  fileprivate var keptParameters: [ParameterPattern]? {
    get { if case .keep(let patterns) = parameters { patterns } else { nil } }
    set { if let newValue { parameters = .keep(newValue) } }
  }

  fileprivate var droppedParameters: [ParameterPattern]? {
    get { if case .drop(let patterns) = parameters { patterns } else { nil } }
    set { if let newValue { parameters = .drop(newValue) } }
  }
}

// MARK: - Kinds of members

extension ValueKind<Duration?> {
  fileprivate static var lifetime: ValueKind {
    .optional(.time(FreshnessSettings.allowed))
  }
}

extension ValueKind<HostRule.Written.Proxy> {
  fileprivate static var ruleProxy: ValueKind {
    ValueKind(
      allowed: "direct, " + ProxyURL.allowed, isSecret: true,
      read: { value throws(MemberProblems) in
        if value.text == "direct" { return .direct }
        return try ValueKind<SecretText>.proxy.read(value).map { .url($0) }
      }, write: { JSON5.quoted($0.text) })
  }
}

// MARK: - Buckets

extension ValueKind<String> {
  /// The region of an object store.
  static var region: ValueKind {
    text(
      "up to 64 letters, digits, - and _", where: ObjectStore.isRegion)
  }
}

extension ValueKind<ObjectStore> {
  /// The member `s3`.
  fileprivate static var store: ValueKind {
    ValueKind(
      allowed: "an object of " + ObjectStore.members.map(\.path).joined(separator: ", "),
      isSecret: true,
      read: { value throws(MemberProblems) in
        guard case .object(let values) = value else { return nil }
        var store = ObjectStore()
        let problems = Setting.apply(
          values, by: ObjectStore.members, requiring: nil, to: &store)
        guard problems.isEmpty else { throw MemberProblems(problems) }
        return store
      },
      write: {
        Setting.literal(
          of: $0, by: ObjectStore.members, requiring: "region", unlike: ObjectStore())
      })
  }
}

extension ObjectStore {
  fileprivate static let members: [Setting<ObjectStore>] = [
    .key("endpoint", \.endpoint, .optional(.endpoint.secret)),
    .key("region", \.region, ValueKind<String>.region.secret),
    .key("access_key", \.accessKey, .optional(.accessKey)),
    .key("secret_key", \.secretKey, .optional(.reference)),
    .key("session_token", \.sessionToken, .optional(.reference)),
    .key(
      "addressing", \.addressing, .optional(.choice.secret)),
  ]

  /// The first conflict between members: the member, and the problem.
  var conflict: (member: String, problem: String)? {
    guard (accessKey == nil) == (secretKey == nil) else {
      return ("access_key", "access_key and secret_key belong together")
    }
    guard sessionToken == nil || accessKey != nil else {
      return ("session_token", "session_token requires access_key and secret_key")
    }
    if addressing == .virtual, let host = endpoint?.host, IPAddress(host) != nil {
      return ("addressing", "an endpoint that is an address needs addressing 'path'")
    }
    return nil
  }

  /// Returns the credentials; `nil` if requests are not signed.
  ///
  /// - Parameters:
  ///   - place: what names the credentials in messages.
  ///   - value: reads a secret, by the name of its member.
  func credentials(
    at place: String,
    _ value: (SecretText, _ member: String) throws(ConfigurationError) -> String
  ) throws(ConfigurationError) -> AWSCredentials? {
    guard let accessKey, let secretKey else { return nil }
    let key = try value(accessKey, "s3.access_key")
    let secret = try value(secretKey, "s3.secret_key")
    var token: String?
    if let sessionToken { token = try value(sessionToken, "s3.session_token") }
    guard let credentials = AWSCredentials(accessKey: key, secretKey: secret, sessionToken: token)
    else {
      throw ConfigurationError(
        at: place, "access_key or session_token of s3 has a character that no request can carry")
    }
    return credentials
  }
}

extension SharedBucketSettings {
  /// The first conflict between keys, and the key; `nil` if the keys fit.
  ///
  /// - Parameter hasRedis: whether there is a fleet.
  public func conflict(hasRedis: Bool) -> (key: String, problem: String)? {
    guard isOn else {
      let others = "it is empty: the other keys of fleet.s3 need a bucket"
      return self == SharedBucketSettings() ? nil : ("fleet.s3.bucket", others)
    }
    guard hasRedis else {
      return (
        "fleet.s3.bucket",
        "it needs fleet.redis: without its purges, machines would serve what others purged"
      )
    }
    return access.conflict.map { ("fleet.s3.\($0.member)", $0.problem) }
  }

  /// Returns what requests are signed with; `nil` if they are not signed.
  ///
  /// - Throws: `ConfigurationError` if a secret is missing, or if no request can carry it.
  public func credentials(
    environment: [String: String]
  ) throws(ConfigurationError) -> AWSCredentials? {
    try access.credentials(at: "fleet.s3") { text, member throws(ConfigurationError) in
      try text.value(environment: environment, at: "fleet.\(member)")
    }
  }
}

// MARK: - Conflicts

extension HostRule {
  /// The first conflict between members: the member, and the problem.
  fileprivate var conflict: (member: String, problem: String)? {
    if written.user != nil, written.password == nil {
      return ("user", "it requires a password")
    }
    if written.user == nil, written.password != nil {
      return ("password", "it requires a user")
    }
    if written.user != nil, written.token != nil {
      return ("token", "it cannot be combined with user and password")
    }
    return conflictOfFields ?? conflictOfCookies ?? conflictOfStore
  }

  /// Each field has one value, from one member.
  private var conflictOfFields: (member: String, problem: String)? {
    var places: [String: String] = [:]
    if written.user != nil { places["authorization"] = "user" }
    if written.token != nil { places["authorization"] = "token" }
    let members = [
      ("headers", written.headers.keys.sorted()), ("drop_headers", droppedHeaders),
      ("forward_headers", forwardedHeaders),
    ]
    for (member, names) in members {
      for name in names {
        if let other = places.updateValue(member, forKey: name.lowercased()) {
          let problem =
            other == member ? "'\(name)' appears twice" : "'\(name)' is in \(other) already"
          return (member, problem)
        }
      }
    }
    return nil
  }

  /// Clients share the cookie jar, so cookies that an origin sets for one client's credentials must
  /// not reach others.
  private var conflictOfCookies: (member: String, problem: String)? {
    guard keepsCookies else { return nil }
    if written.headers.keys.contains(where: { $0.lowercased() == "cookie" }) {
      return ("cookies", "they cannot be combined with a Cookie in headers")
    }
    if forwardedHeaders.contains(where: Self.isCredential) {
      return ("cookies", "they cannot be combined with a forwarded Authorization or Cookie")
    }
    return nil
  }

  /// Credentials are for one bucket, and a request has one `Authorization`.
  private var conflictOfStore: (member: String, problem: String)? {
    guard let store else { return nil }
    guard SourceURL.isBucket(host.description) else {
      return ("host", "a rule with s3 is for one bucket, without *")
    }
    if let conflict = store.conflict { return ("s3", conflict.problem) }
    if written.user != nil || written.token != nil {
      return ("s3", "it cannot be combined with user, password or token")
    }
    let signed = (written.headers.keys.sorted() + forwardedHeaders).first { name in
      let name = name.lowercased()
      return name == "authorization" || name.hasPrefix("x-amz-")
    }
    return signed.map { ("s3", "'\($0)' belongs to the signature") }
  }
}

// MARK: - Secrets

extension HostRule {
  /// Returns the rule with its header fields and its proxy, made of what is `written`. Reads
  /// secrets.
  ///
  /// - Parameter place: the prefix that names the rule in error messages.
  /// - Throws: `ConfigurationError` if a secret is missing or no request can carry it.
  public func resolved(
    environment: [String: String], at place: String
  ) throws(ConfigurationError) -> HostRule {
    var rule = self
    func secret(_ text: SecretText, for member: String) throws(ConfigurationError) -> String {
      try text.value(environment: environment, at: "\(place), \(member)")
    }
    for (name, text) in written.headers.sorted(by: { $0.key < $1.key }) {
      guard let field = HeaderField(name, value: try secret(text, for: "headers")) else {
        throw ConfigurationError(at: "\(place), headers", "\(name) has an invalid value")
      }
      if text.isReference { rule.secretHeaders.append(field) } else { rule.headers.append(field) }
    }
    if let user = written.user, let password = written.password {
      guard let field = HeaderField(user: user, password: try secret(password, for: "password"))
      else {
        throw ConfigurationError(at: "\(place), password", "it contains a control character")
      }
      rule.secretHeaders.append(field)
    }
    if let token = written.token {
      guard let field = HeaderField(bearer: try secret(token, for: "token")) else {
        throw ConfigurationError(
          at: "\(place), token", "it contains a space or a non-ASCII character")
      }
      rule.secretHeaders.append(field)
    }
    if let store { rule.storeCredentials = try store.credentials(at: "hosts", secret) }
    switch written.proxy {
    case .none: rule.proxy = .standard
    case .direct: rule.proxy = .direct
    case .url(let url):
      rule.proxy = .url(
        try ProxyURL.url(of: url, environment: environment, at: "\(place), proxy"))
    }
    return rule
  }
}

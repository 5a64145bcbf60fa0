// HostRuleMember: the table of a host rule's members.

import Model
import Platform

/// Why parts of a value are not allowed.
struct MemberProblems: Error {
  /// At least one.
  let all: [MemberProblem]
}

/// Why a part of a value is not allowed.
struct MemberProblem {
  /// The suffix of the value's place: `: rule 2, token`; may be empty.
  let place: String
  /// The problem.
  let description: String
}

/// A member of a host rule.
struct HostRuleMember: Sendable {
  let name: String
  /// The allowed values, as text for error messages.
  let allowed: String
  /// Whether the value may be a secret that messages must not contain.
  let isSecret: Bool
  /// Applies a value, or returns `false` if it is not allowed.
  let read: @Sendable (inout HostRule, RawValue) -> Bool
  /// Returns the value as a JSON5 literal; `nil` if the member is not set.
  let write: @Sendable (HostRule) -> String?

  /// All members, in the order in which they are written.
  static let all: [HostRuleMember] = [
    HostRuleMember(
      name: "host", allowed: "a host such as example.com or *.example.com, or * for all",
      isSecret: false,
      read: { rule, value in
        guard let host = value.text.flatMap(HostPattern.init) else { return false }
        rule.host = host
        return true
      }, write: { ConfigurationKey.quoted($0.host.description) }),
    parameters(
      "keep_parameters", make: { .keep($0) },
      patterns: { if case .keep(let patterns) = $0 { patterns } else { nil } }),
    parameters(
      "drop_parameters", make: { .drop($0) },
      patterns: { if case .drop(let patterns) = $0 { patterns } else { nil } }),
    names(
      "tags", at: \.tags, allowed: "names of up to 64 letters, digits, -, _, . and :",
      isSecret: false, where: isTag),
    time("default_lifetime", at: \.freshness.defaultLifetime),
    time("heuristic_lifetime", at: \.freshness.heuristicLifetime),
    time("client_default", at: \.freshness.clientDefault),
    time("minimum_lifetime", at: \.freshness.minimumLifetime),
    time("maximum_lifetime", at: \.freshness.maximumLifetime),
    time("stale_while_revalidate", at: \.freshness.staleWhileRevalidate),
    time("stale_if_error", at: \.freshness.staleIfError),
    HostRuleMember(
      name: "headers",
      allowed: "an object of header fields with literal values, env:NAME or file:/path "
        + "(Authorization and Cookie: only env: or file:); no fields for framing or conditions",
      isSecret: true, read: readHeaders,
      write: { rule in
        let fields = rule.written.headers.sorted { $0.key < $1.key }
          .map { "\(ConfigurationKey.quoted($0)): \(ConfigurationKey.quoted($1.text))" }
        return fields.isEmpty ? nil : "{ " + fields.joined(separator: ", ") + " }"
      }),
    // Marked as secret, because an operator may write a field's value here by mistake.
    names(
      "drop_headers", at: \.droppedHeaders, allowed: fieldNames, isSecret: true, where: isFieldName),
    names(
      "forward_headers", at: \.forwardedHeaders, allowed: fieldNames, isSecret: true,
      where: isFieldName),
    HostRuleMember(
      name: "user", allowed: "a name without a colon", isSecret: true,
      read: { rule, value in
        rule.written.user = value.text
        return value.text.flatMap { HeaderField(user: $0, password: "") } != nil
      }, write: { $0.written.user.map(ConfigurationKey.quoted) }),
    secret("password", at: \.written.password),
    secret("token", at: \.written.token),
    HostRuleMember(
      name: "credentials_to", allowed: "a list of https, https:PORT, http or http:PORT",
      isSecret: false,
      read: { rule, value in
        guard let texts = items(value) else { return false }
        rule.credentialOrigins = texts.compactMap(HostRule.CredentialOrigin.init)
        return rule.credentialOrigins.count == texts.count
      },
      write: { rule in
        let origins = rule.credentialOrigins
        return origins == [.https] ? nil : ConfigurationKey.literal(origins.map(\.description))
      }),
    flag("cookies", at: \.keepsCookies),
    flag("allow_invalid_certificates", at: \.allowsInvalidCertificates),
    HostRuleMember(
      name: "proxy", allowed: "direct, " + ProxyURL.allowed, isSecret: true,
      read: { rule, value in
        guard let text = value.text else { return false }
        rule.written.proxy = text == "direct" ? .direct : ProxyURL.setting(text).map { .url($0) }
        return rule.written.proxy != nil
      }, write: { $0.written.proxy.map { ConfigurationKey.quoted($0.text) } }),
    store,
  ]

  // MARK: Kinds of members

  private static func parameters(
    _ name: String, make: @escaping @Sendable ([ParameterPattern]) -> HostRule.Parameters,
    patterns: @escaping @Sendable (HostRule.Parameters) -> [ParameterPattern]?
  ) -> HostRuleMember {
    HostRuleMember(
      name: name,
      allowed: "a list of names such as id or utm_*, and only one of keep_ and drop_parameters",
      isSecret: false,
      read: { rule, value in
        guard rule.parameters == .all, let texts = items(value) else { return false }
        let found = texts.compactMap(ParameterPattern.init)
        rule.parameters = make(found)
        return found.count == texts.count
      },
      write: { patterns($0.parameters).map { ConfigurationKey.literal($0.map(\.description)) } })
  }

  private static func names(
    _ name: String, at field: WritableKeyPath<HostRule, [String]> & Sendable,
    allowed: String, isSecret: Bool, where isAllowed: @escaping @Sendable (String) -> Bool
  ) -> HostRuleMember {
    HostRuleMember(
      name: name, allowed: "a list of \(allowed)", isSecret: isSecret,
      read: { rule, value in
        guard let texts = items(value), texts.allSatisfy(isAllowed) else { return false }
        rule[keyPath: field] = texts
        return true
      },
      write: { $0[keyPath: field].isEmpty ? nil : ConfigurationKey.literal($0[keyPath: field]) })
  }

  private static func secret(
    _ name: String, at field: WritableKeyPath<HostRule, SecretText?> & Sendable
  ) -> HostRuleMember {
    HostRuleMember(
      name: name,
      allowed: "env:NAME or file:/path, because a configuration may not contain secrets",
      isSecret: true,
      read: { rule, value in
        guard let text = value.text.map({ SecretText($0) }), text.isReference, text.isWellFormed
        else { return false }
        rule[keyPath: field] = text
        return true
      }, write: { $0[keyPath: field].map { ConfigurationKey.quoted($0.text) } })
  }

  private static func time(
    _ name: String, at field: WritableKeyPath<HostRule, Duration?> & Sendable
  ) -> HostRuleMember {
    HostRuleMember(
      name: name, allowed: ConfigurationKey.allowedTimes(FreshnessSettings.allowed),
      isSecret: false,
      read: { rule, value in
        guard let time = value.text.flatMap(TimeSpan.parse),
          FreshnessSettings.allowed.contains(time)
        else { return false }
        rule[keyPath: field] = time
        return true
      }, write: { $0[keyPath: field].map { ConfigurationKey.quoted(TimeSpan.text($0)) } })
  }

  private static func flag(
    _ name: String, at field: WritableKeyPath<HostRule, Bool> & Sendable
  ) -> HostRuleMember {
    HostRuleMember(
      name: name, allowed: "true or false", isSecret: false,
      read: { rule, value in
        guard case .boolean(let flag) = value else { return false }
        rule[keyPath: field] = flag
        return true
      }, write: { $0[keyPath: field] ? "true" : nil })
  }

  /// Returns the items of a list; `nil` for other values.
  private static func items(_ value: RawValue) -> [String]? {
    if case .array = value { value.list } else { nil }
  }

  // MARK: Allowed values

  private static let fieldNames = "header names except those for framing, conditions and loops"

  @Sendable private static func isFieldName(_ text: String) -> Bool {
    HeaderField.isName(text) && !HostRule.isReserved(text)
  }

  @Sendable private static func isTag(_ text: String) -> Bool {
    (1...64).contains(text.utf8.count)
      && text.utf8.allSatisfy { byte in
        switch byte {
        case 0x30...0x39, 0x41...0x5a, 0x61...0x7a: true
        default: "-_.:".utf8.contains(byte)
        }
      }
  }

  @Sendable private static func readHeaders(
    _ rule: inout HostRule, from value: RawValue
  ) -> Bool {
    guard case .object = value, let fields = value.map else { return false }
    for (name, text) in fields {
      let value = SecretText(text)
      guard isFieldName(name), value.isWellFormed else { return false }
      if !value.isReference {
        guard !HostRule.isCredential(name), HeaderField(name, value: text) != nil else {
          return false
        }
      }
      rule.written.headers[name] = value
    }
    return true
  }
}

// MARK: - Rules

extension HostRuleMember {
  /// Parses a list of rules.
  ///
  /// - Throws: the mistakes by member and rule, from 1. Values that may be secret are left out.
  static func rules(_ value: RawValue) throws(MemberProblems) -> [HostRule] {
    func refuse(_ description: String) -> MemberProblems {
      MemberProblems(all: [MemberProblem(place: "", description: description)])
    }
    var value = value
    if case .argument(let text) = value {
      guard let parsed = RawValue(json5: text) else {
        throw refuse("not a JSON5 list")
      }
      value = parsed
    }
    guard case .array(let items) = value else { throw refuse("not allowed: \(listAllowed)") }
    var problems: [MemberProblem] = []
    let rules = items.enumerated().compactMap { index, item in
      rule(item, at: ": rule \(index + 1)", into: &problems)
    }
    guard problems.isEmpty else { throw MemberProblems(all: problems) }
    return rules
  }

  static let listAllowed = "a list of rules such as { host: \"example.com\" }"

  /// Parses one rule, and adds all its mistakes to `problems`.
  private static func rule(
    _ value: RawValue, at place: String, into problems: inout [MemberProblem]
  ) -> HostRule? {
    guard case .object(let members) = value, let everything = HostPattern("*") else {
      problems.append(MemberProblem(place: place, description: "not an object"))
      return nil
    }
    let count = problems.count
    func refuse(_ member: String, because description: String) {
      problems.append(MemberProblem(place: "\(place), \(member)", description: description))
    }
    let names = all.map(\.name)
    for unknown in members.keys.sorted() where !names.contains(unknown) {
      let nearest = NearestNames.of(unknown, among: names)
      refuse(
        unknown,
        because: "unknown member"
          + (nearest.isEmpty
            ? ": " + names.joined(separator: ", ") : NearestNames.question(nearest)))
    }
    if members["host"] == nil { refuse("host", because: "it is required") }
    var rule = HostRule(host: everything)
    for member in all {
      guard let value = members[member.name], !member.read(&rule, value) else { continue }
      refuse(
        member.name,
        because: (member.isSecret ? "" : "\(value) is ") + "not allowed: \(member.allowed)")
    }
    // A mistaken member does not count as a conflict.
    if problems.count == count, let (member, problem) = rule.conflict {
      refuse(member, because: problem)
    }
    return rule
  }

  /// Returns a rule as JSON5, without members that are not set.
  static func text(_ rule: HostRule) -> String {
    let members = all.compactMap { member in member.write(rule).map { "\(member.name): \($0)" } }
    return "{ " + members.joined(separator: ", ") + " }"
  }
}

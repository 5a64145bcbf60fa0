// HostRule+Store: the member `s3` of a host rule: its members, its conflicts and its credentials.

import Model
import Platform

extension HostRuleMember {
  /// The member `s3`.
  static let store = HostRuleMember(
    name: "s3",
    allowed:
      "an object of endpoint (http or https with host and port), region, access_key (literal, env: or file:), "
      + "secret_key and session_token (env: or file:), addressing (path or virtual)",
    isSecret: true,
    read: { rule, value in
      guard case .object(let members) = value else { return false }
      var store = ObjectStore()
      for (name, member) in members {
        guard let text = member.text, store.read(name, text) else { return false }
      }
      rule.store = store
      return true
    },
    write: { rule in
      guard let store = rule.store else { return nil }
      let members: [(String, String?)] = [
        // Without the slash at its end, as it is usually written.
        ("endpoint", store.endpoint.map { String($0.text.dropLast()) }), ("region", store.region),
        ("access_key", store.accessKey?.text), ("secret_key", store.secretKey?.text),
        ("session_token", store.sessionToken?.text), ("addressing", store.addressing?.rawValue),
      ]
      let texts = members.compactMap { name, text in
        text.map { "\(name): \(ConfigurationKey.quoted($0))" }
      }
      return "{ " + texts.joined(separator: ", ") + " }"
    })
}

extension ObjectStore {
  /// Applies a member, or returns `false` if its name or its value is not allowed.
  fileprivate mutating func read(_ name: String, _ text: String) -> Bool {
    let secret = SecretText(text)
    switch name {
    case "endpoint":
      endpoint = Self.endpoint(text)
      return endpoint != nil
    case "region":
      region = text
      return Self.isRegion(text)
    case "addressing":
      addressing = Addressing(rawValue: text)
      return addressing != nil
    case "access_key":
      accessKey = secret
      return secret.isReference
        ? secret.isWellFormed : AWSCredentials(accessKey: text, secretKey: "-") != nil
    case "secret_key":
      secretKey = secret
      return secret.isReference && secret.isWellFormed
    case "session_token":
      sessionToken = secret
      return secret.isReference && secret.isWellFormed
    default: return false
    }
  }

  /// Returns the credentials; `nil` if requests are not signed.
  ///
  /// - Parameter place: what names the credentials in messages.
  func credentials(
    at place: String = "hosts",
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

extension HostRule {
  /// Credentials are for one bucket, and a request has one `Authorization`.
  var conflictOfStore: (member: String, problem: String)? {
    guard let store else { return nil }
    guard SourceURL.isBucket(host.description) else {
      return ("host", "a rule with s3 is for one bucket, without *")
    }
    guard (store.accessKey == nil) == (store.secretKey == nil) else {
      return ("s3", "access_key and secret_key belong together")
    }
    guard store.sessionToken == nil || store.accessKey != nil else {
      return ("s3", "session_token requires access_key and secret_key")
    }
    if store.addressing == .virtual, let host = store.endpoint?.host, IPAddress(host) != nil {
      return ("s3", "an endpoint that is an address needs addressing 'path'")
    }
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

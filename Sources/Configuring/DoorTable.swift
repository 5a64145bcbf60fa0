// DoorTable: the table of a door's members, and the secrets of signatures.

extension ValueKind<[Peer: DoorSettings]> {
  /// Doors by peer: an object in a file, otherwise its JSON5 text.
  static var doors: ValueKind {
    ValueKind(
      allowed: "an object of doors by peer ("
        + Peer.allCases.map(\.rawValue).joined(separator: ", ")
        + "), such as { imgproxy: { prefix: \"/img\" } }",
      isSecret: true, schema: #""type": "object""#,
      read: { value throws(MemberProblems) in
        guard case .object(let items) = try value.structure("object") else { return nil }
        var doors: [Peer: DoorSettings] = [:]
        var problems: [MemberProblem] = []
        for (name, item) in items.sorted(by: { $0.key < $1.key }) {
          guard let peer = Peer(rawValue: name) else {
            let nearest = NearestNames.of(name, among: Peer.allCases.map(\.rawValue))
            problems.append(
              MemberProblem(at: ".\(name)", "unknown peer" + NearestNames.question(nearest)))
            continue
          }
          var door = DoorSettings()
          var found = [MemberProblem("not an object")]
          if case .object(let members) = item {
            found = Setting.apply(members, by: DoorSettings.members, requiring: nil, to: &door)
            if found.isEmpty, let (member, problem) = door.conflict(of: peer) {
              found = [MemberProblem(at: ", \(member)", problem)]
            }
          }
          problems += found.map { $0.inside(".\(name)") }
          doors[peer] = door
        }
        guard problems.isEmpty else { throw MemberProblems(problems) }
        return doors
      },
      write: { doors in
        let texts = Peer.allCases.compactMap { peer in
          doors[peer].map {
            peer.rawValue + ": "
              + Setting.literal(
                of: $0, by: DoorSettings.members, requiring: "prefix", unlike: DoorSettings())
          }
        }
        return texts.isEmpty ? "{}" : "{ " + texts.joined(separator: ", ") + " }"
      })
  }
}

extension DoorSettings {
  /// All members, in the order in which they are written.
  static let members: [Setting<DoorSettings>] = [
    .key(
      "prefix", \.prefix,
      .text("a path such as /img, without a slash at its end, or nothing") { text in
        text.isEmpty
          || text.hasPrefix("/") && !text.hasSuffix("/")
            && text.dropFirst().isPlain(with: "-_./")
      }),
    .key(
      "host", \.host,
      .text("the name of a host in lower case, without a port, or nothing") {
        $0.isPlain(with: "-.") && $0 == $0.lowercased()
      }),
    .key("secrets", \.secrets, .doorSecrets),
    .key("keys", \.keys, .doorSecrets),
    .key("salts", \.salts, .doorSecrets),
    .key("signature_bytes", \.options.signatureBytes, .integer(0...64)),
    .key(
      "digest", \.options.digest,
      .text("sha1, sha256 or sha512") { ["sha1", "sha256", "sha512"].contains($0) }),
    .key("allow_unsigned", \.options.allowsUnsigned, .flag),
    .key(
      "base_url", \.options.baseURL, .baseURL),
    .key(
      "replace", \.options.replacementTexts,
      .map(of: "beginnings of sources and what replaces them") { pattern, _ in !pattern.isEmpty }),
    .key(
      "allow_sources", \.options.allowedSources,
      .list(of: "beginnings of sources such as https://example.com/*/") { !$0.isEmpty }),
    .key(
      "presets", \.options.presets,
      .map(of: "options in the peer's syntax, by name") { name, _ in !name.isEmpty }),
    .key("presets_only", \.options.presetsOnly, .flag),
    .key(
      "separator", \.options.separatorText,
      .text("one character") { $0.count == 1 && $0 != "/" && $0 != "%" }),
    .key("allow_limits", \.options.allowsLimits, .flag),
    .key("widths", \.options.widths, .ascending(in: Sizing.sideRange, limit: 100)),
    .key("qualities", \.options.qualities, .ascending(in: 1...100, limit: 100)),
    .key("allow_vectors", \.options.allowsVectors, .flag),
  ]

  /// The members that only some peers have.
  private static let owners: [String: Set<Peer>] = [
    "keys": [.imgproxy, .thumbor, .imagor, .imgix], "salts": [.imgproxy],
    "secrets": [.imgproxy, .imaginary],
    "signature_bytes": [.imgproxy, .imagor], "digest": [.imagor],
    "allow_unsigned": [.thumbor, .imagor], "presets": [.imgproxy], "presets_only": [.imgproxy],
    "separator": [.imgproxy], "allow_limits": [.imgproxy], "widths": [.nextjs],
    "qualities": [.nextjs], "allow_vectors": [.nextjs],
  ]

  /// The first member that the peer does not have, or that does not fit the others.
  fileprivate func conflict(of peer: Peer) -> (member: String, problem: String)? {
    let standard = DoorSettings()
    for member in Self.members {
      guard let owners = Self.owners[member.path], !owners.contains(peer),
        member.literal(in: self) != member.literal(in: standard)
      else { continue }
      return (member.path, "\(peer.rawValue) has none")
    }
    if (1..<8).contains(options.signatureBytes) {
      return ("signature_bytes", "fewer than 8 could be guessed; 0: all")
    }
    if peer == .imgproxy, keys.count != salts.count {
      return ("salts", "each key needs its salt")
    }
    return nil
  }

  /// Returns the options with keys and salts. imgproxy writes them in hexadecimal.
  ///
  /// - Throws: `ConfigurationError` if a secret is missing, or not what the peer takes.
  public func resolved(
    of peer: Peer, environment: [String: String]
  ) throws(ConfigurationError) -> DoorOptions {
    var resolved = options
    let place = "doors.\(peer.rawValue)"
    func secrets(
      _ texts: [SecretText], _ member: String, areHexadecimal: Bool
    ) throws(ConfigurationError) -> [[UInt8]] {
      var all: [[UInt8]] = []
      for text in texts {
        let secret = try text.value(environment: environment, at: "\(place), \(member)")
        guard areHexadecimal else {
          all.append(Array(secret.utf8))
          continue
        }
        guard let bytes = [UInt8](hexadecimal: secret) else {
          throw ConfigurationError(at: "\(place), \(member)", "it is not hexadecimal")
        }
        all.append(bytes)
      }
      return all
    }
    resolved.keys = try secrets(keys, "keys", areHexadecimal: peer == .imgproxy)
    resolved.salts = try secrets(salts, "salts", areHexadecimal: true)
    resolved.secrets = try secrets(self.secrets, "secrets", areHexadecimal: false)
    return resolved
  }
}

extension DoorOptions {
  /// The replacements by pattern. The longest pattern that fits counts.
  public var replacementTexts: [String: String] {
    get {
      Dictionary(replacements.map { ($0.pattern, $0.text) }) { first, _ in first }
    }
    set {
      let sorted = newValue.sorted {
        ($1.key.utf8.count, $0.key) < ($0.key.utf8.count, $1.key)
      }
      replacements = sorted.map { Replacement(pattern: $0.key, text: $0.value) }
    }
  }

  fileprivate var separatorText: String {
    get { String(separator) }
    set { separator = newValue.first ?? ":" }
  }
}

extension ValueKind<String> {
  /// What relative sources are appended to.
  static var baseURL: ValueKind {
    .text("an http, https or s3 URL, or local://, without a slash at its end; or nothing") {
      $0.isEmpty || $0 == "local://"
        || !$0.hasSuffix("/") && (try? SourceURL(parsing: $0 + "/x")) != nil
    }
  }
}

extension ValueKind<[SecretText]> {
  /// Keys of a peer. Messages name none.
  fileprivate static var doorSecrets: ValueKind {
    ValueKind(
      allowed: "a list of secrets without blanks and commas, env:NAME or file:/path",
      isSecret: true, schema: ValueKind<[String]>.listSchema,
      read: { value in
        guard let texts = value.list else { return nil }
        let secrets = texts.map { SecretText($0) }
        let isWell = secrets.allSatisfy {
          $0.isWellFormed && ($0.isReference || $0.text.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7f })
        }
        return isWell && !texts.contains("") ? secrets : nil
      }, write: { JSON5.list($0.map(\.text)) })
  }
}

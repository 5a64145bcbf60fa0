// Configuration+Loading: applies file, environment and command line over the defaults.

extension Configuration {
  /// The prefix of this program's environment variables.
  public static let environmentPrefix = "PICTOR_"

  /// Applies the settings of a JSON5 file (https://spec.json5.org).
  ///
  /// - Parameters:
  ///   - text: the file's text; empty is an empty object.
  ///   - file: its name, for messages.
  /// - Throws: all mistakes: a syntax error with its line, or each unknown key and each value that
  ///   is not allowed. Valid settings are applied even then.
  public mutating func apply(json5 text: String, file: String) throws(ConfigurationError) {
    guard let root = RawValue(json5: text) else {
      let line = JSON5Structure.errorLine(in: text) { RawValue(json5: $0) != nil }
      throw ConfigurationError(at: "\(file):\(line)", "not valid JSON5")
    }
    var problems = ConfigurationProblems()
    apply(root, at: "", file: file, into: &problems)
    for path in JSON5Structure(of: text).repeatedKeys {
      problems.add(at: "\(file): \(path)", "it is given twice in one object; merge the two")
    }
    try problems.check()
  }

  /// Applies the environment variables of keys, and adds values that are not allowed to `problems`.
  ///
  /// - Returns: the names of variables with the prefix that belong to no key. They are no error:
  ///   Kubernetes sets such variables for a service called `pictor`.
  mutating func apply(
    environment: [String: String], _ problems: inout ConfigurationProblems
  ) -> [String] {
    var unknown: [String] = []
    let byVariable = Dictionary(
      uniqueKeysWithValues: Self.keys.map { ($0.environmentVariable, $0) })
    for (name, value) in environment.sorted(by: { $0.key < $1.key })
    where name.hasPrefix(Self.environmentPrefix) {
      guard let key = byVariable[name] else {
        unknown.append(name)
        continue
      }
      problems.collect { () throws(ConfigurationError) in
        try set(key, to: .argument(value), at: name)
      }
    }
    return unknown
  }

  /// Returns suggestions for an unknown variable as `; did you mean …?`, or an empty text.
  public static func hint(forVariable name: String) -> String {
    let nearest = NearestNames.of(String(name.dropFirst(environmentPrefix.count)), among: paths)
    return NearestNames.question(nearest.compactMap { key($0)?.environmentVariable })
  }

  /// The paths of all keys.
  static var paths: [String] { keys.map(\.path) }

  /// Applies one option of the command line, `--server.port 8080`.
  public mutating func apply(option path: String, value: String) throws(ConfigurationError) {
    guard let key = Self.key(path) else {
      throw ConfigurationError(at: "--\(path)", Self.unknown(path))
    }
    try set(key, to: .argument(value), at: "--\(path)")
  }

  /// Returns this configuration with the values that a reload of `wanted` applies.
  public func reloaded(from wanted: Configuration) -> Configuration {
    var result = self
    for key in Self.keys where key.isLive {
      // The text is whole: `--print-config` writes a usable file.
      guard let value = RawValue(json5: key.write(wanted)) else { continue }
      _ = key.apply(value, to: &result)
    }
    return result
  }

  private mutating func apply(
    _ value: RawValue, at path: String, file: String, into problems: inout ConfigurationProblems
  ) {
    let place = path.isEmpty ? file : "\(file): \(path)"
    if let key = Self.key(path) {
      problems.collect { () throws(ConfigurationError) in try set(key, to: value, at: place) }
      return
    }
    let prefix = path.isEmpty ? "" : path + "."
    guard path.isEmpty || Self.keys.contains(where: { $0.path.hasPrefix(prefix) }) else {
      return problems.add(at: place, Self.unknown(path))
    }
    guard case .object(let members) = value else {
      return problems.add(at: place, "\(value) is not allowed: an object")
    }
    for (name, member) in members.sorted(by: { $0.key < $1.key }) {
      // For editors.
      if path.isEmpty, name == "$schema", member.text != nil { continue }
      apply(member, at: prefix + name, file: file, into: &problems)
    }
  }

  private mutating func set(
    _ key: ConfigurationKey, to value: RawValue, at place: String
  ) throws(ConfigurationError) {
    var problems = ConfigurationProblems()
    for problem in key.apply(value, to: &self) {
      problems.add(at: place + problem.place, problem.description)
    }
    try problems.check()
  }

  /// Returns the message for an unknown path, with suggestions or the existing names.
  private static func unknown(_ path: String) -> String {
    let section = path.split(separator: ".").first.map { $0 + "." } ?? ""
    let sections = Set(keys.compactMap { $0.path.split(separator: ".").first.map(String.init) })
    let nearest = NearestNames.of(path, among: paths + sections.subtracting(paths).sorted())
    guard nearest.isEmpty else { return "unknown key" + NearestNames.question(nearest) }
    let near = paths.filter { $0.hasPrefix(section) }
    return "unknown key: "
      + (near.isEmpty ? sections.sorted() : near).joined(separator: ", ")
  }
}

extension Configuration {
  /// Returns the effective configuration of an invocation, and the unknown environment variables.
  ///
  /// - Throws: all mistakes.
  public static func load(
    _ invocation: Invocation, environment: [String: String]
  ) throws(ConfigurationError) -> (configuration: Configuration, unknownVariables: [String]) {
    var problems = ConfigurationProblems()
    let loaded = load(invocation, environment: environment, into: &problems)
    try problems.check()
    return loaded
  }

  /// Does the same, but adds mistakes to `problems` and keeps each mistaken setting as it was.
  public static func load(
    _ invocation: Invocation, environment: [String: String],
    into problems: inout ConfigurationProblems
  ) -> (configuration: Configuration, unknownVariables: [String]) {
    var configuration = Configuration()
    if let file = invocation.file {
      problems.collect { () throws(ConfigurationError) in
        try configuration.apply(json5: contents(of: file), file: file)
      }
    }
    let unknown = configuration.apply(environment: environment, &problems)
    for option in invocation.options {
      problems.collect { () throws(ConfigurationError) in
        try configuration.apply(option: option.path, value: option.value)
      }
    }
    return (configuration, unknown)
  }

  private static func contents(of path: String) throws(ConfigurationError) -> String {
    do throws(FileProblem) {
      return try textOfFile(path, limit: 1 << 20)
    } catch {
      throw ConfigurationError(at: path, error.description)
    }
  }
}

// ConfigurationLoading: applies file, environment and command line over the defaults.

import Model
import Platform

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
      let line = syntaxErrorLine(in: text) { RawValue(json5: $0) != nil }
      throw ConfigurationError(at: "\(file):\(line)", "not valid JSON5")
    }
    var problems = ConfigurationProblems()
    apply(root, at: "", file: file, into: &problems)
    for path in RepeatedKeys(in: text).paths {
      problems.add(at: "\(file): \(path)", "it is given twice in one object; merge the two")
    }
    try problems.check()
  }

  /// Applies the environment variables of keys.
  ///
  /// - Returns: the names of variables with the prefix that belong to no key. They are no error:
  ///   Kubernetes sets such variables for a service called `pictor`.
  /// - Throws: all values that are not allowed.
  public mutating func apply(
    environment: [String: String]
  ) throws(ConfigurationError) -> [String] {
    var problems = ConfigurationProblems()
    let unknown = apply(environment: environment, &problems)
    try problems.check()
    return unknown
  }

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

  /// The configuration as a JSON5 file with the purpose of each key. `apply(json5:file:)` can read
  /// it.
  public var json5: String {
    var text = "{\n"
    var sections: [Substring] = []
    for key in Self.keys {
      let parts = key.path.split(separator: ".")
      let common = zip(sections, parts.dropLast()).prefix { $0 == $1 }.count
      while sections.count > common {
        sections.removeLast()
        text += Self.indent(sections) + "},\n"
      }
      for section in parts.dropLast().dropFirst(common) {
        text += Self.indent(sections) + "\(section): {\n"
        sections.append(section)
      }
      let indent = Self.indent(sections)
      text +=
        "\(indent)// \(key.purpose)\n\(indent)\(parts[parts.count - 1]): \(key.write(self)),\n"
    }
    while sections.popLast() != nil { text += Self.indent(sections) + "},\n" }
    return text + "}\n"
  }

  private static func indent(_ sections: [Substring]) -> String {
    String(repeating: "  ", count: sections.count + 1)
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
      apply(member, at: prefix + name, file: file, into: &problems)
    }
  }

  private mutating func set(
    _ key: ConfigurationKey, to value: RawValue, at place: String
  ) throws(ConfigurationError) {
    let isAllowed: Bool
    do throws(MemberProblems) {
      isAllowed = try key.read(&self, value)
    } catch {
      var problems = ConfigurationProblems()
      for problem in error.all { problems.add(at: place + problem.place, problem.description) }
      return try problems.check()
    }
    guard isAllowed else {
      throw ConfigurationError(
        at: place, "\(SecretMask.masked("\(value)")) is not allowed: \(key.allowed)")
    }
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

// Setting: a row of a table of settings: name, field, kind of value and purpose.

/// A setting of a value such as `Configuration`: how it is called, read, written and documented.
public struct Setting<Root: Sendable>: Sendable {
  /// The path of a key, `section.name` or `section.part.name`, or the name of a member.
  public let path: String
  /// The purpose, in one line.
  public let purpose: String
  /// The allowed values, as text for error messages.
  public let allowed: String
  /// Whether messages must not repeat the value.
  let isSecret: Bool
  /// See `ValueKind.schema`.
  let schema: String
  /// Applies a value, or returns `false` if it is not allowed. Throws if only a part is not.
  let read: @Sendable (inout Root, RawValue) throws(MemberProblems) -> Bool
  /// Returns the value as a JSON5 literal.
  let write: @Sendable (Root) -> String
  /// Whether a reload applies the key: its value is read for each request, load or line of the log.
  /// Other keys decide at the start: listeners, threads, folders, tiers, workers.
  public private(set) var isLive = true

  /// A row of a table.
  static func key<Value>(
    _ path: String, _ field: WritableKeyPath<Root, Value> & Sendable, _ kind: ValueKind<Value>,
    _ purpose: String = ""
  ) -> Setting {
    Setting(
      path: path, purpose: purpose, allowed: kind.allowed, isSecret: kind.isSecret,
      schema: kind.schema,
      read: { root, value throws(MemberProblems) in
        guard let value = try kind.read(value) else { return false }
        root[keyPath: field] = value
        return true
      }, write: { kind.write($0[keyPath: field]) })
  }

  /// The setting, if only a start applies it.
  var atStart: Setting {
    var setting = self
    setting.isLive = false
    return setting
  }

  /// Returns the value in `root` as a JSON5 literal.
  public func literal(in root: Root) -> String { write(root) }

  /// Applies a value. Returns why it is not allowed, or nothing.
  func apply(_ value: RawValue, to root: inout Root) -> [MemberProblem] {
    do throws(MemberProblems) {
      if try read(&root, value) { return [] }
      let shown = isSecret ? "" : SecretMask.masked("\(value)") + " is "
      return [MemberProblem(place: "", description: shown + "not allowed: \(allowed)")]
    } catch {
      return error.all
    }
  }
}

/// Why a part of a value is not allowed.
struct MemberProblem {
  /// The suffix of the value's place: `: rule 2, token`; may be empty.
  let place: String
  /// The problem.
  let description: String
}

/// Why parts of a value are not allowed.
struct MemberProblems: Error {
  /// At least one.
  let all: [MemberProblem]

  init(_ all: [MemberProblem]) { self.all = all }

  init(_ description: String) { all = [MemberProblem(place: "", description: description)] }
}

// MARK: - Objects

extension Setting {
  /// Applies the members of an object by the rows of a table.
  ///
  /// - Parameter required: the member that every object has; `nil`: none.
  /// - Returns: why members are not allowed, each with its name in the place.
  static func apply(
    _ members: [String: RawValue], by table: [Setting], requiring required: String?,
    to root: inout Root
  ) -> [MemberProblem] {
    var problems: [MemberProblem] = []
    let names = table.map(\.path)
    for unknown in members.keys.sorted() where !names.contains(unknown) {
      let nearest = NearestNames.of(unknown, among: names)
      let hint =
        nearest.isEmpty ? ": " + names.joined(separator: ", ") : NearestNames.question(nearest)
      problems.append(MemberProblem(place: ", \(unknown)", description: "unknown member" + hint))
    }
    for setting in table {
      guard let value = members[setting.path] else {
        if setting.path == required {
          problems.append(
            MemberProblem(
              place: ", \(setting.path)", description: "it is required: \(setting.allowed)"))
        }
        continue
      }
      for problem in setting.apply(value, to: &root) {
        problems.append(
          MemberProblem(
            place: ", \(setting.path)\(problem.place)", description: problem.description))
      }
    }
    return problems
  }

  /// Returns the members of an object as JSON5: the required one, and those that differ from
  /// `standard`.
  static func literal(
    of root: Root, by table: [Setting], requiring required: String, unlike standard: Root
  ) -> String {
    let members = table.compactMap { setting -> String? in
      let literal = setting.write(root)
      let isWritten = setting.path == required || literal != setting.write(standard)
      return isWritten ? "\(setting.path): \(literal)" : nil
    }
    return "{ " + members.joined(separator: ", ") + " }"
  }
}

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

  /// A row of a table that only a start applies.
  static func atStart<Value>(
    _ path: String, _ field: WritableKeyPath<Root, Value> & Sendable, _ kind: ValueKind<Value>,
    _ purpose: String
  ) -> Setting {
    var setting = key(path, field, kind, purpose)
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
      return [MemberProblem(shown + "not allowed: \(allowed)")]
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

  init(at place: String = "", _ description: String) {
    self.place = place
    self.description = description
  }

  /// Returns the problem as one of a larger value.
  func inside(_ place: String) -> MemberProblem {
    MemberProblem(at: place + self.place, description)
  }
}

/// Why parts of a value are not allowed.
struct MemberProblems: Error {
  /// At least one.
  let all: [MemberProblem]

  init(_ all: [MemberProblem]) { self.all = all }

  init(_ description: String) { all = [MemberProblem(description)] }
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
      problems.append(MemberProblem(at: ", \(unknown)", "unknown member" + hint))
    }
    for setting in table {
      guard let value = members[setting.path] else {
        if setting.path == required {
          problems.append(
            MemberProblem(at: ", \(setting.path)", "it is required: \(setting.allowed)"))
        }
        continue
      }
      problems += setting.apply(value, to: &root).map { $0.inside(", \(setting.path)") }
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

// Invocation: parses the command line.

/// The unparsed subject of a purge; the server validates it.
public enum PurgeSubject: Hashable, Sendable {
  /// A URL with all its variants.
  case url(String)
  /// All URLs with this prefix.
  case prefix(String)
  /// All URLs of the hosts that match.
  case host(String)
  /// All URLs of the hosts whose rule has this tag.
  case tag(String)
  /// Everything.
  case everything
}

/// What `sign` signs.
public struct SigningOrder: Hashable, Sendable {
  /// The URLs of images or descriptions, in order.
  public var urls: [String] = []
  /// The time from now on after which they expire; `nil` for an `exp` of their own, or none.
  public var expiresIn: Duration?
  /// The id of the key; `nil` for the first key.
  public var key: String?

  /// Allowed times until the URLs expire.
  static let times = Duration.seconds(1)...Duration.seconds(3_650 * 86_400)
}

/// What `explain` asks.
public struct ExplainOrder: Hashable, Sendable {
  /// The URL of a source, or a query of `/image`; the server validates it.
  public var subject: String
  /// The value of the `Accept` field; `nil` for none.
  public var accept: String?
  /// Whether the answer is printed as it is.
  public var isJSON = false
}

/// What `doctor` loads.
public struct DoctorOrder: Hashable, Sendable {
  /// The URL of the source; the server validates it.
  public var url: String
  /// Whether the answer is printed as it is.
  public var isJSON = false
}

/// What `replay` reads and asks.
public struct ReplayOrder: Hashable, Sendable {
  /// The access log; `-`: standard input.
  public var log: String
  /// The peer whose addresses it has.
  public var peer = Peer.imgproxy
  /// What precedes the addresses at the old server: `http://HOST`, perhaps with a path; `nil`: no
  /// server is asked.
  public var against: String?
  /// How many addresses both servers are asked for.
  public var sample = 500
  /// The file of the HTML page; `nil`: none.
  public var page: String?
}

/// The program's arguments, parsed.
public struct Invocation: Hashable, Sendable {
  /// The command.
  public enum Action: Hashable, Sendable {
    /// Serve until a signal arrives.
    case serve
    /// Read the configuration, report whether it is valid, and exit.
    case checkConfiguration
    /// Write the effective configuration and exit.
    case printConfiguration
    /// Check the health of the configured server, and exit with 0 or 1.
    case healthcheck
    /// Make the configured server prefetch the list in a file (`-`: standard input), each line with
    /// each preset.
    case prefetch(file: String, presets: [String])
    /// Make the configured server purge these subjects.
    case purge([PurgeSubject])
    /// Print what the configured server would do with a request.
    case explain(ExplainOrder)
    /// Let the configured server load a source, and print each step.
    case doctor(DoctorOrder)
    /// Run the list of docs/production.md.
    case check(isJSON: Bool)
    /// Write URLs with their signatures.
    case sign(SigningOrder)
    /// Write what URLs of other image servers are here; of one peer, or of the configured doors.
    case translate([String], door: String?)
    /// Report how the addresses of an access log fare at a door.
    case replay(ReplayOrder)
    /// Run the built-in list of attacks against the configuration.
    case securityTest
    /// Write the version and exit.
    case version
    /// Write the help text of a command or of the program, and exit.
    case help(Command?)
  }

  /// One option `--key value`.
  public struct Option: Hashable, Sendable {
    /// The key's path.
    public let path: String
    /// The unparsed value.
    public let value: String
  }

  /// The command.
  public private(set) var action = Action.serve
  /// The configuration file; `nil` for none.
  public private(set) var file: String?
  /// Settings given as options, in order.
  public private(set) var options: [Option] = []

  /// Parses the arguments that follow the program's name.
  ///
  /// - Throws: all mistakes.
  public init(arguments: [String]) throws(ConfigurationError) {
    var problems = ConfigurationProblems()
    self.init(arguments: arguments, &problems)
    try problems.check()
  }

  /// An argument of a command: what it is about, or one of the command's own options.
  private struct Part {
    var option: String?
    let value: String
  }

  /// Parses the arguments after the program's name. Adds mistakes to `problems`, uses the rest.
  public init(arguments: [String], _ problems: inout ConfigurationProblems) {
    var rest = arguments[...]
    if rest.first == "help" { rest = rest.dropFirst() + ["--help"] }
    let command = rest.first.flatMap(Command.init)
    if command != nil { rest = rest.dropFirst() }
    let flags = (command?.row.options ?? []).filter { $0.argument == nil }
    var parts: [Part] = []
    while let argument = rest.popFirst() {
      switch argument {
      case "--help", "-h": action = .help(command)
      case "--version": action = .version
      case "--check-config": action = .checkConfiguration
      case "--print-config": action = .printConfiguration
      case _ where flags.contains { $0.form == argument }:
        parts.append(Part(option: String(argument.dropFirst(2)), value: ""))
      case _ where argument.hasPrefix("--"):
        guard let option = option(argument, of: command, &rest, &problems) else { continue }
        parts.append(option)
      case _ where Self.isSubject(argument, of: command, after: parts):
        parts.append(Part(value: argument))
      default:
        let names = argument.hasPrefix("-") || command != nil ? [] : Command.allCases
        let nearest = NearestNames.of(argument, among: names.map(\.rawValue))
        problems.add(
          at: argument,
          "unknown command"
            + (nearest.isEmpty ? "; --help lists them" : NearestNames.question(nearest)))
      }
    }
    guard let command, action == .serve else { return }
    let isWithoutSubject =
      problems.isEmpty && !parts.contains { $0.option == nil || command == .purge }
    if isWithoutSubject, let missing = command.row.missing {
      problems.add(at: command.rawValue, missing + " required")
    }
    action = Self.action(command, parts, &problems)
  }

  /// Parses an option with its value. Returns it if it is the command's own.
  private mutating func option(
    _ argument: String, of command: Command?, _ rest: inout ArraySlice<String>,
    _ problems: inout ConfigurationProblems
  ) -> Part? {
    let parts = argument.dropFirst(2).split(
      separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
    let name = parts.first.map(String.init) ?? ""
    let isOwn = command?.row.options.contains { $0.name == name } == true
    guard name == "config" || isOwn || Configuration.key(name) != nil else {
      problems.add(at: argument, Self.unknownOption(name, of: command))
      // Most likely the option's value, so not a mistake by itself.
      if parts.count == 1, rest.first?.hasPrefix("-") == false { rest = rest.dropFirst() }
      return nil
    }
    guard let value = parts.count == 2 ? String(parts[1]) : rest.popFirst() else {
      problems.add(at: argument, "a value is required")
      // What it would be a value of was meant.
      return isOwn ? Part(option: name, value: "") : nil
    }
    guard !isOwn else { return Part(option: name, value: value) }
    if name == "config" { file = value } else { options.append(Option(path: name, value: value)) }
    return nil
  }

  /// Whether a command takes an argument that is no option.
  private static func isSubject(
    _ argument: String, of command: Command?, after parts: [Part]
  ) -> Bool {
    let operand = command?.row.operand ?? .nothing
    guard !argument.hasPrefix("-") || operand == .file && argument == "-" else { return false }
    let isFirst = !parts.contains { $0.option == nil }
    switch operand {
    case .many: return true
    case .file: return isFirst
    case .one: return isFirst && !argument.isEmpty
    case .word(let word): return isFirst && argument == word
    case .nothing: return false
    }
  }

  private static func action(
    _ command: Command, _ parts: [Part], _ problems: inout ConfigurationProblems
  ) -> Action {
    let subjects = parts.filter { $0.option == nil }.map(\.value)
    func last(_ option: String) -> String? { parts.last { $0.option == option }?.value }
    if let door = last("door"), Peer(rawValue: door) == nil {
      problems.add(
        at: "--door",
        "'\(door)' is not one of " + Peer.allCases.map(\.rawValue).joined(separator: ", "))
    }
    switch command {
    case .healthcheck: return .healthcheck
    case .selftest: return .securityTest
    case .check: return .check(isJSON: last("json") != nil)
    case .doctor:
      return .doctor(DoctorOrder(url: subjects.first ?? "", isJSON: last("json") != nil))
    case .purge:
      return .purge(
        parts.map { part in
          switch part.option {
          case "prefix": .prefix(part.value)
          case "host": .host(part.value)
          case "tag": .tag(part.value)
          case nil: .url(part.value)
          default: .everything
          }
        })
    case .explain:
      var order = ExplainOrder(subject: subjects.first ?? "")
      order.accept = last("accept")
      order.isJSON = last("json") != nil
      return .explain(order)
    case .sign:
      var order = SigningOrder()
      order.urls = subjects
      order.key = last("key")
      if let text = last("expires-in") {
        order.expiresIn = TimeSpan.parse(text).flatMap {
          SigningOrder.times.contains($0) ? $0 : nil
        }
        if order.expiresIn == nil {
          problems.add(
            at: "--expires-in",
            "'\(text)' is not allowed: " + TimeSpan.allowed(SigningOrder.times))
        }
      }
      return .sign(order)
    case .translate:
      return .translate(subjects, door: last("door"))
    case .replay:
      var order = ReplayOrder(log: subjects.first ?? "")
      if last("door") == nil { problems.add(at: "--door", "a peer is required") }
      order.peer = last("door").flatMap(Peer.init) ?? order.peer
      order.page = last("page")
      if let text = last("against") {
        let url = try? SourceURL(parsing: text)
        let hosts = parts.filter { $0.option == "allow-host" }.map(\.value) + ["localhost"]
        order.against = url?.text
        if IPAddress(numeric: url?.host ?? "")?.isLoopback != true, !hosts.contains(url?.host ?? "")
        {
          problems.add(
            at: "--against", "'\(text)' is no http://HOST of this machine, or of --allow-host HOST")
        }
      }
      if let text = last("sample") { order.sample = Int(text) ?? 0 }
      if order.sample < 1 { problems.add(at: "--sample", "a number from 1 on is required") }
      return .replay(order)
    case .prefetch:
      return .prefetch(
        file: subjects.first ?? "",
        presets: parts.filter { $0.option == "preset" }.map(\.value))
    }
  }

  /// Returns the message for an unknown option.
  private static func unknownOption(_ name: String, of command: Command?) -> String {
    let nearest = NearestNames.of(
      name,
      among: (ownOptions + (command?.row.options ?? [])).map(\.name).filter { $0 != "KEY" }
        + Configuration.paths)
    guard nearest.isEmpty else {
      return "unknown option" + NearestNames.question(nearest.map { "--" + $0 })
    }
    return "unknown option; --help lists them"
  }
}

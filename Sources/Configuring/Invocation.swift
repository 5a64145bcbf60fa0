// Invocation: parses the command line.

import Platform

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

  /// Creates an order without URLs.
  public init() {}
}

/// What `explain` asks.
public struct ExplainOrder: Hashable, Sendable {
  /// The URL of a source, or a query of `/image`; the server validates it.
  public var subject: String
  /// The value of the `Accept` field; `nil` for none.
  public var accept: String?
  /// Whether the answer is printed as it is.
  public var isJSON = false

  /// Creates a question.
  public init(_ subject: String = "") { self.subject = subject }
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
    /// Write URLs with their signatures.
    case sign(SigningOrder)
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

  /// Options that are not keys.
  private static let ownOptions = [
    "config", "help", "version", "check-config", "print-config",
  ]

  /// Parses the arguments that follow the program's name.
  ///
  /// - Throws: all mistakes.
  public init(arguments: [String]) throws(ConfigurationError) {
    var problems = ConfigurationProblems()
    self.init(arguments: arguments, &problems)
    try problems.check()
  }

  /// Parses the arguments after the program's name. Adds mistakes to `problems`, uses the rest.
  public init(arguments: [String], _ problems: inout ConfigurationProblems) {
    var rest = arguments[...]
    if rest.first == "help" { rest = rest.dropFirst() + ["--help"] }
    let command = rest.first.flatMap(Command.init)
    if command != nil { rest = rest.dropFirst() }
    var list = nil as String?
    var presets = [] as [String]
    var subjects: [PurgeSubject] = []
    var order = SigningOrder()
    var tests: [String] = []
    var question = ExplainOrder()
    while let argument = rest.popFirst() {
      if command == .purge, let subject = Self.subject(argument, rest: &rest, into: &problems) {
        subjects.append(contentsOf: subject)
        continue
      }
      switch argument {
      case "--help", "-h": action = .help(command)
      case "--json" where command == .explain: question.isJSON = true
      case "--version": action = .version
      case "--check-config": action = .checkConfiguration
      case "--print-config": action = .printConfiguration
      case _ where argument.hasPrefix("--"):
        let parts = argument.dropFirst(2).split(
          separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
        let name = parts.first.map(String.init) ?? ""
        let isKnown =
          name == "config" || Self.options(of: command).contains(name) && command != .purge
          || Configuration.key(name) != nil
        guard isKnown else {
          problems.add(at: argument, Self.unknownOption(name, of: command))
          // Most likely the option's value, so not a mistake by itself.
          if parts.count == 1, rest.first?.hasPrefix("-") == false { rest = rest.dropFirst() }
          continue
        }
        guard let value = parts.count == 2 ? String(parts[1]) : rest.popFirst() else {
          problems.add(at: argument, "a value is required")
          continue
        }
        switch name {
        case "config": file = value
        case "preset": presets.append(value)
        case "key": order.key = value
        case "accept": question.accept = value
        case "expires-in":
          order.expiresIn = TimeSpan.parse(value).flatMap {
            SigningOrder.times.contains($0) ? $0 : nil
          }
          if order.expiresIn == nil {
            problems.add(
              at: argument,
              "'\(value)' is not allowed: " + ConfigurationKey.allowedTimes(SigningOrder.times))
          }
        default: options.append(Option(path: name, value: value))
        }
      case _
      where command == .prefetch && list == nil
        && (argument == "-" || !argument.hasPrefix("-")):
        list = argument
      case _
      where command == .explain && question.subject.isEmpty && !argument.isEmpty
        && !argument.hasPrefix("-"):
        question.subject = argument
      case _ where command == .sign && !argument.hasPrefix("-"): order.urls.append(argument)
      case "security" where command == .selftest && tests.isEmpty: tests.append(argument)
      default:
        let names = argument.hasPrefix("-") ? [] : Command.allCases.map(\.rawValue)
        let nearest = NearestNames.of(argument, among: command == nil ? names : [])
        problems.add(
          at: argument,
          "unknown command"
            + (nearest.isEmpty ? "; --help lists them" : NearestNames.question(nearest)))
      }
    }
    guard let command, action == .serve else { return }
    switch command {
    case .healthcheck: action = .healthcheck
    case .selftest:
      action = .securityTest
      if tests.isEmpty, problems.isEmpty {
        problems.add(at: "selftest", "the name of a test is required: security")
      }
    case .purge:
      action = .purge(subjects)
      if subjects.isEmpty, problems.isEmpty {
        problems.add(at: "purge", "URLs, --prefix, --host, --tag or --all are required")
      }
    case .explain:
      action = .explain(question)
      if question.subject.isEmpty, problems.isEmpty {
        problems.add(at: "explain", "a URL is required")
      }
    case .sign:
      action = .sign(order)
      if order.urls.isEmpty, problems.isEmpty { problems.add(at: "sign", "URLs are required") }
    case .prefetch:
      action = .prefetch(file: list ?? "", presets: presets)
      if list == nil, problems.isEmpty {
        problems.add(at: "prefetch", "a file is required, or - for standard input")
      }
    }
  }

  /// Returns the options that only this command has.
  private static func options(of command: Command?) -> [String] {
    switch command {
    case .prefetch: ["preset"]
    case .purge: ["prefix", "host", "tag", "all"]
    case .sign: ["expires-in", "key"]
    case .explain: ["accept", "json"]
    case .healthcheck, .selftest, nil: []
    }
  }

  /// Returns the message for an unknown option.
  private static func unknownOption(_ name: String, of command: Command?) -> String {
    let nearest = NearestNames.of(
      name, among: ownOptions + options(of: command) + Configuration.paths)
    guard nearest.isEmpty else {
      return "unknown option" + NearestNames.question(nearest.map { "--" + $0 })
    }
    return "unknown option; --help lists them"
  }

  /// Returns the subjects that an argument of `purge` names, with its value from `rest`. Returns
  /// `nil` for an option of all commands, and no subject if the value is missing.
  private static func subject(
    _ argument: String, rest: inout ArraySlice<String>, into problems: inout ConfigurationProblems
  ) -> [PurgeSubject]? {
    guard argument.hasPrefix("-") else { return [.url(argument)] }
    guard argument != "--all" else { return [.everything] }
    let parts = argument.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
    let subjects = [
      "--prefix": PurgeSubject.prefix, "--host": PurgeSubject.host, "--tag": PurgeSubject.tag,
    ]
    guard let subject = subjects[String(parts[0])] else { return nil }
    guard let value = parts.count == 2 ? String(parts[1]) : rest.popFirst() else {
      problems.add(at: argument, "a value is required")
      return []
    }
    return [subject(value)]
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

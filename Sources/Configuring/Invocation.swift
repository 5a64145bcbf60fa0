// Invocation: what the command line asks for.

/// What is to be purged, as it was written: the server knows what can be.
public enum PurgeSubject: Hashable, Sendable {
  /// Everything of a URL.
  case url(String)
  /// Everything of the URLs that begin with this one.
  case prefix(String)
  /// Everything of the hosts that match.
  case host(String)
  /// Everything of the hosts whose rule has this tag.
  case tag(String)
  /// All there is.
  case everything
}

/// The program's arguments, parsed.
public struct Invocation: Hashable, Sendable {
  /// What to do.
  public enum Action: Hashable, Sendable {
    /// Serve until a signal comes.
    case serve
    /// Read the configuration, say whether it can be used, and end.
    case checkConfiguration
    /// Write the effective configuration and end.
    case printConfiguration
    /// Ask the server that this configuration describes for its health, and end with 0 or 1.
    case healthcheck
    /// Have that server prefetch the list in a file (`-`: standard input), each line with each of these presets.
    case prefetch(file: String, presets: [String])
    /// Have that server take these out of its cache.
    case purge([PurgeSubject])
    /// Write the version and end.
    case version
    /// Write the help text and end.
    case help
  }

  /// One `--key value`.
  public struct Option: Hashable, Sendable {
    /// The key's path.
    public let path: String
    /// Its value as text.
    public let value: String
  }

  /// What to do.
  public private(set) var action = Action.serve
  /// The configuration file; `nil`: none.
  public private(set) var file: String?
  /// Settings given as options, in their order.
  public private(set) var options: [Option] = []

  /// Parses the arguments that follow the program's name.
  public init(arguments: [String]) throws(ConfigurationError) {
    var rest = arguments[...]
    let (isPrefetch, isPurge) = (rest.first == "prefetch", rest.first == "purge")
    var (list, presets) = (nil as String?, [] as [String])
    var subjects: [PurgeSubject] = []
    if rest.first == "healthcheck" { action = .healthcheck }
    if action == .healthcheck || isPrefetch || isPurge { rest = rest.dropFirst() }
    while let argument = rest.popFirst() {
      if isPurge, let subject = try Self.subject(argument, &rest) {
        subjects.append(subject)
        continue
      }
      switch argument {
      case "--help", "-h": action = .help
      case "--version": action = .version
      case "--check-config": action = .checkConfiguration
      case "--print-config": action = .printConfiguration
      case _ where argument.hasPrefix("--"):
        let parts = argument.dropFirst(2).split(
          separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
        let name = parts.first.map(String.init) ?? ""
        let isKnown =
          name == "config" || name == "preset" && isPrefetch || Configuration.key(name) != nil
        guard isKnown else {
          throw ConfigurationError(at: argument, "there is no such option; --help lists them")
        }
        guard let value = parts.count == 2 ? String(parts[1]) : rest.popFirst() else {
          throw ConfigurationError(at: argument, "a value must follow")
        }
        switch name {
        case "config": file = value
        case "preset": presets.append(value)
        default: options.append(Option(path: name, value: value))
        }
      case _ where isPrefetch && list == nil && (argument == "-" || !argument.hasPrefix("-")):
        list = argument
      default:
        throw ConfigurationError(at: argument, "there is no such command; --help lists them")
      }
    }
    guard isPrefetch || isPurge, action == .serve else { return }
    guard !isPurge else {
      guard !subjects.isEmpty else {
        throw ConfigurationError(
          at: "purge", "URLs must follow, or --prefix, --host, --tag or --all")
      }
      action = .purge(subjects)
      return
    }
    guard let list else {
      throw ConfigurationError(at: "prefetch", "a file must follow, or - for standard input")
    }
    action = .prefetch(file: list, presets: presets)
  }

  /// What an argument of `purge` names, with its value from `rest`; `nil` where it is one that all commands have.
  private static func subject(
    _ argument: String, _ rest: inout ArraySlice<String>
  ) throws(ConfigurationError) -> PurgeSubject? {
    guard argument.hasPrefix("-") else { return .url(argument) }
    guard argument != "--all" else { return .everything }
    let parts = argument.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
    let subjects = [
      "--prefix": PurgeSubject.prefix, "--host": PurgeSubject.host, "--tag": PurgeSubject.tag,
    ]
    guard let subject = subjects[String(parts[0])] else { return nil }
    guard let value = parts.count == 2 ? String(parts[1]) : rest.popFirst() else {
      throw ConfigurationError(at: argument, "a value must follow")
    }
    return subject(value)
  }

  /// The text of `--help`.
  public static let help = """
    pictor: an image server. A picture asked for at /image is loaded once, turned upright, scaled, kept, and served.

    usage: pictor [options]                serve until SIGTERM or SIGINT
           pictor healthcheck [options]    exit 0 if the server these options describe is serving, else 1
           pictor prefetch FILE [options]  have that server load the pictures in FILE, a URL or an /image query a line
                                           (-: standard input); exit 0 if it has them all, else 1
           pictor purge URL... [options]   have that server take these URLs out of its cache, with all that was made of
                                           them; exit 0 if it did, else 1

    options:
      --config FILE      read settings from a JSON5 file
      --KEY VALUE        set one key, e.g. --server.port 8081; over the environment and the file
      --preset NAME      with prefetch: each line as this preset has it; may be repeated
      --prefix URL       with purge: all URLs that begin with this one; may be repeated, as may the next two
      --host HOST        with purge: all URLs of a host, or of all hosts below one (*.example.com)
      --tag TAG          with purge: all URLs of hosts whose rule has this tag
      --all              with purge: all there is
      --check-config     say whether the configuration can be used, and exit
      --print-config     write the effective configuration with what every key is for, and exit
      --version          write the version, and exit
      --help             write this, and exit

    Every key has an environment variable, its path in capitals: server.port is PICTOR_SERVER_PORT.
    Precedence: command line, environment, file, default.

    """
}

extension Configuration {
  /// The effective configuration of an invocation, and the environment variables that were not understood.
  ///
  /// - Throws: the first thing wrong, in one line.
  public static func load(
    _ invocation: Invocation, environment: [String: String]
  ) throws(ConfigurationError) -> (configuration: Configuration, unknownVariables: [String]) {
    var configuration = Configuration()
    if let file = invocation.file {
      try configuration.apply(json5: contents(of: file), file: file)
    }
    let unknown = try configuration.apply(environment: environment)
    for option in invocation.options {
      try configuration.apply(option: option.path, value: option.value)
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

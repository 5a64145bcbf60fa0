// CommandTable: the commands and options of the command line. Parsing, `--help`, the man pages and
// the completion of shells are made from it.

extension Invocation {
  /// A command, most of them to the running server. Without a command, the program is the server.
  ///
  /// A new one is a case, a row below, and its action in `Invocation`; then `make generated`.
  public enum Command: String, CaseIterable, Sendable {
    /// Checks its health.
    case healthcheck
    /// Makes it load a list.
    case prefetch
    /// Makes it purge entries.
    case purge
    /// Makes it say what a request would do.
    case explain
    /// Makes it load a source, step by step.
    case doctor
    /// Holds it against docs/production.md.
    case check
    /// Signs URLs, without the server.
    case sign
    /// Translates the URLs of other image servers, without the server.
    case translate
    /// Reports how an access log fares at a door.
    case replay
    /// Tests what the configuration refuses, without a server.
    case selftest

    /// The row of the command.
    var row: CommandRow {
      switch self {
      case .healthcheck:
        CommandRow(
          purpose: "checks the server's health (GET /stats), for containers without curl",
          exits: "Exits 0 if the server answers 200 within 3 seconds, else 1 with the reason.",
          asksServer: true)
      case .prefetch:
        CommandRow(
          usage: "FILE", operand: .file,
          purpose: "makes the server load the images of a list in advance, at low priority",
          text: """
            It needs admin.tokens. FILE has one image per line: a URL, or a query of /image such as \
            /image?url=...&w=300; - is standard input. The command shows progress and failures. \
            Ctrl-C cancels the list.
            """,
          exits: """
            Exits 0 if all images are loaded, 1 if some failed, 2 for wrong usage, 130 after Ctrl-C.
            """,
          options: [
            CommandOption("preset", "NAME", "request each line with this preset; can be repeated")
          ],
          asksServer: true, missing: "a file, or - for standard input, is")
      case .purge:
        CommandRow(
          usage: "URL...", operand: .many,
          purpose: "makes the server remove sources and all their variants from its cache",
          text: """
            It needs admin.tokens. URLs and options can be mixed and repeated. Each is a separate \
            purge, with a line of what it removed.
            """,
          exits: "Exits 0 if all purges succeed, 1 if one fails, 2 for wrong usage.",
          options: [
            CommandOption(
              "prefix", "URL",
              "all URLs with this prefix, which needs a complete host and the slash after it: "
                + "https://example.com/shop/"),
            CommandOption(
              "host", "HOST",
              "all URLs of a host, at any port, or of all hosts below one (*.example.com)"),
            CommandOption("tag", "TAG", "all URLs of the hosts whose rule has this tag"),
            CommandOption("all", nil, "everything"),
          ],
          asksServer: true, missing: "URLs, --prefix, --host, --tag or --all are")
      case .explain:
        CommandRow(
          usage: "URL", operand: .one,
          purpose: "prints what the server would do with a request and why, and does nothing of it",
          text: """
            It needs admin.tokens. URL is the URL of a source, or one of /image: \
            '/image?url=...&w=300', with or without a host in front.
            """,
          exits: "Exits 0 with an explanation, 1 without, 2 for wrong usage.",
          options: [
            CommandOption(
              "accept", "TYPES", "the client's Accept field, such as image/avif,image/webp"),
            CommandOption("json", nil, "print the server's JSON"),
          ],
          asksServer: true, missing: "a URL is")
      case .doctor:
        CommandRow(
          usage: "URL", operand: .one,
          purpose: "makes the server load a source, and prints each step with its time",
          text: """
            It needs admin.tokens with the scope write. URL is the URL of a source. The load has \
            the server's own limits, host rules and queue, and a connection of its own; nothing of \
            it is stored. Each step says what it found, and which key or RFC decides.
            """,
          exits: """
            Exits 0 if every step succeeds, 1 if one fails or there is no answer, 2 for wrong usage.
            """,
          options: [CommandOption("json", nil, "print the server's JSON")],
          asksServer: true, missing: "a URL is")
      case .check:
        CommandRow(
          purpose: "holds settings, machine and running server against docs/production.md",
          text: """
            Each item is ok, open, or advice. Attacks are those of pictor selftest security; it \
            resolves names. Run it as the server's user, with the server's limits. Without a \
            running server, its items are advice.
            """,
          exits: "Exits 0 if nothing is open, 1 if an item is, 2 for wrong usage.",
          options: [CommandOption("json", nil, "print JSON")], asksServer: true)
      case .sign:
        CommandRow(
          usage: "URL...", operand: .many,
          purpose: "writes URLs with a signature, for servers with signing.mode",
          text: """
            It needs signing.keys, and no server. Each URL is one of /image or /info: \
            https://images.example/image?url=...&w=300, or without the host. A path in front, as in \
            https://example.com/images/image?..., is not signed: a proxy removes it. A signature in \
            a URL is replaced.
            """,
          exits: "Exits 0 if all URLs are signed, 1 if one cannot be, 2 for wrong usage.",
          options: [
            CommandOption(
              "expires-in", "TIME",
              "the time from now on after which the URLs are refused, such as 10m, 8h or 30d"),
            CommandOption("key", "ID", "sign with this key in place of the first"),
          ], missing: "URLs are")
      case .translate:
        CommandRow(
          usage: "URL...", operand: .many,
          purpose: "writes what other image servers' URLs are here, and what of them is not exact",
          text: """
            Each URL is one of a door of the configuration, or of a door as its peer is by default \
            (--door). It may have a host. Under the query of /image is a line for each option that \
            is near, ignored or refused.
            """,
          exits: "Exits 0 if all URLs are translated, 1 if one is refused, 2 for wrong usage.",
          options: [
            CommandOption("door", "PEER", "the peer", values: Peer.allCases.map(\.rawValue))
          ], missing: "URLs are")
      case .replay:
        CommandRow(
          usage: "--door PEER LOG", operand: .file,
          purpose: "reports what of another image server's access log is exact, near and refused",
          text: """
            LOG has a request per line: combined, JSON, logfmt or imgproxy's own; - is standard \
            input. What is no address of the peer is skipped. With --against, the old server and \
            the one at server.address are asked for a sample, and status, size, format, bytes and \
            pixels compared (RMSE, of 255).
            """,
          exits: """
            Exits 0 with a report, 1 if the log or a server cannot be read, 2 for wrong usage, 130 \
            after Ctrl-C.
            """,
          options: [
            CommandOption(
              "door", "PEER", "the peer, with its door of the configuration if there is one",
              values: Peer.allCases.map(\.rawValue)),
            CommandOption(
              "against", "URL",
              "the old server, such as http://127.0.0.1:9000, with the path that precedes its "
                + "addresses"),
            CommandOption(
              "allow-host", "HOST", "the host of --against if it is not this machine"),
            CommandOption(
              "sample", "NUMBER", "the most addresses that are asked for; 500 by default"),
            CommandOption(
              "page", "FILE", "with --against: write an HTML page with the ten worst pairs"),
          ], missing: "an access log, or - for standard input, is")
      case .selftest:
        CommandRow(
          usage: "security", operand: .word("security"),
          purpose: "tests what the configuration refuses; it connects to no source",
          text: """
            security runs a list of attacks: private addresses in every notation, endpoints of \
            clouds, other schemes and ports, files outside of the local root, redirects to all of \
            these, and this server itself. It needs no server, and resolves names.
            """,
          exits: "Exits 0 if all are refused, 1 if one is open, 2 for wrong usage.",
          missing: "the name of a test, security, is")
      }
    }
  }

  /// The options of the program without a command.
  static let ownOptions = [
    CommandOption("config", "FILE", "read settings from a JSON5 file"), keyOption,
    CommandOption(
      "check-config", nil,
      "list all errors that would prevent a start and exit 1; without errors exit 0"),
    CommandOption(
      "print-config", nil,
      "write the effective configuration with the purpose of each key, and exit"),
    CommandOption("version", nil, "write the version, and exit"),
    CommandOption("help", nil, "write this, and exit"),
  ]

  /// The option that stands for each key.
  static let keyOption = CommandOption(
    "KEY", "VALUE",
    "set one key, such as --server.port 8081; overrides the environment and the file")
}

/// What `--help`, man pages and completion say about a command, and how it is parsed.
struct CommandRow: Sendable {
  /// The arguments that are no options.
  enum Operand: Equatable, Sendable {
    case nothing, one, many
    /// The name of a file, or `-`.
    case file
    /// This word.
    case word(String)
  }

  /// What follows the command's name, before the options.
  var usage = ""
  var operand = Operand.nothing
  /// What it does, in one line that has no point at its end.
  let purpose: String
  var text = ""
  /// The exit statuses.
  let exits: String
  /// The options that only this command has.
  var options: [CommandOption] = []
  /// Whether it asks the server of the configuration.
  var asksServer = false
  /// What it cannot do without, with the verb; `nil`: nothing.
  var missing: String?

  /// All options, as help texts list them.
  var allOptions: [CommandOption] {
    options + Invocation.ownOptions.filter { ["config", "KEY", "help"].contains($0.name) }
  }

  /// The paragraphs between usage and options.
  var paragraphs: [String] {
    let server = """
      The command uses the server at server.operator_address, or else at the first of \
      server.address that accepts. --config and --KEY set them, as for the server itself.
      """
    return [text, asksServer ? server : "", exits].filter { !$0.isEmpty }
  }
}

/// An option of the command line.
struct CommandOption: Sendable {
  let name: String
  /// What its value is called; `nil`: it has none.
  let argument: String?
  let help: String
  /// The allowed values; empty: others than a few.
  let values: [String]

  init(_ name: String, _ argument: String?, _ help: String, values: [String] = []) {
    self.name = name
    self.argument = argument
    self.help = values.isEmpty ? help : help + ": " + values.joined(separator: ", ")
    self.values = values
  }

  /// How help texts call it: `--door PEER`.
  var form: String { "--" + name + (argument.map { " " + $0 } ?? "") }
}

// HelpTexts: the texts of `--help`, for the program and for each command.

extension Invocation {
  /// A command, most of them to the running server. Without a command, the program is the server.
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
    /// Runs the list of docs/production.md.
    case check
    /// Signs URLs, without the server.
    case sign
    /// Translates the URLs of other image servers, without the server.
    case translate
    /// Reports how an access log fares at a door.
    case replay
    /// Tests what the configuration refuses, without a server.
    case selftest

    /// The options that only this command has.
    var options: [String] {
      switch self {
      case .prefetch: ["preset"]
      case .purge: ["prefix", "host", "tag", "all"]
      case .sign: ["expires-in", "key"]
      case .explain: ["accept", "json"]
      case .doctor, .check: ["json"]
      case .translate: ["door"]
      case .replay: ["door", "against", "sample", "allow-host", "page"]
      case .healthcheck, .selftest: []
      }
    }

    /// What a command cannot do without.
    var missing: String? {
      switch self {
      case .prefetch: "a file, or - for standard input, is"
      case .purge: "URLs, --prefix, --host, --tag or --all are"
      case .explain, .doctor: "a URL is"
      case .sign, .translate: "URLs are"
      case .replay: "an access log, or - for standard input, is"
      case .selftest: "the name of a test, security, is"
      case .healthcheck, .check: nil
      }
    }
  }

  /// Returns the text of `--help` for a command, or for the program if `command` is `nil`.
  public static func help(for command: Command?) -> String {
    switch command {
    case nil:
      """
      pictor: an image server. It loads an image once, turns it upright, resizes, caches and serves it.

      usage: pictor [options]                serve until SIGTERM or SIGINT
             pictor healthcheck [options]    exit 0 if the configured server is serving, else 1
             pictor prefetch FILE [options]  make that server load the images of a list
             pictor purge URL... [options]   make that server purge URLs from its cache
             pictor explain URL [options]    print what that server would do with a request, and why
             pictor doctor URL [options]     make that server load a source, and print each step with its time
             pictor check [options]          exit 0 if nothing of docs/production.md is open, else 1
             pictor sign URL... [options]    sign URLs with a configured key
             pictor translate URL... [options]
                                             what other image servers' URLs are here
             pictor replay --door PEER LOG   how the requests of another image server's access log fare here
             pictor selftest security        exit 0 if the configuration refuses a list of attacks, else 1
             pictor help COMMAND             the help text of a command

      options:
        --config FILE      read settings from a JSON5 file
        --KEY VALUE        set one key, such as --server.port 8081; overrides the environment and the file
        --check-config     list all errors that would prevent a start and exit 1; without errors exit 0
        --print-config     write the effective configuration with the purpose of each key, and exit
        --version          write the version, and exit
        --help             write this, and exit

      Every key has an environment variable, its path in capitals: server.port is PICTOR_SERVER_PORT.
      Precedence: command line, environment, file, default.

      """
    case .healthcheck:
      """
      pictor healthcheck: checks the server's health (GET /stats), for containers without curl.

      usage: pictor healthcheck [options]

      Exits 0 if the server answers 200 within 3 seconds, else 1 with the reason.

      """ + commonHelp + commonOptions
    case .prefetch:
      """
      pictor prefetch: makes the server load a list of images in advance, at low priority. It needs admin.tokens.

      usage: pictor prefetch FILE [options]

      FILE has one image per line: a URL, or a query of /image such as /image?url=...&w=300; - is standard input. The
      command shows progress and failures. Ctrl-C cancels the list.
      Exits 0 if all images are loaded, 1 if some failed, 2 for wrong usage, 130 after Ctrl-C.

      options:
        --preset NAME      request each line with this preset; can be repeated

      """ + commonHelp + commonOptions
    case .purge:
      """
      pictor purge: makes the server remove sources and all their variants from its cache. It needs admin.tokens.

      usage: pictor purge URL... [options]

      URLs and options can be mixed and repeated. Each is a separate purge, with a line of what it removed.
      Exits 0 if all purges succeed, 1 if one fails, 2 for wrong usage.

      options:
        --prefix URL       all URLs with this prefix, which needs a complete host and the slash after it:
                           https://example.com/shop/
        --host HOST        all URLs of a host, at any port, or of all hosts below one (*.example.com)
        --tag TAG          all URLs of the hosts whose rule has this tag
        --all              everything

      """ + commonHelp + commonOptions
    case .explain:
      """
      pictor explain: prints what the server would do with a request and why, and does nothing of it. It needs admin.tokens.

      usage: pictor explain URL [options]

      URL is the URL of a source, or one of /image: '/image?url=...&w=300', with or without a host in front.
      Exits 0 with an explanation, 1 without, 2 for wrong usage.

      options:
        --accept TYPES     the client's Accept field, such as image/avif,image/webp
        --json             print the server's JSON

      """ + commonHelp + commonOptions
    case .doctor:
      """
      pictor doctor: makes the server load a source afresh, stores nothing of it, and prints what each step found, how long
      it took, and which key or RFC decides. It needs admin.tokens with the scope write.

      usage: pictor doctor URL [options]

      URL is the URL of a source. The load has the server's own limits, host rules and queue, and a connection of its own.
      Exits 0 if every step succeeds, 1 if one fails or there is no answer, 2 for wrong usage.

      options:
        --json             print the server's JSON

      """ + commonHelp + commonOptions
    case .check:
      """
      pictor check: holds the configuration, this machine and the running server against docs/production.md.

      usage: pictor check [options]

      Each item is ok, open, or advice. Attacks are those of pictor selftest security; it resolves names. Run it as the
      server's user, with the server's limits. Without a running server, its items are advice.
      Exits 0 if nothing is open, 1 if an item is, 2 for wrong usage.

      options:
        --json             print JSON

      """ + commonHelp + commonOptions
    case .sign:
      """
      pictor sign: writes URLs with a signature, for servers with signing.mode. It needs signing.keys, and no server.

      usage: pictor sign URL... [options]

      Each URL is one of /image or /info: https://images.example/image?url=...&w=300, or without the host. A path in front,
      as in https://example.com/images/image?..., is not signed: a proxy removes it. A signature in a URL is replaced.
      Exits 0 if all URLs are signed, 1 if one cannot be, 2 for wrong usage.

      options:
        --expires-in TIME  the time from now on after which the URLs are refused, such as 10m, 8h or 30d
        --key ID           sign with this key in place of the first

      """ + commonOptions
    case .translate:
      """
      pictor translate: writes what the URLs of another image server are here, and what of them is not exact.

      usage: pictor translate URL... [options]

      Each URL is one of a door of the configuration, or of a door as its peer is by default (--door). It may have a
      host. Under the query of /image is a line for each option that is near, ignored or refused.
      Exits 0 if all URLs are translated, 1 if one is refused, 2 for wrong usage.

      options:
        --door PEER        the peer: \(Peer.allCases.map(\.rawValue).joined(separator: ", "))

      """ + commonOptions
    case .replay:
      """
      pictor replay: reports which share of an access log of another image server is exact, near and refused here.

      usage: pictor replay --door PEER LOG [options]

      LOG has a request per line: combined, JSON, logfmt or imgproxy's own; - is standard input. What is no address of
      the peer is skipped. With --against, the old server and the one at server.address are asked for a
      sample, and status, size, format, bytes and pixels compared (RMSE, of 255).
      Exits 0 with a report, 1 if the log or a server cannot be read, 2 for wrong usage, 130 after Ctrl-C.

      options:
        --door PEER        the peer, as in translate, with its door of the configuration if there is one
        --against URL      the old server, such as http://127.0.0.1:9000, with the path that precedes its addresses
        --allow-host HOST  the host of --against if it is not this machine
        --sample NUMBER    the most addresses that are asked for; 500 by default
        --page FILE        with --against: write an HTML page with the ten worst pairs

      """ + commonOptions
    case .selftest:
      """
      pictor selftest: tests what the configuration refuses. It needs no server and connects to no source.

      usage: pictor selftest security [options]

      security runs a list of attacks: private addresses in every notation, endpoints of clouds, other schemes and
      ports, files outside of the local root, redirects to all of these, and this server itself. It resolves names.
      Exits 0 if all are refused, 1 if one is open, 2 for wrong usage.

      options:

      """ + commonOptions
    }
  }

  private static let commonHelp = """

    The command uses the server at server.operator_address, or else at the first of server.address that accepts. These
    options set them, as for the server itself:

    """

  private static let commonOptions = """
      --config FILE      read settings from a JSON5 file
      --KEY VALUE        set one key, such as --server.port 8081; overrides the environment and the file
      --help             write this, and exit

    """
}

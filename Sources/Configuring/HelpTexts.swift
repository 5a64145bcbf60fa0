// HelpTexts: what `--help` says, of the program and of each of its commands.

extension Invocation {
  /// A command that asks the running server; without one, the program is the server.
  public enum Command: String, CaseIterable, Sendable {
    /// Asks for its health.
    case healthcheck
    /// Has it load a list.
    case prefetch
    /// Has it take something out of its cache.
    case purge
  }

  /// The text of `--help`, for a command or, with `nil`, for the program.
  public static func help(for command: Command?) -> String {
    switch command {
    case nil: programHelp
    case .healthcheck: healthcheckHelp + commonHelp
    case .prefetch: prefetchHelp + commonHelp
    case .purge: purgeHelp + commonHelp
    }
  }

  private static let programHelp = """
    pictor: an image server. An image asked for at /image is loaded once, turned upright, scaled, kept, and served.

    usage: pictor [options]                serve until SIGTERM or SIGINT
           pictor healthcheck [options]    exit 0 if the server these options describe is serving, else 1
           pictor prefetch FILE [options]  have that server load the images of a list
           pictor purge URL... [options]   have that server take URLs out of its cache
           pictor COMMAND --help           what a command does, and its options

    options:
      --config FILE      read settings from a JSON5 file
      --KEY VALUE        set one key, e.g. --server.port 8081; over the environment and the file
      --check-config     list all mistakes that a start would stop at, and exit 1, or 0 where there are none
      --print-config     write the effective configuration with what every key is for, and exit
      --version          write the version, and exit
      --help             write this, and exit

    Every key has an environment variable, its path in capitals: server.port is PICTOR_SERVER_PORT.
    Precedence: command line, environment, file, default.

    """

  private static let healthcheckHelp = """
    pictor healthcheck: asks the server for its health (GET /stats), for containers that have no curl.

    usage: pictor healthcheck [options]

    Exits 0 if the server answers 200 within 3 seconds, else 1 with a line that says why.

    """

  private static let prefetchHelp = """
    pictor prefetch: has the server load the images of a list ahead, at low priority. It needs admin.tokens.

    usage: pictor prefetch FILE [options]

    FILE has one image a line: a URL, or a query of /image such as /image?url=...&w=300; - is standard input. Progress
    and failures are written while the server works; Ctrl-C cancels the list.
    Exits 0 if the server has all of them, 1 if some failed, 2 for a wrong use, 130 after Ctrl-C.

    options:
      --preset NAME      each line as this preset has it; may be repeated

    """

  private static let purgeHelp = """
    pictor purge: has the server take out of its cache what is named, with all that was made of it. It needs
    admin.tokens.

    usage: pictor purge URL... [options]

    URLs and options can be mixed and repeated; each is a purge of its own, and a line says what it removed.
    Exits 0 if all of it is purged, 1 if something is not, 2 for a wrong use.

    options:
      --prefix URL       all URLs that begin with this one, which has the whole host and the slash behind it:
                         https://example.com/shop/
      --host HOST        all URLs of a host, whatever its port, or of all hosts below one (*.example.com)
      --tag TAG          all URLs of the hosts whose rule has this tag
      --all              all there is

    """

  private static let commonHelp = """

    The server is the one at server.address and server.port. So these say where it is, as for the server itself:
      --config FILE      read settings from a JSON5 file
      --KEY VALUE        set one key, e.g. --server.port 8081; over the environment and the file
      --help             write this, and exit

    """
}

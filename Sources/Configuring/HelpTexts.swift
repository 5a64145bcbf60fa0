// HelpTexts: the texts of `--help`, for the program and for each command.

extension Invocation {
  /// Returns the text of `--help` for a command, or for the program if `command` is `nil`.
  public static func help(for command: Command?) -> String {
    var parts: [String]
    if let command {
      let row = command.row
      parts = [wrapped("pictor \(command.rawValue): \(row.purpose)."), "usage: " + command.usage]
      parts += row.paragraphs.map { wrapped($0) }
      parts.append(list("options:", row.allOptions.map { ($0.form, $0.help) }))
    } else {
      parts = [
        wrapped("pictor: \(purpose)."), list("usage:", usages.map { ($0.usage, $0.purpose) }),
        list("options:", ownOptions.map { ($0.form, $0.help) }), precedence,
      ]
    }
    return parts.joined(separator: "\n\n") + "\n"
  }

  /// What the program is.
  static let purpose =
    "an image server. It loads an image once, turns it upright, resizes, caches and serves it"
  /// How the program is used, and what each use does.
  static let usages: [(usage: String, purpose: String)] =
    [("pictor [options]", "serves until SIGTERM or SIGINT")]
    + Command.allCases.map { ($0.usage, $0.row.purpose) }
    + [("pictor help COMMAND", "writes the help text of a command")]
  /// Where settings come from.
  static let precedence = """
    Every key has an environment variable, its path in capitals: server.port is PICTOR_SERVER_PORT.
    Precedence: command line, environment, file, default.
    """

  /// Returns a heading with a table of two columns below it.
  private static func list(_ heading: String, _ rows: [(name: String, help: String)]) -> String {
    let width = rows.map(\.name.count).max() ?? 0
    return rows.reduce(heading) { text, row in
      let name = row.name + String(repeating: " ", count: width - row.name.count)
      return text + "\n  \(name)  " + wrapped(row.help, after: width + 4)
    }
  }

  /// Returns a text in lines of at most 100 characters, which begin in a column.
  private static func wrapped(_ text: String, after column: Int = 0) -> String {
    var (lines, line) = ([String](), "")
    for word in text.split(separator: " ") {
      if !line.isEmpty, column + line.count + 1 + word.count > 100 {
        lines.append(line)
        line = ""
      }
      line += (line.isEmpty ? "" : " ") + word
    }
    return (lines + [line]).joined(separator: "\n" + String(repeating: " ", count: column))
  }
}

extension Invocation.Command {
  /// The command with its operand: `pictor purge URL... [options]`.
  var usage: String {
    (["pictor", rawValue] + (row.usage.isEmpty ? [] : [row.usage]) + ["[options]"])
      .joined(separator: " ")
  }
}

// ManPage: the man pages of the program, its commands and its file, made from the tables.

@testable import Core

/// A page in the macros of man(7).
enum ManPage {
  private typealias Command = Invocation.Command

  static func page(of command: Invocation.Command) -> String {
    let row = command.row
    let name = "pictor-\(command.rawValue)"
    return head(name, 1, row.purpose)
      + section("SYNOPSIS", [synopsis(command.usage)])
      + section("DESCRIPTION", row.paragraphs.dropLast().map(text))
      + section("OPTIONS", row.allOptions.map { item($0.form, $0.help) })
      + section("EXIT STATUS", [text(row.exits)])
      + section("SEE ALSO", [references(except: name)])
  }

  static var program: String {
    let uses = Invocation.usages.map { item($0.usage, sentence($0.purpose)) }
    return head("pictor", 1, "an image server that resizes, encodes and caches")
      + section("SYNOPSIS", Invocation.usages.map { synopsis($0.usage) })
      + section("DESCRIPTION", [text("Pictor is " + Invocation.purpose + ".")] + uses)
      + section("OPTIONS", Invocation.ownOptions.map { item($0.form, $0.help) })
      + section("ENVIRONMENT", [text(Invocation.precedence)])
      + section(
        "SIGNALS",
        [
          item("SIGTERM, SIGINT", "stop, after running requests"),
          item("SIGHUP", "read the configuration again"),
        ])
      + section("SEE ALSO", [references(except: "pictor")])
  }

  static var file: String {
    let standard = Configuration()
    let keys = Configuration.keys.map { key in
      item(
        key.path,
        "\(sentence(key.purpose)) Allowed: \(key.allowed). Default: \(key.write(standard))."
          + (key.isLive ? "" : " Needs a restart."))
    }
    return head("pictor.json5", 5, "the configuration of pictor")
      + section(
        "DESCRIPTION",
        [
          text(
            """
            A file in JSON5 that pictor reads with --config. All keys are optional. A key such as \
            server.port is the member port of the object server. SIGHUP applies changes, but for \
            keys that need a restart.
            """), text(Invocation.precedence),
        ])
      + section("KEYS", keys)
      + section("SEE ALSO", [references(except: "pictor.json5")])
  }

  // MARK: Macros

  private static func head(_ name: String, _ section: Int, _ purpose: String) -> String {
    """
    .\\" Made from the tables of commands and keys by `make generated`.
    .TH \(escaped(name.uppercased())) \(section) "" pictor
    .SH NAME
    \(escaped(name)) \\- \(escaped(purpose))

    """
  }

  private static func section(_ name: String, _ parts: [String]) -> String {
    let isList = parts.contains { $0.hasPrefix(".TP") }
    return ".SH \(name)\n" + parts.joined(separator: isList ? "" : ".PP\n")
  }

  /// Returns a paragraph. A sentence ends a line.
  private static func text(_ text: String) -> String {
    escaped(text.replacing(". ", with: ".\n")) + "\n"
  }

  private static func item(_ name: String, _ help: String) -> String {
    ".TP\n.B \(escaped(name))\n" + text(help)
  }

  private static func synopsis(_ usage: String) -> String { ".B \(escaped(usage))\n" }

  private static func sentence(_ text: String) -> String {
    text.prefix(1).uppercased() + text.dropFirst() + "."
  }

  private static func references(except name: String) -> String {
    let pages =
      ["pictor (1)"] + Command.allCases.map { "pictor-\($0.rawValue) (1)" } + ["pictor.json5 (5)"]
    let others = pages.filter { !$0.hasPrefix(name + " ") }
    return others.enumerated().map { place, page in
      ".BR \(escaped(page))" + (place < others.count - 1 ? " ,\n" : "\n")
    }.joined()
  }

  /// Returns a text of which no part is a request or an escape.
  private static func escaped(_ text: String) -> String {
    text.replacing("\\", with: "\\e").replacing("-", with: "\\-").split(separator: "\n")
      .map { $0.first == "." || $0.first == "'" ? "\\&" + $0 : String($0) }
      .joined(separator: "\n")
  }
}

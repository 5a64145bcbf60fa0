// Completion: the completion files of bash, zsh and fish, made from the commands and keys.

@testable import Core

enum Completion {
  private typealias Command = Invocation.Command

  /// An option with the words that may be its value.
  private struct Choice {
    let name: String
    let argument: String?
    let help: String
    let words: [String]
    var isFile: Bool { argument == "FILE" }

    init(_ option: CommandOption) {
      name = option.name
      argument = option.argument
      help = option.help
      words = option.values
    }

    init(_ key: ConfigurationKey) {
      name = key.path
      argument = "VALUE"
      help = key.purpose
      words = RawValue(json5: "{ \(key.schema) }").map(Self.words) ?? []
    }

    /// The words that a JSON Schema lists.
    private static func words(_ schema: RawValue) -> [String] {
      guard case .object(let members) = schema else { return [] }
      var words = ["const", "type"].compactMap { members[$0]?.text }.flatMap {
        ["string", "integer", "number", "array", "object", ""].contains($0)
          ? [] : $0 == "boolean" ? ["true", "false"] : [$0]
      }
      words += members["enum"]?.list ?? []
      if case .array(let kinds) = members["anyOf"] { words += kinds.flatMap(Self.words) }
      return words
    }
  }

  /// The options that every command has.
  private static let common = Invocation.ownOptions
    .filter { ["config", "help"].contains($0.name) }.map(Choice.init)
  /// The options of the program without a command.
  private static let own = Invocation.ownOptions
    .filter { !["config", "help", "KEY"].contains($0.name) }.map(Choice.init)
  private static let keys = Configuration.keys.map(Choice.init)
  private static let commands =
    Command.allCases.map { ($0.rawValue, $0.row.purpose) }
    + [("help", "writes the help text of a command")]
  private static let names = commands.map(\.0).joined(separator: " ")

  private static func options(_ command: Command) -> [Choice] {
    command.row.options.map(Choice.init)
  }

  private static let head = "made from the tables of commands and keys by `make generated`."

  // MARK: bash

  static var bash: String {
    let all = Command.allCases.flatMap(options) + common + own + keys
    var cases: [String] = []
    var known: Set<String> = []
    for option in all where known.insert(option.name).inserted {
      if option.isFile {
        cases.append("--\(option.name)) COMPREPLY=($(compgen -f -- \"$word\")); return ;;")
      } else if !option.words.isEmpty {
        let words = option.words.joined(separator: " ")
        cases.append(
          "--\(option.name)) COMPREPLY=($(compgen -W '\(words)' -- \"$word\")); return ;;")
      }
    }
    let flags = all.filter { $0.argument == nil }.map { "--" + $0.name }
    func words(_ options: [Choice]) -> String {
      options.map { "--" + $0.name }.joined(separator: " ")
    }
    let ofCommands = Command.allCases.map { command in
      var words = words(options(command))
      if case .word(let word) = command.row.operand { words = word }
      return "    \(command.rawValue)) words=\"\(words)\" ;;"
    }
    return """
      # Completion of pictor for bash, \(head)
      # Source it, or copy it to /usr/share/bash-completion/completions/pictor.
      _pictor() {
        local word=${COMP_WORDS[COMP_CWORD]} last=${COMP_WORDS[COMP_CWORD - 1]} words= command=
        case $last in
          \(cases.joined(separator: "\n    "))
          \(Set(flags).sorted().joined(separator: " | "))) ;;
          --*) compopt +o default; return ;;
        esac
        ((COMP_CWORD > 1)) && command=${COMP_WORDS[1]}
        case $command in
      \(ofCommands.joined(separator: "\n"))
          help) words="\(names)" ;;
          *) words="\(words(own))"; ((COMP_CWORD == 1)) && words+=" \(names)" ;;
        esac
        # A word that is no option is most likely a file.
        if [[ $word == -* ]]; then
          words+=" \(words(common)) $_pictor_keys"
        elif ((COMP_CWORD > 1)) && [[ $command != help && $command != selftest ]]; then
          words=
        fi
        COMPREPLY=($(compgen -W "$words" -- "$word"))
      }
      _pictor_keys="
      \(keys.map { "--" + $0.name }.joined(separator: "\n"))"
      complete -o default -F _pictor pictor

      """
  }

  // MARK: zsh

  static var zsh: String {
    func quoted(_ text: String) -> String { "'" + text.replacing("'", with: "'\\''") + "'" }
    func plain(_ text: String) -> String {
      text.replacing("\\", with: "\\\\").replacing("[", with: "\\[").replacing("]", with: "\\]")
    }
    func specification(_ option: Choice) -> String {
      var text = "--\(option.name)[\(plain(option.help))]"
      if let argument = option.argument {
        let action =
          option.isFile
          ? "_files" : option.words.isEmpty ? " " : "(\(option.words.joined(separator: " ")))"
        text += ":\(argument):\(action)"
      }
      return "  " + quoted(text)
    }
    func list(_ options: [Choice]) -> String {
      options.map(specification).joined(separator: "\n")
    }
    let cases = Command.allCases.map { command in
      var rest = options(command).map { " " + specification($0).dropFirst(2) }.joined()
      switch command.row.operand {
      case .nothing: break
      case .one: rest += " '1:URL:_urls'"
      case .many: rest += " '*:URL:_urls'"
      case .file: rest += " '1:FILE:_files'"
      case .word(let word): rest += " '1:test:(\(word))'"
      }
      return "  \(command.rawValue)) _arguments $choices\(rest) ;;"
    }
    let described = commands.map { "    " + quoted($0.0 + ":" + $0.1) }
    return """
      #compdef pictor
      # Completion of pictor for zsh, \(head)
      # Copy it to a folder of $fpath, such as /usr/share/zsh/vendor-completions.
      local -a choices=(
      \(list(common + keys))
      )
      if ((CURRENT == 2)); then
        local -a names=(
      \(described.joined(separator: "\n"))
        )
        [[ $words[2] == -* ]] || _describe command names
      fi
      local command=$words[2]
      if ((CURRENT > 2)) && [[ $command != -* ]]; then
        shift words
        ((CURRENT--))
      else
        command=
      fi
      case $command in
      \(cases.joined(separator: "\n"))
        help) _arguments '1:command:(\(names))' ;;
        '') _arguments $choices \\
      \(list(own).replacing("\n", with: " \\\n")) ;;
      esac

      """
  }

  // MARK: fish

  static var fish: String {
    func quoted(_ text: String) -> String {
      "'" + text.replacing("\\", with: "\\\\").replacing("'", with: "\\'") + "'"
    }
    func line(_ option: Choice, _ condition: String = "") -> String {
      var text = "complete -c pictor\(condition) -l \(option.name)"
      if option.isFile { text += " -r -F" } else if option.argument != nil { text += " -x" }
      if !option.words.isEmpty { text += " -a " + quoted(option.words.joined(separator: " ")) }
      return text + " -d " + quoted(option.help)
    }
    let none = " -n __fish_use_subcommand"
    var lines = [
      "# Completion of pictor for fish, \(head)",
      "# Copy it to ~/.config/fish/completions or /usr/share/fish/vendor_completions.d.",
      "complete -c pictor -f",
    ]
    lines += commands.map { "complete -c pictor\(none) -a \($0.0) -d \(quoted($0.1))" }
    lines.append(
      "complete -c pictor -n '__fish_seen_subcommand_from help' -a \(quoted(names))")
    lines += own.map { line($0, none) }
    for command in Command.allCases {
      let condition = " -n '__fish_seen_subcommand_from \(command.rawValue)'"
      lines += options(command).map { line($0, condition) }
      switch command.row.operand {
      case .file: lines.append("complete -c pictor\(condition) -F")
      case .word(let word): lines.append("complete -c pictor\(condition) -a \(word)")
      default: break
      }
    }
    lines += (common + keys).map { line($0) }
    return lines.joined(separator: "\n") + "\n"
  }
}

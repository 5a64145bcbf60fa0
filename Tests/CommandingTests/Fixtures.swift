// Fixtures: what a command prints, and the server that operators' commands ask.

@testable import Core
import TestSupport

@testable import Commanding

/// What a command prints.
struct Printed {
  private let said = Lock((output: "", errors: ""))

  var output: String { said.withLock { $0.output } }
  var errors: String { said.withLock { $0.errors } }

  func console(columns: Int? = nil) -> Console {
    Console(
      output: { [said] text in said.withLock { $0.output += text } },
      errors: { [said] text in said.withLock { $0.errors += text } }, columns: { columns })
  }
}

/// Returns the exit status of a command, which blocks its thread.
func exitStatus(_ run: () -> CInt) async -> CInt {
  await withTaskExecutorPreference(BlockingExecutor.shared) { run() }
}

/// A test server, and the command of an operator who asks it.
struct OperatorKit {
  let server: Origin
  let printed = Printed()

  init() throws { server = try Origin() }

  /// Returns the exit status of a command.
  func run(
    columns: Int? = nil, change: (inout Configuration) -> Void = { _ in },
    command run: (OperatorCommand) -> CInt
  ) async -> CInt {
    var configuration = Configuration()
    configuration.server.port = server.port
    configuration.admin.tokens = ["0123456789abcdef"]
    change(&configuration)
    var command = OperatorCommand(configuration)
    command.console = printed.console(columns: columns)
    return await exitStatus { run(command) }
  }
}

extension OriginReply {
  static func json(_ text: String, status: Int = 200) -> OriginReply {
    .status(status, body: Array(text.utf8), headers: ["Content-Type: application/json"])
  }
}

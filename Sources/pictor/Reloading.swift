// Reloading: re-reads the configuration on SIGHUP and applies the keys that can change at run time.

import Configuring
import Model
import Telemetry

/// The running configuration and the function that reads it again.
struct Reloading {
  /// Keys that take effect without a restart.
  static let live: Set<String> = ["admin.tokens"]

  private var running: Configuration
  private var operators: [Operator]
  private let read: () throws(ConfigurationError) -> (Configuration, [Operator])

  /// Creates the state for a running server.
  ///
  /// - Parameters:
  ///   - running: the configuration that the server was started with.
  ///   - operators: the operators that it was started with.
  ///   - read: reads and validates the current configuration, and the files and variables with tokens.
  init(
    _ running: Configuration, operators: [Operator],
    read: @escaping () throws(ConfigurationError) -> (Configuration, [Operator])
  ) {
    self.running = running
    self.operators = operators
    self.read = read
  }

  /// Reads the configuration and applies the live keys. An invalid configuration changes nothing.
  mutating func reload(_ service: Service, log: Log) {
    let wanted: Configuration
    let found: [Operator]
    do throws(ConfigurationError) {
      (wanted, found) = try read()
    } catch {
      log.error(
        "the configuration was not reloaded",
        fields: ["reason": .string(error.problems.joined(separator: "; "))])
      return
    }
    let changed = Configuration.keys.filter {
      $0.literal(in: wanted) != $0.literal(in: running)
    }.map(\.path)
    running.admin.tokens = wanted.admin.tokens
    service.setOperators(found)
    var applied = changed.filter(Self.live.contains)
    // The text of a file may have changed, although its name has not.
    if found != operators, !applied.contains("admin.tokens") { applied.append("admin.tokens") }
    operators = found
    let waiting = changed.filter { !Self.live.contains($0) }
    log.info(
      "the configuration was reloaded",
      fields: ["changed": .string(applied.joined(separator: " "))])
    guard !waiting.isEmpty else { return }
    log.warning(
      "keys that need a restart have changed",
      fields: ["keys": .string(waiting.joined(separator: " "))])
  }
}

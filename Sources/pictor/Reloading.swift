// Reloading: re-reads the configuration on SIGHUP and applies the keys that can change at run time.

import Configuring
import Telemetry

/// The running configuration and the function that reads it again.
struct Reloading {
  /// Keys that take effect without a restart.
  static let live: Set<String> = ["admin.tokens"]

  private var running: Configuration
  private let read: () throws(ConfigurationError) -> Configuration

  /// Creates the state for a running server.
  ///
  /// - Parameters:
  ///   - running: the configuration that the server was started with.
  ///   - read: reads and validates the current configuration.
  init(_ running: Configuration, read: @escaping () throws(ConfigurationError) -> Configuration) {
    (self.running, self.read) = (running, read)
  }

  /// Reads the configuration and applies the live keys. An invalid configuration changes nothing.
  mutating func reload(_ service: Service, log: Log) {
    let wanted: Configuration
    do throws(ConfigurationError) {
      wanted = try read()
    } catch {
      log.error(
        "the configuration is not reloaded",
        ["reason": .string(error.problems.joined(separator: "; "))])
      return
    }
    let changed = Configuration.keys.filter {
      $0.literal(in: wanted) != $0.literal(in: running)
    }.map(\.path)
    running.admin.tokens = wanted.admin.tokens
    service.setOperatorTokens(wanted.admin.tokens)
    let applied = changed.filter(Self.live.contains)
    let waiting = changed.filter { !Self.live.contains($0) }
    log.info(
      "the configuration was read anew", ["changed": .string(applied.joined(separator: " "))])
    guard !waiting.isEmpty else { return }
    log.warning(
      "keys that need a restart have changed", ["keys": .string(waiting.joined(separator: " "))])
  }
}

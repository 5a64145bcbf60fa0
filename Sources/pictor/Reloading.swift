// Reloading: what SIGHUP does: the configuration is read anew, and what can change while the server runs does.

import Configuring
import Telemetry

/// The configuration that runs, and the way to read it anew.
struct Reloading {
  /// Keys that a running server takes over; all others need a restart.
  static let live: Set<String> = ["admin.tokens"]

  private var running: Configuration
  private let read: () throws(ConfigurationError) -> Configuration

  /// - Parameters:
  ///   - running: what the server was started with.
  ///   - read: reads and checks what the sources of the configuration say now.
  init(_ running: Configuration, read: @escaping () throws(ConfigurationError) -> Configuration) {
    (self.running, self.read) = (running, read)
  }

  /// Reads the configuration and applies what it can. One that cannot be used changes nothing.
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

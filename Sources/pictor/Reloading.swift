// Reloading: re-reads the configuration on SIGHUP and applies the keys that can change at run time.

import Core

/// The running configuration, and where it was read.
struct Reloading {
  private(set) var parts: PartConfigurations
  /// The command line, which is applied again.
  let invocation: Invocation
  let environment: [String: String]

  /// How long requests are served after a stop was requested.
  var shutdownDelay: Duration { parts.keys.server.shutdownDelay }

  /// Reads the configuration and applies the live keys. An invalid configuration changes nothing,
  /// also if its mistake is in a key that needs a restart.
  mutating func reload(_ service: Service, log: Log, queue: LogQueue) {
    let running = parts.keys
    let wanted: Configuration
    let next: Configuration
    let found: PartConfigurations
    do throws(ConfigurationError) {
      wanted = try Configuration.load(invocation, environment: environment).configuration
      _ = try PartConfigurations(wanted, environment: environment)
      next = running.reloaded(from: wanted)
      found = try PartConfigurations(next, environment: environment)
    } catch {
      log.error(
        "the configuration was not reloaded",
        fields: ["reason": .string(error.problems.joined(separator: "; "))])
      return
    }
    let changed = Configuration.keys.filter {
      $0.literal(in: wanted) != $0.literal(in: running)
    }
    var applied = changed.filter(\.isLive).map(\.path)
    // The text of a file may have changed, although its name has not.
    for (key, isSame) in [
      ("admin.tokens", found.server.operators == parts.server.operators),
      ("signing.keys", found.server.signing == parts.server.signing),
      ("hosts", found.downloader.hostRules == parts.downloader.hostRules),
      ("download.proxy", found.downloader.proxy == parts.downloader.proxy),
    ] where !isSame && !applied.contains(key) {
      applied.append(key)
    }
    let doors = parts.openDoors
    parts = found
    for door in found.openDoors where !doors.contains(door) { log.warning(door) }
    if !applied.isEmpty {
      queue.format = next.log.format
      queue.level = next.log.level
      queue.accessFormat = next.log.access.format
      service.apply(found)
    }
    log.info(
      "the configuration was reloaded",
      fields: ["changed": .string(applied.joined(separator: " "))])
    let waiting = changed.filter { !$0.isLive }.map(\.path)
    guard !waiting.isEmpty else { return }
    log.warning(
      "keys that need a restart have changed",
      fields: ["keys": .string(waiting.joined(separator: " "))])
  }
}

// What the tests of downloads share: a downloader that may use loopback, waiting for a state, running programs.

import Downloading
import Glibc
import Model
import Telemetry
import TestSupport
import Testing

/// A downloader that is let through to loopback, with time for a sanitized build on a busy machine.
func makeDownloader(
  _ change: (inout DownloaderConfiguration) -> Void = { _ in }
) throws -> Downloader {
  var configuration = DownloaderConfiguration()
  configuration.allowedNetworks = try ["127.0.0.0/8", "::1/128"].map { try #require(CIDR($0)) }
  configuration.timeout = .seconds(60)
  change(&configuration)
  return try Downloader(configuration: configuration, log: .silent)
}

extension Downloader {
  /// Loads a URL given as text.
  func load(_ text: String) async throws -> Download { try await load(SourceURL(parsing: text)) }

  /// What a load fails with; a load that succeeds is an issue.
  func failure(of text: String) async -> ImageError? {
    do {
      _ = try await load(text)
      Issue.record("\(text) was loaded")
      return nil
    } catch {
      return error as? ImageError
    }
  }
}

extension FileRegion {
  /// All bytes.
  var bytes: [UInt8] {
    get throws {
      try ImageBytes(contentsOf: self).withUnsafeBytes { Array($0) }
    }
  }
}

/// Polls until `condition` holds; an issue after thirty seconds.
func eventually(
  _ what: String, sourceLocation: SourceLocation = #_sourceLocation,
  _ condition: () -> Bool
) async {
  let deadline = ContinuousClock.now + .seconds(30)
  while !condition() {
    guard ContinuousClock.now < deadline else {
      Issue.record("never: \(what)", sourceLocation: sourceLocation)
      return
    }
    try? await Task.sleep(for: .milliseconds(2))
  }
}

struct CommandFailed: Error {
  let command: String
  let status: CInt
}

/// Runs a program to its end, its output thrown away.
func run(_ arguments: String...) throws {
  let process = try spawn(arguments)
  var status: CInt = 0
  while waitpid(process, &status, 0) < 0 && errno == EINTR {}
  guard status == 0 else {
    throw CommandFailed(command: arguments.joined(separator: " "), status: status)
  }
}

/// Starts a program, its output thrown away.
func spawn(_ arguments: [String]) throws -> pid_t {
  var actions = posix_spawn_file_actions_t()
  posix_spawn_file_actions_init(&actions)
  defer { posix_spawn_file_actions_destroy(&actions) }
  for descriptor in 0...2 as ClosedRange<CInt> {
    posix_spawn_file_actions_addopen(&actions, descriptor, "/dev/null", O_RDWR, 0)
  }
  var pointers = arguments.map { strdup($0) } + [nil]
  defer { pointers.forEach { free($0) } }
  var process: pid_t = 0
  let status = posix_spawnp(&process, arguments[0], &actions, nil, &pointers, environ)
  guard status == 0 else { throw CommandFailed(command: arguments[0], status: status) }
  return process
}

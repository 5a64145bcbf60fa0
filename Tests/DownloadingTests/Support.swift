// Support: helpers of the download tests: a downloader for loopback, waiting, running programs.

import Downloading
import Glibc
import Model
import Platform
import Telemetry
import TestSupport
import Testing

/// A downloader that may use loopback, with time-outs for a sanitized build on a busy machine.
/// Retries and circuit breakers are off unless a test turns them on.
func makeDownloader(
  _ change: (inout DownloaderConfiguration) -> Void = { _ in }
) throws -> Downloader {
  var configuration = DownloaderConfiguration()
  configuration.allowedNetworks = try ["127.0.0.0/8", "::1/128"].map { try #require(CIDR($0)) }
  configuration.timeout = .seconds(60)
  configuration.firstByteTimeout = .seconds(60)
  configuration.retries = 0
  configuration.breakerThreshold = 0
  change(&configuration)
  return try Downloader(configuration: configuration, log: .silent)
}

extension ImageLoader {
  /// Loads without validators; an answer without a body is an issue.
  func load(_ url: SourceURL) async throws(ImageError) -> Download {
    guard case .fetched(let download) = try await load(LoadRequest(url: url)) else {
      Issue.record("\(url.text) is not modified, which nobody asked")
      throw .internal(detail: "not modified")
    }
    return download
  }

  /// The origin's answer, where nothing was modified; a body is an issue.
  func revalidate(_ url: String, _ validators: Validators?) async throws -> OriginResponse? {
    let request = LoadRequest(url: try SourceURL(parsing: url), validators: validators)
    switch try await load(request) {
    case .notModified(let answer, _): return answer
    case .fetched:
      Issue.record("\(url) was fetched")
      return nil
    }
  }
}

/// Validators as an origin sent them.
func validators(etag: String? = nil, lastModified: String? = nil) throws -> Validators {
  var answer = OriginResponse(status: 200)
  (answer.etag, answer.lastModified) = (etag, lastModified)
  return try #require(Validators(answer))
}

/// A priority that a test raises.
final class TestPriority: WorkPriority {
  let waiters = 1
  private let state: Lock<(value: LoadPriority, observers: [@Sendable (LoadPriority) -> Void])>

  init(_ value: LoadPriority) { state = Lock((value, [])) }

  func observe(_ observer: @escaping @Sendable (LoadPriority) -> Void) -> LoadPriority {
    state.withLock { state in
      state.observers.append(observer)
      return state.value
    }
  }

  func raise(to value: LoadPriority) {
    let observers = state.withLock { state in
      state.value = value
      return state.observers
    }
    for observer in observers { observer(value) }
  }
}

extension Result {
  /// Why it failed.
  var failure: Failure? {
    if case .failure(let error) = self { error } else { nil }
  }
}

extension Downloader {
  /// Loads a URL given as text.
  func load(_ text: String, _ priority: LoadPriority? = nil) async throws -> Download {
    let request = LoadRequest(
      url: try SourceURL(parsing: text), priority: priority.map { TestPriority($0) })
    guard case .fetched(let download) = try await load(request) else {
      throw ImageError.internal(detail: "not modified, which nobody asked")
    }
    return download
  }

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
  _ condition: () async -> Bool
) async {
  let deadline = ContinuousClock.now + .seconds(30)
  while !(await condition()) {
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

// PictorProcess: the real program as a child process, with its own port and folder.

import Core
import FoundationEssentials
import Glibc
import TestSupport
import Testing

/// The `pictor` beside the test program. It is killed with its last reference.
final class PictorProcess: Sendable {
  /// A failure of the process, with its log.
  struct Failure: Error, CustomStringConvertible {
    let description: String
  }

  /// The child process.
  let id: pid_t
  /// The server's port; 0 if the start was not awaited, or if its first address is a unix socket.
  let port: Int
  /// The port of the operators' listener; 0 without one.
  let operatorPort: Int
  private let logPath: String
  private let status = Lock<CInt?>(nil)

  /// Starts the program and waits until it serves.
  ///
  /// - Parameters:
  ///   - folder: The folder of its cache and its log.
  ///   - options: Additional command line options.
  ///   - environment: Additional environment variables.
  ///   - wrapper: A program with options that starts it, such as prlimit(1).
  ///   - programs: The folder of the programs.
  ///   - sockets: listening sockets that it inherits, with names, as from systemd.
  ///   - inherited: Descriptors that the wrapper has as 3, 4 and so on.
  ///   - isServer: `false` for other commands and for servers that must fail to start. No options
  ///     are added and the start is not awaited.
  init(
    in folder: TemporaryFolder, _ options: [String] = [], environment: [String: String] = [:],
    wrapper: [String] = [], programs: String = TestBuild.programFolder,
    sockets: [(descriptor: CInt, name: String)] = [], inherited: [CInt] = [],
    isServer: Bool = true
  ) throws {
    logPath = folder.path + "/log-\(UInt32.random(in: 0 ... .max))"
    let program = programs + "/pictor"
    let defaults = [
      "--server.port", "0", "--disk.path", folder.path + "/cache", "--log.format", "json",
      "--server.shutdown_delay", "0s", "--server.stats_lifetime", "0s",
      "--download.allow_networks", "127.0.0.0/8",
      // Under the thread sanitizer and many tests at once, all is many times slower than in
      // release builds, and what a test holds back must not run into a time-out.
      "--imaging.processor_time", "60s", "--imaging.deadline", "120s",
      "--server.request_timeout", "5m", "--download.timeout", "2m",
      "--download.first_byte_timeout", "2m",
    ]
    id = try Self.spawn(
      wrapper + [program] + (isServer ? defaults : []) + options, environment: environment,
      logPath: logPath, sockets: sockets, inherited: inherited)
    guard isServer else {
      port = 0
      operatorPort = 0
      return
    }
    do {
      port = try Self.servingPort(of: id, logPath: logPath)
      operatorPort = Self.port(in: contents(of: logPath), after: "serving operators") ?? 0
    } catch {
      kill(id, SIGKILL)
      waitpid(id, nil, 0)
      throw error
    }
  }

  deinit {
    guard status.withLock({ $0 }) == nil else { return }
    kill(id, SIGKILL)
    waitpid(id, nil, 0)
  }

  /// Returns a connection to the server.
  func connect(timeout: Int = 20) throws -> HTTPClient {
    try HTTPClient(port: port, timeout: timeout)
  }

  /// Sends one request over a separate connection.
  func get(_ target: String) throws -> HTTPAnswer { try connect().get(target) }

  /// Returns `/stats`.
  func stats() throws -> Figures {
    try JSONDecoder().decode(Figures.self, from: Data(try get("/stats").body))
  }

  /// Waits until `/stats` satisfies a condition.
  func waitFor(
    _ what: String, sourceLocation: SourceLocation = #_sourceLocation,
    until condition: (Figures) -> Bool
  ) throws {
    var last: Figures?
    try blockUntil(
      "\(what); \(last.map { "\($0)" } ?? "no /stats")", sourceLocation: sourceLocation
    ) {
      let stats = try stats()
      last = stats
      return condition(stats)
    }
  }

  /// The ids of its worker processes.
  func workers() -> [pid_t] {
    entries(of: "/proc").compactMap { name in
      // `PID (name) state parent …`; the name contains no parenthesis (proc_pid_stat(5)).
      guard let child = pid_t(name),
        let rest = contents(of: "/proc/\(name)/stat").split(separator: ")").last
      else { return nil }
      let fields = rest.split(separator: " ")
      return fields.count > 1 && pid_t(fields[1]) == id && fields[0] != "Z" ? child : nil
    }
  }

  /// The names of its threads (proc_pid_comm(5)).
  var threadNames: Set<String> {
    Set(
      entries(of: "/proc/\(id)/task").map {
        contents(of: "/proc/\(id)/task/\($0)/comm").filter { $0 != "\n" }
      })
  }

  /// Waits until `count` workers have set up their ignored signals, and returns their ids. The
  /// server is ready with the first; another may not even run.
  func preparedWorkers(_ count: Int) throws -> [pid_t] {
    var found: [pid_t] = []
    try blockUntil("\(count) workers are prepared") {
      found = workers().filter(Self.isPrepared)
      return found.count == count
    }
    return found
  }

  /// Whether a worker ignores SIGXFSZ, which has its default at a start (proc_pid_status(5)).
  private static func isPrepared(_ worker: pid_t) -> Bool {
    let lines = contents(of: "/proc/\(worker)/status").split(separator: "\n")
    let mask = lines.first { $0.hasPrefix("SigIgn:") }?.split(separator: "\t").last
    return mask.flatMap { UInt64($0, radix: 16) }.map { $0 & 1 << UInt64(SIGXFSZ - 1) != 0 }
      ?? false
  }

  /// The log so far; for a running server, once the log queue is written.
  var log: String {
    for _ in 0..<2_000 where port > 0 && status.withLock({ $0 }) == nil {
      guard let stats = try? stats(), stats.log.waitingBytes > 0 else { break }
      usleep(1_000)
    }
    return contents(of: logPath)
  }

  /// The error lines, which begin with `pictor: `.
  var complaints: [String] {
    log.split(separator: "\n").filter { $0.hasPrefix("pictor: ") }.map(String.init)
  }

  /// Waits until the process ends, after sending `signal` unless that is 0.
  ///
  /// - Returns: The exit status, or minus the signal that ended it.
  func end(_ signal: CInt = SIGTERM) throws -> CInt {
    if signal != 0 { kill(id, signal) }
    for _ in 0..<4_000 {
      var result: CInt = 0
      if waitpid(id, &result, WNOHANG) == id {
        status.withLock { $0 = result }
        return ChildProcess.result(of: result)
      }
      usleep(5_000)
    }
    throw Failure(description: "it does not end; it logged:\n\(log)")
  }

  private static func servingPort(of id: pid_t, logPath: String) throws -> Int {
    for _ in 0..<6_000 {
      let log = contents(of: logPath)
      if let port = port(in: log, after: "serving") { return port }
      guard kill(id, 0) == 0, waitpid(id, nil, WNOHANG) == 0 else {
        throw Failure(description: "it ended at the start:\n\(log)")
      }
      usleep(5_000)
    }
    throw Failure(description: "it does not serve:\n\(contents(of: logPath))")
  }

  /// Returns the port of the first address in the first line with this message.
  private static func port(in log: String, after message: String) -> Int? {
    guard
      let line = log.split(separator: "\n").first(where: { $0.contains("\"\(message)\"") }),
      let addresses = line.split(separator: "\"address\":\"").last?.split(separator: "\"").first,
      let port = addresses.split(separator: " ").first?.split(separator: ":").last
    else { return nil }
    return Int(port) ?? 0
  }

  private static func spawn(
    _ arguments: [String], environment: [String: String], logPath: String,
    sockets: [(descriptor: CInt, name: String)], inherited: [CInt]
  ) throws -> pid_t {
    var variables = ["PATH": "/usr/bin:/bin"]
    if let options = getenv("TSAN_OPTIONS") {
      variables["TSAN_OPTIONS"] = String(cString: options)
      // The sanitizer reserves terabytes of addresses, which count against the workers' limit.
      variables["PICTOR_IMAGING_WORKER_MEMORY"] = "1024TiB"
    }
    variables.merge(environment) { $1 }
    guard !sockets.isEmpty else {
      return try ChildProcess(
        arguments, environment: variables, output: .file(logPath), inherited: inherited
      ).id
    }
    variables["LISTEN_FDS"] = "\(sockets.count)"
    variables["LISTEN_FDNAMES"] = sockets.map(\.name).joined(separator: ":")
    // The process id is known to the child alone.
    return try ChildProcess(
      ["/bin/sh", "-c", "export LISTEN_PID=$$; exec \"$@\"", "sh"] + arguments,
      environment: variables, output: .file(logPath), inherited: sockets.map(\.descriptor)
    ).id
  }
}

/// Returns this number of connections, or an eighth of a low limit of open files (some containers
/// have 1,024): the server keeps most descriptors for work.
func openFilesAllow(_ wanted: Int) -> Int {
  var limit = rlimit()
  let resource = __rlimit_resource_t(RLIMIT_NOFILE.rawValue)
  getrlimit(resource, &limit)
  limit.rlim_cur = limit.rlim_max
  setrlimit(resource, &limit)
  return min(wanted, Int(clamping: limit.rlim_cur) / 8)
}

/// Returns a file's text; empty if it does not exist.
func contents(of path: String) -> String {
  let descriptor = open(path, O_RDONLY | O_CLOEXEC)
  guard descriptor >= 0 else { return "" }
  defer { close(descriptor) }
  var bytes: [UInt8] = []
  var buffer = [UInt8](repeating: 0, count: 65_536)
  // To the end: a file of /proc has no size, and comes in parts.
  while case let count = read(descriptor, &buffer, buffer.count), count > 0 {
    bytes += buffer[..<count]
  }
  return String(decoding: bytes, as: UTF8.self)
}

extension Origin {
  /// Returns the target for the image at `path` of this origin; `rest` is such as `&w=100`.
  func target(_ path: String, adding rest: String = "") -> String {
    "/image?url=\(encoded(url(path)))\(rest)"
  }
}

/// Returns `url` as a query's value.
func encoded(_ url: String) -> String { PercentEncoding.encode(url) }

/// Returns the names of a folder's entries; none if it does not exist.
func entries(of folder: String) -> [String] {
  (try? FileManager.default.contentsOfDirectory(atPath: folder)) ?? []
}

// PictorProcess: the real program as a child process, on a port and in a folder of its own.

import FoundationEssentials
import CLinux
import Glibc
import Synchronization
import Telemetry
import TestSupport

/// `pictor` as it lies beside the test program; killed with its last reference.
final class PictorProcess: Sendable {
  /// What went wrong with the process, with what it logged.
  struct Failure: Error, CustomStringConvertible {
    let description: String
  }

  /// Its process.
  let id: pid_t
  /// The port it serves on; 0 when it was not waited for.
  let port: Int
  private let logPath: String
  private let status = Mutex<CInt?>(nil)

  /// Starts one and waits until it serves.
  ///
  /// - Parameters:
  ///   - folder: where its cache and its log are.
  ///   - options: more of its command line.
  ///   - environment: variables it gets besides the bare minimum.
  ///   - wrapper: a program with its options that starts it, such as prlimit(1).
  ///   - isServer: `false` for other commands, and for servers that are to fail: nothing is added to the options, and
  ///     nothing is waited for.
  init(
    in folder: TemporaryFolder, _ options: [String] = [], environment: [String: String] = [:],
    wrapper: [String] = [], isServer: Bool = true
  ) throws {
    logPath = folder.path + "/log-\(UInt32.random(in: 0 ... .max))"
    let program = try Self.folderOfThisProgram() + "/pictor"
    let defaults = [
      "--server.port", "0", "--disk.path", folder.path + "/cache", "--log.format", "json",
      "--server.shutdown_delay", "0s",
      "--download.allow_networks", "127.0.0.0/8",
      // Workers under the thread sanitizer are many times slower than those of a release.
      "--imaging.processor_time", "60s", "--imaging.deadline", "120s",
    ]
    id = try Self.spawn(
      wrapper + [program] + (isServer ? defaults : []) + options, environment: environment,
      logPath: logPath)
    guard isServer else {
      port = 0
      return
    }
    do {
      port = try Self.servingPort(of: id, logPath: logPath)
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

  /// A connection to it.
  func connect(timeout: Int = 20) throws -> HTTPClient {
    try HTTPClient(port: port, timeout: timeout)
  }

  /// One request over a connection of its own.
  func get(_ target: String) throws -> HTTPAnswer { try connect().get(target) }

  /// `/stats`.
  func stats() throws -> Stats {
    try JSONDecoder().decode(Stats.self, from: Data(try get("/stats").body))
  }

  /// Waits until `/stats` says so; throws after 20 seconds.
  func waitFor(_ what: String, _ condition: (Stats) -> Bool) throws {
    for _ in 0..<2_000 {
      if condition(try stats()) { return }
      usleep(10_000)
    }
    throw Failure(description: "never: \(what); \(try stats())")
  }

  /// Its worker processes: those whose parent it is.
  func workers() -> [pid_t] {
    guard let stream = opendir("/proc") else { return [] }
    defer { closedir(stream) }
    var found: [pid_t] = []
    while let entry = readdir(stream) {
      let name = withUnsafePointer(to: &entry.pointee.d_name) { pointer in
        pointer.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
      }
      // `PID (name) state parent …`, and this name has no parenthesis (proc_pid_stat(5)).
      guard let child = pid_t(name),
        let rest = contents(of: "/proc/\(name)/stat").split(separator: ")").last
      else { continue }
      let fields = rest.split(separator: " ")
      if fields.count > 1, pid_t(fields[1]) == id, fields[0] != "Z" { found.append(child) }
    }
    return found
  }

  /// What it logged so far; of a server that runs, once its log is written.
  var log: String {
    for _ in 0..<2_000 where port > 0 && status.withLock({ $0 }) == nil {
      guard let stats = try? stats(), stats.log.waitingBytes > 0 else { break }
      usleep(1_000)
    }
    return contents(of: logPath)
  }

  /// What it said to whoever started it, besides what it logged.
  var complaints: [String] {
    log.split(separator: "\n").filter { $0.hasPrefix("pictor: ") }.map(String.init)
  }

  /// Waits for its end, after sending `signal` unless that is 0.
  ///
  /// - Returns: the exit status, or minus the signal that ended it.
  func end(_ signal: CInt = SIGTERM) throws -> CInt {
    if signal != 0 { kill(id, signal) }
    for _ in 0..<4_000 {
      var result: CInt = 0
      if waitpid(id, &result, WNOHANG) == id {
        status.withLock { $0 = result }
        return result & 0x7f == 0 ? result >> 8 & 0xff : -(result & 0x7f)
      }
      usleep(5_000)
    }
    throw Failure(description: "it does not end; it logged:\n\(log)")
  }

  private static func servingPort(of id: pid_t, logPath: String) throws -> Int {
    for _ in 0..<2_000 {
      let log = contents(of: logPath)
      if let line = log.split(separator: "\n").first(where: { $0.contains("\"serving\"") }),
        let address = line.split(separator: "\"address\":\"").last,
        let port = address.split(separator: "\"").first?.split(separator: ":").last
      {
        return Int(port) ?? 0
      }
      guard kill(id, 0) == 0, waitpid(id, nil, WNOHANG) == 0 else {
        throw Failure(description: "it ended at the start:\n\(log)")
      }
      usleep(5_000)
    }
    throw Failure(description: "it does not serve:\n\(contents(of: logPath))")
  }

  private static func spawn(
    _ arguments: [String], environment: [String: String], logPath: String
  ) throws -> pid_t {
    var actions = posix_spawn_file_actions_t()
    posix_spawn_file_actions_init(&actions)
    defer { posix_spawn_file_actions_destroy(&actions) }
    posix_spawn_file_actions_addopen(&actions, 2, logPath, O_WRONLY | O_CREAT | O_TRUNC, 0o600)
    posix_spawn_file_actions_adddup2(&actions, 2, 1)
    // Suites run in parallel: other tests' descriptors do not count against this program's limit.
    _ = pictor_linux_close_from(&actions, 3)
    var variables = ["PATH": "/usr/bin:/bin"]
    if let options = getenv("TSAN_OPTIONS") {
      variables["TSAN_OPTIONS"] = String(cString: options)
      // The sanitizer's own memory is terabytes of addresses, and the workers' bound counts it.
      variables["PICTOR_IMAGING_WORKER_MEMORY"] = "1000000TiB"
    }
    variables.merge(environment) { $1 }
    var argv = arguments.map { strdup($0) } + [nil]
    var envp = variables.map { strdup("\($0)=\($1)") } + [nil]
    defer { for pointer in argv + envp { free(pointer) } }
    var id = pid_t()
    let result = posix_spawn(&id, arguments[0], &actions, nil, &argv, &envp)
    guard result == 0 else {
      throw Failure(description: "\(arguments[0]): \(String(cString: strerror(result)))")
    }
    return id
  }

  private static func folderOfThisProgram() throws -> String {
    var buffer = [CChar](repeating: 0, count: Int(PATH_MAX))
    let count = readlink("/proc/self/exe", &buffer, buffer.count - 1)
    guard count > 0 else { throw Failure(description: "no /proc/self/exe") }
    let path = String(decoding: buffer[..<count].map(UInt8.init(bitPattern:)), as: UTF8.self)
    let folder = "/" + path.split(separator: "/").dropLast().joined(separator: "/")
    if access(folder + "/pictor", X_OK) == 0 { return folder }
    throw Failure(description: "pictor is not beside \(path)")
  }
}

/// So many connections, or an eighth of what a low limit of open files (some containers' 1,024) lets one process have:
/// the server keeps most of them for work.
func openFilesAllow(_ wanted: Int) -> Int {
  var limit = rlimit()
  let resource = __rlimit_resource_t(RLIMIT_NOFILE.rawValue)
  getrlimit(resource, &limit)
  limit.rlim_cur = limit.rlim_max
  setrlimit(resource, &limit)
  return min(wanted, Int(clamping: limit.rlim_cur) / 8)
}

/// A file's text; empty when there is none.
func contents(of path: String) -> String {
  let descriptor = open(path, O_RDONLY | O_CLOEXEC)
  guard descriptor >= 0 else { return "" }
  defer { close(descriptor) }
  var bytes: [UInt8] = []
  var buffer = [UInt8](repeating: 0, count: 65_536)
  while case let count = read(descriptor, &buffer, buffer.count), count > 0 {
    bytes += buffer[..<count]
  }
  return String(decoding: bytes, as: UTF8.self)
}

extension Origin {
  /// What to ask pictor for, for the image at `path` here; `rest` is further parameters, `&w=100`.
  func target(_ path: String, _ rest: String = "") -> String {
    "/image?url=\(encoded(url(path)))\(rest)"
  }
}

/// `url` as the value of a query parameter: everything but letters, digits and `-._~` percent-encoded.
func encoded(_ url: String) -> String {
  url.utf8.map { byte in
    switch byte {
    case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
      UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "."),
      UInt8(ascii: "_"), UInt8(ascii: "~"):
      String(UnicodeScalar(byte))
    default:
      "%" + (byte < 16 ? "0" : "") + String(byte, radix: 16)
    }
  }.joined()
}

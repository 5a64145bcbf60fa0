// Attacker: a taken-over worker. Started and sealed like any other, it tries everything.

import CAttacks
import CLinux
import CSandbox
import Core
import Glibc
import Sandboxing

/// A program in the place of `pictor-imager`. Its job is a text: the ids of the server and another
/// process, and a folder, a line each. Its answer is a failure with 0 or errno for each attack.
@main enum Attacker {
  static func main() throws {
    do {
      try run()
    } catch WireError.closed {
      exit(0)
    }
  }

  private static func run() throws {
    if CommandLine.arguments.dropFirst().first == "--without-landlock" {
      exit(runWithoutLandlock(Array(CommandLine.arguments.dropFirst(2))))
    }
    guard let options = WorkerOptions(arguments: Array(CommandLine.arguments.dropFirst())) else {
      exit(64)
    }
    _ = try ProcessSetup.apply(options)
    let socket = WireSocket(owning: OwnedDescriptor(owning: WireSocket.workerDescriptor))
    let report = try Sandbox.enter(options.sandbox, connection: WireSocket.workerDescriptor)
    try socket.send(AnswerMessage.ready(report).encoded())
    while true {
      var message = try socket.receive(passed: 2)
      let job = try JobMessage(decoding: message.bytes)
      guard let file = message.takeDescriptor() else { exit(65) }
      var text = [UInt8](repeating: 0, count: job.count)
      guard pread(file.value, &text, text.count, off_t(job.offset)) == text.count else { exit(66) }
      let order = String(decoding: text, as: UTF8.self)
      let greed = Greed(rawValue: order)
      if greed == .shareInJob { share() }
      let results = greed == nil ? results(of: order) : ""
      try socket.send(
        AnswerMessage.failure(id: job.id, .internal(detail: results)).encoded())
      if greed == .share { share() }
      while greed == .work {}
    }
  }

  /// What a job may ask for in place of the attacks.
  private enum Greed: String {
    /// Works for ever after the job.
    case work
    /// Takes shared memory after the job.
    case share
    /// Takes shared memory instead of an answer.
    case shareInJob
  }

  /// Takes 448 MiB of shared memory, which RLIMIT_DATA does not count, and keeps it.
  private static func share() {
    let count = 448 << 20
    let memory = mmap(nil, count, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0)
    guard let memory, memory != MAP_FAILED else { exit(68) }
    memset(memory, 1, count)
    while true { pause() }
  }

  /// Becomes another program, for which the kernel lacks Landlock. Returns only on failure.
  private static func runWithoutLandlock(_ arguments: [String]) -> CInt {
    guard let filter = seccomp_init(SCMP_ACT_ALLOW) else { return 70 }
    let name = "landlock_create_ruleset"
    guard pictor_sandbox_filter_refuse(filter, seccomp_syscall_resolve_name(name), ENOSYS) == 0,
      seccomp_load(filter) == 0
    else { return 71 }
    let pointers = arguments.map { strdup($0) } + [nil]
    if let program = pointers[0] { execv(program, pointers) }
    return 72
  }

  private static func results(of text: String) -> String {
    let lines = text.split(separator: "\n")
    guard lines.count == 3, let server = CInt(lines[0]), let sibling = CInt(lines[1]) else {
      exit(67)
    }
    return String(lines[2]).withCString { folder in
      var context = pictor_attack_context(server: server, sibling: sibling, folder: folder)
      return (0..<pictor_attack_count()).map { "\(pictor_attack_run($0, &context))" }
        .joined(separator: " ")
    }
  }
}

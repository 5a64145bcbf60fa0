// CallFilter: the system calls of a sealed worker, as a filter of libseccomp.

import CLinux
import CSandbox
import Core
import Glibc

/// The allowed system calls. All others fail with EPERM, which libraries handle.
enum CallFilter {
  /// An allowed system call.
  struct Rule {
    let name: String
    /// All must hold; empty: with any arguments.
    var conditions: [Condition] = []
  }

  /// The condition that the bits of `mask` in an argument are those of `value`.
  struct Condition {
    let argument: UInt32
    let mask: UInt64
    let value: UInt64

    /// A number of 32 bits; the kernel ignores the rest of the register.
    static func equal(_ argument: UInt32, _ value: CInt) -> Condition {
      Condition(
        argument: argument, mask: UInt64(UInt32.max), value: UInt64(UInt32(bitPattern: value)))
    }

    /// A pointer that is null.
    static func null(_ argument: UInt32) -> Condition {
      Condition(argument: argument, mask: .max, value: 0)
    }

    /// None of these bits.
    static func without(_ argument: UInt32, _ bits: UInt64) -> Condition {
      Condition(argument: argument, mask: bits, value: 0)
    }
  }

  /// The calls with any arguments. Each works on the process itself, or its descriptors.
  static let unconditional = [
    // Passed descriptors and standard error. No memory file: no limit counts an unmapped one.
    "read", "pread64", "readv", "write", "writev", "lseek", "close", "fstat", "fadvise64", "poll",
    "ppoll", "eventfd2",
    // Files of `ReadablePaths`. Landlock does not hide names and sizes.
    "access", "faccessat", "faccessat2", "stat", "lstat", "newfstatat", "statx", "readlink",
    "readlinkat", "getdents64", "fstatfs", "getcwd",
    // Memory. No page becomes executable: see `conditional`.
    "brk", "munmap", "mremap", "madvise", "membarrier",
    // Threads of libvips and the codecs.
    "futex", "set_robust_list", "set_tid_address", "rseq", "gettid", "sched_yield",
    "sched_getaffinity", "sched_getattr", "sched_getparam", "sched_getscheduler", "getcpu", "exit",
    "restart_syscall",
    // Signals of its own: abort(3).
    "rt_sigaction", "rt_sigprocmask", "rt_sigreturn", "sigaltstack",
    // Time, numbers, limits.
    "clock_gettime", "clock_getres", "clock_nanosleep", "nanosleep", "gettimeofday", "time",
    "times", "getrandom", "getpid", "getppid", "getuid", "geteuid", "getgid", "getegid", "uname",
    "sysinfo", "getrusage", "getrlimit", "exit_group",
  ]

  /// The calls with conditions.
  ///
  /// - Parameters:
  ///   - connection: the descriptor of the server's connection, the only one to send with.
  ///   - process: the process's own id.
  static func conditional(connection: CInt, process: pid_t) -> [Rule] {
    let connection = Condition.equal(0, connection)
    let notExecutable = Condition.without(2, UInt64(PROT_EXEC))
    let writing = UInt64(O_ACCMODE | O_CREAT | O_TRUNC | O_APPEND)
    let thread = pictor_sandbox_thread_flags()
    let commands = [F_GETFD, F_SETFD, F_GETFL]
    return [
      Rule(name: "recvmsg", conditions: [connection]),
      Rule(name: "sendmsg", conditions: [connection]),
      Rule(name: "open", conditions: [.without(1, writing)]),
      Rule(name: "openat", conditions: [.without(2, writing)]),
      Rule(name: "mmap", conditions: [notExecutable]),
      Rule(name: "mprotect", conditions: [notExecutable]),
      // Threads, and no processes.
      Rule(
        name: "clone",
        conditions: [
          Condition(argument: 0, mask: thread | pictor_sandbox_namespace_flags(), value: thread)
        ]),
      Rule(name: "prctl", conditions: [.equal(0, PR_SET_NAME)]),
      Rule(name: "tgkill", conditions: [.equal(0, process)]),
      // Reads limits, and sets none.
      Rule(name: "prlimit64", conditions: [.equal(0, 0), .null(2)]),
    ] + commands.map { Rule(name: "fcntl", conditions: [.equal(1, $0)]) }
  }

  /// Calls that glibc replaces by older ones if they are missing. The flags of clone3(2) are in
  /// memory, where a filter cannot read them.
  static let missing = ["clone3"]

  /// Installs the filter for all threads. It cannot be removed.
  ///
  /// - Parameter connection: the descriptor of the connection to the server.
  static func install(connection: CInt) throws(SandboxError) {
    guard let filter = pictor_sandbox_filter(EPERM) else { throw SandboxError("seccomp", ENOMEM) }
    defer { seccomp_release(filter) }
    try check(pictor_sandbox_filter_all_threads(filter), "seccomp for all threads")
    try check(pictor_sandbox_filter_as_tree(filter), "seccomp as a tree")
    let rules =
      unconditional.map { Rule(name: $0) } + conditional(connection: connection, process: getpid())
    for rule in rules { try add(rule, to: filter) }
    for name in missing {
      try check(pictor_sandbox_filter_refuse(filter, try number(of: name), ENOSYS), name)
    }
    try check(seccomp_load(filter), "seccomp")
  }

  private static func add(_ rule: Rule, to filter: scmp_filter_ctx) throws(SandboxError) {
    let conditions = rule.conditions.map {
      pictor_sandbox_condition($0.argument, $0.mask, $0.value)
    }
    // libseccomp ignores calls that this architecture lacks, such as open(2) on arm64.
    let status = pictor_sandbox_filter_allow(
      filter, try number(of: rule.name), UInt32(conditions.count), conditions)
    try check(status, "seccomp for \(rule.name)")
  }

  private static func number(of name: String) throws(SandboxError) -> CInt {
    let number = seccomp_syscall_resolve_name(name)
    guard pictor_sandbox_is_call(number) != 0 else {
      throw SandboxError("seccomp: libseccomp does not know \(name)")
    }
    return number
  }

  /// Checks a status of libseccomp: 0, or minus an errno.
  private static func check(_ status: CInt, _ part: String) throws(SandboxError) {
    guard status >= 0 else { throw SandboxError(part, -status) }
  }
}

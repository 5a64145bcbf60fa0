// ProcessSetup: isolates and limits a worker process before it reads untrusted input.

import CLinux
import Glibc
import ImagingWire

/// The limits and signals of a worker.
enum ProcessSetup {
  /// Applies all settings. Must be called once, before any thread starts.
  static func apply(_ options: ImagerOptions) throws(WireError) {
    // The closed connection also tells that the server has ended, but only between jobs.
    try check("prctl", pictor_linux_set_death_signal(SIGKILL))
    try check("prctl", pictor_linux_set_no_new_privileges())
    // Ctrl-C and a service manager's SIGTERM reach the whole process group. Only the server handles
    // them; it ends a worker by closing the connection. SIGXFSZ is ignored so that a write fails
    // with an error instead.
    for number in [SIGINT, SIGTERM, SIGHUP, SIGPIPE, SIGXFSZ] { signal(number, SIG_IGN) }
    // 1 disables core dumps to files and pipes; with 0 a piped core_pattern still gets a dump
    // (fs/coredump.c).
    try check("setrlimit", pictor_linux_set_limit(CInt(RLIMIT_CORE.rawValue), 1))
    if let memory = options.memory {
      try check("setrlimit", pictor_linux_set_limit(CInt(RLIMIT_DATA.rawValue), UInt(memory)))
    }
    if let size = options.fileSize {
      try check("setrlimit", pictor_linux_set_limit(CInt(RLIMIT_FSIZE.rawValue), UInt(size)))
    }
    offerToOOMKiller()
    giveWay(by: options.niceness)
  }

  /// Gives the server priority while all cores are busy. A failure only makes images faster and hits slower.
  ///
  /// If the kernel groups tasks by session (sched(7), “The autogroup feature”), niceness counts within a group only,
  /// and one task's use counts against its whole group: an event loop would wait for the workers' share. So each worker
  /// has a session of its own, whose group gets the niceness. Without groups, its own niceness counts.
  private static func giveWay(by niceness: CInt) {
    _ = nice(niceness)
    let file = open("/proc/self/autogroup", O_RDWR | O_CLOEXEC)
    guard file >= 0 else { return }
    defer { close(file) }
    // `/autogroup-25 nice 0`
    var text = [UInt8](repeating: 0, count: 64)
    let count = max(pread(file, &text, text.count, 0), 0)
    let words = String(decoding: text[..<count], as: UTF8.self).split { $0 == " " || $0 == "\n" }
    guard let present = words.last.flatMap({ CInt($0) }), setsid() >= 0 else { return }
    var wanted = "\(min(present + niceness, 19))"
    // Without root, a group's niceness can change once in a tenth of a second on the whole machine (EAGAIN).
    for _ in 0..<150 {
      let isWritten = wanted.withUTF8 { write(file, $0.baseAddress, $0.count) } > 0
      guard !isWritten, errno == EAGAIN else { return }
      usleep(20_000)
    }
  }

  /// The worker's oom_score_adj, in thousandths of all memory. 1,000 stays for processes that must
  /// be killed first.
  private static let killScore = 900

  /// Makes the OOM killer prefer a worker to the server, which holds caches and connections
  /// (proc_pid_oom_score_adj(5)). A higher score stays, and a failure is ignored.
  private static func offerToOOMKiller() {
    let file = open("/proc/self/oom_score_adj", O_RDWR | O_CLOEXEC)
    guard file >= 0 else { return }
    defer { close(file) }
    var text = [UInt8](repeating: 0, count: 16)
    let count = max(read(file, &text, text.count), 0)
    let digits = String(decoding: text[..<count], as: UTF8.self).prefix { $0 != "\n" }
    guard (Int(digits) ?? 0) < killScore else { return }
    var score = "\(killScore)"
    score.withUTF8 { _ = pwrite(file, $0.baseAddress, $0.count, 0) }
  }

  private static func check(_ call: String, _ status: CInt) throws(WireError) {
    guard status == 0 else { throw .system(call: call, code: errno) }
  }
}

// WorkerProcess: one worker process and the server's resources for it.

import CLinux
import Core
import Glibc

/// A running `pictor-imager`. It belongs to one thread, which must outlive it: the kernel kills a
/// worker when the thread that started it ends (prctl(2), PR_SET_PDEATHSIG).
final class WorkerProcess {
  /// The process id.
  let pid: pid_t
  /// When it was started.
  let startedAt = ContinuousClock.now
  /// The server's end of the connection, non-blocking.
  let socket: WireSocket
  /// The memory file that it writes its results to.
  let results: OwnedDescriptor
  /// The number of jobs sent to it.
  private(set) var jobs = 0
  /// Of these, the jobs with a file in a risky format (`SourceHead`).
  private(set) var riskyJobs = 0
  /// The client of its jobs; `nil` for sources that all clients share.
  private var client: String?
  /// Resident memory in bytes at the last measurement.
  private(set) var lastResidentBytes = 0
  /// `sharedBytes` before its first job: libraries.
  var sharedAtRest = 0
  /// When its shared memory was looked at last.
  var lookedAt: ContinuousClock.Instant
  /// Since when it has no job, and its processor time then.
  var rest: (since: ContinuousClock.Instant, time: Duration)?
  /// Whether its memory limit is lower than its hard limit.
  private(set) var isHeld = false
  /// Whether the limit of its results may be lower than its hard limit.
  private var hasLowResultLimit = false
  /// The cores that it was confined to; `nil` for those that it inherited.
  private var cores: Cores?
  /// Its standard error, for messages of GLib or the dynamic linker.
  private let complaints: OwnedDescriptor
  /// `/proc/PID/statm`, kept open so that a reading takes one system call. Negative without /proc.
  private let memory: OwnedDescriptor

  /// Starts a worker, which sends `ready` when it can take jobs.
  ///
  /// - Throws: `ImagerStartError` if the program cannot be run. A program that exits at once is
  ///   detected by its closed connection.
  init(_ configuration: ImagerPoolConfiguration) throws(ImagerStartError) {
    func fault(_ reason: String) -> ImagerStartError {
      ImagerStartError(executable: configuration.executable, reason: reason)
    }
    do throws(WireError) {
      var pair = try WirePair()
      var pipe = try WorkerSpawn.pipe()
      guard let server = pair.server.take(), let worker = pair.worker.take(),
        let reader = pipe.reader.take(), let writer = pipe.writer.take()
      else { throw .closed }
      socket = WireSocket(owning: server)
      try socket.setNonBlocking()
      complaints = reader
      results = OwnedDescriptor(owning: pictor_linux_memory_file("pictor-results"))
      guard results.value >= 0 else { throw .system(call: "memfd_create", code: errno) }
      pid = try WorkerSpawn.spawn(
        path: configuration.executable, arguments: Self.arguments(configuration),
        socket: worker, results: results, complaints: writer)
    } catch {
      if case .system("posix_spawn", let code) = error { throw fault(errnoText(code)) }
      throw fault("\(error)")
    }
    lookedAt = startedAt
    memory = OwnedDescriptor(owning: open("/proc/\(pid)/statm", O_RDONLY | O_CLOEXEC))
  }

  private static func arguments(_ configuration: ImagerPoolConfiguration) -> [String] {
    var arguments = [
      "--worker", "--nice", "\(configuration.niceness)", "--sandbox",
      configuration.sandbox.rawValue,
    ]
    if let bytes = configuration.maximumWorkerMemory { arguments += ["--memory", "\(bytes)"] }
    if let bytes = configuration.maximumResultBytes { arguments += ["--file-size", "\(bytes)"] }
    return arguments
  }

  /// Whether the worker may have a job: it has had no job, or jobs of the same client.
  func mayTake(_ job: ImageJob) -> Bool { jobs == 0 || client == job.client }

  /// Sends a job.
  func send(_ message: JobMessage, of job: ImageJob) throws(WireError) {
    let files = [job.file, job.overlay?.file].compactMap(\.self)
    jobs += 1
    rest = nil
    if files.contains(where: SourceHead.isRisky) { riskyJobs += 1 }
    client = job.client
    // A descriptor stays open as long as its region, and this may be the last reference.
    defer { withExtendedLifetime(job) {} }
    try socket.send(
      message.encoded(), passing: job.file.descriptor, and: job.overlay?.file.descriptor)
  }

  /// Whether it has written to the file of its results.
  var hasResults: Bool {
    var status = stat()
    return fstat(results.value, &status) == 0 && status.st_size > 0
  }

  /// Returns the memory of a result that was read, or is not wanted.
  func emptyResults() {
    // The position is the worker's, too.
    _ = ftruncate(results.value, 0)
    lseek(results.value, 0, SEEK_SET)
  }

  /// Processor time used by all its threads; `nil` once it has ended.
  var processorTime: Duration? {
    var clock = clockid_t()
    var time = timespec()
    guard clock_getcpuclockid(pid, &clock) == 0, clock_gettime(clock, &time) == 0 else {
      return nil
    }
    return .seconds(time.tv_sec) + .nanoseconds(time.tv_nsec)
  }

  /// Lets the worker run on its share of the cores only. Costs nothing if it does already.
  ///
  /// A worker that was never confined keeps what it inherited as long as nothing is reserved. After
  /// an error it stays where it is, until other cores are named.
  func confine(to share: CoreReserve.Share) throws(SystemError) {
    guard share.cores != cores, cores != nil || share.reserved > 0 else { return }
    cores = share.cores
    try share.cores.confine(pid)
  }

  /// Returns and stores the resident memory in bytes; 0 if unknown.
  func measure() -> Int {
    lastResidentBytes = bytes(at: 1) ?? 0
    return lastResidentBytes
  }

  /// Memory in bytes that the worker maps beside its private memory, touched or not. A sealed
  /// worker makes no memory file: it has the one for its results, whose size is limited.
  var sharedBytes: Int {
    // proc_pid_statm(5): all that is mapped, and private memory with the stack.
    max((bytes(at: 0) ?? 0) - (bytes(at: 5) ?? 0), 0)
  }

  /// Lowers the limit of its private memory (RLIMIT_DATA) to `bytes` more than it has now, and that
  /// of a result (RLIMIT_FSIZE) to `resultBytes`. With `nil` it raises both again to the hard
  /// limits. A sealed worker cannot change them.
  ///
  /// After an error, a limit is the one before.
  func holdMemory(to bytes: Int?, resultBytes: Int) throws(SystemError) {
    guard let bytes else {
      if hasLowResultLimit { try setResultLimit(.max) }
      if isHeld { try setMemoryLimit(.max) }
      return
    }
    // proc_pid_statm(5): the sixth number is private memory and the stack.
    guard let present = self.bytes(at: 5) else { throw SystemError(ENODATA) }
    // Never 0, which Linux takes for no limit (mm/mmap.c, may_expand_vm).
    try setMemoryLimit(UInt(present + max(bytes, 0)))
    // A job of a worker with its whole memory is not repeated, so it has the whole result limit,
    // too.
    if isHeld {
      try setResultLimit(UInt(max(resultBytes, 0)))
    } else if hasLowResultLimit {
      try setResultLimit(.max)
    }
  }

  private func setMemoryLimit(_ bytes: UInt) throws(SystemError) {
    let isLower = pictor_linux_limit_data(pid, bytes)
    guard isLower >= 0 else { throw SystemError() }
    isHeld = isLower > 0
  }

  private func setResultLimit(_ bytes: UInt) throws(SystemError) {
    let isLower = pictor_linux_limit_files(pid, bytes)
    guard isLower >= 0 else { throw SystemError() }
    hasLowResultLimit = isLower > 0
  }

  /// A number of pages in `/proc/PID/statm`, in bytes; `nil` if unknown.
  private func bytes(at index: Int) -> Int? {
    var text = [UInt8](repeating: 0, count: 128)
    let count = pread(memory.value, &text, text.count, 0)
    guard count > 0 else { return nil }
    let fields = text[..<count].split(separator: UInt8(ascii: " "))
    guard fields.count > index else { return nil }
    return Int(String(decoding: fields[index], as: UTF8.self)).map { $0 * Int(getpagesize()) }
  }

  /// Reads the new text on the worker's standard error, at most its last 500 bytes. Reading keeps
  /// room in the pipe for a final message.
  func readComplaints() -> String {
    var tail: [UInt8] = []
    withUnsafeTemporaryAllocation(byteCount: 4_096, alignment: 1) { buffer in
      // A pipe holds 64 KiB, so a worker that never stops writing does not block this thread.
      for _ in 0..<16 {
        let count = read(complaints.value, buffer.baseAddress, buffer.count)
        guard count > 0 else { break }
        tail = Array((tail + buffer[..<count]).suffix(500))
      }
    }
    while tail.last == UInt8(ascii: "\n") { tail.removeLast() }
    return String(decoding: tail, as: UTF8.self)
  }

  /// Kills the worker. `reap` then ends the rest of its process group.
  func kill() { _ = Glibc.kill(pid, SIGKILL) }

  /// Kills the process group of a worker that has ended. A worker is the first of its group, and
  /// until it is reaped no other process can have its number.
  private static func endGroup(of pid: pid_t) {
    var info = siginfo_t()
    guard waitid(P_PID, id_t(pid), &info, WEXITED | WNOHANG | WNOWAIT) == 0, info.si_signo != 0
    else { return }
    _ = Glibc.kill(-pid, SIGKILL)
  }

  /// Reaps the process, after killing what is left of its process group. Returns `nil` if it has
  /// not ended within `patience`.
  static func reap(_ pid: pid_t, within patience: Duration) -> WorkerEnd? {
    let deadline = ContinuousClock.now + patience
    var pause: useconds_t = 100
    while true {
      endGroup(of: pid)
      var status: CInt = 0
      let result = waitpid(pid, &status, WNOHANG)
      if result == pid { return WorkerEnd(status: status) }
      // ECHILD: another part of the process has reaped it.
      if result < 0 && errno != EINTR { return WorkerEnd(status: nil) }
      if ContinuousClock.now >= deadline { return nil }
      usleep(pause)
      pause = min(pause * 2, 10_000)
    }
  }
}

// WorkerProcess: one worker from its start to its end, with everything the server holds of it.

import CLinux
import Glibc
import ImagingWire
import Model
import Platform

/// A running `pictor-imager`. Used by one thread, which must outlive it: the kernel kills a worker when the thread that
/// started it ends (prctl(2), PR_SET_PDEATHSIG).
final class WorkerProcess {
  /// The process.
  let pid: pid_t
  /// When it was started.
  let startedAt = ContinuousClock.now
  /// The server's end of the connection; does not wait.
  let socket: WireSocket
  /// How many jobs were sent to it.
  private(set) var jobs = 0
  /// Resident memory in bytes when last measured.
  private(set) var lastResidentBytes = 0
  /// What it writes to its standard error: a last word of GLib's, or of the dynamic linker's.
  private let complaints: OwnedDescriptor
  /// `/proc/PID/statm`, kept open: reading it is then one call. Negative without /proc.
  private let memory: OwnedDescriptor

  /// Starts a worker, which says `ready` once it can take jobs.
  ///
  /// - Throws: `ImagerStartError` when the program cannot be run at all; a program that ends at once is found out by
  ///   its connection.
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
      pid = try WorkerSpawn.spawn(
        path: configuration.executable, arguments: Self.arguments(configuration),
        socket: worker, complaints: writer)
    } catch {
      if case .system("posix_spawn", let code) = error { throw fault(errnoText(code)) }
      throw fault("\(error)")
    }
    memory = OwnedDescriptor(owning: open("/proc/\(pid)/statm", O_RDONLY | O_CLOEXEC))
  }

  private static func arguments(_ configuration: ImagerPoolConfiguration) -> [String] {
    var arguments = ["--worker", "--nice", "\(configuration.niceness)"]
    if let bytes = configuration.maximumWorkerMemory { arguments += ["--memory", "\(bytes)"] }
    if let bytes = configuration.maximumResultBytes { arguments += ["--file-size", "\(bytes)"] }
    return arguments
  }

  /// Sends a job.
  func send(_ job: JobMessage, source: FileRegion, overlay: FileRegion?) throws(WireError) {
    jobs += 1
    // A descriptor is open as long as its region, which nobody else may hold any more.
    defer { withExtendedLifetime((source, overlay)) {} }
    try socket.send(job.encoded(), passing: source.descriptor, overlay?.descriptor)
  }

  /// Processor time that it has taken, all of its threads together; `nil` once it has ended.
  var processorTime: Duration? {
    var clock = clockid_t()
    var time = timespec()
    guard clock_getcpuclockid(pid, &clock) == 0, clock_gettime(clock, &time) == 0 else {
      return nil
    }
    return .seconds(time.tv_sec) + .nanoseconds(time.tv_nsec)
  }

  /// Resident memory in bytes, 0 if unknown; also kept as `lastResidentBytes`.
  func measure() -> Int {
    lastResidentBytes = residentBytes
    return lastResidentBytes
  }

  private var residentBytes: Int {
    var text = [UInt8](repeating: 0, count: 128)
    let count = pread(memory.value, &text, text.count, 0)
    guard count > 0 else { return 0 }
    // proc(5), statm: all pages, then those resident.
    let fields = text[..<count].split(separator: UInt8(ascii: " "))
    guard fields.count > 1, let pages = Int(String(decoding: fields[1], as: UTF8.self)) else {
      return 0
    }
    return pages * Int(getpagesize())
  }

  /// Takes what the worker has written to its standard error since the last time, so that there is always room for a
  /// last word; the end of it, if it is long.
  func readComplaints() -> String {
    var tail: [UInt8] = []
    withUnsafeTemporaryAllocation(byteCount: 4_096, alignment: 1) { buffer in
      // A pipe holds 64 KiB; a worker that goes on writing is not listened to for longer.
      for _ in 0..<16 {
        let count = read(complaints.value, buffer.baseAddress, buffer.count)
        guard count > 0 else { break }
        tail = Array((tail + buffer[..<count]).suffix(500))
      }
    }
    while tail.last == UInt8(ascii: "\n") { tail.removeLast() }
    return String(decoding: tail, as: UTF8.self)
  }

  /// Kills the worker, whatever it is doing.
  func kill() { _ = Glibc.kill(pid, SIGKILL) }

  /// Takes the process's end from the kernel, so that no zombie stays; `nil` if it has not ended within `patience`.
  static func reap(_ pid: pid_t, within patience: Duration) -> WorkerEnd? {
    let deadline = ContinuousClock.now + patience
    var pause: useconds_t = 100
    while true {
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

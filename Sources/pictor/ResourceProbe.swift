// ResourceProbe: checks that the limits of the system allow the threads and memory of a server.

import Core
import Glibc

/// Allocates what a server needs before the server starts. Swift's runtime cannot handle a lack of
/// resources: libdispatch waits forever for a missing thread, and a failed allocation ends the
/// process.
///
/// The probe covers all limits at once: `ulimit -v` and `-u` (getrlimit(2)), a container's process
/// limit, and strict memory accounting (`vm.overcommit_memory=2`).
enum ResourceProbe {
  /// Why the server could not run.
  enum Failure: Error, Hashable, CustomStringConvertible {
    /// The system grants only `given` of `needed` threads.
    case threads(given: Int, needed: Int, reason: String)
    /// The system does not grant this much address space, in bytes.
    case addresses(needed: Int, reason: String)
    /// The limit of open descriptors is too low to accept a connection or load a source.
    case descriptors(limit: Int, needed: Int)

    var description: String {
      switch self {
      case .threads(let given, let needed, let reason):
        """
        the system gives \(given) of \(needed) threads: \(reason); raise the limit of processes (ulimit -u, the \
        container's pids limit) or of address space (ulimit -v)
        """
      case .addresses(let needed, let reason):
        """
        the system does not give \(needed >> 20) MiB of address space: \(reason); raise the limit (ulimit -v), or lower \
        memory.budget
        """
      case .descriptors(let limit, let needed):
        """
        the system lets \(limit) files be open at once, and \(needed) are needed at the least: raise the limit (ulimit -n)
        """
      }
    }
  }

  /// Threads besides the event loops and Swift's own: disk, downloads, workers, observers, and
  /// those that look names up.
  private static let otherThreads = 28
  /// Address space besides the limits, in bytes: code, stacks, and malloc(3)'s reserved areas.
  private static let otherBytes = 512 << 20

  /// Descriptors for a few connections, transfers, files and permanently open ones.
  private static let otherDescriptors = 96
  /// Threads of a listener besides the first: it, its monitor and its event loop.
  private static let threadsOfListener = 3
  /// Descriptors for each event loop and worker.
  private static let descriptorsOfEach = 3

  /// Allocates all threads and addresses of a server at the same time, for a moment.
  ///
  /// - Parameters:
  ///   - otherListeners: listeners besides the first, each with an event loop of its own.
  ///   - bytes: the maximum bytes of images in memory and of bodies being received.
  static func run(
    files: Int, loops: Int, otherListeners: Int, workers: Int, bytes: Int
  ) throws(Failure) {
    let leastFiles = otherDescriptors + descriptorsOfEach * (loops + 2 * otherListeners + workers)
    guard files >= leastFiles else { throw .descriptors(limit: files, needed: leastFiles) }
    let needed =
      loops + threadsOfListener * otherListeners + 2 * sysconf(CInt(_SC_NPROCESSORS_ONLN))
      + otherThreads
    // Before the threads, which may leave too little to report anything.
    try reserve(bytes, stacks: needed)
    let end = Semaphore()
    var threads: [OwnThread] = []
    defer {
      for _ in threads { end.post() }
      for thread in threads { thread.join() }
    }
    while threads.count < needed {
      do throws(SystemError) {
        threads.append(try OwnThread(name: "pictor-probe", rank: .foreground) { end.wait() })
      } catch {
        throw .threads(given: threads.count, needed: needed, reason: error.description)
      }
    }
  }

  /// Maps all addresses of a server for a moment: the memory limits, and the stacks of its threads.
  private static func reserve(_ bytes: Int, stacks: Int) throws(Failure) {
    var attributes = pthread_attr_t()
    var stack = 8 << 20
    if pthread_attr_init(&attributes) == 0 {
      pthread_attr_getstacksize(&attributes, &stack)
      pthread_attr_destroy(&attributes)
    }
    let size = bytes.addingReportingOverflow(otherBytes + stacks * stack)
    guard !size.overflow else {
      throw .addresses(needed: .max, reason: SystemError(ENOMEM).description)
    }
    let area = mmap(
      nil, size.partialValue, PROT_READ | PROT_WRITE,
      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0)
    guard area != MAP_FAILED else {
      throw .addresses(needed: size.partialValue, reason: SystemError().description)
    }
    munmap(area, size.partialValue)
  }
}

/// The limit of open descriptors (getrlimit(2), RLIMIT_NOFILE). At the limit, nothing can be
/// accepted, loaded or sent. The usual soft limit is 1,024, far too low for 4,096 connections.
enum DescriptorLimit {
  /// Descriptors for anything but connections and the files sent over them: transfers and their
  /// memory files, connections to origins, imaging workers, the disk tier.
  private static let reserve = 512

  /// Raises the soft limit to the hard limit. This is safe for a program without select(2)
  /// (systemd.exec(5), LimitNOFILE). Workers inherit the limit.
  ///
  /// - Returns: the limit in force.
  static func raise() -> Int {
    var limit = rlimit()
    let resource = __rlimit_resource_t(RLIMIT_NOFILE.rawValue)
    guard getrlimit(resource, &limit) == 0 else { return 1_024 }
    let soft = limit.rlim_cur
    limit.rlim_cur = limit.rlim_max
    // If the kernel refuses, the old limit stays.
    return Int(clamping: setrlimit(resource, &limit) == 0 ? limit.rlim_cur : soft)
  }

  /// Returns the number of connections that the limit allows, at most `wanted`. A connection needs
  /// a socket, and a file while one is sent over it.
  static func connections(wanted: Int, limit: Int) -> Int {
    min(wanted, max((limit - min(reserve, limit / 2)) / 2, 16))
  }

  /// Returns what is wrong if the limit leaves room for fewer connections than wanted; else `nil`.
  static func shortage(wanted: Int, limit: Int) -> String? {
    let connections = connections(wanted: wanted, limit: limit)
    guard connections < wanted else { return nil }
    return "the limit of open files, \(limit), leaves room for \(connections)"
  }

  /// Returns the number of files that the disk tier may keep open: half of what the connections and
  /// the reserve leave. Each takes about 2.5 KiB, most of it the kernel's.
  static func keptFiles(connections: Int, limit: Int) -> Int {
    min(mostKept, max(limit - reserve - 2 * min(connections, limit), 0) / 2)
  }

  private static let mostKept = 4_096
}

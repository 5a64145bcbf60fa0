// ThreadRankTests: each thread of the real program has its documented priority.

import Core
import Glibc
import TestSupport
import Testing

@testable import pictor

@Suite(.onOwnThreads) struct ThreadRankTests {
  private let process = CInt(PRIO_PROCESS.rawValue)

  /// The niceness of the program's threads, by name without its number.
  private func niceness(of pictor: PictorProcess) -> [String: Set<CInt>] {
    var found: [String: Set<CInt>] = [:]
    for name in entries(of: "/proc/\(pictor.id)/task") {
      // `TID (name) state parent …`; the niceness is the nineteenth field (proc_pid_stat(5)).
      let text = contents(of: "/proc/\(pictor.id)/task/\(name)/stat")
      guard let begin = text.firstIndex(of: "("), let end = text.lastIndex(of: ")") else {
        continue
      }
      let fields = text[end...].split(separator: " ")
      guard fields.count > 17, let niceness = CInt(fields[17]) else { continue }
      var thread = String(text[text.index(after: begin)..<end])
      while let last = thread.last, last.isNumber || last == "-" { thread.removeLast() }
      found[thread, default: []].insert(niceness)
    }
    return found
  }

  /// The threads of the program after it rendered images from an origin and from a local file.
  private let names = [
    "pictor": ThreadRank.foreground, "pictor-listener": .foreground, "pictor-watcher": .foreground,
    "imaging": .foreground, "pictor-disk": .work, "pictor-download": .work,
    "pictor-digest": .work, "pictor-local": .work, "pictor-log": .work, "pictor-task": .foreground,
    "pictor-sweep": .background, "pictor-trace": .background,
  ]

  @Test(arguments: [0, 3])
  func `each thread has its own priority relative to the program's`(added: CInt)
    throws
  {
    // Given a program that was started with this niceness
    let folder = try TemporaryFolder()
    let origin = try Origin()
    let image = try TestImages.jpeg(width: 64, height: 48)
    origin.serve("/a.jpg", bytes: image)
    try folder.write("local.jpg", bytes: image)
    let pictor = try PictorProcess(
      in: folder,
      ["--sources.local_root", folder.path, "--tracing.endpoint", origin.url("/v1/traces")],
      wrapper: ["/usr/bin/nice", "-n", "\(added)"])
    // When many concurrent misses have activated all threads
    let own = getpriority(process, 0) + added
    var found: [String: Set<CInt>] = [:]
    for round in 0..<100 {
      try requestImages(from: pictor, origin, round: round)
      found = niceness(of: pictor)
      if names.keys.allSatisfy({ found[$0] != nil }) { break }
    }
    // Then
    for (name, rank) in names {
      #expect(found[name] == [min(own + rank.rawValue, 19)], "\(name)")
    }
    // A new thread of Swift's pool has the name of its creator until it works.
    #expect(found["pictor-http"]?.contains(own) == true)
    // And workers and session groups have niceness 2.
    try waitForWorkers(of: pictor, origin, niceness: own + 2)
  }

  @Test func `a worker does not wait for the kernel to accept its session's niceness`() throws {
    // Given a kernel with session groups, which always takes its only change in 0.1 seconds
    guard access("/proc/self/autogroup", W_OK) == 0 else { return }
    // The program that takes them has a session of its own, as this one may have no group.
    let taker = try ChildProcess([
      "/usr/bin/setsid", "/bin/sh", "-c",
      "n=0; while [ $((n += 1)) -lt 20000 ]; do echo 0 > /proc/$$/autogroup; sleep 0.005; done",
    ])
    let isTaking = Lock(true)
    func stopTaking() {
      isTaking.withLock {
        if $0 { taker.kill() }; $0 = false
      }
    }
    defer { stopTaking() }
    let folder = try TemporaryFolder()
    let origin = try Origin()
    let image = try TestImages.jpeg(width: 64, height: 48)
    origin.serve("/a.jpg", bytes: image)
    try folder.write("local.jpg", bytes: image)
    // When a server without the capability to change it more often renders images
    let pictor = try PictorProcess(
      in: folder, ["--sources.local_root", folder.path],
      wrapper: getuid() == 0 ? ["/usr/bin/setpriv", "--bounding-set=-sys_admin"] : [])
    try requestImages(from: pictor, origin, round: 0)
    // Then its workers change it as soon as the kernel allows
    stopTaking()
    try waitForWorkers(of: pictor, origin, niceness: getpriority(process, 0) + 2)
  }

  /// Requests 16 new variants at once, from the origin and from a local file.
  private func requestImages(from pictor: PictorProcess, _ origin: Origin, round: Int) throws {
    let clients = try (0..<16).map { _ in try pictor.connect() }
    for (number, client) in clients.enumerated() {
      let url = number % 2 == 0 ? origin.url("/a.jpg?\(round)-\(number)") : "local:///local.jpg"
      try client.send(HTTPClient.text("GET", target: "/image?url=\(encoded(url))&w=\(20 + round)"))
    }
    for client in clients { #expect(try client.readAnswer().status == 200) }
  }

  /// Waits until the workers have this niceness, and the groups of their sessions, if the kernel
  /// has groups, 2 below the server's. Keeps them at work,
  /// as the kernel may accept a group's niceness only later.
  private func waitForWorkers(of pictor: PictorProcess, _ origin: Origin, niceness: CInt) throws {
    // Each thread of a server without a group counts beside the groups.
    let server = contents(of: "/proc/\(pictor.id)/autogroup").split { " \n".contains($0) }.last
    let group = min((server.flatMap { CInt($0) } ?? getpriority(process, id_t(pictor.id))) + 2, 19)
    var round = 1_000
    var found = ""
    // Workers of other tests take turns in changing theirs.
    try blockUntil("niceness \(niceness), groups \(group); found \(found)", within: .seconds(120)) {
      let workers = pictor.workers().map { worker in
        let text = contents(of: "/proc/\(worker)/autogroup")
        return (
          getpriority(process, id_t(worker)) == niceness
            && (text.isEmpty || getsid(worker) == worker && text.hasSuffix(" nice \(group)\n")),
          "\(worker): \(getpriority(process, id_t(worker))), session \(getsid(worker)), \(text)"
        )
      }
      if !workers.isEmpty, workers.allSatisfy(\.0) { return true }
      found = workers.map(\.1).joined()
      try requestImages(from: pictor, origin, round: round)
      round += 1
      return false
    }
  }

  @Test func `open descriptors are counted correctly and never on the calling thread`() async {
    // A process of its own: other tests open descriptors, too.
    await #expect(processExitsWith: .success) {
      let folder = try TemporaryFolder()
      try folder.write("file", bytes: [1])
      for counter in [OpenDescriptors(), OpenDescriptors(hasSize: false)] {
        // A count may be as old as the last listing.
        try blockUntil("the first count") { counter.count > 0 }
        let before = counter.count
        let held = (0..<500).map { _ in
          FileRegion(owning: open(folder.path + "/file", O_RDONLY | O_CLOEXEC), count: 1)
        }
        var after = 0
        // The test library has a few descriptors that come and go.
        try blockUntil("about 500 more descriptors than \(before), not \(after)") {
          after = counter.count
          return after > before + 450
        }
        #expect(after < before + 550)
        withExtendedLifetime(held) {}
      }
    }
  }
}

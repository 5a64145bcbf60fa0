// ThreadRankTests: that each thread of the real program has the rank that docs/performance.md counts on.

import Glibc
import Model
import Platform
import TestSupport
import Testing

@testable import pictor

@Suite(.onOwnThreads) struct ThreadRankTests {
  private let process = CInt(PRIO_PROCESS.rawValue)

  /// The niceness of the program's threads, by name without its number.
  private func niceness(of pictor: PictorProcess) -> [String: Set<CInt>] {
    var found: [String: Set<CInt>] = [:]
    guard let stream = opendir("/proc/\(pictor.id)/task") else { return found }
    defer { closedir(stream) }
    while let entry = readdir(stream) {
      let name = withUnsafePointer(to: &entry.pointee.d_name) { pointer in
        pointer.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
      }
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

  /// Threads that the program has once it made images of an origin's and of a local file.
  private let names = [
    "pictor": ThreadRank.foreground, "pictor-listener": .foreground, "pictor-watcher": .foreground,
    "imaging": .foreground, "pictor-disk": .work, "pictor-download": .work,
    "pictor-digest": .work, "pictor-local": .work, "pictor-log": .work, "pictor-task": .foreground,
    "pictor-sweep": .background,
  ]

  @Test(arguments: [0, 3])
  func `each thread has its rank, on top of what the program was started with`(added: CInt)
    throws
  {
    // Given a program that was started like that
    let folder = try TemporaryFolder()
    let origin = try Origin()
    let image = try TestImages.jpeg(width: 64, height: 48)
    origin.serve("/a.jpg", image)
    try folder.write("local.jpg", image)
    let pictor = try PictorProcess(
      in: folder, ["--sources.local_root", folder.path],
      wrapper: ["/usr/bin/nice", "-n", "\(added)"])
    // When many misses at once have brought all threads to work
    let own = getpriority(process, 0) + added
    var found: [String: Set<CInt>] = [:]
    for round in 0..<100 {
      let clients = try (0..<16).map { _ in try pictor.connect() }
      for (number, client) in clients.enumerated() {
        let url = number % 2 == 0 ? origin.url("/a.jpg?\(round)-\(number)") : "local:///local.jpg"
        try client.send(
          HTTPClient.text("GET", "/image?url=\(encoded(url))&w=\(20 + round)"))
      }
      for client in clients { #expect(try client.readAnswer().status == 200) }
      found = niceness(of: pictor)
      if names.keys.allSatisfy({ found[$0] != nil }) { break }
    }
    // Then
    for (name, rank) in names {
      #expect(found[name] == [min(own + rank.rawValue, 19)], "\(name)")
    }
    // A new thread of Swift's pool has the name of its starter until it works.
    #expect(found["pictor-http"]?.contains(own) == true)
    // And workers are what `imaging.niceness` says, by default 5, and the groups of their sessions where there are any.
    for worker in pictor.workers() {
      #expect(getpriority(process, id_t(worker)) == own + 5)
      let group = contents(of: "/proc/\(worker)/autogroup")
      guard !group.isEmpty else { continue }
      #expect(getsid(worker) == worker)
      #expect(group.hasSuffix(" nice 5\n"), "\(group)")
    }
    #expect(pictor.workers().count > 0)
  }

  @Test func `the number of descriptors is right, and is never listed on the calling thread`()
    throws
  {
    let folder = try TemporaryFolder()
    try folder.write("file", [1])
    for counter in [OpenDescriptors(), OpenDescriptors(hasSize: false)] {
      let before = try settled(counter) { $0 > 0 }
      let held = (0..<500).map { _ in
        FileRegion(owning: open(folder.path + "/file", O_RDONLY | O_CLOEXEC), count: 1)
      }
      // Other tests open and close some meanwhile.
      let after = try settled(counter) { $0 >= before + 400 }
      #expect(after < before + 1_000)
      withExtendedLifetime(held) {}
    }
  }

  /// The first number that is as expected; it may be as old as the last listing.
  private func settled(
    _ counter: OpenDescriptors, _ isExpected: (Int) -> Bool
  ) throws -> Int {
    for _ in 0..<2_000 {
      let count = counter.count
      if isExpected(count) { return count }
      usleep(5_000)
    }
    throw PictorProcess.Failure(description: "never: \(counter.count) descriptors")
  }
}

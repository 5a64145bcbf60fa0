// LoopCoresTests: event loops keep to the reserved cores while workers keep others busy.

import Core
import Glibc
import TestSupport
import Testing

@Suite(.onOwnThreads) struct LoopCoresTests {
  private static let all = (try? Cores.allowed(for: getpid())) ?? Cores([])

  /// The cores of each of the program's threads, by its name.
  private func cores(of pictor: PictorProcess) -> [(thread: String, cores: Cores)] {
    entries(of: "/proc/\(pictor.id)/task").compactMap { name in
      // One that has ended has none.
      guard let id = pid_t(name), let cores = try? Cores.allowed(for: id) else { return nil }
      return (contents(of: "/proc/\(pictor.id)/task/\(name)/comm"), cores)
    }
  }

  /// Requests images until it is over: the same one, or others each time.
  private func hammer(port: Int, number: Int, isHit: Bool, isOver: Lock<Bool>) {
    guard let client = try? HTTPClient(port: port) else {
      Issue.record("no connection")
      return
    }
    var count = 0
    while !isOver.withLock({ $0 }) {
      // Another image each time, of its own for each client.
      let (width, height) = (60 + count % 600, 60 + number + 200 * (count / 600))
      let wish = isHit ? "w=50" : "w=\(width)&h=\(height)&fit=fill"
      let start = ContinuousClock.now
      guard let status = try? client.get("/image?url=local:///a.png&format=jpeg&\(wish)").status,
        status == 200
      else {
        Issue.record("no image")
        return
      }
      // Time for the loops to do nothing: two clients need less than a core.
      if isHit { usleep(useconds_t(start.duration(to: .now) / .microseconds(1))) }
      count += 1
    }
  }

  @Test(.enabled(if: all.numbers.count > 1), .timeLimit(.minutes(5)))
  func `loops keep to reserved cores beside a flood of misses, and all threads have all after it`()
    throws
  {
    let folder = try TemporaryFolder()
    try folder.write("a.png", bytes: try TestImages.png(width: 800, height: 600))
    let pictor = try PictorProcess(in: folder, ["--sources.local_root", folder.path])
    let most = Self.all.numbers.count / 2
    let (port, isOver) = (pictor.port, Lock(false))
    let threads = try (0..<2 * Self.all.numbers.count + 2).map { number in
      try OwnThread(name: "client-\(number)", rank: .foreground) {
        hammer(port: port, number: number, isHit: number < 2, isOver: isOver)
      }
    }
    defer {
      isOver.withLock { $0 = true }
      for thread in threads { thread.join() }
    }
    // When
    try blockUntil("loops are on reserved cores", within: .seconds(120)) {
      let loops = cores(of: pictor).filter { $0.thread.hasPrefix("pictor-http") }.map(\.cores)
      return !loops.isEmpty
        && loops.allSatisfy {
          $0.numbers.count <= most && $0.numbers == Array(Self.all.numbers.prefix($0.numbers.count))
        }
    }
    isOver.withLock { $0 = true }
    for thread in threads { thread.join() }
    // Then
    var kept: [String] = []
    try blockUntil("all have all cores; not: \(kept)") {
      let found = cores(of: pictor)
      kept = found.filter { $0.cores != Self.all }.map(\.thread)
      return kept.isEmpty && found.contains { $0.thread.hasPrefix("pictor-http") }
    }
  }
}

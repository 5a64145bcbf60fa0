// ManagedTests: the base of tests of a manager on test doubles.

import Core
import TestSupport

@testable import Managing

/// A manager on test doubles, created for each test.
class ManagedTests {
  let memory = TestMemory()
  let disk: TestDisk
  let loader = TestLoader()
  let processor = TestProcessor()
  let purges = TestPurges()
  let freshness = TestFreshness()
  let clock = ManualClock(seconds: 1_000)
  /// The threads for file reads. A test may occupy all of them.
  let files: BlockingThreads
  let manager: ImageManager

  /// Creates a manager whose file reads have this long.
  init(fileDeadline: Duration = .seconds(60)) {
    disk = TestDisk()
    files = BlockingThreads(name: "test-file", threads: 2, deadline: fileDeadline)
    manager = Self.manager(
      memory, disk, loader, processor, freshness, purges, files, clock, fleet: nil)
  }

  /// Creates a machine of a fleet, with this disk.
  init(disk: TestDisk, fleet: any SharedCache) {
    self.disk = disk
    files = BlockingThreads(name: "test-file", threads: 2, deadline: .seconds(60))
    manager = Self.manager(
      memory, disk, loader, processor, freshness, purges, files, clock, fleet: fleet)
  }

  private static func manager(
    _ memory: TestMemory, _ disk: TestDisk, _ loader: TestLoader, _ processor: TestProcessor,
    _ freshness: TestFreshness, _ purges: TestPurges, _ files: BlockingThreads,
    _ clock: ManualClock, fleet: (any SharedCache)?
  ) -> ImageManager {
    ImageManager(
      memory: memory, disk: disk, loader: loader, processor: processor,
      freshnessPolicy: freshness, purges: purges, fleet: fleet, files: files,
      now: { clock.now })
  }

  /// The time on the clock.
  func now() -> UnixTime { clock.now }

  /// Returns a request for an image at the origin, with options changed by `change`.
  func request(
    _ url: String = "http://origin/a.jpg", scale: Double? = nil,
    change: (inout LoadOptions) -> Void = { _ in }
  ) throws -> ImageRequest {
    var transform = Transform()
    transform.scale = scale
    var request = ImageRequest(source: try SourceURL(parsing: url), transform: transform)
    change(&request.options)
    return request
  }

  /// Requests an image in a new task.
  func asking(_ request: ImageRequest) -> Task<ImageDelivery, any Error> {
    Task { [manager] in try await manager.variant(for: request) }
  }

  /// Lets loads and jobs end without waiting.
  func openAll() {
    loader.gate.open()
    processor.gate.open()
  }

  /// Advances the clock.
  func pass(seconds: Int) { clock.advance(by: seconds) }
}

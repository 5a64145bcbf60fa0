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
  ///
  /// - Parameters:
  ///   - disk: the disk of a machine that was started before.
  ///   - fleet: what the machine shares with others.
  init(
    fileDeadline: Duration = .seconds(60), disk: TestDisk = TestDisk(),
    fleet: (any SharedCache)? = nil
  ) {
    self.disk = disk
    files = BlockingThreads(name: "test-file", threads: 2, deadline: fileDeadline)
    manager = ImageManager(
      memory: memory, disk: disk, loader: loader, processor: processor,
      freshnessPolicy: freshness, purges: purges, fleet: fleet, files: files,
      now: { [clock] in clock.now })
  }

  /// Creates a manager with other settings on the same doubles.
  func manager(
    storage: VariantStorage = .unlimited, _ change: (inout ImagingSettings) -> Void = { _ in }
  ) -> ImageManager {
    var settings = ImagingSettings()
    change(&settings)
    return ImageManager(
      memory: memory, disk: disk, loader: loader, processor: processor,
      freshnessPolicy: freshness, purges: purges, imaging: settings, storage: storage,
      now: { [clock] in clock.now })
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

  /// Returns a request for a variant, with a transform changed by `change`.
  func wish(
    _ url: String = "http://origin/a.jpg", _ change: (inout Transform) throws -> Void
  ) throws -> ImageRequest {
    var transform = Transform()
    try change(&transform)
    return ImageRequest(source: try SourceURL(parsing: url), transform: transform)
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

extension CacheStatus {
  /// The status of a request that started a load.
  static func missed(_ forward: Forward, stored: Bool = true, status: Int? = 200) -> CacheStatus {
    .miss(forward, stored: stored, collapsed: false, originStatus: status)
  }
}

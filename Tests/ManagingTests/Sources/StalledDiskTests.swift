// StalledDiskTests: tests that a stalled disk blocks only reads of its own files.

import Core
import TestSupport
import Testing

@testable import Managing

final class StalledDiskTests: ManagedTests {
  init() { super.init(fileDeadline: .seconds(2)) }

  /// Occupies all file-reading threads until the semaphore is posted twice.
  private func stall() async throws -> (Semaphore, [Task<Void, Never>]) {
    let isOver = Semaphore()
    let begun = Count()
    let reads = (0..<2).map { _ in
      Task { [files] in
        _ = try? await files.value {
          begun.add()
          isOver.wait()
        }
      }
    }
    try await eventually { begun.value == 2 }
    return (isOver, reads)
  }

  @Test func `while all file reads stall, misses of other keys are rendered`() async throws {
    // Given results that are larger than their source, so the manager reads the source
    openAll()
    let source = try TestImages.jpeg(width: 40, height: 30, bare: true)
    loader.body.withLock { $0 = source }
    processor.result.withLock { result in
      result = { _ in
        TestProcessor.image(
          bytes: source.count + 9, format: .jpeg, size: PixelSize(width: 40, height: 30))
      }
    }
    let (isOver, reads) = try await stall()
    // When more requests arrive than the cooperative pool has threads
    let requests = try (0..<32).map { try request("http://origin/\($0).jpg") }
    let tasks = requests.map { asking($0) }
    // Then each gets the rendered variant, because the source cannot be read in time
    for task in tasks { #expect(try await task.value.variant.info.etag == "\"d1\"") }
    #expect(manager.figures.sourcesInstead == 0)
    // When the disk responds again
    for _ in 0..<2 { isOver.post() }
    for read in reads { await read.value }
    // Then sources are read again.
    try await waitUntilRead()
    let later = try await manager.variant(for: try request("http://origin/later.jpg"))
    #expect(later.variant.info.etag != "\"d1\"")
  }

  /// Waits until a file-reading thread is free.
  private func waitUntilRead() async throws {
    try await eventually { (try? await files.value(of: { true })) == true }
  }

  @Test
  func `a late call fails at its deadline, and further calls at once while all threads are stuck`()
    async throws
  {
    // Given
    let threads = BlockingThreads(
      name: "test-block", threads: 1, queueLimit: 10, deadline: .seconds(1))
    let isOver = Semaphore()
    // When
    await #expect(throws: BlockingFailure.late) { try await threads.value { isOver.wait() } }
    // Then
    await #expect(throws: BlockingFailure.full) { try await threads.value { 1 } }
    // When
    isOver.post()
    try await eventually { (try? await threads.value(of: { 1 })) != nil }
    // Then
    #expect(try await threads.value { 2 } == 2)
  }

  @Test func `calls without a free thread wait, up to the queue limit`() async throws {
    // Given a busy thread
    let threads = BlockingThreads(
      name: "test-block", threads: 1, queueLimit: 3, deadline: .seconds(60))
    let isTaken = Lock(false)
    let isOver = Semaphore()
    let first = Task {
      try await threads.value {
        isTaken.withLock { $0 = true }
        isOver.wait()
      }
    }
    try await eventually { isTaken.withLock { $0 } }
    // When five more calls arrive
    let refused = Count()
    let more = (0..<5).map { number in
      Task {
        do {
          return try await threads.value { number }
        } catch {
          refused.add()
          return -1
        }
      }
    }
    try await eventually { refused.value == 2 }
    isOver.post()
    // Then three of them run
    try await first.value
    var results: [Int] = []
    for task in more { results.append(await task.value) }
    #expect(results.count { $0 >= 0 } == 3)
  }

  @Test func `a thousand calls on a few threads all return`() async throws {
    let threads = BlockingThreads(name: "test-block", threads: 3)
    let sum = try await withThrowingTaskGroup(of: Int.self) { group in
      for number in 0..<1_000 { group.addTask { try await threads.value { number } } }
      return try await group.reduce(0, +)
    }
    #expect(sum == 499_500)
  }
}

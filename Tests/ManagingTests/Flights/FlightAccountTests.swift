// FlightAccountTests: who is charged for the imaging time of a flight, and whose download it is.

import Core
import TestSupport
import Testing

@testable import Managing

@Suite(.onOwnThreads) final class FlightAccountTests: ManagedTests {
  /// Counts the charges.
  private final class Bill: ImagingAccount {
    let client: LoadClient
    init(_ address: UInt32 = 1) { client = .network(.v4(address)) }
    let count = Lock(0)
    func charge(_ time: Duration) { count.withLock { $0 += 1 } }
  }

  @Test func `the request that began a flight is charged, and those that joined it are not`()
    async throws
  {
    // Given a processor that charges whom its task works for
    processor.result.withLock {
      $0 = { _ in
        ImagingAccounts.current?.charge(.seconds(1))
        return TestProcessor.image(bytes: 3, format: .jpeg)
      }
    }
    loader.gate.open()
    let (first, second) = (Bill(), Bill())
    let request = try request()
    func ask(_ bill: Bill) -> Task<ImageDelivery, any Error> {
      ImagingAccounts.$current.withValue(bill) { asking(request) }
    }
    // When
    let began = ask(first)
    try await eventually { self.processor.started.value == 1 }
    let joined = ask(second)
    try await eventually { self.manager.figures.waiting == 2 }
    processor.gate.open()
    // Then
    _ = try await (began.value, joined.value)
    #expect(first.count.withLock { $0 } == 1 && second.count.withLock { $0 } == 0)
  }

  @Test func `a download is that of all clients who wait for it, also by another variant`()
    async throws
  {
    // Given a download that one client began
    let clients = Lock<Set<LoadClient>>([])
    let (first, second, third) = (Bill(1), Bill(2), Bill(3))
    let began = try ImagingAccounts.$current.withValue(first) { asking(try request()) }
    try await eventually { self.loader.started.value == 1 }
    let priority = try #require(loader.requests.withLock { $0.first?.priority })
    let present = priority.observeClients { client in
      clients.withLock { _ = $0.insert(client) }
    }
    #expect(present == [first.client])
    // When others join the variant and the source
    let joined = try ImagingAccounts.$current.withValue(second) { asking(try request()) }
    try await eventually { clients.withLock { $0 } == [second.client] }
    let other = try ImagingAccounts.$current.withValue(third) { asking(try request(scale: 0.5)) }
    let unlimited = try ImagingAccounts.$current.withValue(UnlimitedAccount()) {
      asking(try request())
    }
    // Then
    try await eventually {
      clients.withLock { $0 } == [second.client, third.client, .unlimited]
    }
    #expect(loader.started.value == 1)
    openAll()
    for task in [began, joined, other, unlimited] { _ = try await task.value }
  }

  @Test func `work that no request waits for is charged to none`() async throws {
    // Given
    processor.result.withLock {
      $0 = { job in
        ImagingAccounts.current?.charge(.seconds(1))
        let format = job.transform.accepted.first == .avif ? ImageFormat.avif : .webp
        return TestProcessor.image(bytes: format == .avif ? 60 : 100, format: format)
      }
    }
    openAll()
    let bill = Bill()
    let request = try request().accepting([.avif, .webp])
    // When an AVIF is encoded after the response
    _ = try await ImagingAccounts.$current.withValue(bill) { asking(request) }.value
    try await eventually { self.manager.figures.avifsWaiting == 0 }
    // Then the response alone is charged
    #expect(processor.jobs.withLock { $0.count } == 2)
    #expect(bill.count.withLock { $0 } == 1)
    // When a stale image is revalidated after it was sent, from new bytes
    freshness.staleWhileRevalidate.withLock { $0 = 100 }
    let plain = try self.request("http://origin/b.jpg")
    _ = try await manager.variant(for: plain)
    let jobs = processor.jobs.withLock { $0.count }
    clock.advance(by: 3_605)
    loader.body.withLock { $0 = [1, 2, 3] }
    let stale = try await ImagingAccounts.$current.withValue(bill) { asking(plain) }.value
    try await eventually { self.processor.jobs.withLock { $0.count } > jobs }
    try await eventually { self.manager.figures.variants == 0 }
    // Then it is not charged either
    #expect(stale.variant.info.image?.format == .webp)
    #expect(bill.count.withLock { $0 } == 1)
  }
}

// JobAnswerTests: answers that a compromised worker might send.

import FoundationEssentials
import Glibc
import ImagingWire
import Model
import Platform
import TestSupport
import Testing

@testable import ImagingPool

@Suite(.onOwnThreads) struct JobAnswerTests {
  /// The first bytes of a PNG.
  private let bytes: [UInt8] = [0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a, 0]

  private func result(
    id: UInt64 = 1, count: Int, _ format: ImageFormat = .png,
    _ size: PixelSize = PixelSize(width: 1, height: 1)
  ) -> [UInt8] {
    AnswerMessage.result(
      ResultMessage(
        id: id, format: format, size: size, frames: 1, density: 1,
        scaledDownFrom: nil, digest: String(repeating: "0", count: 32), timings: Timings(),
        byteCount: count)
    ).encoded()
  }

  /// Sends a message over a real connection and reads it as the answer to job 1.
  private func answer(
    _ message: [UInt8], passing descriptor: CInt? = nil, to transform: Transform = Transform()
  ) throws -> Result<ProcessedImage, ImageError> {
    var pair = try WirePair()
    guard let serverEnd = pair.server.take(), let workerEnd = pair.worker.take() else {
      throw WireError.closed
    }
    let server = WireSocket(owning: serverEnd)
    let worker = WireSocket(owning: workerEnd)
    try worker.send(message, passing: descriptor)
    let answer = try JobAnswer.read(server.receive(), for: 1, transform, atMost: 1_000)
    return try #require(answer, "it takes long")
  }

  private func refused(_ message: [UInt8], passing descriptor: CInt? = nil) -> Bool {
    do {
      _ = try answer(message, passing: descriptor)
      return false
    } catch WireError.malformed {
      return true
    } catch {
      return false
    }
  }

  private func sealed() throws -> FileRegion { try PoolSupport.file(of: bytes) }

  @Test func `that a job takes long is taken of the job, and without a file`() throws {
    let file = try sealed()
    withExtendedLifetime(file) {
      #expect(refused(AnswerMessage.takesLong(id: 2).encoded()))
      #expect(
        refused(AnswerMessage.takesLong(id: 1).encoded(), passing: file.descriptor))
    }
    var pair = try WirePair()
    guard let serverEnd = pair.server.take(), let workerEnd = pair.worker.take() else { return }
    let server = WireSocket(owning: serverEnd)
    let worker = WireSocket(owning: workerEnd)
    try worker.send(AnswerMessage.takesLong(id: 1).encoded())
    let answer = try JobAnswer.read(server.receive(), for: 1, Transform(), atMost: 1)
    if answer != nil { Issue.record("it is not put off") }
  }

  @Test func `a good answer is taken`() throws {
    let file = try sealed()
    let image = try withExtendedLifetime(file) {
      try answer(result(count: 9), passing: file.descriptor).get()
    }
    image.bytes.withUnsafeBytes { #expect(Array($0) == bytes) }
    let failure = AnswerMessage.failure(id: 1, .undecodable(detail: "x"))
    #expect(throws: ImageError.undecodable(detail: "x")) { try answer(failure.encoded()).get() }
  }

  @Test func `a result that is not what was asked for is a failure of imaging`() throws {
    // Given
    let file = try sealed()
    func failure(_ message: [UInt8], _ change: (inout Transform) -> Void = { _ in }) throws -> Bool
    {
      var transform = Transform()
      change(&transform)
      let answer = try withExtendedLifetime(file) {
        try self.answer(message, passing: file.descriptor, to: transform)
      }
      if case .failure(.internal) = answer { return true }
      return false
    }
    let large = PixelSize(width: 40, height: 30)
    // Then: of another format than stated or requested
    #expect(try failure(result(count: 9, .avif)))
    #expect(try failure(result(count: 9, .json)))
    #expect(try failure(result(count: 9)) { $0.format = .avif })
    #expect(try !failure(result(count: 9)) { $0.format = .png })
    // Then: larger than its box or than the limit
    #expect(try failure(result(count: 9, .png, large)) { $0.width = 39 })
    #expect(try failure(result(count: 9, .png, large)) { ($0.width, $0.height) = (40, 29) })
    #expect(try failure(result(count: 9, .png, large)) { $0.limitBytes = 40 * 30 * 4 - 1 })
    #expect(try !failure(result(count: 9, .png, large)) { ($0.width, $0.scale) = (13, 3.05) })
    #expect(try !failure(result(count: 9, .png, large)) { ($0.width, $0.fit) = (30, .outside) })
    #expect(try !failure(result(count: 9, .png, large)) { $0.limitBytes = 40 * 30 * 4 })
  }

  @Test func `an answer with the wrong file, or none, is refused`() throws {
    #expect(refused(result(count: 9)))
    let file = try sealed()
    withExtendedLifetime(file) {
      #expect(refused(result(count: 8), passing: file.descriptor))
      #expect(refused(result(count: 10), passing: file.descriptor))
    }
    // A file on disk and a pipe have no seals. This test program is longer than stated.
    let disk = open("/proc/self/exe", O_RDONLY | O_CLOEXEC)
    defer { close(disk) }
    #expect(refused(result(count: 9), passing: disk))
    let null = open("/dev/zero", O_RDONLY | O_CLOEXEC)
    defer { close(null) }
    #expect(refused(result(count: 9), passing: null))
  }

  @Test func `an answer of another job, or out of turn, or too large, is refused`() throws {
    let file = try sealed()
    let failure = AnswerMessage.failure(id: 1, .undecodable(detail: "")).encoded()
    withExtendedLifetime(file) {
      #expect(refused(result(id: 2, count: 9), passing: file.descriptor))
      #expect(refused(result(count: 1_001), passing: file.descriptor))
      #expect(refused(failure, passing: file.descriptor))
    }
    #expect(refused(AnswerMessage.ready.encoded()))
    #expect(refused(AnswerMessage.failure(id: 2, .undecodable(detail: "")).encoded()))
    #expect(refused([1, 2, 3]))
  }
}

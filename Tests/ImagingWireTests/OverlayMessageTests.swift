// OverlayMessageTests: a job's watermark over the wire, with its own descriptor.

import CLinux
import Glibc
import Model
import Platform
import TestSupport
import Testing

@testable import ImagingWire

@Suite(.onOwnThreads) struct OverlayMessageTests {
  private func job(_ change: (inout WatermarkPlacement) -> Void = { _ in }) -> JobMessage {
    var placement = WatermarkPlacement()
    change(&placement)
    return JobMessage(
      id: 7, transform: Transform(), density: 1, limits: ImagingLimits(), offset: 0, count: 9,
      overlay: OverlayMessage(offset: 4_096, count: 1 << 40, density: 3, placement: placement))
  }

  @Test func `a watermark is read back unchanged`() throws {
    let jobs = [
      job(),
      job {
        $0.position = .leftTop
        $0.scale = 0.01
        $0.opacity = 0.99
      },
      job {
        $0.opacity = .leastNonzeroMagnitude
        $0.repeats = true
      },
    ]
    for job in jobs { #expect(try JobMessage(decoding: job.encoded()) == job) }
  }

  @Test func `a watermark out of range, and a placement without one, are refused`() {
    let changes: [(inout WatermarkPlacement) -> Void] = [
      { $0.scale = 0 }, { $0.scale = 1.01 }, { $0.scale = .nan }, { $0.opacity = 0 },
      { $0.opacity = -1 }, { $0.opacity = .infinity },
    ]
    for (index, change) in changes.enumerated() {
      let bytes = job(change).encoded()
      #expect(throws: WireError.self, "change \(index)") { try JobMessage(decoding: bytes) }
    }
    // The flag before the last three says whether there is a watermark.
    let whole = job { $0.scale = 0.5 }.encoded()
    let overlay = 1 + 3 * 8
    var bare = whole
    bare.removeSubrange(whole.count - 3 - overlay + 1..<whole.count - 3)
    bare[bare.count - 4] = 0
    #expect(throws: WireError.malformed("a placement without a watermark")) {
      try JobMessage(decoding: bare)
    }
  }

  @Test func `a watermark error is read back unchanged, and a nested one is refused`() throws {
    let message = AnswerMessage.failure(id: 5, .watermark(.tooManyPixels(pixels: 9, limit: 8)))
    #expect(try AnswerMessage(decoding: message.encoded()) == message)
    let nested = AnswerMessage.failure(id: 5, .watermark(.watermark(.undecodable(detail: ""))))
    #expect(throws: WireError.self) { try AnswerMessage(decoding: nested.encoded()) }
  }

  @Test func `two descriptors arrive in order if the receiver expects two`() throws {
    // given
    var pair = try WirePair()
    guard let server = pair.server.take(), let worker = pair.worker.take() else {
      throw WireError.closed
    }
    let sender = WireSocket(owning: server)
    let receiver = WireSocket(owning: worker)
    let (first, second) = (try FileRegion.sealed([7]), try FileRegion.sealed([8, 9]))
    // when
    try sender.send([1], passing: first.descriptor, and: second.descriptor)
    var message = try receiver.receive(passed: 2)
    // then
    for count in [1, 2] {
      guard let descriptor = message.takeDescriptor() else {
        Issue.record("no descriptor \(count)")
        return
      }
      var status = stat()
      #expect(fstat(descriptor.value, &status) == 0 && Int(status.st_size) == count)
      #expect(fcntl(descriptor.value, F_GETFD) & FD_CLOEXEC == FD_CLOEXEC)
    }
    let isThird = message.takeDescriptor() != nil
    #expect(!isThird)
    // And a job without a watermark has one
    try sender.send([2], passing: first.descriptor)
    var plain = try receiver.receive(passed: 2)
    let hasFirst = plain.takeDescriptor() != nil
    let hasSecond = plain.takeDescriptor() != nil
    #expect(hasFirst && !hasSecond)
    withExtendedLifetime((first, second)) {}
  }
}

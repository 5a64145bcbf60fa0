// WireSocketTests: messages and descriptors over a real connection.

import CLinux
import Glibc
import TestSupport
import Testing

@testable import Core

@Suite(.onOwnThreads) struct WireSocketTests {
  /// Both ends as sockets.
  private struct Ends: ~Copyable {
    var server: WireSocket
    var worker: WireSocket

    init() throws {
      var pair = try WirePair()
      guard let server = pair.server.take(), let worker = pair.worker.take() else {
        throw WireError.closed
      }
      self.server = WireSocket(owning: server)
      self.worker = WireSocket(owning: worker)
    }
  }

  /// Returns the inode of a descriptor, the same for two descriptors of one file.
  private func inode(_ descriptor: CInt) -> UInt {
    var status = stat()
    return fstat(descriptor, &status) == 0 ? UInt(status.st_ino) : 0
  }

  @Test func `messages keep their boundaries and order`() throws {
    let ends = try Ends()
    try ends.server.send([1, 2, 3])
    try ends.server.send([4])
    #expect(try ends.worker.receive().bytes == [1, 2, 3])
    #expect(try ends.worker.receive().bytes == [4])
  }

  @Test func `a passed descriptor arrives close-on-exec`() throws {
    let ends = try Ends()
    let file = try FileRegion.sealed([7])
    try ends.worker.send([1], passing: file.descriptor)
    var message = try ends.server.receive(passed: 1)
    guard let passed = message.takeDescriptor() else {
      Issue.record("no descriptor")
      return
    }
    let received = passed.value
    #expect(inode(received) == inode(file.descriptor) && received != file.descriptor)
    #expect(fcntl(received, F_GETFD) & FD_CLOEXEC == FD_CLOEXEC)
  }

  @Test func `an empty connection would block, and a closed one throws closed`() throws {
    var ends = try Ends()
    try ends.server.setNonBlocking()
    #expect(throws: WireError.wouldBlock) { _ = try ends.server.receive() }
    let other = try Ends()
    ends.worker = WireSocket(owning: OwnedDescriptor(owning: dup(other.worker.descriptor)))
    // A program that another test starts right now has a copy of the other end until its exec.
    try blockUntil("the end") { try ends.server.isClosed() }
    #expect(throws: WireError.closed) { _ = try ends.server.receive() }
    #expect(throws: WireError.closed) { try ends.server.send([1]) }
  }

  @Test func `sending to a full non-blocking socket throws instead of waiting`() throws {
    let ends = try Ends()
    try ends.server.setNonBlocking()
    #expect(throws: WireError.wouldBlock) {
      for _ in 0..<100_000 { try ends.server.send([UInt8](repeating: 0, count: 4_096)) }
    }
  }

  @Test func `a message over the maximum length is refused`() throws {
    let ends = try Ends()
    try ends.worker.send([UInt8](repeating: 1, count: WireKind.longestMessage + 1))
    #expect(throws: WireError.self) { _ = try ends.server.receive() }
    try ends.worker.send([UInt8](repeating: 1, count: WireKind.longestMessage))
    #expect(try ends.server.receive().bytes.count == WireKind.longestMessage)
  }

  @Test(arguments: [(2, 1), (3, 1), (20, 1), (3, 2), (4, 2), (5, 2), (20, 2)])
  func `descriptors beyond the expected number are refused, and all are closed`(
    count: Int, expected: Int
  ) throws {
    let ends = try Ends()
    var pipe: [CInt] = [-1, -1]
    #expect(pictor_linux_pipe(&pipe) == 0)
    try sendDescriptors(Array(repeating: pipe[1], count: count), over: ends.worker.descriptor)
    #expect(throws: WireError.self) { _ = try ends.server.receive(passed: expected) }
    // Then: after our own writing end is closed, none is left, so the reading end sees the end
    close(pipe[1])
    // (a program that another test starts right now has a copy until its exec).
    try blockUntil("the end of the pipe") {
      var byte: UInt8 = 0
      return read(pipe[0], &byte, 1) == 0
    }
    close(pipe[0])
  }

  @Test func `two descriptors arrive in order if the receiver expects two`() throws {
    // given
    let ends = try Ends()
    let (first, second) = (try FileRegion.sealed([7]), try FileRegion.sealed([8, 9]))
    // when
    try ends.server.send([1], passing: first.descriptor, and: second.descriptor)
    var message = try ends.worker.receive(passed: 2)
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
    try ends.server.send([2], passing: first.descriptor)
    var plain = try ends.worker.receive(passed: 2)
    let hasFirst = plain.takeDescriptor() != nil
    let hasSecond = plain.takeDescriptor() != nil
    #expect(hasFirst && !hasSecond)
    withExtendedLifetime((first, second)) {}
  }

  /// Passes more than one descriptor, which Pictor never does, laid out by hand as CMSG_LEN and
  /// CMSG_DATA do.
  private func sendDescriptors(_ descriptors: [CInt], over socket: CInt) throws {
    let headerSize = MemoryLayout<cmsghdr>.size
    var control = [UInt8](repeating: 0, count: headerSize + descriptors.count * 4 + 8)
    let length = headerSize + descriptors.count * 4
    var byte: UInt8 = 1
    let sent = control.withUnsafeMutableBytes { control in
      control.storeBytes(of: length, as: Int.self)
      control.storeBytes(of: SOL_SOCKET, toByteOffset: 8, as: CInt.self)
      control.storeBytes(of: 1, toByteOffset: 12, as: CInt.self)  // SCM_RIGHTS
      for (index, descriptor) in descriptors.enumerated() {
        control.storeBytes(of: descriptor, toByteOffset: headerSize + index * 4, as: CInt.self)
      }
      return withUnsafeMutablePointer(to: &byte) { byte in
        var part = iovec(iov_base: byte, iov_len: 1)
        return withUnsafeMutablePointer(to: &part) { part in
          var message = msghdr()
          message.msg_iov = part
          message.msg_iovlen = 1
          message.msg_control = control.baseAddress
          message.msg_controllen = length
          return sendmsg(socket, &message, 0)
        }
      }
    }
    try #require(sent == 1)
  }
}

extension WireSocket {
  /// Whether the other end is closed. The connection must be empty and not block.
  fileprivate func isClosed() throws -> Bool {
    do {
      _ = try receive()
      return false
    } catch WireError.wouldBlock {
      return false
    } catch WireError.closed {
      return true
    }
  }
}

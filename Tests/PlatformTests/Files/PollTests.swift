// PollTests: tests of Poll with pipes.

import Core
import Glibc
import Testing

@Suite struct PollTests {
  /// Both ends of a pipe.
  private struct Pipe: ~Copyable {
    let reader: OwnedDescriptor
    let writer: OwnedDescriptor

    init() throws {
      var ends: [CInt] = [-1, -1]
      try #require(pipe(&ends) == 0)
      reader = OwnedDescriptor(owning: ends[0])
      writer = OwnedDescriptor(owning: ends[1])
    }
  }

  @Test func `a wait returns which descriptors are ready`() throws {
    // Given
    let silent = try Pipe()
    let full = try Pipe()
    try #require(write(full.writer.value, "x", 1) == 1)
    // When
    let ready = Poll.wait(for: [silent.reader.value, -1, full.reader.value], until: nil)
    // Then
    #expect(ready == [false, false, true])
  }

  @Test func `each descriptor can wait for its own events`() throws {
    let pipe = try Pipe()
    var set = Poll([(pipe.reader.value, .readable), (pipe.writer.value, .writable)])
    let isReady = set.wait(milliseconds: -1)
    #expect(isReady)
    #expect(set.events(of: 0).isEmpty)
    #expect(set.events(of: 1) == .writable)
  }

  @Test func `a wait ends at its deadline and clears earlier events`() throws {
    // Given
    let pipe = try Pipe()
    try #require(write(pipe.writer.value, "x", 1) == 1)
    var set = Poll([pipe.reader.value])
    set.wait(milliseconds: 0)
    #expect(set.events(of: 0) == .readable)
    var byte: UInt8 = 0
    try #require(read(pipe.reader.value, &byte, 1) == 1)
    // When
    let deadline = ContinuousClock.now + .milliseconds(5)
    let isReady = set.wait(until: deadline)
    // Then
    #expect(!isReady && set.events(of: 0).isEmpty)
    #expect(ContinuousClock.now >= deadline)
    let isLate = set.wait(until: deadline)
    #expect(!isLate)
  }

  @Test func `a closed pipe is ready`() throws {
    // Given
    var ends: [CInt] = [-1, -1]
    try #require(pipe(&ends) == 0)
    let reader = OwnedDescriptor(owning: ends[0])
    #expect(Poll.wait(for: [reader.value], until: .now) == [false])
    // When
    close(ends[1])
    // Then
    #expect(Poll.wait(for: [reader.value], until: nil) == [true])
  }
}

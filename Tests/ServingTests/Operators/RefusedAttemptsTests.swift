// RefusedAttemptsTests: wrong tokens are counted by network and minute, in a table of limited size.

import Core
import TestSupport
import Testing

@testable import Serving

@Suite struct RefusedAttemptsTests {
  private func address(_ text: String) throws -> IPAddress { try #require(IPAddress(text)) }

  private func refused(_ texts: [String], at now: Int = 0) throws -> RefusedAttempts {
    var attempts = RefusedAttempts()
    for text in texts { attempts.add(from: try address(text), at: now) }
    return attempts
  }

  @Test func `the tenth wrong token of a minute makes the network wait for the rest of it`() throws
  {
    // Given nine wrong tokens, spread over most of a minute
    let client = try address("198.51.100.7")
    var attempts = RefusedAttempts()
    for number in 0..<9 {
      attempts.add(from: client, at: 1_000 + number * 5_000)
      #expect(attempts.wait(of: client, at: 1_000 + number * 5_000) == nil, "\(number)")
    }
    // When
    attempts.add(from: client, at: 50_000)
    // Then it waits until a minute after the first
    #expect(attempts.wait(of: client, at: 50_000) == 11)
    #expect(attempts.wait(of: client, at: 60_999) == 1)
    #expect(attempts.wait(of: client, at: 61_000) == nil)
    // And has ten more attempts in the next minute
    for _ in 0..<9 { attempts.add(from: client, at: 61_000) }
    #expect(attempts.wait(of: client, at: 61_000) == nil)
    attempts.add(from: client, at: 61_000)
    #expect(attempts.wait(of: client, at: 61_000) == 60)
  }

  @Test(arguments: [
    ("198.51.100.7", "198.51.100.7", true), ("198.51.100.7", "198.51.100.8", false),
    ("198.51.100.7", "::ffff:198.51.100.7", true), ("2001:db8::1", "2001:db8::ffff:2", true),
    ("2001:db8::1", "2001:db8:0:1::1", false), ("::1", "127.0.0.1", false),
  ])
  func `addresses of one network share their attempts`(
    one: String, other: String, isShared: Bool
  ) throws {
    let attempts = try refused(Array(repeating: one, count: 10))
    #expect(try (attempts.wait(of: address(other), at: 0) != nil) == isShared)
  }

  @Test func `clients without an address share their attempts`() throws {
    var attempts = RefusedAttempts()
    for _ in 0..<10 { attempts.add(from: nil, at: 0) }
    #expect(attempts.wait(of: nil, at: 0) == 60)
    #expect(try attempts.wait(of: address("127.0.0.1"), at: 0) == nil)
  }

  @Test func `the table forgets the network whose minute began first`() throws {
    // Given a full table
    var attempts = try refused(Array(repeating: "192.0.2.1", count: 10))
    for number in 1..<RefusedAttempts.maximumNetworks {
      attempts.add(from: .v4(0x0a00_0000 + UInt32(number)), at: 1)
    }
    #expect(attempts.networkCount == RefusedAttempts.maximumNetworks)
    #expect(try attempts.wait(of: address("192.0.2.1"), at: 1) != nil)
    // When one more network sends a wrong token
    attempts.add(from: .v4(0x0b00_0000), at: 2)
    // Then
    #expect(attempts.networkCount == RefusedAttempts.maximumNetworks)
    #expect(try attempts.wait(of: address("192.0.2.1"), at: 2) == nil)
  }
}

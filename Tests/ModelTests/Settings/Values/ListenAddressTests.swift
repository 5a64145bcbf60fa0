// ListenAddressTests: the forms of a listening address, and which exclude each other.

import TestSupport
import Testing

@testable import Model

@Suite struct ListenAddressTests {
  @Test(arguments: [
    ("9090", "127.0.0.1:9090"), ("0", "127.0.0.1:0"), ("10.0.0.1:80", "10.0.0.1:80"),
    ("[::1]:9090", "[::1]:9090"), ("0.0.0.0:65535", "0.0.0.0:65535"), ("[::]:1", "[::]:1"),
  ])
  func `a port, or an address with a port, is read and written`(text: String, form: String) throws {
    let address = try #require(ListenAddress(text))
    #expect(address.description == form)
    #expect(ListenAddress(form) == address)
  }

  @Test(arguments: [
    "", ":", ":9090", "127.0.0.1", "127.0.0.1:", "127.0.0.1:65536", "127.0.0.1:-1", "::1:9090",
    "[::1]", "[127.0.0.1]:80", "localhost:9090", "127.0.0.1:80:80", "127.1:80", " 9090", "9090 ",
    "+1", "000080", "[::1:80", "::1]:80", "a",
  ])
  func `other texts are no address`(text: String) { #expect(ListenAddress(text) == nil) }

  @Test(arguments: [
    ("127.0.0.1:80", "127.0.0.1:80", true), ("127.0.0.1:80", "127.0.0.1:81", false),
    ("127.0.0.1:0", "127.0.0.1:0", false), ("127.0.0.1:80", "127.0.0.2:80", false),
    ("0.0.0.0:80", "127.0.0.1:80", true), ("0.0.0.0:80", "[::1]:80", false),
    ("[::]:80", "127.0.0.1:80", true), ("[::]:80", "[::1]:80", true),
    ("[::1]:80", "[0:0::1]:80", true), ("[::ffff:127.0.0.1]:80", "127.0.0.1:80", true),
  ])
  func `addresses overlap if one listener would take the other's connections`(
    one: String, other: String, overlap: Bool
  ) throws {
    let pair = (try #require(ListenAddress(one)), try #require(ListenAddress(other)))
    #expect(pair.0.overlaps(pair.1) == overlap)
    #expect(pair.1.overlaps(pair.0) == overlap)
  }
}

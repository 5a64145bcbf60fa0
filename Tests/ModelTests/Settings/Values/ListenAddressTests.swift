// ListenAddressTests: the forms of a listening address, and which exclude each other.

import TestSupport
import Testing

@testable import Core

@Suite struct ListenAddressTests {
  @Test(arguments: [
    ("9090", "127.0.0.1:9090"), ("0", "127.0.0.1:0"), ("10.0.0.1:80", "10.0.0.1:80"),
    ("[::1]:9090", "[::1]:9090"), ("0.0.0.0:65535", "0.0.0.0:65535"), ("[::]:1", "[::]:1"),
    ("unix:/run/p.sock", "unix:/run/p.sock"), ("unix:/a:1 b", "unix:/a:1 b"),
    ("unix:/" + String(repeating: "x", count: 106), "unix:/" + String(repeating: "x", count: 106)),
  ])
  func `a port, an address with a port, or a path is read and written`(text: String, form: String)
    throws
  {
    let address = try #require(ListenAddress(text))
    #expect(address.description == form)
    #expect(ListenAddress(form) == address)
  }

  @Test(arguments: [
    "", ":", ":9090", "127.0.0.1", "127.0.0.1:", "127.0.0.1:65536", "127.0.0.1:-1", "::1:9090",
    "[::1]", "[127.0.0.1]:80", "localhost:9090", "127.0.0.1:80:80", "127.1:80", " 9090", "9090 ",
    "+1", "000080", "[::1:80", "::1]:80", "a", "unix:", "unix:p.sock", "unix:/run/", "unix:/",
    "unix:/a\0b", "unix:/" + String(repeating: "x", count: 107), "unix:@name", "UNIX:/a",
  ])
  func `other texts are no address`(text: String) { #expect(ListenAddress(text) == nil) }

  @Test(arguments: [
    ("127.0.0.1:80", "127.0.0.1:80", true), ("127.0.0.1:80", "127.0.0.1:81", false),
    ("127.0.0.1:0", "127.0.0.1:0", false), ("127.0.0.1:80", "127.0.0.2:80", false),
    ("0.0.0.0:80", "127.0.0.1:80", true), ("0.0.0.0:80", "[::1]:80", false),
    ("[::]:80", "127.0.0.1:80", true), ("[::]:80", "[::1]:80", true),
    ("[::1]:80", "[0:0::1]:80", true), ("[::ffff:127.0.0.1]:80", "127.0.0.1:80", true),
    ("unix:/a", "unix:/a", true), ("unix:/a", "unix:/b", false), ("unix:/a", "0.0.0.0:80", false),
  ])
  func `addresses overlap if one listener would take the other's connections`(
    one: String, other: String, overlap: Bool
  ) throws {
    let pair = (try #require(ListenAddress(one)), try #require(ListenAddress(other)))
    #expect(pair.0.overlaps(pair.1) == overlap)
    #expect(pair.1.overlaps(pair.0) == overlap)
  }

  @Test(arguments: [
    ("[::]:80", "0.0.0.0:80", false), ("[::]:80", "127.0.0.1:80", false),
    ("[::]:80", "[::1]:80", true), ("[::]:80", "[::]:80", true), ("[::]:80", "[::]:81", false),
    ("0.0.0.0:80", "127.0.0.1:80", true), ("unix:/a", "unix:/a", true),
  ])
  func `one listener may have all IPv6 addresses and IPv4 addresses on a port`(
    one: String, other: String, isExcluded: Bool
  ) throws {
    let pair = (try #require(ListenAddress(one)), try #require(ListenAddress(other)))
    #expect(pair.0.excludes(pair.1) == isExcluded)
    #expect(pair.1.excludes(pair.0) == isExcluded)
  }

  @Test(arguments: [
    ("0.0.0.0:80", "127.0.0.1:80"), ("[::]:80", "[::1]:80"), ("10.0.0.1:80", "10.0.0.1:80"),
    ("unix:/a", "unix:/a"),
  ])
  func `a process of the machine reaches all interfaces on loopback`(one: String, other: String)
    throws
  {
    #expect(try #require(ListenAddress(one)).reachable == ListenAddress(other))
  }
}

// HopNameTests: tests of HopName.

import Core
import Testing

@testable import Downloading

@Suite(.onOwnThreads) struct HopNameTests {
  private func name(_ url: String) throws -> HopName? {
    HopName(try DownloadTarget(SourceURL(parsing: url), hosts: HostPolicy()))
  }

  @Test func `only names are for the resolver`() throws {
    #expect(try name("http://Images.EXAMPLE/a")?.name == "images.example")
    #expect(try name("http://images.example./a")?.name == "images.example.")
    for host in ["127.0.0.1", "127.1", "[::1]", "localhost", "a.localhost", "LOCALHOST."] {
      #expect(try name("http://\(host)/a") == nil, "\(host)")
      #expect(HopName(proxy: "http://\(host):3128") == nil, "\(host)")
    }
    #expect(HopName(proxy: "http://user:secret@Proxy.example:3128")?.name == "proxy.example")
  }

  @Test func `curl gets all addresses, for both forms of a rooted name`() throws {
    let addresses = try ["2001:db8::1", "192.0.2.1"].map { try #require(IPAddress($0)) }
    #expect(
      try name("http://a.example/")?.lines(addresses) == [
        "+a.example:80:[2001:db8::1],192.0.2.1"
      ])
    #expect(
      try name("https://a.example./")?.lines(addresses) == [
        "+a.example:443:[2001:db8::1],192.0.2.1", "+a.example.:443:[2001:db8::1],192.0.2.1",
      ])
    #expect(
      HopName(proxy: "http://proxy.example:3128")?.lines([addresses[1]]) == [
        "+proxy.example:3128:192.0.2.1"
      ])
  }

  @Test func `text that is not a name is not passed on`() throws {
    for host in ["a", "a.b", "a_b.c", "xn--bcher-kva.example", "a.b."] {
      #expect(HopName(proxy: "http://\(host):1")?.isValid == true, "\(host)")
    }
    let long = String(repeating: "a", count: 64)
    for host in ["a..b", long, String(repeating: "a.", count: 130)] {
      #expect(HopName(proxy: "http://\(host):1")?.isValid == false, "\(host)")
    }
  }
}

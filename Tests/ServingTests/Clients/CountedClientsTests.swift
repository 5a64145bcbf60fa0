// CountedClientsTests: which clients have a share, and what counts as one client.

import Core
import Testing

@testable import Serving

@Suite struct CountedClientsTests {
  private let clients: CountedClients

  init() throws {
    var proxies = TrustedProxies()
    proxies.networks = [try #require(CIDR("10.0.0.0/8")), try #require(CIDR("fd00::/8"))]
    clients = CountedClients(proxies: proxies)
  }

  @Test(arguments: [
    ("198.51.100.7", "198.51.100.7"), ("::ffff:198.51.100.7", "198.51.100.7"),
    ("2001:db8:1:2:3::4", "2001:db8:1:2::"), ("2001:db8:1:2::", "2001:db8:1:2::"),
  ])
  func `a client is an IPv4 address or the 64 bits of an IPv6 network`(
    address: String, network: String
  ) throws {
    let address = try #require(IPAddress(address))
    #expect(clients.network(of: NamedClient(address: address))?.description == network)
  }

  @Test(arguments: ["10.1.2.3", "::ffff:10.1.2.3", "fd12::1", "127.0.0.1", "127.9.9.9", "::1"])
  func `trusted proxies and the machine itself have no share`(address: String) throws {
    let address = try #require(IPAddress(address))
    #expect(clients.network(of: NamedClient(address: address)) == nil)
    #expect(clients.network(of: NamedClient(address: nil)) == nil)
    // But disputed clients of a proxy have one in common
    let disputed = NamedClient(address: address, isDisputed: true)
    #expect(clients.network(of: disputed) == address.clientNetwork)
    #expect(clients.network(of: NamedClient(address: nil, isDisputed: true)) != nil)
  }
}

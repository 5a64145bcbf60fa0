// AddressPolicyTests: tests of IPAddress, CIDR and AddressPolicy.

import Core
import Downloading
import TestSupport
import Testing

@Suite(.onOwnThreads) struct AddressPolicyTests {
  private let policy = AddressPolicy()

  @Test(arguments: [
    "0.0.0.0", "0.1.2.3", "10.0.0.1", "10.255.255.255", "100.64.0.0", "100.127.255.255",
    "127.0.0.1", "127.255.255.254", "169.254.169.254", "172.16.0.1", "172.31.255.255",
    "192.0.0.1", "192.0.2.1", "192.88.99.1", "192.168.0.1", "192.168.255.255", "198.18.0.1",
    "198.19.255.255", "198.51.100.7", "203.0.113.9", "224.0.0.1", "239.255.255.255", "240.0.0.1",
    "255.255.255.255",
  ])
  func `an IPv4 address that is not public is refused`(_ text: String) throws {
    let address = try #require(IPAddress(text))
    let refusal = try #require(policy.refusal(of: address))
    #expect(refusal.hasPrefix(text + " ("))
  }

  @Test(arguments: [
    "1.1.1.1", "8.8.8.8", "9.255.255.255", "11.0.0.0", "100.63.255.255", "100.128.0.0",
    "126.255.255.255", "128.0.0.0", "169.253.255.255", "169.255.0.0", "172.15.255.255",
    "172.32.0.0", "192.0.1.0", "192.0.3.0", "192.167.255.255", "192.169.0.0", "198.17.255.255",
    "198.20.0.0", "223.255.255.255",
  ])
  func `a public IPv4 address is allowed, even beside a reserved range`(_ text: String) throws {
    #expect(policy.refusal(of: try #require(IPAddress(text))) == nil)
  }

  @Test(arguments: [
    "::", "::1", "::2", "100::1", "2001::1", "2001:2::1", "2001:10::1", "2001:20::1",
    "2001:1ff:ffff::1", "2001:db8::1", "3fff::1", "3fff:fff::1", "5f00::1", "4000::1", "fc00::1",
    "fd00::1", "fdff:ffff::1", "fe80::1", "febf::1", "fec0::1", "feff::1", "ff02::1", "ff0e::1",
    "64:ff9b:1::1", "64:ff9b:1:ffff::8.8.8.8", "64:ff9b:1::8.8.8.8", "64:ff9b:2::1",
  ])
  func `an IPv6 address that is not global unicast is refused`(_ text: String) throws {
    #expect(policy.refusal(of: try #require(IPAddress(text))) != nil)
  }

  @Test(arguments: [
    "2606:4700:4700::1111", "2001:4860:4860::8888", "2001:200::1", "2a00::1", "3ffe::1",
    "3fff:1000::1", "2620:fe::fe",
  ])
  func `a global unicast address is allowed`(_ text: String) throws {
    #expect(policy.refusal(of: try #require(IPAddress(text))) == nil)
  }

  @Test(arguments: [
    ("mapped", "::ffff:127.0.0.1"), ("mapped in hexadecimal", "::ffff:7f00:1"),
    ("mapped private", "::ffff:10.1.2.3"), ("mapped carrier NAT", "::ffff:100.64.0.1"),
    ("mapped unspecified", "::ffff:0.0.0.0"), ("mapped metadata", "::ffff:169.254.169.254"),
    ("compatible", "::127.0.0.1"), ("compatible private", "::10.0.0.1"),
    ("compatible public: deprecated, not global unicast", "::8.8.8.8"),
    ("translated", "::ffff:0:127.0.0.1"), ("6to4 loopback", "2002:7f00:1::1"),
    ("6to4 private", "2002:c0a8:101::1"), ("6to4 carrier NAT", "2002:6440:1::"),
    ("NAT64", "64:ff9b::127.0.0.1"), ("NAT64 private", "64:ff9b::192.168.1.1"),
    ("NAT64 metadata", "64:ff9b::a9fe:a9fe"), ("local NAT64", "64:ff9b:1::10.0.0.1"),
    ("Teredo to a private client", "2001:0:808:808:0:0:f5ff:fffe"),
    ("Teredo by a private server", "2001:0:a00:1:0:0:f7f7:f7f7"),
    ("Teredo, both public", "2001:0:808:808:0:0:f7f7:f7f7"),
    ("ISATAP", "2606:4700::5efe:127.0.0.1"), ("ISATAP, universal", "2606:4700::200:5efe:10.0.0.1"),
    ("ISATAP, link-local", "fe80::5efe:8.8.8.8"),
  ])
  func `an IPv6 address that embeds a reserved IPv4 address is refused`(
    form: String, text: String
  ) throws {
    #expect(policy.refusal(of: try #require(IPAddress(text))) != nil, "\(form)")
  }

  @Test(arguments: [
    "::ffff:8.8.8.8", "64:ff9b::8.8.8.8", "2002:808:808::1", "2606:4700::5efe:8.8.8.8",
    "::ffff:0:8.8.8.8",
  ])
  func `an IPv6 address that embeds a public IPv4 address is allowed`(_ text: String) throws {
    #expect(policy.refusal(of: try #require(IPAddress(text))) == nil)
  }

  @Test func `an allowed network allows its addresses in every form`() throws {
    // Given
    let policy = AddressPolicy(
      allowedNetworks: try ["10.0.0.0/8", "fd00::/8"].map { try #require(CIDR($0)) })
    func isLetThrough(_ text: String) throws -> Bool {
      policy.refusal(of: try #require(IPAddress(text))) == nil
    }
    // Then
    for text in [
      "10.1.2.3", "::ffff:10.1.2.3", "::10.1.2.3", "64:ff9b::10.1.2.3", "2002:a01:203::1",
      "2606::5efe:10.1.2.3", "fd12::1", "8.8.8.8",
    ] {
      #expect(try isLetThrough(text), "\(text)")
    }
    for text in [
      "127.0.0.1", "::ffff:127.0.0.1", "fc00::1", "192.168.0.1",
      // Teredo has two addresses inside, and both must be allowed.
      "2001:0:a00:1:0:0:80ff:fffe", "fe80::5efe:127.0.0.1",
    ] {
      #expect(try !isLetThrough(text), "\(text)")
    }
  }

  /// Endpoints of clouds, and IPv6 addresses that lead to them.
  private static let cloudAddresses = [
    "169.254.169.254", "169.254.170.2", "169.254.0.23", "168.63.129.16", "100.100.100.200",
    "192.0.0.192", "161.26.0.10", "166.8.0.14", "166.11.255.255", "fd00:ec2::254", "fd20:ce::254",
    "fd00:42::42", "fd00:c1::a9fe:a9fe", "::ffff:168.63.129.16", "::ffff:0:168.63.129.16",
    "64:ff9b::168.63.129.16", "64:ff9b::a9fe:a9fe", "2002:a83f:8110::1", "2002:a9fe:a9fe::",
    "2606:4700::5efe:168.63.129.16", "2001:0:a83f:8110:0:0:f7f7:f7f7",
    // Local NAT64, in each place of the IPv4 address (RFC 6052, section 2.2).
    "64:ff9b:1::a9fe:a9fe", "64:ff9b:1:a9fe:a9:fe00::", "64:ff9b:1:a9:fe:a9fe::",
    "64:ff9b:1:0:a9:fea9:fe00:0",
  ]

  @Test(arguments: cloudAddresses)
  func `an endpoint of a cloud is refused, even if wider networks are allowed`(text: String) throws
  {
    let address = try #require(IPAddress(text))
    for allowed in [
      [], ["0.0.0.0/0", "::/0"], ["100.64.0.0/10", "fd00::/8", "fc00::/7", "168.0.0.0/8"],
      ["64:ff9b::/96", "64:ff9b:1::/48", "::ffff:0:0/96", "2002::/16", "192.0.0.0/24"],
    ] {
      let policy = AddressPolicy(allowedNetworks: try allowed.map { try #require(CIDR($0)) })
      let refusal = try #require(policy.refusal(of: address), "\(allowed)")
      #expect(refusal.hasPrefix("\(address) ("))
    }
  }

  @Test(arguments: [
    ("169.254.169.254/32", "169.254.169.254"), ("169.254.0.0/16", "169.254.169.254"),
    ("168.63.129.16", "168.63.129.16"), ("100.100.100.200/32", "100.100.100.200"),
    ("166.8.0.0/14", "166.9.1.1"), ("fd00:ec2::254", "fd00:ec2::254"),
    ("168.63.129.16", "::ffff:168.63.129.16"), ("169.254.169.254", "64:ff9b::a9fe:a9fe"),
    ("64:ff9b::a9fe:a9fe", "64:ff9b::a9fe:a9fe"),
  ])
  func `an endpoint of a cloud is allowed by naming it`(network: String, text: String) throws {
    let policy = AddressPolicy(allowedNetworks: [try #require(CIDR(network))])
    #expect(policy.refusal(of: try #require(IPAddress(text))) == nil)
    let others = try Self.cloudAddresses.map { try #require(IPAddress($0)) }
    #expect(others.contains { policy.refusal(of: $0) != nil })
  }

  @Test(arguments: [
    "168.63.129.15", "168.63.129.17", "161.25.255.255", "161.27.0.0", "166.7.255.255", "166.12.0.0",
    "64:ff9b::168.63.129.17",
  ])
  func `an address beside an endpoint of a cloud is allowed`(text: String) throws {
    #expect(policy.refusal(of: try #require(IPAddress(text))) == nil)
  }

  @Test func `an allowed IPv6 network does not allow the IPv4 addresses that it embeds`() throws {
    let policy = AddressPolicy(allowedNetworks: [try #require(CIDR("::ffff:127.0.0.0/104"))])
    #expect(policy.refusal(of: try #require(IPAddress("::ffff:127.0.0.1"))) == nil)
    #expect(policy.refusal(of: try #require(IPAddress("127.0.0.1"))) != nil)
  }

  @Test(arguments: [
    ("10.0.0.0/8", "10.0.0.0/8"), ("0.0.0.0/0", "0.0.0.0/0"), ("::/0", "::/0"),
    ("192.0.2.1", "192.0.2.1/32"), ("2001:db8::/33", "2001:db8::/33"), ("fe80::1", "fe80::1/128"),
    ("2001:db8:0:0:8000::/65", "2001:db8:0:0:8000::/65"), ("128.0.0.0/1", "128.0.0.0/1"),
  ])
  func `a network is parsed and printed in canonical form`(text: String, canonical: String)
    throws
  {
    #expect(try #require(CIDR(text)).description == canonical)
  }

  @Test(arguments: [
    "", "/", "/8", "10.0.0.0/", "10.0.0.0/33", "10.0.0.0/-1", "10.0.0.0/+8", "10.0.0.0/8/8",
    "10.0.0.1/8", "10/8", "::/129", "2001:db8::1/64", "localhost", "10.0.0.0/8 ", "127.1",
    "0x7f.0.0.1", "[::1]", "fe80::1%lo", "10.0.0.0/٨",
  ])
  func `a malformed network is refused`(_ text: String) {
    #expect(CIDR(text) == nil)
  }

  @Test func `a network contains exactly the addresses of its prefix`() throws {
    for (network, inside, outside) in [
      ("172.16.0.0/12", ["172.16.0.0", "172.31.255.255"], ["172.15.255.255", "172.32.0.0", "::"]),
      ("0.0.0.0/0", ["0.0.0.0", "255.255.255.255"], ["::1", "::ffff:1.2.3.4"]),
      ("::/0", ["::", "ffff::1"], ["0.0.0.0"]),
      ("2001:db8::/32", ["2001:db8::", "2001:db8:ffff::1"], ["2001:db9::", "2001:db7::"]),
      ("2001:db8::8000/113", ["2001:db8::8000", "2001:db8::ffff"], ["2001:db8::7fff"]),
      ("2001:db8::1/128", ["2001:db8::1"], ["2001:db8::2", "2001:db8::"]),
    ] {
      let cidr = try #require(CIDR(network))
      for text in inside { #expect(cidr.contains(try #require(IPAddress(text))), "\(text)") }
      for text in outside { #expect(!cidr.contains(try #require(IPAddress(text))), "\(text)") }
    }
  }
}

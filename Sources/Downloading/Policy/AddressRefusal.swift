// AddressRefusal: decides whether a socket may be opened to an address.

import CCurl
import Model
import Platform

extension TransferRules {
  /// Returns why a connection to `address` is refused; `nil` if it is allowed.
  ///
  /// Reads curl's own structure: an IPv6 address is longer than the `sockaddr` in a copy of it.
  func refusal(of address: UnsafePointer<curl_sockaddr>, port: Int) -> ImageError? {
    guard let offset = MemoryLayout<curl_sockaddr>.offset(of: \.addr),
      let ip = IPAddress(
        UnsafeRawPointer(address) + offset, length: Int(address.pointee.addrlen))
    else { return .refusedAddress("an address that is no IP address") }
    // The server's own address is refused even if its network is allowed.
    if own.isReached(by: ip, port: port) {
      return .forbiddenSource(reason: "it is this server itself", detail: "\(ip), port \(port)")
    }
    return addresses.refusal(of: ip).map { .refusedAddress($0) }
  }
}

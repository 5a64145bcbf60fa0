// AddressRefusal: why no socket is opened to an address.

import CCurl
import Model

extension TransferRules {
  /// Why `address` may not be connected to; `nil`: it may.
  ///
  /// Read where curl has it: an IPv6 address is longer than the `sockaddr` that the structure's copy would hold.
  func refusal(of address: UnsafePointer<curl_sockaddr>, port: Int) -> ImageError? {
    guard let offset = MemoryLayout<curl_sockaddr>.offset(of: \.addr),
      let ip = IPAddress(
        UnsafeRawPointer(address) + offset, length: Int(address.pointee.addrlen))
    else { return .refusedAddress("an address that is no IP address") }
    // Whatever networks are allowed.
    if own.isReached(by: ip, port: port) {
      return .forbiddenSource(reason: "it is this server itself", detail: "\(ip), port \(port)")
    }
    return addresses.refusal(of: ip).map { .refusedAddress($0) }
  }
}

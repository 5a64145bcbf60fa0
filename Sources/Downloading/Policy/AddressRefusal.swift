// AddressRefusal: decides whether a socket may be opened to an address.

import CCurl
import Model
import Platform

extension TransferRules {
  /// Returns why a connection to `address` is refused; `nil` if it is allowed.
  ///
  /// To clients, a name whose address is refused looks like a name that does not exist. Otherwise they
  /// could find out the names of a private network. The one exception is this server itself at an
  /// address that is not refused otherwise.
  ///
  /// Reads curl's own structure: an IPv6 address is longer than the `sockaddr` in a copy of it.
  func refusal(
    of address: UnsafePointer<curl_sockaddr>, for target: DownloadTarget
  ) -> ImageError? {
    guard let ip = Self.ip(of: address)
    else { return .refused("the address is not an IP address", isNamed: target.isNamed) }
    return refusal(of: ip, for: target)
  }

  /// Does the same for an address that curl does not connect to, or is connected to already.
  func refusal(of ip: IPAddress, for target: DownloadTarget) -> ImageError? {
    let refusal = addresses.refusal(of: ip)
    if let refusal, target.isNamed { return .refused(refusal, isNamed: true) }
    // The server's own address is refused even if its network is allowed.
    if own.isReached(by: ip, port: target.url.port) {
      return .forbiddenSource(
        reason: "it is this server itself", detail: "\(ip), port \(target.url.port)")
    }
    return refusal.map { .refused($0, isNamed: false) }
  }

  /// Returns an address with the target's port, for operators.
  func text(of address: UnsafePointer<curl_sockaddr>, for target: DownloadTarget) -> String {
    "\(Self.ip(of: address)?.description ?? "?") port \(target.url.port)"
  }

  private static func ip(of address: UnsafePointer<curl_sockaddr>) -> IPAddress? {
    guard let offset = MemoryLayout<curl_sockaddr>.offset(of: \.addr) else { return nil }
    return IPAddress(UnsafeRawPointer(address) + offset, length: Int(address.pointee.addrlen))
  }
}

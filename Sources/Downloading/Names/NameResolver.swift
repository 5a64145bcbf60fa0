// NameResolver: looks names up on threads of its own.

import Glibc
import Platform

/// Looks names up, each on a thread of its own, which ends with the answer. `NameTable` limits their
/// number.
///
/// A stuck thread cannot be ended. It has no reference to the downloader, so a shut-down neither waits
/// for it nor frees what it uses.
final class NameResolver: Sendable {
  /// Returns the addresses of a name. May block.
  typealias Look = @Sendable (String) -> NameAnswer
  typealias Deliver = @Sendable (String, NameAnswer) -> Void

  private let look: Look
  /// Receives the answers; `nil` after the shut-down.
  private let deliver: Lock<Deliver?>

  /// Creates a resolver.
  ///
  /// - Parameters:
  ///   - look: looks up one name, on a thread of its own.
  ///   - deliver: receives each answer, on any thread.
  init(_ look: @escaping Look, deliver: @escaping Deliver) {
    self.look = look
    self.deliver = Lock(deliver)
  }

  /// Starts a look-up.
  func resolve(_ name: String) {
    do throws(SystemError) {
      try OwnThread.start(name: "pictor-name", rank: .work) { [look, deliver] in
        let answer = look(name)
        deliver.withLock { $0 }?(name, answer)
      }
    } catch {
      deliver.withLock { $0 }?(name, .failure(.temporary("no thread: \(error)")))
    }
  }

  /// Delivers no further answers. Does not wait for look-ups.
  func shutDown() { deliver.withLock { $0 = nil } }
}

/// The system's resolver.
enum SystemNames {
  /// Maximum number of addresses of a name that are used.
  private static let limit = 16

  /// Returns the addresses of a name in the order in which they are to be tried (RFC 6724). Blocks
  /// until the resolver answers, without a limit.
  ///
  /// Names whose last label is `invalid` do not exist, and no resolver is asked for them (RFC 6761,
  /// section 6.4).
  static func addresses(of name: String) -> NameAnswer {
    let labels = name.split(separator: ".")
    if labels.last?.lowercased() == "invalid" {
      return .failure(.unknown("invalid is not a domain"))
    }
    var hints = addrinfo()
    hints.ai_family = AF_UNSPEC
    hints.ai_socktype = CInt(SOCK_STREAM.rawValue)
    var list: UnsafeMutablePointer<addrinfo>?
    let status = getaddrinfo(name, nil, &hints, &list)
    guard status == 0 else { return .failure(failure(of: status, errno: errno)) }
    defer { freeaddrinfo(list) }
    var addresses: [IPAddress] = []
    var next = list
    while let entry = next?.pointee, addresses.count < limit {
      if let address = entry.ai_addr.flatMap({
        IPAddress(UnsafeRawPointer($0), length: Int(entry.ai_addrlen))
      }), !addresses.contains(address) {
        addresses.append(address)
      }
      next = entry.ai_next
    }
    return addresses.isEmpty ? .failure(.unknown("no addresses")) : .success(addresses)
  }

  /// Returns what a status of getaddrinfo(3) other than 0 says about a name.
  ///
  /// - Parameters:
  ///   - status: `EAI_…`.
  ///   - number: `errno` after the call; counts for `EAI_SYSTEM` alone.
  static func failure(of status: CInt, errno number: CInt) -> NameFailure {
    switch status {
    // -5 and -9: no address, or none of these families; GNU extensions (getaddrinfo(3)).
    case EAI_NONAME, -5, -9: .unknown(String(cString: gai_strerror(status)))
    case EAI_SYSTEM: .temporary(SystemError(number).description)
    default: .temporary(String(cString: gai_strerror(status)))
    }
  }
}

extension DownloaderConfiguration {
  /// The limits of look-ups.
  var nameLimits: NameTable.Limits {
    var limits = NameTable.Limits()
    limits.threads = max(nameLimit, 1)
    limits.deadline = settings.connectTimeout
    limits.lifetime = dnsCacheLifetime
    limits.negativeLifetime = unknownNameLifetime
    return limits
  }

  /// Returns the answer for a name: a known one's, or the resolver's. May block.
  var answer: NameResolver.Look {
    let known = Dictionary(
      knownAddresses.compactMap { line -> (String, [IPAddress])? in
        let parts = line.split(separator: ":", maxSplits: 2).map(String.init)
        return parts.count == 3 ? IPAddress(parts[2]).map { (parts[0], [$0]) } : nil
      }, uniquingKeysWith: +)
    return { [lookUp] name in known[name].map { .success($0) } ?? lookUp(name) }
  }
}

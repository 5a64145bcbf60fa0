// ActivatedSockets: the listening sockets that systemd, or a manager like it, has opened.

import CSystemd
import Core
import Glibc
import Serving

/// The sockets of socket activation (sd_listen_fds(3)), by what they are for.
enum ActivatedSockets {
  /// The name of sockets for operators (`FileDescriptorName=`). All others are for clients.
  private static let operatorName = "operator"

  /// Takes the sockets and removes the variables that announce them. Must be called once, before
  /// there are other threads. Adds sockets that cannot be used to `problems`.
  static func take(into problems: inout ConfigurationProblems) -> InheritedSockets {
    var sockets = InheritedSockets()
    var names: UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>?
    // libsystemd closes them on exec, so a worker never has one.
    let count = sd_listen_fds_with_names(1, &names)
    guard count >= 0 else {
      problems.add(line: "LISTEN_FDS: \(errnoText(-count))")
      return sockets
    }
    defer {
      for index in 0..<Int(count) { free(names?[index]) }
      free(names)
    }
    for index in 0..<count {
      let descriptor = SD_LISTEN_FDS_START + index
      let name = names?[Int(index)].map { String(cString: $0) } ?? ""
      guard sd_is_socket(descriptor, AF_UNSPEC, CInt(SOCK_STREAM.rawValue), 1) > 0,
        InheritedSockets.address(of: descriptor) != nil
      else {
        problems.add(
          line:
            "LISTEN_FDS: descriptor \(descriptor), '\(name)', is not a stream socket that listens on "
            + "IPv4, IPv6 or a path")
        continue
      }
      if name == operatorName {
        sockets.operators.append(descriptor)
      } else {
        sockets.clients.append(descriptor)
      }
    }
    return sockets
  }
}

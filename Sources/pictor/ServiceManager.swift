// ServiceManager: what systemd, or a manager with its protocol, gives the server and hears of it.

import CSystemd
import Core
import Glibc
import Serving

/// The service manager that started the program. Without `NOTIFY_SOCKET`, there is none.
///
/// The messages are those of sd_notify(3). libsystemd sends each in one datagram and does not wait.
struct ServiceManager: Sendable {
  /// The time after which the manager takes a silent program for hung; `nil` if it does not watch.
  private let patience: Duration?

  /// Reads what the manager wants (sd_watchdog_enabled(3)).
  init() {
    var microseconds: UInt64 = 0
    let isWatched = sd_watchdog_enabled(0, &microseconds) > 0
    patience = isWatched ? .microseconds(Int64(clamping: microseconds)) : nil
  }

  /// The server listens, or a reload has ended.
  func reportServing() { send("READY=1") }

  /// The configuration is read again. systemd 253 and later tell this reload from an earlier one by
  /// its time.
  func reportReloading() {
    var now = timespec()
    clock_gettime(CLOCK_MONOTONIC, &now)
    send("RELOADING=1\nMONOTONIC_USEC=\(now.tv_sec * 1_000_000 + now.tv_nsec / 1_000)")
  }

  /// The server stops, or is about to.
  func reportStopping() { send("STOPPING=1") }

  /// Starts to tell a watching manager at regular intervals that the server responds.
  ///
  /// - Parameter responds: whether the server responds in time. Called on its own thread.
  func watch(log: Log, responds: @escaping @Sendable (_ time: Duration) -> Bool) {
    guard let patience else { return }
    // At most half of the patience, as sd_watchdog_enabled(3) recommends: the check takes time.
    let interval = max(patience / 4, .milliseconds(5))
    do throws(SystemError) {
      try OwnThread.start(name: "pictor-watchdog", rank: .foreground) { [self] in
        while true {
          if responds(interval) {
            send("WATCHDOG=1")
          } else {
            log.error("the server does not respond", fields: ["within": .string("\(interval)")])
          }
          let (seconds, attoseconds) = interval.components
          var rest = timespec(tv_sec: Int(seconds), tv_nsec: Int(attoseconds / 1_000_000_000))
          nanosleep(&rest, nil)
        }
      }
    } catch {
      log.error("no watchdog thread", fields: ["reason": .string("\(error)")])
    }
  }

  private func send(_ message: String) { sd_notify(0, message) }
}

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

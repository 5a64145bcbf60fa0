// TLSCertificates: the certificate that new connections get, and its replacement at run time.

import Glibc
import Model
import Platform
import Telemetry

/// The certificate of a server, read again from its files.
///
/// A connection keeps the certificate with which it began, so a replacement ends none.
public final class TLSCertificates: Sendable {
  /// What tells one version of the files from another.
  private struct Version: Equatable {
    var stamps: [Int] = []

    init(_ paths: [String]) {
      for path in paths {
        var status = stat()
        // A missing file is a version, too.
        guard stat(path, &status) == 0 else {
          stamps.append(-1)
          continue
        }
        stamps += [
          Int(status.st_ino), Int(status.st_size), status.st_mtim.tv_sec, status.st_mtim.tv_nsec,
        ]
      }
    }
  }

  private struct State {
    var identity: TLSIdentity
    var version: Version
  }

  private let certificate: String
  private let key: String
  private let state: Lock<State>

  /// Reads the certificate and the key from these paths.
  public init(certificate: String, key: String) throws(TLSError) {
    self.certificate = certificate
    self.key = key
    let version = Version([certificate, key])
    let identity = try TLSIdentity(certificate: certificate, key: key)
    state = Lock(State(identity: identity, version: version))
  }

  /// The certificate of new connections.
  public var current: TLSIdentity { state.withLock { $0.identity } }

  /// Reads the files again, if they have changed or `always`. Files that cannot be used keep the current certificate,
  /// and are reported once for each change.
  ///
  /// One thread or task at a time calls it: files are read outside the lock.
  public func reload(always: Bool = false, log: Log) {
    let version = Version([certificate, key])
    guard always || version != state.withLock({ $0.version }) else { return }
    do throws(TLSError) {
      let identity = try TLSIdentity(certificate: certificate, key: key)
      state.withLock { state in
        state.identity = identity
        state.version = version
      }
      log.info(
        "the certificate was reloaded",
        fields: ["certificate": .string(certificate), "expires": .int(identity.expiry)])
      for warning in identity.warnings { log.warning(warning) }
    } catch {
      state.withLock { $0.version = version }
      log.error(
        "the certificate was not reloaded; the previous one stays",
        fields: ["reason": .string(error.description)])
    }
  }
}

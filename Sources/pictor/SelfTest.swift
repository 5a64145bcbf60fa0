// SelfTest: runs the self-tests of the command line with the loaded configuration.

import Commanding
import Core
import Downloading
import Glibc

/// `pictor selftest …`. Needs no running server: it reads the configuration that the server would
/// read, and uses the server's own downloader, which connects to nothing.
enum SelfTest {
  /// Runs the security test. Returns the exit status.
  ///
  /// - Throws: what cannot be used in the configuration.
  static func security(
    _ configuration: Configuration, environment: [String: String]
  ) throws(ConfigurationError) -> CInt {
    let parts = try PartConfigurations(configuration, environment: environment)
    let server = configuration.server
    let probe: SourceProbe
    do throws(ImageError) {
      probe = try SourceProbe(
        parts.downloader, local: parts.local, own: server.listenAddresses)
    } catch {
      reportError(error.logDetail ?? error.message)
      return 1
    }
    let cases = SecurityCase.all(
      ownPort: server.clientAddresses.lazy.compactMap(\.port).first ?? server.port,
      hostName: hostName())
    return SecuritySelfTest(cases).run { test in
      switch waiting(for: { await probe.finding(for: test.source, isRedirect: test.isRedirect) }) {
      case .open(let endpoint): (true, endpoint)
      case .refused(let error):
        (false, "refused: \(error.code), \(error.logDetail ?? error.message)")
      }
    }
  }

  private static func hostName() -> String {
    var name = [CChar](repeating: 0, count: 256)
    guard gethostname(&name, name.count - 1) == 0 else { return "" }
    return String(decoding: name.prefix { $0 != 0 }.map(UInt8.init(bitPattern:)), as: UTF8.self)
  }
}

// HealthCheck: checks the health of a running server, for containers without curl.

import Core
import Glibc

/// `pictor healthcheck`: requests `GET /stats` with a deadline. The server is healthy if the status
/// is 200.
public struct HealthCheck {
  private let client: ServerClient
  /// Replaced by tests, as all below.
  var deadlineSeconds = 3
  var console = Console.standard

  /// Creates a check of the configured server. It takes at most three seconds.
  public init(_ configuration: ServerSettings) { client = ServerClient(configuration) }

  /// Returns the status and the text of a page of the server; `nil` if none answers.
  public func answer(at target: String) -> (status: Int, text: String)? {
    let answer = try? client.request(.get, target: target, seconds: deadlineSeconds)
    return answer.map { ($0.status, String(decoding: $0.body, as: UTF8.self)) }
  }

  /// Performs the check. Returns the exit status: 0 if the server is healthy, otherwise 1 with a
  /// line on standard error.
  public func run() -> CInt {
    do throws(ServerClient.Failure) {
      let answer = try client.request(.get, target: "/stats", seconds: deadlineSeconds)
      guard answer.status == 200 else {
        console.reportError("the server at \(client.serverName) responded with \(answer.status)")
        return 1
      }
      return 0
    } catch {
      console.reportError(error.description)
      return 1
    }
  }
}

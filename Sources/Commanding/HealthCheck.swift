// HealthCheck: asks a running server for its health, for containers that have no curl.

import Configuring
import Glibc

/// `pictor healthcheck`: `GET /stats` with a deadline; serving is 200.
public struct HealthCheck {
  private let client: ServerClient
  private let seconds: Int
  private let console: Console

  /// A check of the server that `configuration` describes; it takes three seconds at most.
  public init(_ configuration: Configuration.Server) {
    self.init(configuration, seconds: 3, console: .standard)
  }

  init(_ configuration: Configuration.Server, seconds: Int, console: Console) {
    client = ServerClient(configuration)
    (self.seconds, self.console) = (seconds, console)
  }

  /// The exit status: 0 when the server is serving, 1 with a line on standard error otherwise.
  public func run() -> CInt {
    do throws(ServerClient.Failure) {
      let answer = try client.request("GET", "/stats", seconds: seconds)
      guard answer.status == 200 else {
        console.complain("the server at \(client.place) answered \(answer.status)")
        return 1
      }
      return 0
    } catch {
      console.complain(error.description)
      return 1
    }
  }
}

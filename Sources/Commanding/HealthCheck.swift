// HealthCheck: asks a running server for its health, for containers that have no curl.

import Configuring
import Glibc

/// `pictor healthcheck`: `GET /stats` with a deadline; serving is 200.
public struct HealthCheck {
  private let client: ServerClient

  /// A check of the server that `configuration` describes.
  public init(_ configuration: Configuration.Server) {
    client = ServerClient(configuration, seconds: 3)
  }

  /// The exit status: 0 when the server is serving, 1 with a line on standard error otherwise.
  public func run() -> CInt {
    do throws(ServerClient.Failure) {
      let answer = try client.request("GET", "/stats")
      guard answer.status == 200 else {
        complain("the server at \(client.place) answered \(answer.status)")
        return 1
      }
      return 0
    } catch {
      complain(error.description)
      return 1
    }
  }
}

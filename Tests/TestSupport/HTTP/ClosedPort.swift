// ClosedPort: a port of 127.0.0.1 that refuses connections.

import Core

/// A port that is taken and not listened on, so no other test gets it meanwhile.
public final class ClosedPort: Sendable {
  /// The number of the port.
  public let port: Int
  private let socket: OwnedDescriptor

  /// Takes a free port until the object is released.
  public init() throws {
    let place = try OriginSocket.bind(to: "127.0.0.1", port: 0)
    socket = OwnedDescriptor(owning: place.descriptor)
    port = place.port
  }

  /// Returns the `http` URL of a path at this port.
  public func url(_ path: String) -> String { "http://127.0.0.1:\(port)\(path)" }
}

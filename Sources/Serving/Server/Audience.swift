// Audience: whom a listener serves.

/// Whom a listener serves. It decides which endpoints the listener has, and names its threads.
enum Audience: Sendable {
  /// Clients and operators, on the only listener.
  case everyone
  /// Clients, beside a listener for operators.
  case clients
  /// Operators, on a listener of their own.
  case operators

  /// The endpoints.
  var endpoints: EndpointTable {
    switch self {
    case .everyone: .everyone
    case .clients: .clients
    case .operators: .operators
    }
  }

  /// Returns the name of a thread, at most 15 bytes.
  func threadName(_ role: String) -> String { (self == .operators ? "op-" : "pictor-") + role }
}

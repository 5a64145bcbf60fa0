// ServerClient: requests of commands to the running server, with a deadline for each.

import CCurl
import Core
import Requesting

/// A client of the configured server. Each request has its own connection.
struct ServerClient {
  /// Why there is no answer.
  enum Failure: Error, Equatable, CustomStringConvertible {
    /// The server did not receive the whole request.
    case unsent(String)
    /// The request was sent, so the server may have performed it.
    case unanswered(String)
    /// The request was cancelled by a signal.
    case interrupted

    /// The error as one line for the user.
    var description: String {
      switch self {
      case .unsent(let text), .unanswered(let text): text
      case .interrupted: "interrupted"
      }
    }
  }

  /// The addresses, in the order in which they are tried.
  private let places: [ListenAddress]
  /// What precedes all targets at a server that is not of the configuration.
  private var url: String?
  /// The operator whose token is sent, if any.
  private let holder: Operator?

  /// Maximum length of an answer in bytes, far above the longest one, which lists a hundred
  /// failures with long URLs.
  private static let longestAnswer = 16 << 20

  /// Creates a client for the operators' listener of `configuration`, or its only listener. A
  /// server on all addresses is reached over loopback, else at the first address that accepts.
  init(_ configuration: ServerSettings, as holder: Operator? = nil) {
    places = Self.places(of: configuration).map(\.reachable)
    self.holder = holder
  }

  /// Creates a client of another server, at `http://HOST`, perhaps with a path.
  init(url: String) {
    self.url = url
    places = [.unix(path: "")]
    holder = nil
  }

  /// Why the configuration does not tell where the server listens; `nil` if it does.
  static func problem(of configuration: ServerSettings) -> String? {
    guard places(of: configuration).allSatisfy({ $0.port == 0 }) else { return nil }
    let advice = "set it to the port the server listens on"
    return configuration.operatorAddress == nil
      ? "server.port is 0: \(advice)" : "the port of server.operator_address is 0: \(advice)"
  }

  /// The addresses of the listener that is used. Those with port 0 are last: no server is there.
  private static func places(of configuration: ServerSettings) -> [ListenAddress] {
    let all = configuration.operatorAddress.map { [$0] } ?? configuration.clientAddresses
    return all.filter { $0.port != 0 } + all.filter { $0.port == 0 }
  }

  /// The name of the operator whose token is sent; empty without a token.
  var operatorName: String { holder?.name ?? "" }

  /// The server's address as shown in messages; the first of several.
  var serverName: String { url ?? places.first.map(Self.name) ?? "" }

  private static func name(of place: ListenAddress) -> String {
    switch place {
    case .network(let host, let port): "\(host) port \(port)"
    case .unix: place.description
    }
  }

  /// Sends a request and waits for its answer. Of several addresses, the first that accepts is
  /// used.
  ///
  /// - Parameters:
  ///   - seconds: the deadline for everything, from the connection to the answer's last byte.
  ///   - interruption: cancels the request; `nil`: nothing does.
  ///   - awaitsAnswer: whether the answer to a sent request is awaited all the same.
  func request(
    _ method: ServerRequest.Method, target: String, type: String? = nil, body: [UInt8]? = nil,
    seconds: Int, until interruption: Interruption? = nil, awaitsAnswer: Bool = false
  ) throws(Failure) -> ServerAnswer {
    let wait = Wait(
      end: .now + .seconds(seconds), seconds: seconds, interruption: interruption,
      awaitsAnswer: awaitsAnswer)
    var reasons: [String] = []
    for place in places {
      var request = ServerRequest(method, "http://localhost" + target)
      switch place {
      case _ where url != nil: request.url = (url ?? "") + target
      case .network(let host, let port):
        guard let address = IPAddress(host) else {
          reasons.append("\(host) is not an IP address")
          continue
        }
        let text = if case .v6 = address { "[\(address)]" } else { "\(address)" }
        request.url = "http://\(text):\(port)" + target
      case .unix(let path): request.socketPath = path
      }
      request.fields = ["Connection: close", "Accept:"] + (url == nil ? ["Host: localhost"] : [])
      if let holder { request.fields.append("Authorization: Bearer \(holder.token)") }
      if let type { request.fields.append("Content-Type: \(type)") }
      request.body = body
      request.limit = Self.longestAnswer
      switch try answer(to: request, of: url ?? Self.name(of: place), wait) {
      case .success(let answer): return answer
      case .failure(let refusal): reasons.append(refusal.reason)
      }
    }
    throw .unsent(reasons.joined(separator: "; "))
  }

  /// Returns the JSON of a report, which takes at most `seconds`.
  func report(
    _ method: ServerRequest.Method = .get, at target: String, seconds: Int
  ) throws(CommandFailure) -> [UInt8] {
    let answer: ServerAnswer
    do throws(Failure) {
      answer = try request(
        method, target: target, body: method == .get ? nil : [], seconds: seconds)
    } catch {
      throw CommandFailure(description: error.description)
    }
    guard answer.status == 200 else { throw CommandFailure(description: answer.refusal(self)) }
    return answer.body
  }

  /// Why there is no connection to an address.
  private struct Refusal: Error {
    let reason: String
  }

  /// Sends a request to one address.
  private func answer(
    to request: ServerRequest, of name: String, _ wait: Wait
  ) throws(Failure) -> Result<ServerAnswer, Refusal> {
    let exchange: ServerExchange
    let code: CURLcode?
    do throws(ImageError) {
      exchange = try ServerExchange(request)
      code = try MultiHandle(idleConnectionLimit: 1).run(
        exchange, watching: { wait.interruption(exchange.isSent)?.descriptor ?? -1 },
        until: { wait.end })
    } catch {
      throw .unsent(error.logDetail ?? error.code)
    }
    let isSent = exchange.isSent
    func reason(_ code: CURLcode) -> String {
      exchange.systemError.map { "\($0)" } ?? exchange.easy.detail(of: code)
    }
    switch code {
    case nil:
      if wait.interruption(isSent)?.signal != nil { throw .interrupted }
      guard exchange.isConnected else {
        return .failure(Refusal(reason: "cannot connect to \(name) within \(wait.seconds) s"))
      }
      throw isSent
        ? .unanswered("no response from \(serverName) within \(wait.seconds) s")
        : .unsent("\(serverName) did not accept the request within \(wait.seconds) s")
    case CURLE_OK? where !exchange.isCut:
      return .success(ServerAnswer(status: exchange.status, body: exchange.bytes))
    case CURLE_COULDNT_CONNECT?, CURLE_COULDNT_RESOLVE_HOST?, CURLE_URL_MALFORMAT?:
      return .failure(
        Refusal(reason: "cannot connect to \(name): \(reason(code ?? CURLE_OK))"))
    case CURLE_SEND_ERROR?, CURLE_RECV_ERROR?:
      let reason = reason(code ?? CURLE_OK)
      throw isSent
        ? .unanswered("no response from \(serverName): \(reason)")
        : .unsent("\(serverName) did not accept the request: \(reason)")
    default:
      let text = "the response of \(serverName) is not HTTP or is incomplete"
      throw isSent ? .unanswered(text) : .unsent(text)
    }
  }

  /// The deadline and the interruption of one request.
  private struct Wait {
    let end: ContinuousClock.Instant
    /// The whole time in seconds, for messages.
    let seconds: Int
    let interruption: Interruption?
    let awaitsAnswer: Bool

    /// What may end the wait now.
    func interruption(_ isSent: Bool) -> Interruption? {
      isSent && awaitsAnswer ? nil : interruption
    }
  }
}

struct ServerAnswer: Hashable {
  let status: Int
  let body: [UInt8]
}

/// A command for operators, who ask the configured server with their token.
public struct OperatorCommand: Sendable {
  let configuration: Configuration
  private let environment: [String: String]
  /// Replaced by tests.
  var console = Console.standard

  /// Creates a command for the configured server.
  ///
  /// - Parameter environment: the variables that tokens may refer to.
  public init(_ configuration: Configuration, environment: [String: String] = [:]) {
    self.configuration = configuration
    self.environment = environment
  }

  /// Runs a command with the first token that has the scopes. Returns the exit status: that of the
  /// command, or of its failure with a line on standard error.
  func run(
    needing scopes: Set<OperatorScope>, _ command: (ServerClient) throws(CommandFailure) -> CInt
  ) -> CInt {
    do throws(CommandFailure) {
      return try command(
        try ServerClient(configuration, needing: scopes, environment: environment))
    } catch {
      console.reportError(error.description)
      return error.status
    }
  }
}

/// Why a command ends, as one line for the user.
struct CommandFailure: Error {
  let description: String
  var status: CInt = 1
}

extension ServerClient {
  /// Creates a client with the first token of `admin.tokens` that has the scopes and can be read
  /// here. Other tokens of the list may be in files and variables that only the server has.
  ///
  /// - Throws: if there is no such token, or the configuration does not tell where it listens.
  init(
    _ configuration: Configuration, needing scopes: Set<OperatorScope>,
    environment: [String: String]
  ) throws(CommandFailure) {
    let admin = configuration.admin
    guard !admin.tokens.isEmpty else {
      throw CommandFailure(
        description: "no operator token: set admin.tokens to a token of the server")
    }
    var holder: Operator?
    var problem: String?
    for (name, token) in zip(admin.names, admin.tokens)
    where holder == nil && token.scopes.isSuperset(of: scopes) {
      do throws(ConfigurationError) {
        holder = try token.named(name, environment: environment)
      } catch {
        problem = problem ?? error.description
      }
    }
    let wanted = scopes.map(\.rawValue).sorted().joined(separator: " and ")
    guard let holder else {
      throw CommandFailure(
        description: problem ?? "no token of admin.tokens has the scope \(wanted)")
    }
    if let problem = Self.problem(of: configuration.server) {
      throw CommandFailure(description: problem)
    }
    self.init(configuration.server, as: holder)
  }
}

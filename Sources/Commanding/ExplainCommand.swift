// ExplainCommand: prints what a running server would do with a request.

import Configuring
import FoundationEssentials
import Model

/// `pictor explain URL`.
public struct ExplainCommand {
  /// Deadline in seconds: the server reads at most the heads of a few files.
  private static let seconds = 15

  private let server: ServerSettings
  private let admin: AdminSettings
  private let environment: [String: String]
  private let order: ExplainOrder
  private let console: Console

  /// Creates a question to the configured server, with its first token that may read.
  ///
  /// - Parameter environment: the variables that tokens may refer to.
  public init(
    _ configuration: Configuration, order: ExplainOrder, environment: [String: String]
  ) {
    self.init(configuration, order: order, environment: environment, console: .standard)
  }

  init(
    _ configuration: Configuration, order: ExplainOrder, environment: [String: String] = [:],
    console: Console
  ) {
    server = configuration.server
    admin = configuration.admin
    self.environment = environment
    self.order = order
    self.console = console
  }

  /// Asks and prints. Returns the exit status: 0 with an explanation, otherwise 1 with a line on
  /// standard error.
  public func run() -> CInt {
    let holder: Operator
    do throws(CommandOperator.Failure) {
      holder = try CommandOperator.choose(from: admin, needing: [.read], environment: environment)
    } catch {
      console.reportError(error.description)
      return 1
    }
    if let problem = ServerClient.problem(of: server) {
      console.reportError(problem)
      return 1
    }
    let client = ServerClient(server, as: holder)
    do throws(ServerClient.Failure) {
      let answer = try client.request("GET", target: order.target, seconds: Self.seconds)
      guard answer.status == 200 else {
        console.reportError(answer.refusal(client))
        return 1
      }
      guard !order.isJSON else {
        console.output(PrefetchReport.printableJSON(answer.body) + "\n")
        return 0
      }
      guard
        let report = try? JSONDecoder().decode(ExplainText.self, from: Data(answer.body))
      else {
        console.reportError("the server's answer is not an explanation: use --json")
        return 1
      }
      console.output(report.text)
      return 0
    } catch {
      console.reportError(error.description)
      return 1
    }
  }
}

extension ExplainOrder {
  /// The target of the request to the server.
  fileprivate var target: String {
    var query = subject
    if let start = ["/image?", "?"].first(where: subject.hasPrefix) {
      query = String(subject.dropFirst(start.utf8.count))
    } else if subject.hasPrefix("http"), let range = subject.firstRange(of: "/image?"),
      subject[range.upperBound...].split(separator: "&").contains(where: { $0.hasPrefix("url=") })
    {
      // The URL of an image at this server, which names its source; other paths end alike.
      query = String(subject[range.upperBound...])
    } else if !subject.hasPrefix("url=") {
      query = "url=" + PercentEncoding.encode(subject)
    }
    // A space or a line break would end the request's target.
    let safe = query.unicodeScalars.map { scalar in
      (0x21...0x7e).contains(scalar.value) && scalar != "#"
        ? String(scalar) : PercentEncoding.encode(String(scalar))
    }.joined()
    let accept = accept.map { "&accept=" + PercentEncoding.encode($0) } ?? ""
    return "/admin/explain?" + safe + accept
  }
}

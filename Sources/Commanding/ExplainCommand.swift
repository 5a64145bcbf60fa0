// ExplainCommand: prints what a running server would do with a request.

import Core
import FoundationEssentials

/// `pictor explain URL`.
public struct ExplainCommand {
  /// Deadline in seconds: the server reads at most the heads of a few files.
  private static let seconds = 15

  private let configuration: Configuration
  private let environment: [String: String]
  private let order: ExplainOrder
  /// Replaced by tests.
  var console = Console.standard

  /// Creates a question to the configured server, with its first token that may read.
  ///
  /// - Parameter environment: the variables that tokens may refer to.
  public init(
    _ configuration: Configuration, order: ExplainOrder, environment: [String: String] = [:]
  ) {
    self.configuration = configuration
    self.environment = environment
    self.order = order
  }

  /// Asks and prints. Returns the exit status: 0 with an explanation, otherwise 1 with a line on
  /// standard error.
  public func run() -> CInt {
    do throws(CommandFailure) {
      let client = try ServerClient(configuration, needing: [.read], environment: environment)
      console.output(try answer(client))
      return 0
    } catch {
      console.reportError(error.description)
      return 1
    }
  }

  private func answer(_ client: ServerClient) throws(CommandFailure) -> String {
    let answer: ServerAnswer
    do throws(ServerClient.Failure) {
      answer = try client.request(.get, target: order.target, seconds: Self.seconds)
    } catch {
      throw CommandFailure(description: error.description)
    }
    guard answer.status == 200 else {
      throw CommandFailure(description: answer.refusal(client))
    }
    guard !order.isJSON else { return PrefetchReport.printableJSON(answer.body) + "\n" }
    guard let report = try? JSONDecoder().decode(ExplainText.self, from: Data(answer.body)) else {
      throw CommandFailure(description: "the server's answer is not an explanation: use --json")
    }
    return report.text
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

// PrefetchCommand: sends a list to a running server for prefetching and watches the progress.

import Configuring
import FoundationEssentials
import Glibc
import Model
import Platform

/// `pictor prefetch FILE`.
public struct PrefetchCommand {
  /// Why the prefetch cannot start.
  private struct Failure: Error {
    /// The error as one line.
    let description: String
    /// The exit status.
    var status: CInt = 1
  }

  /// What the server answers to the list.
  private struct StartedPrefetch: Decodable {
    let id: String
  }

  /// Deadline in seconds for sending the list. The server answers after it has read the whole list.
  private static let seconds = 60

  private let server: ServerSettings
  private let admin: AdminSettings
  private let environment: [String: String]
  private let list: ListFile
  private let presets: [String]
  private let console: Console
  private let pace: PrefetchWatch.Pace
  private let interruption: Interruption?

  /// Creates the command for the list in `file` (`-`: standard input), with each preset for each
  /// line. It uses the configured server and its first token that may read and write.
  ///
  /// - Parameter environment: the variables that tokens may refer to.
  public init(
    _ configuration: Configuration, file: String, presets: [String],
    environment: [String: String]
  ) {
    self.init(
      configuration, list: ListFile(file, input: STDIN_FILENO), presets: presets,
      environment: environment, console: .standard, pace: .init(), interruption: nil)
  }

  /// Creates the command with test doubles.
  ///
  /// - Parameter interruption: `nil` for the program's own signals.
  init(
    _ configuration: Configuration, list: ListFile, presets: [String],
    environment: [String: String] = [:], console: Console,
    pace: PrefetchWatch.Pace, interruption: Interruption?
  ) {
    server = configuration.server
    admin = configuration.admin
    self.environment = environment
    self.list = list
    self.presets = presets
    self.console = console
    self.pace = pace
    self.interruption = interruption
  }

  /// Runs the command on the main thread. Returns the exit status:
  ///
  /// - 0: all items succeeded.
  /// - 1: an item failed, or the prefetch could not be started or watched. A line on standard error
  ///   says which.
  /// - 128 plus the signal (130 for Ctrl-C): the command was interrupted. The prefetch is then
  ///   cancelled; a line on standard error says if that fails.
  public func run() -> CInt {
    do throws(Failure) {
      let holder = try holder()
      if let problem = ServerClient.problem(of: server) { throw Failure(description: problem) }
      let bytes = try contents()
      let interruption = try signals()
      let client = ServerClient(server, as: holder)
      let id = try begin(bytes, client: client, interruption: interruption)
      return PrefetchWatch(
        of: id, by: client, until: interruption, on: console, pace: pace
      ).run()
    } catch {
      console.reportError(error.description)
      return error.status
    }
  }

  private func holder() throws(Failure) -> Operator {
    do throws(CommandOperator.Failure) {
      return try CommandOperator.choose(
        from: admin, needing: [.read, .write], environment: environment)
    } catch {
      throw Failure(description: error.description)
    }
  }

  private func contents() throws(Failure) -> [UInt8] {
    do throws(ListFile.Failure) {
      return try list.contents()
    } catch {
      throw Failure(description: error.description)
    }
  }

  private func signals() throws(Failure) -> Interruption {
    do throws(SystemError) {
      if let interruption { return interruption }
      return try .ofProgram()
    } catch {
      throw Failure(description: "cannot wait for signals: \(error)")
    }
  }

  private func begin(
    _ list: [UInt8], client: ServerClient, interruption: Interruption
  ) throws(Failure) -> String {
    let query = presets.map { "preset=" + PercentEncoding.encode($0) }.joined(separator: "&")
    let target = "/admin/prefetch" + (query.isEmpty ? "" : "?" + query)
    let hint = "; it may have started: GET /admin/prefetch shows it"
    let answer: ServerAnswer
    do throws(ServerClient.Failure) {
      // Waits for the answer even if interrupted: cancelling needs the id in it.
      answer = try client.request(
        "POST", target: target, type: "application/jsonl", body: list, seconds: Self.seconds,
        patience: .sent(interruption))
    } catch {
      switch error {
      case .unsent(let text): throw Failure(description: text)
      case .unanswered(let text): throw Failure(description: text + hint)
      case .interrupted:
        throw Failure(
          description: "interrupted before the list was sent: nothing was started",
          status: 128 + (interruption.signal ?? SIGINT))
      }
    }
    guard answer.status == 202 else { throw Failure(description: answer.refusal(client)) }
    guard let started = try? JSONDecoder().decode(StartedPrefetch.self, from: Data(answer.body))
    else {
      throw Failure(
        description: "the response of \(client.serverName) is not a prefetch status" + hint)
    }
    return started.id
  }
}

extension ServerAnswer {
  /// The relevant part of an error body.
  private struct Refusal: Decodable {
    struct Content: Decodable { let message: String }
    let error: Content
  }

  /// Describes an error status in one line for the operator.
  func refusal(_ client: ServerClient) -> String {
    let message = (try? JSONDecoder().decode(Refusal.self, from: Data(body)))?.error.message
    switch status {
    case 401:
      return "\(client.serverName) does not accept the token \(client.operatorName) of admin.tokens"
    case 404:
      return "\(client.serverName) has no admin endpoints: it was started without admin.tokens, "
        + "or with a server.operator_address, which this command needs too"
    default:
      return "\(client.serverName) responded with \(status)"
        + (message.map { ": " + PrefetchReport.printable($0) } ?? "")
    }
  }
}

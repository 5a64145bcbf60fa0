// PrefetchCommand: has a running server prefetch a list.

import Configuring
import FoundationEssentials
import Glibc
import Model
import Platform

/// `pictor prefetch FILE`.
public struct PrefetchCommand {
  /// Why it cannot be begun.
  private struct Failure: Error {
    /// In one line.
    let description: String
    /// The exit status.
    var status: CInt = 1
  }

  /// What the server answers first.
  private struct Begun: Decodable {
    let id: String
  }

  /// Seconds for handing over the list, which the server reads whole before it answers.
  private static let seconds = 60

  private let server: Configuration.Server
  private let token: String?
  private let list: ListFile
  private let presets: [String]
  private let console: Console
  private let pace: PrefetchWatch.Pace
  private let interruption: Interruption?

  /// The list in `file` (`-`: standard input), each line with each of the presets, on the server that `configuration`
  /// describes, by its first token.
  public init(_ configuration: Configuration, file: String, presets: [String]) {
    self.init(
      configuration, list: ListFile(file, input: STDIN_FILENO), presets: presets,
      console: .standard, pace: .init(), interruption: nil)
  }

  /// - Parameter interruption: `nil` is the program's.
  init(
    _ configuration: Configuration, list: ListFile, presets: [String], console: Console,
    pace: PrefetchWatch.Pace, interruption: Interruption?
  ) {
    (server, token) = (configuration.server, configuration.admin.tokens.first)
    (self.list, self.presets, self.console) = (list, presets, console)
    (self.pace, self.interruption) = (pace, interruption)
  }

  /// The exit status: 0 when nothing failed; 1 when something did, or a line on standard error says why it could not be
  /// begun or watched; 128 and the signal (130 for Ctrl-C) when it was interrupted, and the list was cancelled unless a
  /// line says that it could not be. To be called on the first thread.
  public func run() -> CInt {
    do throws(Failure) {
      guard let token else {
        throw Failure(description: "no operator's token: set admin.tokens as the server has it")
      }
      guard server.port != 0 else {
        throw Failure(description: "server.port is 0: set it to the port the server listens on")
      }
      let bytes = try contents()
      let interruption = try signals()
      let client = ServerClient(server, token: token)
      let id = try begin(bytes, client, interruption)
      return PrefetchWatch(
        of: id, by: client, until: interruption, on: console, pace: pace
      ).run()
    } catch {
      console.complain(error.description)
      return error.status
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
      throw Failure(description: "signals cannot be waited for: \(error)")
    }
  }

  private func begin(
    _ list: [UInt8], _ client: ServerClient, _ interruption: Interruption
  ) throws(Failure) -> String {
    let query = presets.map { "preset=" + Self.encoded($0) }.joined(separator: "&")
    let target = "/admin/prefetch" + (query.isEmpty ? "" : "?" + query)
    let hint = "; it may have begun all the same: GET /admin/prefetch tells"
    let answer: ServerAnswer
    do throws(ServerClient.Failure) {
      // Once it is sent, the answer is waited for: without the id, the list could not be cancelled.
      answer = try client.request(
        "POST", target, type: "application/jsonl", body: list, seconds: Self.seconds,
        patience: .sent(interruption))
    } catch {
      switch error {
      case .unsent(let text): throw Failure(description: text)
      case .unanswered(let text): throw Failure(description: text + hint)
      case .interrupted:
        throw Failure(
          description: "interrupted before the list was sent: nothing was begun",
          status: 128 + (interruption.signal ?? SIGINT))
      }
    }
    guard answer.status == 202 else { throw Failure(description: answer.refusal(client)) }
    guard let begun = try? JSONDecoder().decode(Begun.self, from: Data(answer.body)) else {
      throw Failure(description: "what \(client.place) answered is no prefetch" + hint)
    }
    return begun.id
  }

  /// As part of a path or a query: everything but letters, digits and `-._~` percent-encoded (RFC 3986, section 2.3).
  static func encoded(_ text: String) -> String {
    let digits = Array("0123456789ABCDEF")
    return text.utf8.map { byte in
      switch byte {
      case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
        UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "."),
        UInt8(ascii: "_"), UInt8(ascii: "~"):
        String(UnicodeScalar(byte))
      default: "%\(digits[Int(byte >> 4)])\(digits[Int(byte & 15)])"
      }
    }.joined()
  }
}

extension ServerAnswer {
  /// The body of an error, as far as it matters here.
  private struct Refusal: Decodable {
    struct Content: Decodable { let message: String }
    let error: Content
  }

  /// What the server says no with to an operator, in one line.
  func refusal(_ client: ServerClient) -> String {
    let said = (try? JSONDecoder().decode(Refusal.self, from: Data(body)))?.error.message
    switch status {
    case 401: return "\(client.place) does not accept the first token of admin.tokens"
    case 404: return "\(client.place) has no operators' paths: it was started without admin.tokens"
    default:
      return "\(client.place) answered \(status)"
        + (said.map { ": " + PrefetchReport.printable($0) } ?? "")
    }
  }
}

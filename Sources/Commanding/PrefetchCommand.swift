// PrefetchCommand: has a running server prefetch a list, and shows how far it is.

import Configuring
import FoundationEssentials
import Glibc
import Model
import Platform

/// `pictor prefetch FILE`.
public struct PrefetchCommand {
  /// Why it cannot go on, in one line.
  private struct Failure: Error {
    let description: String
  }

  /// What the server answers first.
  private struct Begun: Decodable {
    let id: String
  }

  /// The body of an error, as far as it matters here.
  private struct Refusal: Decodable {
    struct Content: Decodable { let message: String }
    let error: Content
  }

  /// Seconds for each step of a request; the server reads a list whole before it answers.
  private static let patience = 30
  /// Between two looks at how far it is.
  private static let milliseconds = 250
  /// Longest list read, in bytes; the server's own bound is lower, and it says so itself.
  private static let longestList = 64 << 20

  private let server: Configuration.Server
  private let token: String?
  private let file: String
  private let presets: [String]
  private let console: Console

  /// The list in `file` (`-`: standard input), each line with each of the presets, on the server that `configuration`
  /// describes, by its first token.
  public init(_ configuration: Configuration, file: String, presets: [String]) {
    self.init(configuration, file: file, presets: presets, console: .standard)
  }

  init(_ configuration: Configuration, file: String, presets: [String], console: Console) {
    (server, token) = (configuration.server, configuration.admin.tokens.first)
    (self.file, self.presets, self.console) = (file, presets, console)
  }

  /// The exit status: 0 when nothing failed; 1 when something did, or a line on standard error says why it could not be
  /// begun or watched; 128 and the signal (130 for Ctrl-C) when it was interrupted, and the list was cancelled.
  public func run() -> CInt {
    do throws(Failure) {
      guard let token else {
        throw Failure(description: "no operator's token: set admin.tokens as the server has it")
      }
      guard server.port != 0 else {
        throw Failure(description: "server.port is 0: set it to the port the server listens on")
      }
      let list = try contents()
      let interruption = Interruption()
      let client = ServerClient(server, token: token, seconds: Self.patience)
      let id = try begin(list, client)
      return try watch(id, client, interruption)
    } catch {
      console.complain(error.description)
      return 1
    }
  }

  private func begin(_ list: [UInt8], _ client: ServerClient) throws(Failure) -> String {
    let query = presets.map { "preset=" + Self.encoded($0) }.joined(separator: "&")
    let target = "/admin/prefetch" + (query.isEmpty ? "" : "?" + query)
    let answer = try ask(client, "POST", target, type: "application/jsonl", body: list)
    guard answer.status == 202 else {
      throw Failure(description: refusal(answer, client))
    }
    guard let begun = try? JSONDecoder().decode(Begun.self, from: Data(answer.body)) else {
      throw Failure(description: "what \(client.place) answered is no prefetch")
    }
    return begun.id
  }

  private func watch(
    _ id: String, _ client: ServerClient, _ interruption: Interruption
  ) throws(Failure) -> CInt {
    let path = "/admin/prefetch/" + Self.encoded(id)
    var line = ProgressLine(on: console)
    while true {
      let status = try status(path, client)
      line.show(status)
      guard status.state == .running else {
        line.end()
        console.output(PrefetchReport.summary(status))
        return status.state == .finished && status.failed == 0 ? 0 : 1
      }
      guard let signal = interruption.wait(milliseconds: Self.milliseconds) else { continue }
      line.end()
      _ = try ask(client, "DELETE", path)
      console.output(PrefetchReport.summary(try self.status(path, client)))
      return 128 + signal
    }
  }

  private func status(_ path: String, _ client: ServerClient) throws(Failure) -> PrefetchStatus {
    let answer = try ask(client, "GET", path)
    guard answer.status == 200 else {
      let reason = answer.status == 404 ? "it is not known any more" : refusal(answer, client)
      throw Failure(description: "the prefetch cannot be watched: \(reason)")
    }
    guard let status = try? JSONDecoder().decode(PrefetchStatus.self, from: Data(answer.body))
    else { throw Failure(description: "what \(client.place) answered is no prefetch") }
    return status
  }

  private func ask(
    _ client: ServerClient, _ method: String, _ target: String, type: String? = nil,
    body: [UInt8]? = nil
  ) throws(Failure) -> ServerAnswer {
    do throws(ServerClient.Failure) {
      return try client.request(method, target, type: type, body: body)
    } catch {
      throw Failure(description: error.description)
    }
  }

  /// What the server says no with, in one line.
  private func refusal(_ answer: ServerAnswer, _ client: ServerClient) -> String {
    let said = (try? JSONDecoder().decode(Refusal.self, from: Data(answer.body)))?.error.message
    switch answer.status {
    case 401: return "\(client.place) does not accept the first token of admin.tokens"
    case 404: return "\(client.place) has no operators' paths: it was started without admin.tokens"
    default:
      return "\(client.place) answered \(answer.status)"
        + (said.map { ": " + PrefetchReport.printable($0) } ?? "")
    }
  }

  private func contents() throws(Failure) -> [UInt8] {
    let name = file == "-" ? "standard input" : file
    let opened = OwnedDescriptor(owning: file == "-" ? -1 : open(file, O_RDONLY | O_CLOEXEC))
    guard file == "-" || opened.value >= 0 else {
      throw Failure(description: "\(name): cannot be read: \(errnoText())")
    }
    var bytes: [UInt8] = []
    var buffer = [UInt8](repeating: 0, count: 1 << 20)
    while true {
      let count = read(file == "-" ? STDIN_FILENO : opened.value, &buffer, buffer.count)
      if count < 0, errno == EINTR { continue }
      guard count >= 0 else {
        throw Failure(description: "\(name): cannot be read: \(errnoText())")
      }
      guard count > 0 else { return bytes }
      bytes += buffer[..<count]
      guard bytes.count <= Self.longestList else {
        throw Failure(description: "\(name): has more than \(Self.longestList >> 20) MiB")
      }
    }
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

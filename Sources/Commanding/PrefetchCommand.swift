// PrefetchCommand: sends a list to a running server for prefetching and watches the progress.

import Core
import FoundationEssentials
import Glibc

extension OperatorCommand {
  /// What the server answers to the list.
  private struct StartedPrefetch: Decodable {
    let id: String
  }

  /// Deadline in seconds for sending the list. The server answers after it has read the whole list.
  private static let prefetchingTime = 60

  /// `pictor prefetch FILE`: loads the list in `file` (`-`: standard input), with each preset for
  /// each line. Call on the main thread. Returns the exit status:
  ///
  /// - 0: all items succeeded.
  /// - 1: an item failed, or the prefetch could not be started or watched. A line on standard error
  ///   says which.
  /// - 128 plus the signal (130 for Ctrl-C): the command was interrupted. The prefetch is then
  ///   cancelled; a line on standard error says if that fails.
  public func prefetch(_ file: String, presets: [String]) -> CInt {
    prefetch(ListFile(file, input: STDIN_FILENO), presets: presets)
  }

  /// Does the same for a test.
  ///
  /// - Parameter interruption: `nil` for the program's own signals.
  func prefetch(
    _ list: ListFile, presets: [String], pace: PrefetchWatch.Pace = PrefetchWatch.Pace(),
    interruption: Interruption? = nil
  ) -> CInt {
    run(needing: [.read, .write]) { client throws(CommandFailure) in
      let bytes = try list.contents()
      let interruption = try Interruption.ofCommand(or: interruption)
      let id = try begin(bytes, presets, client: client, interruption: interruption)
      return PrefetchWatch(
        of: id, by: client, until: interruption, on: console, pace: pace
      ).run()
    }
  }

  private func begin(
    _ list: [UInt8], _ presets: [String], client: ServerClient, interruption: Interruption
  ) throws(CommandFailure) -> String {
    let query = presets.map { "preset=" + PercentEncoding.encode($0) }.joined(separator: "&")
    let target = "/admin/prefetch" + (query.isEmpty ? "" : "?" + query)
    let hint = "; it may have started: GET /admin/prefetch shows it"
    let answer: ServerAnswer
    do throws(ServerClient.Failure) {
      // Waits for the answer even if interrupted: cancelling needs the id in it.
      answer = try client.request(
        .post, target: target, type: "application/jsonl", body: list, seconds: Self.prefetchingTime,
        until: interruption, awaitsAnswer: true)
    } catch {
      switch error {
      case .unsent(let text): throw CommandFailure(description: text)
      case .unanswered(let text): throw CommandFailure(description: text + hint)
      case .interrupted:
        throw CommandFailure(
          description: "interrupted before the list was sent: nothing was started",
          status: 128 + (interruption.signal ?? SIGINT))
      }
    }
    guard answer.status == 202 else { throw CommandFailure(description: answer.refusal(client)) }
    guard let started = try? JSONDecoder().decode(StartedPrefetch.self, from: Data(answer.body))
    else {
      throw CommandFailure(
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

/// A file, or standard input.
struct ListFile {
  /// Maximum length of the list in bytes. The server's own limit is lower, and the server reports
  /// it.
  static let maximumBytes = 64 << 20

  private let path: String
  private let input: CInt

  /// Creates the file at `path`. For `-`, the descriptor `input` is read.
  init(_ path: String, input: CInt) {
    self.path = path
    self.input = input
  }

  func contents() throws(CommandFailure) -> [UInt8] {
    do throws(SystemError) {
      let limit = Self.maximumBytes
      return path == "-"
        ? try FileContents.read(input, limit: limit) : try FileContents.read(path, limit: limit)
    } catch {
      let name = path == "-" ? "standard input" : path
      let problem =
        error.code == EFBIG
        ? "has more than \(Self.maximumBytes >> 20) MiB" : "cannot be read: \(error)"
      throw CommandFailure(description: "\(name): \(problem)")
    }
  }
}

// ReplayCommand: reports how the requests of another image server's access log fare at a door.

import Core
import Doors
import FoundationEssentials
import Glibc

/// `pictor replay LOG`.
public struct ReplayCommand {
  private let order: ReplayOrder
  private let own: ServerClient
  private let tally: ReplayTally
  /// Replaced by tests, as all below.
  var input = STDIN_FILENO
  var console = Console.standard
  var interruption: Interruption?

  /// Creates the command for the door of a configuration, or as its peer is by default.
  ///
  /// - Throws: if a secret of the door cannot be read.
  public init(
    _ configuration: Configuration, order: ReplayOrder, environment: [String: String]
  ) throws(ConfigurationError) {
    self.order = order
    // Images are at the listener of clients.
    var server = configuration.server
    server.operatorAddress = nil
    own = ServerClient(server)
    var door = configuration.doors[order.peer] ?? DoorSettings()
    let prefix = door.prefix
    door.prefix = ""
    let places = try DoorPlace.places(of: [order.peer: door], environment: environment)
    tally = ReplayTally(places[0], prefix: prefix)
  }

  /// Runs the command on the main thread. Returns the exit status: 0 with a report, 1 if the log or
  /// a server cannot be read, 128 plus the signal if it was interrupted.
  ///
  /// - Parameter workers: starts imaging workers for `--against`; `nil`: it has told why not.
  public func run(_ workers: () -> Rendering?) -> CInt {
    do throws(CommandFailure) {
      let interruption = try Interruption.ofCommand(or: interruption)
      let tally = try read(until: interruption)
      let text = ReplayReport.text(tally)
      console.output(text)
      if let url = order.against, interruption.signal == nil {
        guard let render = workers() else { return 1 }
        let old = ServerClient(url: url.hasSuffix("/") ? String(url.dropLast()) : url)
        try compare(
          tally, text,
          by: ReplayClients(
            servers: [(old, ""), (own, tally.prefix)], interruption: interruption, render: render))
      }
      return interruption.signal.map { 128 + $0 } ?? 0
    } catch {
      console.reportError(error.description)
      return error.status
    }
  }

  /// Reads the log line by line, until its end or a signal.
  private func read(until interruption: Interruption) throws(CommandFailure) -> ReplayTally {
    let file = OwnedDescriptor(
      owning: order.log == "-" ? dup(input) : open(order.log, O_RDONLY | O_CLOEXEC))
    func failure() -> CommandFailure {
      CommandFailure(description: "\(order.log) cannot be read: \(SystemError())")
    }
    guard file.value >= 0 else { throw failure() }
    var tally = tally
    var rest: [UInt8] = []
    var buffer = [UInt8](repeating: 0, count: 1 << 20)
    var count = 1
    while count > 0, !Poll.wait(for: [interruption.descriptor, file.value], until: nil)[0] {
      count = Glibc.read(file.value, &buffer, buffer.count)
      guard count >= 0 else { throw failure() }
      var lines = (rest + buffer[..<count]).split(
        separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false)
      // Of a line that is longer than the buffer, the end counts as one.
      rest = count == 0 ? [] : Array(lines.removeLast().suffix(buffer.count))
      for line in lines where !line.isEmpty { tally.add(line) }
    }
    return tally
  }

  /// Asks both servers for the sample, four addresses at a time, and reports.
  private func compare(
    _ tally: ReplayTally, _ text: String, by clients: ReplayClients
  ) throws(CommandFailure) {
    let sample = tally.sample(order.sample)
    let start = ContinuousClock.now
    var progress = ProgressLine(on: console, now: { .now })
    var status = PrefetchStatus(id: "", total: sample.count)
    let found = Lock<[ReplayPair]>([])
    var failure: ServerClient.Failure?
    while status.finished < sample.count, failure == nil {
      let part = Array(sample[status.finished...].prefix(4))
      do throws(ServerClient.Failure) {
        try Parallel.run(part.count) { index throws(ServerClient.Failure) in
          let pair = try clients.pair(part[index])
          found.withLock { $0.append(pair) }
        }
      } catch {
        failure = error
      }
      status.finished += part.count
      status.rate = Double(status.finished) / ((.now - start) / .seconds(1))
      status.secondsLeft = Double(sample.count - status.finished) / status.rate
      progress.show(status)
    }
    progress.end()
    let pairs = found.withLock { $0 }.sorted { ($1.badness, $0.address) < ($0.badness, $1.address) }
    let worst = pairs.prefix(10).filter { $0.badness > 0 }
    let answers = ReplayReport.text(pairs, worst: worst)
    console.output(answers)
    if case .unsent(let reason)? = failure { throw CommandFailure(description: reason) }
    guard let page = order.page, failure == nil else { return }
    do {
      let shown = try worst.map { ($0, try clients.answers(to: $0.address)) }
      let html = ReplayReport.page(shown, of: tally, text: text + answers)
      try Data(html.utf8).write(to: URL(fileURLWithPath: page))
    } catch {
      throw CommandFailure(description: "\(page) cannot be written: \(error)")
    }
  }
}

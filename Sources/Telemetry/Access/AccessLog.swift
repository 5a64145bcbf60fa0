// AccessLog: where the lines of requests go, and their format.

/// The lines of requests, which may have another format than other lines, a file of their own, or
/// both. The format is the log queue's (`accessFormat`).
public struct AccessLog: Sendable {
  private let main: LogQueue
  /// The queue of the file, or the log's own. Two threads would mix long lines in one pipe.
  let queue: LogQueue
  /// The file; `nil` if the lines are among those of the log.
  let file: LogFile?

  /// Opens the access log of these settings. A path that leads to the log's own output, such as
  /// `/dev/stderr`, is like none.
  ///
  /// - Parameters:
  ///   - main: the log's queue.
  ///   - log: receives warnings about lines that were lost.
  /// - Throws: the error of opening the file or starting its thread.
  public init(_ settings: LogSettings, main: LogQueue, log: Log) throws(SystemError) {
    self.main = main
    main.accessFormat = settings.access.format
    let file = settings.access.path.isEmpty ? nil : try LogFile(settings.access.path)
    guard let file, !main.writes(to: file) else {
      queue = main
      self.file = nil
      return
    }
    self.file = file
    queue = try LogQueue(format: settings.format, file: file, reports: log)
  }

  /// Whether its lines are like those of the log, in the same stream.
  var isPlain: Bool { file == nil && main.accessFormat == .log }

  /// Whether its lines have the fields of the log's, in the same stream.
  var replacesLog: Bool { file == nil && main.accessFormat != .combined }

  /// Adds the line of a request. Never blocks.
  func add(
    _ level: LogLevel, message: String, fields: () -> KeyValuePairs<String, LogValue>,
    combined: () -> CombinedLine
  ) {
    func add(_ format: LogFormat) {
      queue.add(LogLine(level, message: message, fields: fields(), format: format).bytes)
    }
    switch main.accessFormat {
    case .log: add(main.format)
    case .json: add(.json)
    case .logfmt: add(.logfmt)
    case .combined: queue.add(combined().encoded(at: WallClock.seconds))
    }
  }

  /// Writes what is queued for a file of its own, and ends its thread. Blocks; not for tasks.
  public func stop(within limit: Duration) {
    if file != nil { queue.stop(within: limit) }
  }
}

extension Log {
  /// Logs the line of a request. With an access file, failures of the server are in both logs.
  public func request(
    _ level: LogLevel, fields: @autoclosure () -> KeyValuePairs<String, LogValue>,
    combined: @autoclosure () -> CombinedLine
  ) {
    guard level >= self.level else { return }
    if let access, !access.isPlain {
      access.add(level, message: "request", fields: fields, combined: combined)
      guard access.file != nil, level >= .warning else { return }
    }
    write(level, message: { "request" }, fields: fields)
  }

  /// Logs bytes that are no valid request, at info: in the access log, and in the log with its
  /// limit of repeated lines.
  public func refusedRequest(
    fields: @autoclosure () -> KeyValuePairs<String, LogValue>,
    combined: @autoclosure () -> CombinedLine
  ) {
    guard .info >= level else { return }
    let message = "request refused"
    if let access, !access.isPlain {
      access.add(.info, message: message, fields: fields, combined: combined)
      guard !access.replacesLog else { return }
    }
    write(.info, message: { message }, fields: fields)
  }

  /// Opens the access file again. If that fails, the old file stays open.
  public func reopen() {
    guard let file = access?.file else { return }
    do throws(SystemError) {
      try file.reopen()
      access?.queue.wakeUp()
    } catch {
      warning(
        "the access log cannot be opened again: its old file stays open",
        fields: ["path": .string(file.path), "reason": .string(LogFile.reason(error))])
    }
  }
}

// Program: from the command line to an exit status.

import Commanding
import Configuring
import Glibc
import Model
import Telemetry

/// What `pictor` does; each way ends with an exit status: 0 done, 1 could not; `prefetch` has more.
enum Program {
  static func run(arguments: [String]) -> CInt {
    do throws(ConfigurationError) {
      guard let invocation = try invocation(arguments) else { return 2 }
      switch invocation.action {
      case .help:
        print(Invocation.help, terminator: "")
        return 0
      case .version:
        print("pictor \(pictorVersion)")
        return 0
      case .serve, .healthcheck, .prefetch, .purge, .checkConfiguration, .printConfiguration:
        break
      }
      let environment = environment()
      let (configuration, unknown) = try Configuration.load(invocation, environment: environment)
      switch invocation.action {
      case .checkConfiguration:
        _ = try PartConfigurations(configuration, environment: environment)
        for name in unknown { complain("warning: \(name) is no setting") }
        print("the configuration can be used")
        return 0
      case .printConfiguration:
        print(configuration.json5, terminator: "")
        return 0
      case .healthcheck:
        return HealthCheck(configuration.server).run()
      case .prefetch(let file, let presets):
        return PrefetchCommand(configuration, file: file, presets: presets).run()
      case .purge(let subjects):
        return PurgeCommand(configuration, subjects).run()
      default:
        let reloading = Reloading(configuration) { () throws(ConfigurationError) in
          let read = try Configuration.load(invocation, environment: environment).0
          _ = try PartConfigurations(read, environment: environment)
          return read
        }
        return serve(
          try PartConfigurations(configuration, environment: environment),
          configuration.log, unknownVariables: unknown, reloading)
      }
    } catch {
      complain(error.description)
      return 1
    }
  }

  /// What is asked for; `nil` after a complaint of a wrong use of `prefetch` or `purge`, which have a status of their own
  /// for that, since 1 says that pictures failed or are not purged.
  private static func invocation(
    _ arguments: [String]
  ) throws(ConfigurationError) -> Invocation? {
    do throws(ConfigurationError) {
      return try Invocation(arguments: arguments)
    } catch {
      guard ["prefetch", "purge"].contains(arguments.first) else { throw error }
      complain(error.description)
      return nil
    }
  }

  private static func serve(
    _ configurations: PartConfigurations, _ logging: Configuration.Log, unknownVariables: [String],
    _ reloading: Reloading
  ) -> CInt {
    let stopSignals = StopSignals()
    // The values were checked when they were read.
    let format = Log.Format(rawValue: logging.format) ?? .text
    guard let queue = try? LogQueue(format: format) else {
      complain("no thread for the log")
      return 1
    }
    // Last: what the parts say while they stop is written. A log that is not read does not keep the process alive.
    defer { queue.stop(within: .seconds(5)) }
    let log = Log(level: LogLevel(rawValue: logging.level) ?? .info, queue: queue)
    for name in unknownVariables {
      log.warning("an environment variable is no setting", ["variable": .string(name)])
    }
    let limit = DescriptorLimit.raise()
    var configurations = configurations
    let wanted = configurations.server.connectionLimit
    let connections = DescriptorLimit.connections(wanted: wanted, limit: limit)
    if connections < wanted {
      configurations.server.connectionLimit = connections
      log.warning(
        "the limit of open files leaves room for fewer connections",
        ["files": .int(limit), "wanted": .int(wanted), "connections": .int(connections)])
    }
    do {
      try ResourceProbe.run(
        loops: configurations.server.workers,
        bytes: configurations.memory.limit + configurations.downloader.maximumBytesInFlight)
      let service = try Service(configurations, log: log)
      defer { service.stop() }
      try service.start()
      run(service, until: stopSignals, reloading, configurations.shutdownDelay, log)
    } catch {
      log.flush(within: .seconds(5))
      complain("\(error)")
      return 1
    }
    return 0
  }

  /// Does what signals ask for, until one asks to stop and load balancers had time to notice.
  private static func run(
    _ service: Service, until signals: StopSignals, _ reloading: Reloading, _ delay: Duration,
    _ log: Log
  ) {
    var reloading = reloading
    while true {
      switch signals.next() {
      case .reload: reloading.reload(service, log: log)
      case .nothing(let name): log.info("a signal without a meaning", ["signal": .string(name)])
      case .stop(let name, let isFromTerminal):
        log.info("stopping", ["signal": .string(name)])
        if !isFromTerminal, delay > .zero {
          service.announceStop()
          if signals.stopsAgain(within: delay) { log.info("stopping without further delay", [:]) }
        }
        signals.endAtOnceFromNowOn()
        return
      }
    }
  }

  private static func environment() -> [String: String] {
    var variables: [String: String] = [:]
    var next = environ
    while let entry = next.pointee {
      let parts = String(cString: entry).split(separator: "=", maxSplits: 1)
      if let name = parts.first {
        variables[String(name)] = parts.count > 1 ? String(parts[1]) : ""
      }
      next += 1
    }
    return variables
  }
}

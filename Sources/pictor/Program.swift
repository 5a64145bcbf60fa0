// Program: runs the command line and returns the exit status.

import Commanding
import Configuring
import Glibc
import Model
import Telemetry

/// The actions of `pictor`. Every action returns an exit status: 0 for success, 1 for failure.
/// `prefetch` and `purge` return 2 for wrong use, and an interrupted `prefetch` returns 128 plus
/// the signal.
enum Program {
  static func run(arguments: [String]) -> CInt {
    var problems = ConfigurationProblems()
    let invocation = Invocation(arguments: arguments, &problems)
    switch invocation.action {
    case .serve, .checkConfiguration:
      return start(invocation, problems, environment())
    case .help, .version, .printConfiguration, .healthcheck, .prefetch, .purge:
      do throws(ConfigurationError) {
        try problems.check()
        return try perform(invocation, environment())
      } catch {
        complain(error.problems)
        // 1 says that images failed or are not purged.
        let isWrongUse = !problems.isEmpty && ["prefetch", "purge"].contains(arguments.first)
        return isWrongUse ? 2 : 1
      }
    }
  }

  /// Does what is neither to serve nor to check whether that could be.
  private static func perform(
    _ invocation: Invocation, _ environment: [String: String]
  ) throws(ConfigurationError) -> CInt {
    switch invocation.action {
    case .help(let command):
      print(Invocation.help(for: command), terminator: "")
      return 0
    case .version:
      print("pictor \(pictorVersion)")
      return 0
    default: break
    }
    let (configuration, _) = try Configuration.load(invocation, environment: environment)
    switch invocation.action {
    case .healthcheck:
      return HealthCheck(configuration.server).run()
    case .prefetch(let file, let presets):
      return PrefetchCommand(configuration, file: file, presets: presets).run()
    case .purge(let subjects):
      return PurgeCommand(configuration, subjects).run()
    default:
      print(configuration.json5, terminator: "")
      return 0
    }
  }

  /// Serves, or says whether that could be: all mistakes of the command line, the environment and the file, and all that
  /// the machine lacks, are told at once.
  private static func start(
    _ invocation: Invocation, _ found: ConfigurationProblems, _ environment: [String: String]
  ) -> CInt {
    let isCheck = invocation.action == .checkConfiguration
    // Before any other thread starts, since threads take over which signals are blocked.
    let stopSignals = isCheck ? nil : StopSignals()
    var problems = found
    let (configuration, unknown) = Configuration.load(
      invocation, environment: environment, &problems)
    let parts = PartConfigurations(configuration, environment: environment, &problems)
    let limit = DescriptorLimit.raise()
    let check = StartCheck(configuration, parts, descriptors: limit)
    let lines = problems.lines + (isCheck ? check.problems.lines : check.allProblems)
    complain(lines)
    if let stopSignals {
      guard lines.isEmpty else { return 1 }
      return serve(
        parts, configuration.log, unknownVariables: unknown, descriptors: limit, stopSignals,
        Reloading(configuration) { () throws(ConfigurationError) in
          let read = try Configuration.load(invocation, environment: environment).configuration
          _ = try PartConfigurations(read, environment: environment)
          return read
        })
    }
    let connections = DescriptorLimit.connections(
      wanted: parts.server.connectionLimit, limit: limit)
    var warnings = check.occupied
    if connections < parts.server.connectionLimit {
      warnings.append(
        "server.connections: the limit of open files, \(limit), leaves room for \(connections)")
    }
    for name in unknown {
      warnings.append("\(name) is no setting" + Configuration.hint(forVariable: name))
    }
    complain(warnings.map { "warning: " + $0 })
    if lines.isEmpty { print("the configuration can be used") }
    return lines.isEmpty ? 0 : 1
  }

  private static func complain(_ lines: [String]) {
    for line in lines { Commanding.complain(line) }
  }

  private static func serve(
    _ configurations: PartConfigurations, _ logging: LogSettings, unknownVariables: [String],
    descriptors limit: Int, _ stopSignals: StopSignals, _ reloading: Reloading
  ) -> CInt {
    guard let queue = try? LogQueue(format: logging.format) else {
      complain(["no thread for the log"])
      return 1
    }
    // Stopped last, so that messages of stopping parts are written. The time limit keeps a blocked
    // log reader from keeping the process alive.
    defer { queue.stop(within: .seconds(5)) }
    let log = Log(level: logging.level, queue: queue)
    for name in unknownVariables {
      log.warning(
        "an environment variable is no setting" + Configuration.hint(forVariable: name),
        ["variable": .string(name)])
    }
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
      let service = try Service(configurations, log: log)
      defer { service.stop() }
      try service.start()
      run(service, until: stopSignals, reloading, configurations.shutdownDelay, log)
    } catch {
      log.flush(within: .seconds(5))
      complain(["\(error)"])
      return 1
    }
    return 0
  }

  /// Handles signals until one requests a stop and the shutdown delay for load balancers has
  /// passed.
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

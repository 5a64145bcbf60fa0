// Program: runs the command line and returns the exit status.

import Commanding
import Core
import Downloading
import Glibc
import ImagingPool

/// The actions of `pictor`. Every action returns an exit status: 0 for success, 1 for failure.
/// All commands but `healthcheck` return 2 for wrong use; an interrupted `prefetch` or `replay`
/// returns 128 plus the signal.
enum Program {
  static func run(arguments: [String]) -> CInt {
    var problems = ConfigurationProblems()
    let invocation = Invocation(arguments: arguments, &problems)
    switch invocation.action {
    case .serve, .checkConfiguration:
      return start(invocation, problems: problems, environment: environment())
    case .help, .version, .printConfiguration, .healthcheck, .prefetch, .purge, .explain,
      .doctor, .check, .sign, .translate, .replay, .securityTest:
      do throws(ConfigurationError) {
        try problems.check()
        return try perform(invocation, environment: environment())
      } catch {
        reportError(error.problems)
        // 1 says that images failed, are not purged or not signed, or that an attack is open.
        let command = arguments.first.flatMap(Invocation.Command.init)
        return problems.isEmpty || command == nil || command == .healthcheck ? 1 : 2
      }
    }
  }

  /// Does what is neither to serve nor to check whether that could be.
  private static func perform(
    _ invocation: Invocation, environment: [String: String]
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
      return OperatorCommand(configuration, environment: environment)
        .prefetch(file, presets: presets)
    case .securityTest:
      return try SelfTest.security(configuration, environment: environment)
    case .purge(let subjects):
      return OperatorCommand(configuration, environment: environment).purge(subjects)
    case .explain(let order):
      return OperatorCommand(configuration, environment: environment).explain(order)
    case .doctor(let order):
      return OperatorCommand(configuration, environment: environment).doctor(order)
    case .check(let isJSON):
      var check = try ProductionCheck(configuration, environment: environment)
      return check.run(isJSON: isJSON)
    case .translate(let urls, let door):
      return try TranslateCommand(
        urls, of: door, doors: configuration.doors, environment: environment
      ).run()
    case .replay(let order):
      return try replay(configuration, order, environment: environment)
    case .sign(let order):
      return try SignCommand(configuration.signing, environment: environment, order: order).run()
    default:
      print(configuration.json5, terminator: "")
      return 0
    }
  }

  /// Runs `replay` with imaging workers that send pixels as they are, if it needs any.
  private static func replay(
    _ configuration: Configuration, _ order: ReplayOrder, environment: [String: String]
  ) throws(ConfigurationError) -> CInt {
    let command = try ReplayCommand(configuration, order: order, environment: environment)
    guard order.against != nil else { return command.run { nil } }
    var imagers = try PartConfigurations(configuration, environment: environment).imagers
    imagers.limits.efforts.png = 0
    let pool = ImagerPool(configuration: imagers, log: .silent)
    defer { waiting(for: { await pool.shutDown(within: .zero) }) }
    return command.run {
      do throws(ImagerStartError) { try pool.start() } catch {
        reportError([error.description])
        return nil
      }
      return { job in waiting { try? await pool.process(job) } }
    }
  }

  /// Serves, or with `--check-config` checks whether it could. Reports all mistakes of the command
  /// line, the environment and the file, and everything that the machine lacks, at once.
  private static func start(
    _ invocation: Invocation, problems found: ConfigurationProblems, environment: [String: String]
  ) -> CInt {
    let isCheck = invocation.action == .checkConfiguration
    // Before any other thread starts, since threads take over which signals are blocked.
    let stopSignals = isCheck ? nil : StopSignals()
    var problems = found
    let (configuration, unknown) = Configuration.load(
      invocation, environment: environment, into: &problems)
    var parts = PartConfigurations(configuration, environment: environment, into: &problems)
    parts.server.inherited = ActivatedSockets.take(into: &problems)
    let limit = DescriptorLimit.raise()
    let check = StartCheck(parts, descriptors: limit, isAlone: isCheck)
    let lines = problems.lines + (isCheck ? check.problems.lines : check.allProblems)
    reportError(lines)
    if let stopSignals {
      guard lines.isEmpty else { return 1 }
      return serve(
        parts, unknownVariables: unknown, descriptors: limit,
        stopSignals: stopSignals,
        reloading: Reloading(parts: parts, invocation: invocation, environment: environment))
    }
    var warnings = check.occupied
    if let few = DescriptorLimit.shortage(wanted: parts.server.connectionLimit, limit: limit) {
      warnings.append("server.connections: " + few)
    }
    warnings += parts.openDoors
    if let warning = parts.scarceJobMemory { warnings.append(warning) }
    for name in unknown {
      warnings.append("\(name) is not a setting" + Configuration.hint(forVariable: name))
    }
    reportError(warnings.map { "warning: " + $0 })
    if lines.isEmpty { print("the configuration is valid") }
    return lines.isEmpty ? 0 : 1
  }

  private static func reportError(_ lines: [String]) {
    for line in lines { Commanding.reportError(line) }
  }

  private static func serve(
    _ configurations: PartConfigurations, unknownVariables: [String],
    descriptors limit: Int, stopSignals: StopSignals, reloading: Reloading
  ) -> CInt {
    let logging = configurations.keys.log
    guard let queue = try? LogQueue(format: logging.format) else {
      reportError(["cannot start the log thread"])
      return 1
    }
    // Stopped last, so that messages of stopping parts are written. The time limit keeps a blocked
    // log reader from keeping the process alive.
    defer { queue.stop(within: .seconds(5)) }
    let access: AccessLog
    do throws(SystemError) {
      let plain = Log(level: logging.level, queue: queue)
      access = try AccessLog(logging, main: queue, log: plain)
    } catch {
      reportError(["log.access_path: '\(logging.access.path)' cannot be opened: \(error)"])
      return 1
    }
    defer { access.stop(within: .seconds(5)) }
    let log = Log(level: logging.level, queue: queue, access: access)
    for door in configurations.openDoors { log.warning(door) }
    if let warning = configurations.scarceJobMemory { log.warning(warning) }
    for name in unknownVariables {
      log.warning(
        "an environment variable is not a setting" + Configuration.hint(forVariable: name),
        fields: ["variable": .string(name)])
    }
    var configurations = configurations
    let wanted = configurations.server.connectionLimit
    let connections = DescriptorLimit.connections(wanted: wanted, limit: limit)
    if connections < wanted {
      configurations.server.connectionLimit = connections
      log.warning(
        "the limit of open files leaves room for fewer connections",
        fields: ["files": .int(limit), "wanted": .int(wanted), "connections": .int(connections)])
    }
    configurations.disk.openFiles = DescriptorLimit.keptFiles(
      connections: connections, limit: limit)
    do {
      let service = try Service(configurations, log: log)
      defer { service.stop() }
      try service.start()
      let manager = ServiceManager()
      manager.reportServing()
      manager.watch(log: log) { [weak service] in service?.responds(within: $0) ?? true }
      run(
        service, until: stopSignals, reloading: reloading,
        isInherited: !configurations.server.inherited.clients.isEmpty,
        manager: manager, log: log, queue: queue)
    } catch {
      log.flush(within: .seconds(5))
      reportError(["\(error)"])
      return 1
    }
    return 0
  }

  /// Handles signals until one requests a stop and the shutdown delay for load balancers has
  /// passed.
  private static func run(
    _ service: Service, until signals: StopSignals, reloading: Reloading, isInherited: Bool,
    manager: ServiceManager, log: Log, queue: LogQueue
  ) {
    var reloading = reloading
    while true {
      switch signals.next() {
      case nil: continue
      case .reload:
        manager.reportReloading()
        log.reopen()
        reloading.reload(service, log: log, queue: queue)
        manager.reportServing()
      case .nothing(let name):
        log.info("signal ignored", fields: ["signal": .string(name)])
      case .stop(let name, let isFromTerminal):
        log.info("stopping", fields: ["signal": .string(name)])
        manager.reportStopping()
        let delay = reloading.shutdownDelay
        // Connections to an inherited socket wait for the next server; no load balancer notices.
        if !isFromTerminal, !isInherited, delay > .zero {
          service.announceStop()
          if signals.stopsAgain(within: delay) {
            log.info("stopping without further delay", fields: [:])
          }
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

/// `pictor selftest …`. Needs no running server: it reads the configuration that the server would
/// read, and uses the server's own downloader, which connects to nothing.
enum SelfTest {
  /// Runs the security test. Returns the exit status.
  ///
  /// - Throws: what cannot be used in the configuration.
  static func security(
    _ configuration: Configuration, environment: [String: String]
  ) throws(ConfigurationError) -> CInt {
    let parts = try PartConfigurations(configuration, environment: environment)
    let test: SecuritySelfTest
    do throws(ImageError) { test = try security(parts) } catch {
      reportError(error.logDetail ?? error.message)
      return 1
    }
    return test.run()
  }

  /// Returns the test of these settings.
  static func security(_ parts: PartConfigurations) throws(ImageError) -> SecuritySelfTest {
    let server = parts.keys.server
    let probe = try SourceProbe(parts.downloader, local: parts.local, own: server.listenAddresses)
    let cases = SecurityCase.all(
      ownPort: server.clientAddresses.lazy.compactMap(\.port).first ?? server.port,
      hostName: hostName())
    return SecuritySelfTest(cases) { test in
      switch waiting(for: { await probe.finding(for: test.source, isRedirect: test.isRedirect) }) {
      case .open(let endpoint): (true, endpoint)
      case .refused(let error):
        (false, "refused: \(error.code), \(error.logDetail ?? error.message)")
      }
    }
  }

  private static func hostName() -> String {
    var name = [CChar](repeating: 0, count: 256)
    guard gethostname(&name, name.count - 1) == 0 else { return "" }
    return String(decoding: name.prefix { $0 != 0 }.map(UInt8.init(bitPattern:)), as: UTF8.self)
  }
}

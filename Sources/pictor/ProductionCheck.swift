// ProductionCheck: holds a configuration, this machine and the running server against
// docs/production.md.

import Caching
import Commanding
import Core
import Glibc

/// `pictor check`. Its rules are those of the start and of `selftest security`; this is their list.
struct ProductionCheck {
  private let parts: PartConfigurations
  private let server: ServerSettings
  /// The limit of open descriptors.
  private let descriptors: Int
  private let start: StartCheck
  private var report = CheckReport()

  /// Checks everything that a start checks.
  ///
  /// - Throws: what cannot be used in the configuration.
  init(
    _ configuration: Configuration, environment: [String: String]
  ) throws(ConfigurationError) {
    parts = try PartConfigurations(configuration, environment: environment)
    server = configuration.server
    descriptors = DescriptorLimit.raise()
    start = StartCheck(parts, descriptors: descriptors, isAlone: true)
  }

  /// Prints the items in the order of the document. Returns the exit status.
  func run(isJSON: Bool) -> CInt {
    var check = self
    check.sizeIt()
    check.shutIt()
    check.putItBehindProxies()
    let page = check.watchIt()
    check.updateIt(runningPage: page)
    return check.report.run(isJSON: isJSON)
  }

  private var keys: Configuration { parts.keys }
  private var isLocal: Bool { parts.server.clientAddresses.allSatisfy(PartConfigurations.isLocal) }

  private mutating func sizeIt() {
    for line in start.problems.lines { report.add(.size, "--check-config", "", open: line) }
    let room = MemoryRoom.bytes()
    let budget = parts.plan.budget
    report.add(
      .size, "memory.budget",
      budget == .max
        ? "no limit is known" : "\(budget >> 20) of \(room >> 20) MiB of this machine or container",
      open: budget > room ? "more than there is" : parts.scarceJobMemory)
    checkDisk()
    let cores = (try? Cores.allowed())?.numbers.count ?? 1
    let usable = Cores.quota().map { min(Int($0.rounded(.up)), cores) } ?? cores
    let workers = (loops: parts.server.workers, imagers: parts.imagers.workers)
    report.add(
      .size, "server.workers, imaging.workers",
      "\(workers.loops) and \(workers.imagers), and cores by affinity and quota: \(usable)",
      open: max(workers.loops, workers.imagers) > usable
        ? "set both to the cores: a quota is not counted" : nil)
    let connections = parts.server.connectionLimit
    report.add(
      .size, "server.connections", "\(connections)",
      open: DescriptorLimit.shortage(wanted: connections, limit: descriptors))
  }

  private mutating func checkDisk() {
    guard var path = parts.disk.path, parts.disk.limit > 0 else {
      return report.add(.size, "disk.limit", "0", advice: "a restart begins without images")
    }
    var system = statvfs()
    // The folder is made at the start.
    while statvfs(path, &system) != 0, path.contains("/"), path != "/" {
      path = String(path[..<(path.lastIndex(of: "/") ?? path.startIndex)])
      if path.isEmpty { path = "/" }
    }
    let blocks = Int(clamping: system.f_blocks)
    let whole = blocks.multipliedReportingOverflow(by: Int(system.f_frsize)).partialValue
    report.add(
      .size, "disk.limit", "\(parts.disk.limit >> 20) MiB of \(whole >> 20) MiB at \(path)",
      open: parts.disk.limit > whole ? "more than the file system has" : nil,
      advice: parts.disk.limit > whole / 10 * 9 ? "others need room, too" : nil)
  }

  private mutating func shutIt() {
    let hosts = parts.downloader.hosts.allowed.count
    report.add(
      .shut, "download.allow_hosts, signing.mode",
      "patterns: \(hosts), mode \(keys.signing.mode.rawValue)" + (isLocal ? ", on loopback" : ""),
      open: parts.isOpenRelay ? PartConfigurations.openRelay : nil)
    do throws(ImageError) {
      let test = try SelfTest.security(parts)
      let open = test.openSources()
      report.add(
        .shut, "selftest security", "\(test.count - open.count) of \(test.count) attacks refused",
        open: open.isEmpty ? nil : open.joined(separator: ", "))
    } catch {
      report.add(.shut, "selftest security", "", open: error.logDetail ?? error.message)
    }
    let operators = parts.server.operatorAddresses
    report.add(
      .shut, "server.operator_address",
      operators.isEmpty ? "none" : operators.map(\.description).joined(separator: ", "),
      open: parts.showsFigures ? PartConfigurations.openFigures : nil,
      advice: operators.allSatisfy(PartConfigurations.isLocal)
        ? nil : "/stats and /metrics need no token there: keep clients from it")
    report.add(
      .shut, "admin.tokens", "\(keys.admin.tokens.count)",
      advice: keys.admin.tokens.isEmpty ? "there is no purge, explain and doctor" : nil)
    let isFree =
      !isLocal && keys.signing.mode == .off && !server.presetsOnly && server.sizeSteps.isEmpty
    report.add(
      .shut, "signing.keys",
      keys.signing.keys.isEmpty ? "none" : "\(keys.signing.keys.count), each of 32 bytes or more",
      advice: isFree
        ? "each size is a rendering and an entry: sign, or set server.presets_only or server.size_steps"
        : nil)
    report.add(
      .shut, "imaging.sandbox", keys.imaging.sandbox.rawValue,
      open: keys.imaging.sandbox == .required
        ? nil : "a worker that is not sealed decodes all the same: set required")
  }

  private mutating func putItBehindProxies() {
    let proxies = server.trustedProxies
    let addresses = parts.server.clientAddresses.map(\.description).joined(separator: ", ")
    report.add(
      .proxy, "server.address", addresses + ", without TLS",
      advice: isLocal || !proxies.isEmpty ? nil : "a proxy in front ends TLS")
    report.add(
      .proxy, "server.trusted_proxies", proxies.isEmpty ? "none" : proxies.joined(separator: ", "),
      open: proxies.contains { $0.hasSuffix("/0") }
        ? "every client may name another address" : nil,
      advice: proxies.isEmpty ? "all clients of a proxy that is not listed are one" : nil)
    report.add(
      .proxy, "server.forwarded_header", server.forwardedHeader.rawValue,
      advice: server.forwardedHeader == .auto && !proxies.isEmpty
        ? "name the field that your proxies write" : nil)
    report.add(
      .proxy, "server.cors_origin", parts.server.corsOrigins.joined(separator: ", "))
    report.add(
      .proxy, "server.redirect_auto", "\(server.redirectsAuto)",
      advice: server.redirectsAuto ? nil : "a CDN that ignores Vary needs true")
    let freshness = keys.freshness
    report.add(
      .proxy, "freshness.maximum_lifetime",
      "Cache-Control says at most \(freshness.maximumLifetime.flooredSeconds) s, without the "
        + "origin's word \(freshness.defaultLifetime.flooredSeconds) s, in browsers "
        + "\(freshness.clientDefault.flooredSeconds) s")
  }

  /// Returns what `/metrics` of the running server says; `nil` without a running server.
  private mutating func watchIt() -> String? {
    report.add(
      .watch, "log.format", keys.log.format.rawValue,
      advice: keys.log.format == .text ? "json or logfmt for machines" : nil)
    let client = HealthCheck(server)
    func check(_ path: String, in report: inout CheckReport) -> String? {
      let answer = client.answer(at: path)
      report.add(
        .watch, path, answer.map { "\($0.status)" } ?? "",
        open: answer.flatMap { $0.status == 200 ? nil : "it has to be 200" },
        advice: answer == nil ? "no server answers: start it and check again" : nil)
      return answer?.text
    }
    _ = check("/readyz", in: &report)
    return check("/metrics", in: &report)
  }

  private mutating func updateIt(runningPage page: String?) {
    let isSame = page?.contains("pictor_build_info{version=\"\(pictorVersion)\"}") ?? true
    report.add(
      .update, "--version", pictorVersion,
      open: isSame ? nil : "another version runs: restart it")
    if let path = parts.disk.path, parts.disk.limit > 0 {
      report.add(
        .update, "disk.path", path,
        open: start.canUseFolder ? nil : "this user cannot keep the cache there")
    }
    let (delay, grace) = (server.shutdownDelay, server.graceTime)
    // After these: what is written last, as docs/operations.md says.
    let longest = (delay + grace).flooredSeconds + 10
    report.add(
      .update, "server.shutdown_delay, server.grace_time",
      "a stop takes up to \(longest) s",
      open: longest > 90 ? "systemd kills after 90 s, unless TimeoutStopSec is longer" : nil,
      advice: longest > 30
        ? "Kubernetes kills after 30 s, unless terminationGracePeriodSeconds is longer" : nil)
    report.add(
      .update, "server.request_timeout", "\(server.requestTimeout.flooredSeconds) s",
      advice: grace < server.requestTimeout
        ? "a stop cuts requests that take longer than server.grace_time" : nil)
  }
}

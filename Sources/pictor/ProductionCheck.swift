// ProductionCheck: holds a configuration, this machine and the running server against
// docs/production.md.

import Caching
import Commanding
import Core
import FoundationEssentials
import Glibc

/// `pictor check`. Its rules are those of the start and of `selftest security`; this is their list.
struct ProductionCheck {
  /// The result of an item: met, open, or a decision for the operator.
  private enum State: String, Encodable { case ok, open, advice }

  /// An item: a key with its value, and where it is in the document.
  private struct Item: Encodable {
    let state: State
    let key: String
    let found: String
    let document: String
  }

  private let parts: PartConfigurations
  private let server: ServerSettings
  /// The limit of open descriptors.
  private let descriptors: Int
  private let start: StartCheck
  private var items: [Item] = []
  /// The heading that further items are below.
  private var heading = ""

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

  /// Prints the items in the order of the document. Returns the exit status: 0 if none is open.
  mutating func run(isJSON: Bool) -> CInt {
    heading = "size-it"
    sizeIt()
    heading = "shut-it"
    shutIt()
    heading = "put-it-behind-a-proxy-and-a-cdn"
    putItBehindProxies()
    heading = "watch-it"
    let page = watchIt()
    heading = "update-it"
    updateIt(runningPage: page)
    let open = items.count { $0.state == .open }
    if isJSON {
      let encoder = JSONEncoder()
      encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes, .prettyPrinted]
      print(String(decoding: (try? encoder.encode(items)) ?? Data(), as: UTF8.self))
    } else {
      printTable()
      print("\n\(open) open of \(items.count)")
    }
    return open == 0 ? 0 : 1
  }

  private func printTable() {
    let width = items.map(\.key.count).max() ?? 0
    for (index, item) in items.enumerated() {
      if index == 0 || items[index - 1].document != item.document { print("\n" + item.document) }
      let pads = [6 - item.state.rawValue.count, width - item.key.count].map {
        String(repeating: " ", count: $0 + 2)
      }
      print("  \(item.state.rawValue)\(pads[0])\(item.key)\(pads[1])\(item.found)")
    }
  }

  /// Adds an item with its value, and the reason why it is open or advice.
  private mutating func add(
    _ key: String, _ found: String, open: String? = nil, advice: String? = nil
  ) {
    let text = [found, open ?? advice ?? ""].filter { !$0.isEmpty }.joined(separator: ": ")
    items.append(
      Item(
        state: open != nil ? .open : advice != nil ? .advice : .ok, key: key, found: text,
        document: "docs/production.md#" + heading))
  }

  private var keys: Configuration { parts.keys }
  private var isLocal: Bool { parts.server.clientAddresses.allSatisfy(PartConfigurations.isLocal) }

  private mutating func sizeIt() {
    for line in start.problems.lines { add("--check-config", "", open: line) }
    let room = MemoryRoom.bytes()
    let budget = parts.plan.budget
    add(
      "memory.budget",
      budget == .max
        ? "no limit is known" : "\(budget >> 20) of \(room >> 20) MiB of this machine or container",
      open: budget > room ? "more than there is" : parts.scarceJobMemory)
    checkDisk()
    let workers = (loops: parts.server.workers, imagers: parts.imagers.workers)
    add(
      "server.workers, imaging.workers",
      "\(workers.loops) and \(workers.imagers), and cores by affinity and quota: \(Cores.usable)",
      open: max(workers.loops, workers.imagers) > Cores.usable
        ? "more than \(Cores.usable) usable cores" : nil)
    let connections = parts.server.connectionLimit
    add(
      "server.connections", "\(connections)",
      open: DescriptorLimit.shortage(wanted: connections, limit: descriptors))
  }

  private mutating func checkDisk() {
    guard var path = parts.disk.path, parts.disk.limit > 0 else {
      return add("disk.limit", "0", advice: "a restart begins without images")
    }
    var system = statvfs()
    // The folder is made at the start.
    while statvfs(path, &system) != 0, path != "/", path != "." {
      let end = path.lastIndex(of: "/")
      path = end.map { $0 == path.startIndex ? "/" : String(path[..<$0]) } ?? "."
    }
    let blocks = Int(clamping: system.f_blocks)
    let whole = blocks.multipliedReportingOverflow(by: Int(system.f_frsize)).partialValue
    add(
      "disk.limit", "\(parts.disk.limit >> 20) MiB of \(whole >> 20) MiB at \(path)",
      open: parts.disk.limit > whole ? "more than the file system has" : nil,
      advice: parts.disk.limit > whole / 10 * 9 ? "others need room, too" : nil)
  }

  private mutating func shutIt() {
    let hosts = parts.downloader.hosts.allowed.count
    add(
      "download.allow_hosts, signing.mode",
      "patterns: \(hosts), mode \(keys.signing.mode.rawValue)" + (isLocal ? ", on loopback" : ""),
      open: parts.isOpenRelay ? PartConfigurations.openRelay : nil)
    do throws(ImageError) {
      let test = try SelfTest.security(parts)
      let open = test.openSources()
      add(
        "selftest security", "\(test.count - open.count) of \(test.count) attacks refused",
        open: open.isEmpty ? nil : open.joined(separator: ", "))
    } catch {
      add("selftest security", "", open: error.logDetail ?? error.message)
    }
    let operators = parts.server.operatorAddresses
    add(
      "server.operator_address",
      operators.isEmpty ? "none" : operators.map(\.description).joined(separator: ", "),
      open: parts.showsFigures ? PartConfigurations.openFigures : nil,
      advice: operators.allSatisfy(PartConfigurations.isLocal)
        ? nil : "/stats and /metrics need no token there: keep clients from it")
    add(
      "admin.tokens", "\(keys.admin.tokens.count)",
      advice: keys.admin.tokens.isEmpty ? "there is no purge, explain and doctor" : nil)
    let isFree =
      !isLocal && keys.signing.mode != .required && !server.presetsOnly && server.sizeSteps.isEmpty
    add(
      "server.presets_only, server.size_steps, signing.mode",
      "\(server.presetsOnly), \(server.sizeSteps), \(keys.signing.mode.rawValue)",
      advice: isFree
        ? "each size is a rendering and an entry" : nil)
    add(
      "imaging.sandbox", keys.imaging.sandbox.rawValue,
      open: keys.imaging.sandbox == .required
        ? nil : "a worker that is not sealed also decodes: set required")
  }

  private mutating func putItBehindProxies() {
    let proxies = server.trustedProxies
    let addresses = parts.server.clientAddresses.map(\.description).joined(separator: ", ")
    add(
      "server.address", addresses + ", without TLS",
      advice: isLocal || !proxies.isEmpty ? nil : "a proxy in front ends TLS")
    add(
      "server.trusted_proxies", proxies.isEmpty ? "none" : proxies.joined(separator: ", "),
      open: proxies.contains { $0.hasSuffix("/0") }
        ? "every client may name another address" : nil,
      advice: proxies.isEmpty ? "all clients of a proxy that is not listed are one" : nil)
    add(
      "server.forwarded_header", server.forwardedHeader.rawValue,
      advice: server.forwardedHeader == .auto && !proxies.isEmpty
        ? "name the field that your proxies write" : nil)
    add("server.cors_origin", parts.server.corsOrigins.joined(separator: ", "))
    add(
      "server.redirect_auto", "\(server.redirectsAuto)",
      advice: server.redirectsAuto ? nil : "a CDN that ignores Vary needs true")
    let freshness = keys.freshness
    add(
      "freshness.maximum_lifetime",
      "Cache-Control says at most \(freshness.maximumLifetime.flooredSeconds) s, without the "
        + "origin's word \(freshness.defaultLifetime.flooredSeconds) s, in browsers "
        + "\(freshness.clientDefault.flooredSeconds) s")
  }

  /// Returns what `/metrics` of the running server says; `nil` without a running server.
  private mutating func watchIt() -> String? {
    add(
      "log.format", keys.log.format.rawValue,
      advice: keys.log.format == .text ? "json or logfmt for machines" : nil)
    let client = HealthCheck(server)
    var texts: [String?] = []
    for path in ["/readyz", "/metrics"] {
      let answer = client.answer(at: path)
      add(
        path, answer.map { "\($0.status)" } ?? "",
        open: answer.flatMap { $0.status == 200 ? nil : "it has to be 200" },
        advice: answer == nil ? "no server answers: start it and check again" : nil)
      texts.append(answer?.status == 200 ? answer?.text : nil)
    }
    return texts[1]
  }

  private mutating func updateIt(runningPage page: String?) {
    let isSame = page?.contains("pictor_build_info{version=\"\(pictorVersion)\"}")
    add(
      "--version", pictorVersion,
      open: isSame == false ? "another version runs: restart it" : nil,
      advice: isSame == nil ? "no server says its version" : nil)
    if let path = parts.disk.path, parts.disk.limit > 0 {
      add(
        "disk.path", path,
        open: start.canUseFolder ? nil : "this user cannot keep the cache there")
    }
    let (delay, grace) = (server.shutdownDelay, server.graceTime)
    // After these: what is written last, as docs/operations.md says.
    let longest = (delay + grace).flooredSeconds + 10
    add(
      "server.shutdown_delay, server.grace_time",
      "a stop takes up to \(longest) s",
      open: longest > 90 ? "systemd kills after 90 s, unless TimeoutStopSec is longer" : nil,
      advice: longest > 30
        ? "Kubernetes kills after 30 s, unless terminationGracePeriodSeconds is longer" : nil)
    add(
      "server.request_timeout", "\(server.requestTimeout.flooredSeconds) s",
      advice: grace < server.requestTimeout
        ? "a stop cuts requests that take longer than server.grace_time" : nil)
  }
}

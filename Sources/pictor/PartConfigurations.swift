// PartConfigurations: checks what single keys cannot, and gives each part its settings.

import Caching
import Core
import Doors
import Downloading
import Glibc
import ImagingPool
import Serving
import Sharing
import Tracing

/// The settings of all parts. Creating them finds errors that ranges of single keys cannot exclude:
/// files, secrets, presets, networks and host names.
struct PartConfigurations: Sendable {
  /// All keys. Parts without settings of their own use its sections.
  let keys: Configuration
  var server: ServerConfiguration
  /// How the available memory is divided.
  let plan: MemoryPlan
  let memory: MemoryTierConfiguration
  var disk: DiskTierConfiguration
  let freshness: FreshnessConfiguration
  var downloader: DownloaderConfiguration
  let local: LocalFiles
  let imagers: ImagerPoolConfiguration
  /// Through what the machine shares; `nil`: it is alone.
  var fleet: FleetConfiguration?
  /// Where spans are sent; `nil`: nowhere.
  let exporter: SpanExporterConfiguration?
  /// The warning about keys that leave jobs only their least memory, if there is one.
  let scarceJobMemory: String?

  /// Converts a configuration.
  ///
  /// - Parameters:
  ///   - environment: the variables that secrets may refer to.
  ///   - room: bytes of available memory; `auto` takes a share of it.
  /// - Throws: all values that cannot be used.
  init(
    _ configuration: Configuration, environment: [String: String] = [:],
    room: Int = MemoryRoom.bytes()
  ) throws(ConfigurationError) {
    var problems = ConfigurationProblems()
    self.init(configuration, environment: environment, room: room, into: &problems)
    try problems.check()
  }

  /// Converts a configuration. Leaves out values that cannot be used and adds them to `problems`.
  init(
    _ configuration: Configuration, environment: [String: String],
    room: Int = MemoryRoom.bytes(), into problems: inout ConfigurationProblems
  ) {
    keys = configuration
    plan =
      configuration.memory.budget.map { MemoryPlan(budget: $0, cores: Cores.usable) }
      ?? MemoryPlan(room: room, cores: Cores.usable)
    server = ServerConfiguration(
      configuration.server, download: configuration.download, imaging: configuration.imaging,
      log: configuration.log)
    server.knownTargets = plan.knownTargets
    server.operators = configuration.admin.operators(environment: environment, into: &problems)
    configuration.server.checkAddresses(&problems)
    configuration.checkSamples(&problems)
    let proxies = configuration.server.trustedProxies
    server.trustedProxies.includesUnixSockets = proxies.contains(ListenAddress.unixPrefix)
    server.trustedProxies.networks = networks(
      proxies.filter { $0 != ListenAddress.unixPrefix }, at: "server.trusted_proxies",
      into: &problems)
    // A random id at each start: of several servers behind one name, each knows its own requests.
    if server.id.isEmpty {
      server.id = "pictor-" + String(UInt64.random(in: 0...(.max)), radix: 36)
    }
    let signing = problems.collect { () throws(ConfigurationError) in
      try configuration.signing.policy(environment: environment)
    }
    if let signing { server.signing = signing }
    server.presets = configuration.presets
    server.sources = configuration.sources
    server.sourceRules = SourceRules.ofImages(configuration.sources)
    let doors = problems.collect { () throws(ConfigurationError) in
      try DoorPlace.places(of: configuration.doors, environment: environment)
    }
    server.doors = doors ?? []
    server.keyFilter = CacheKeyFilter(rules: configuration.hosts)
    server.watermarks = configuration.urls(configuration.watermarks, at: "watermarks", &problems)
    server.fallbacks = configuration.urls(configuration.fallbacks, at: "fallbacks", &problems)
    let fallback = configuration.server.fallback
    if !fallback.isEmpty, configuration.fallbacks[fallback] == nil {
      problems.add(at: "server.fallback", "'\(fallback)' is not a name in fallbacks")
    }
    server.allowsLocalWatermarks = !configuration.sources.localRoot.isEmpty
    for (name, error) in server.invalidPresets {
      problems.add(at: "presets.\(name)", error.message)
    }
    memory = MemoryTierConfiguration(configuration.memory, plan: plan)
    disk = DiskTierConfiguration(configuration.disk, plan: plan)
    freshness = FreshnessConfiguration(configuration.freshness, hostRules: configuration.hosts)
    downloader = DownloaderConfiguration(configuration.download, plan: plan)
    downloader.serverID = server.id
    downloader.check(&problems)
    downloader.traced = patterns(
      of: configuration.tracing.propagate, at: "tracing.propagate", &problems)
    server.propagatesTraces = !downloader.traced.isEmpty
    server.sampledShare = configuration.tracing.sample
    exporter = configuration.tracing.exporter(
      environment: environment, caFile: configuration.download.caFile, &problems)
    fleet = configuration.fleetConfiguration(
      folder: disk.limit > 0 ? disk.path : nil, environment: environment, &problems)
    fleet?.filter = server.keyFilter
    for (index, rule) in configuration.hosts.enumerated() {
      let resolved = problems.collect { () throws(ConfigurationError) in
        try rule.resolved(environment: environment, at: "hosts: rule \(index + 1)")
      }
      if let resolved { downloader.hostRules.append(resolved) }
    }
    if let proxy = configuration.download.proxy {
      downloader.proxy = problems.collect { () throws(ConfigurationError) in
        try ProxyURL.url(of: proxy, environment: environment, at: "download.proxy")
      }
    }
    let root = configuration.sources.localRoot
    problems.collect { () throws(ConfigurationError) in
      try require(root, at: "sources.local_root", isFolder: true)
    }
    local = LocalFiles(
      root: root.isEmpty ? nil : root, maximumBytes: configuration.download.maximumBytes,
      lifetime: configuration.sources.localLifetime.flooredSeconds,
      bodyLifetime: configuration.sources.bodyLifetime.flooredSeconds)
    let executable = problems.collect { () throws(ConfigurationError) in
      try pathBesideThisProgram("pictor-imager")
    }
    let parts =
      memory.limit + memory.responseLimit + downloader.maximumBytesInFlight + disk.writeQueueLimit
    if let budget = configuration.memory.budget, parts > budget {
      problems.add(
        at: "memory.budget",
        "\(budget) bytes are less than memory.limit, images being sent, bodies of downloads and the "
          + "disk's queue together: \(parts)")
    }
    imagers = ImagerPoolConfiguration(
      executable: executable ?? "", configuration.imaging, plan: plan, parts: parts)
    scarceJobMemory = ScarceJobMemory.warning(
      configuration, plan: plan, parts: parts, workers: imagers.workers)
  }
}

/// Returns what the texts of a list stand for. Adds those that `read` cannot read to `problems`.
private func values<Value>(
  of texts: [String], at key: String, _ problems: inout ConfigurationProblems, allowed: String,
  read: (String) -> Value?
) -> [Value] {
  texts.compactMap { text in
    let value = read(text)
    if value == nil { problems.add(at: key, "'\(text)' is not \(allowed)") }
    return value
  }
}

private func networks(
  _ texts: [String], at key: String, into problems: inout ConfigurationProblems
) -> [CIDR] {
  values(
    of: texts, at: key, &problems,
    allowed: "a network: the bits after its prefix must be 0, as in 10.0.0.0/8"
  ) { CIDR($0) }
}

private func patterns(
  of texts: [String], at key: String, _ problems: inout ConfigurationProblems
) -> [SourcePattern] {
  values(
    of: texts, at: key, &problems,
    allowed: "a host such as example.com, *.example.com:8443 or example.com/path"
  ) { SourcePattern($0) }
}

/// Checks that a configured file or folder exists and is readable. An empty path is valid.
func require(_ path: String, at key: String, isFolder: Bool) throws(ConfigurationError) {
  guard !path.isEmpty else { return }
  let descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
  guard descriptor >= 0 else {
    throw ConfigurationError(at: key, "'\(path)' cannot be read: \(errnoText())")
  }
  defer { close(descriptor) }
  var status = stat()
  guard fstat(descriptor, &status) == 0, (status.st_mode & S_IFMT == S_IFDIR) == isFolder else {
    throw ConfigurationError(at: key, "'\(path)' is \(isFolder ? "not a" : "a") folder")
  }
}

/// Checks that a file of certificate authorities can be read and contains any: curl reports that
/// only at the first TLS connection. An empty path stands for the system's.
func requireAuthorities(_ path: String, at key: String) throws(ConfigurationError) {
  guard !path.isEmpty else { return }
  try require(path, at: key, isFolder: false)
  // A pipe without a writer must not block.
  let file = OwnedDescriptor(owning: open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK))
  let bytes = (try? FileContents.read(file.value, limit: 64 << 20)) ?? []
  guard bytes.firstRange(of: "-----BEGIN ".utf8) != nil else {
    throw ConfigurationError(at: key, "'\(path)' contains no PEM certificate")
  }
}

extension Configuration {
  /// Returns the URLs of watermarks or fallback images by name. Adds invalid URLs, and local ones
  /// without a local root, to `problems`.
  fileprivate func urls(
    _ texts: [String: String], at key: String, _ problems: inout ConfigurationProblems
  ) -> [String: SourceURL] {
    var urls: [String: SourceURL] = [:]
    for (name, text) in texts.sorted(by: { $0.key < $1.key }) {
      let place = "\(key).\(name)"
      do throws(ImageError) {
        let url = try SourceURL(parsing: text)
        guard url.scheme != .local || !sources.localRoot.isEmpty else {
          problems.add(at: place, "'\(text)' needs sources.local_root")
          continue
        }
        urls[name] = url
      } catch {
        problems.add(at: place, error.message)
      }
    }
    return urls
  }
}

extension Configuration {
  /// Checks that local samples of the page have a local root.
  fileprivate func checkSamples(_ problems: inout ConfigurationProblems) {
    guard sources.localRoot.isEmpty else { return }
    for text in server.samples where (try? SourceURL(parsing: text))?.scheme == .local {
      problems.add(at: "server.samples", "'\(text)' needs sources.local_root")
    }
  }
}

extension ServerSettings {
  /// Checks that no address is taken twice.
  fileprivate func checkAddresses(_ problems: inout ConfigurationProblems) {
    let clients = clientAddresses
    for (index, address) in clients.enumerated() {
      if let other = clients[..<index].first(where: address.excludes) {
        problems.add(at: "server.address", "'\(address)' overlaps '\(other)': use another port")
      }
    }
    guard let own = operatorAddress, clients.contains(where: own.overlaps) else { return }
    problems.add(
      at: "server.operator_address",
      "'\(own)' overlaps the address of clients (server.address, server.port): use another port")
  }
}

extension DownloaderConfiguration {
  /// Sets the networks and hosts. Adds values that cannot be used to `problems`: an invalid network
  /// or host, and a file that cannot be read.
  fileprivate mutating func check(_ problems: inout ConfigurationProblems) {
    userAgent = "Pictor/\(pictorVersion)"
    problems.collect { () throws(ConfigurationError) in
      try requireAuthorities(settings.caFile, at: "download.ca_file")
    }
    allowedNetworks = networks(
      settings.allowNetworks, at: "download.allow_networks", into: &problems)
    hosts.allowed = patterns(of: settings.allowHosts, at: "download.allow_hosts", &problems)
    hosts.denied = patterns(of: settings.denyHosts, at: "download.deny_hosts", &problems)
  }
}

extension TracingSettings {
  /// Returns the exporter's settings; `nil` without a collector. Adds bad secrets to `problems`.
  fileprivate func exporter(
    environment: [String: String], caFile: String, _ problems: inout ConfigurationProblems
  ) -> SpanExporterConfiguration? {
    guard !endpoint.isEmpty else { return nil }
    var configuration = SpanExporterConfiguration(endpoint: endpoint)
    configuration.caFile = caFile
    // Random at each start: `service.instance.id` tells servers of one name apart.
    configuration.instance = TraceContext().traceID
    for (name, text) in headers.sorted(by: { $0.key < $1.key }) {
      let place = "tracing.headers.\(name)"
      let field = problems.collect { () throws(ConfigurationError) in
        guard
          let field = HeaderField(name, value: try text.value(environment: environment, at: place))
        else { throw ConfigurationError(at: place, "it has an invalid value") }
        return field
      }
      if let field { configuration.headers.append(field) }
    }
    return configuration
  }
}

/// Returns the path of a program in the folder of this one.
private func pathBesideThisProgram(_ name: String) throws(ConfigurationError) -> String {
  var buffer = [CChar](repeating: 0, count: Int(PATH_MAX))
  let count = readlink("/proc/self/exe", &buffer, buffer.count - 1)
  guard count > 0 else {
    throw ConfigurationError(at: "/proc/self/exe", errnoText())
  }
  let path = String(decoding: buffer[..<count].map(UInt8.init(bitPattern:)), as: UTF8.self)
  return path[...(path.lastIndex(of: "/") ?? path.startIndex)] + name
}

extension Configuration {
  /// Returns the fleet's configuration; `nil` without a fleet. Adds a bad address to `problems`.
  func fleetConfiguration(
    folder: String?, environment: [String: String], _ problems: inout ConfigurationProblems
  ) -> FleetConfiguration? {
    let bucket = bucketConfiguration(environment: environment, &problems)
    guard let setting = fleet.redis else { return nil }
    let address = problems.collect { () throws(ConfigurationError) in
      let text = try setting.value(environment: environment, at: "fleet.redis")
      guard let address = RedisAddress(text) else {
        throw ConfigurationError(
          at: "fleet.redis", "\(setting.text) is not \(RedisAddress.allowed)")
      }
      return address
    }
    return address.map { address in
      var result = FleetConfiguration(address: address, settings: fleet, folder: folder)
      result.bucket = bucket
      return result
    }
  }

  /// Returns the bucket that machines share; `nil` without one. Adds bad keys to `problems`.
  private func bucketConfiguration(
    environment: [String: String], _ problems: inout ConfigurationProblems
  ) -> S3Configuration? {
    var settings = fleet.bucket
    if let (key, problem) = settings.conflict(hasRedis: fleet.redis != nil) {
      problems.add(at: key, problem)
      return nil
    }
    guard settings.isOn else { return nil }
    // An entry is up to 64 times as large as those of Redis.
    settings.timeout = fleet.timeout * 5
    return problems.collect { () throws(ConfigurationError) in
      try requireAuthorities(settings.caFile, at: "fleet.s3.ca_file")
      let credentials = try settings.credentials(environment: environment)
      do throws(ImageError) {
        var configuration = try S3Configuration(settings, credentials: credentials)
        configuration.retryInterval = fleet.retryInterval
        return configuration
      } catch {
        throw ConfigurationError(at: "fleet.s3.endpoint", error.message)
      }
    }
  }
}

/// The warning about keys that take the memory of jobs.
enum ScarceJobMemory {
  /// Returns the warning, or `nil` if jobs have more than their least memory, or no key that is set
  /// above its automatic value is the cause.
  ///
  /// - Parameter parts: the bytes of the other parts together.
  static func warning(
    _ configuration: Configuration, plan: MemoryPlan, parts: Int, workers: Int
  ) -> String? {
    let left = max(plan.budget - parts, 0)
    let least = workers * MemoryPlan.leastJobMemory
    guard plan.budget != .max, left < least else { return nil }
    var causes: [String] = []
    if let limit = configuration.memory.limit, limit > plan.memoryTier {
      causes.append("memory.limit \(mebibytes(limit))")
    }
    let body = configuration.download.maximumBytes
    if body > plan.bodies(ofAtMost: DownloadSettings().maximumBytes) {
      causes.append("download.maximum_bytes \(mebibytes(body))")
    }
    if configuration.imaging.workers > plan.workers { causes.append("imaging.workers \(workers)") }
    guard !causes.isEmpty else { return nil }
    let budget = configuration.memory.budget == nil ? "memory.budget auto" : "memory.budget"
    return "jobs have only their least memory, \(mebibytes(least)) for imaging.workers \(workers): "
      + "of \(budget) \(mebibytes(plan.budget)), \(causes.joined(separator: ", ")) leave "
      + "\(mebibytes(left)); lower them or raise memory.budget"
  }

  private static func mebibytes(_ bytes: Int) -> String { "\(bytes >> 20) MiB" }
}

extension PartConfigurations {
  /// Whether every client of another machine can have every image of the web loaded: the server
  /// listens beyond loopback, needs no signature and has no list of hosts.
  var isOpenRelay: Bool {
    server.signing.mode == .off && downloader.hosts.allowed.isEmpty
      && !server.clientAddresses.allSatisfy(Self.isLocal)
  }

  /// Whether every client of another machine can read the figures: there is no listener for
  /// operators, and the server listens beyond loopback.
  var showsFigures: Bool {
    server.operatorAddresses.isEmpty && !server.clientAddresses.allSatisfy(Self.isLocal)
  }

  /// What the operator should know of the configuration.
  var openDoors: [String] {
    (isOpenRelay ? [Self.openRelay] : []) + (showsFigures ? [Self.openFigures] : [])
  }

  static let openFigures =
    "every client may read /stats and /metrics: set server.operator_address, or listen on 127.0.0.1 only"

  static let openRelay =
    "every client may load images of all hosts: set signing.mode or download.allow_hosts, or listen on 127.0.0.1 only"

  static func isLocal(_ address: ListenAddress) -> Bool {
    switch address {
    case .network(let host, _): IPAddress(numeric: host)?.isLoopback ?? false
    case .unix: true
    }
  }
}

extension SigningSettings {
  /// Returns the policy with the secrets of its keys.
  ///
  /// - Throws: `ConfigurationError` if a secret cannot be used, or a needed key is missing.
  func policy(environment: [String: String]) throws(ConfigurationError) -> SigningPolicy {
    guard mode == .off || !keys.isEmpty else {
      throw ConfigurationError(
        at: "signing.mode", "'\(mode.rawValue)' is not allowed without signing.keys")
    }
    let keys = try secrets(environment: environment).map {
      SigningKey(id: $0.id, secret: $0.secret)
    }
    return SigningPolicy(mode: mode, keys: keys)
  }
}

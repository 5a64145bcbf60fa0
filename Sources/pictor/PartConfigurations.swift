// PartConfigurations: converts the sections of the configuration to the settings of each part.

import Caching
import Configuring
import Downloading
import Glibc
import ImagingPool
import ImagingWire
import Managing
import Model
import Platform
import Serving

/// The settings of every part. The conversion finds errors that ranges of single keys cannot exclude.
struct PartConfigurations: Sendable {
  var server: ServerConfiguration
  let memory: MemoryTierConfiguration
  let disk: DiskTierConfiguration
  let freshness: FreshnessConfiguration
  let failures: FailurePolicy
  let stale: StalePolicy
  var downloader: DownloaderConfiguration
  let local: LocalFiles
  let imagers: ImagerPoolConfiguration
  let passing: PassingPolicy
  let avif: AVIFPolicy
  let derives: Bool
  let prefetcher: PrefetcherConfiguration
  let shutdownDelay: Duration

  /// Converts a configuration.
  ///
  /// - Parameters:
  ///   - environment: Where secrets may stand.
  ///   - room: Bytes of available memory; `auto` takes a share of it.
  /// - Throws: all values that cannot be used.
  init(
    _ configuration: Configuration, environment: [String: String] = [:],
    room: Int = MemoryRoom.bytes()
  ) throws(ConfigurationError) {
    var problems = ConfigurationProblems()
    self.init(configuration, environment: environment, room: room, &problems)
    try problems.check()
  }

  /// The same, where each value that cannot be used is left out and added to `problems`.
  init(
    _ configuration: Configuration, environment: [String: String],
    room: Int = MemoryRoom.bytes(), _ problems: inout ConfigurationProblems
  ) {
    let plan = MemoryPlan(room: room, cores: max(sysconf(CInt(_SC_NPROCESSORS_ONLN)), 1))
    server = ServerConfiguration(configuration.server)
    server.trustedProxies.networks = networks(
      configuration.server.trustedProxies, at: "server.trusted_proxies", &problems)
    server.loggedRequests = LoggedRequests(rawValue: configuration.log.requests) ?? .misses
    server.operatorTokens = configuration.admin.tokens
    // A random id at each start: of several servers behind one name, each knows its own requests.
    let id = configuration.server.id
    server.id =
      id.isEmpty ? "pictor-" + String(UInt64.random(in: 0...(.max)), radix: 36) : id
    server.maximumUpload = configuration.download.maximumBytes
    server.presets = configuration.presets
    server.autoFormats = configuration.imaging.autoFormats
    server.maximumResultPixels = configuration.imaging.maximumResultPixels
    server.qualities = configuration.imaging.qualities
    server.keyFilter = CacheKeyFilter(configuration.hosts)
    server.watermarks = configuration.watermarkURLs(&problems)
    server.allowsLocalWatermarks = !configuration.sources.localRoot.isEmpty
    for (name, error) in server.invalidPresets {
      problems.add(at: "presets.\(name)", error.message)
    }
    memory = MemoryTierConfiguration(configuration.memory, plan)
    disk = DiskTierConfiguration(configuration.disk, plan)
    freshness = FreshnessConfiguration(configuration.freshness, configuration.hosts)
    stale = StalePolicy(configuration.freshness)
    failures = FailurePolicy(configuration.failures)
    downloader = DownloaderConfiguration(configuration.download, plan, &problems)
    for (index, rule) in configuration.hosts.enumerated() {
      let made = problems.collect { () throws(ConfigurationError) in
        try HostRule(rule, environment: environment, at: "hosts: rule \(index + 1)")
      }
      if let made { downloader.hostRules.append(made) }
    }
    downloader.serverID = server.id
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
      lifetime: configuration.sources.localLifetime.wholeSeconds)
    imagers = ImagerPoolConfiguration(configuration.imaging, plan, &problems)
    passing = PassingPolicy(configuration.imaging)
    avif = AVIFPolicy(configuration.imaging, workers: imagers.workers)
    derives = configuration.imaging.derive
    prefetcher = PrefetcherConfiguration(configuration.prefetch)
    shutdownDelay = configuration.server.shutdownDelay
  }
}

/// The networks of a list; what is none is added to `problems`.
private func networks(
  _ texts: [String], at key: String, _ problems: inout ConfigurationProblems
) -> [CIDR] {
  var networks: [CIDR] = []
  for text in texts {
    if let network = CIDR(text) {
      networks.append(network)
    } else {
      problems.add(
        at: key,
        "'\(text)' is no network: the bits behind its prefix must be 0, as in 10.0.0.0/8")
    }
  }
  return networks
}

/// The patterns of a list of hosts.
private func patterns(
  of texts: [String], at key: String, _ problems: inout ConfigurationProblems
) -> [HostPattern] {
  var patterns: [HostPattern] = []
  for text in texts {
    if let pattern = HostPattern(text) {
      patterns.append(pattern)
    } else {
      problems.add(at: key, "'\(text)' is no host such as example.com or *.example.com")
    }
  }
  return patterns
}

/// Checks that a configured file or folder exists and is readable. An empty path is valid.
private func require(_ path: String, at key: String, isFolder: Bool) throws(ConfigurationError) {
  guard !path.isEmpty else { return }
  let descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
  guard descriptor >= 0 else {
    throw ConfigurationError(at: key, "'\(path)' cannot be read: \(errnoText())")
  }
  defer { close(descriptor) }
  var status = stat()
  guard fstat(descriptor, &status) == 0, (status.st_mode & S_IFMT == S_IFDIR) == isFolder else {
    throw ConfigurationError(at: key, "'\(path)' is \(isFolder ? "no" : "a") folder")
  }
}

extension ServerConfiguration {
  init(_ section: Configuration.Server) {
    self.init()
    address = section.address
    port = section.port
    if section.workers > 0 { workers = section.workers }
    connectionLimit = section.connections
    maximumActiveRequests = section.activeRequests
    idleTimeout = section.idleTimeout
    headerTimeout = section.headerTimeout
    requestTimeout = section.requestTimeout
    answerTimeout = section.answerTimeout
    graceTime = section.graceTime
    corsOrigins = section.corsOrigin
    allowsReload = section.allowReload
    allowsEnlarging = section.allowEnlarge
    presetsOnly = section.presetsOnly
    redirectsAuto = section.redirectAuto
    explainsErrors = section.explainErrors
    trustedProxies.field = TrustedProxies.Field(rawValue: section.forwardedHeader) ?? .auto
  }
}

extension MemoryTierConfiguration {
  init(_ section: Configuration.Memory, _ plan: MemoryPlan) {
    self.init()
    limit = section.limit ?? plan.memoryTier
    countLimit = section.countLimit == 0 ? nil : section.countLimit
    pressure = section.pressure
  }
}

extension DiskTierConfiguration {
  init(_ section: Configuration.Disk, _ plan: MemoryPlan) {
    self.init(path: section.path)
    limit = section.limit
    countLimit = section.countLimit
    sourceShare = section.sourceShare
    maximumAge = section.maximumAge?.wholeSeconds ?? -1
    expireBy = ExpireType(rawValue: section.expireBy) ?? .access
    cleanInterval = section.cleanInterval
    cleanFraction = section.cleanFraction
    promotionThreshold = section.promotionThreshold
    writeQueueLimit = section.writeQueueLimit ?? plan.writeQueue
  }
}

extension Configuration {
  /// The URLs by name; what is no URL, or a local one without a local root, is added to `problems`.
  fileprivate func watermarkURLs(_ problems: inout ConfigurationProblems) -> [String: SourceURL] {
    var urls: [String: SourceURL] = [:]
    for (name, text) in watermarks.sorted(by: { $0.key < $1.key }) {
      let place = "watermarks.\(name)"
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

extension FreshnessConfiguration {
  init(_ section: Configuration.Freshness, _ rules: [Configuration.HostRule]) {
    self.init()
    bounds.defaultLifetime = section.defaultLifetime.wholeSeconds
    bounds.heuristicLifetime = section.heuristicLifetime.wholeSeconds
    bounds.clientDefault = section.clientDefault.wholeSeconds
    bounds.minimumLifetime = section.minimumLifetime.wholeSeconds
    bounds.maximumLifetime = section.maximumLifetime.wholeSeconds
    bounds.staleWhileRevalidate = section.staleWhileRevalidate.wholeSeconds
    bounds.staleIfError = section.staleIfError.wholeSeconds
    hostRules = rules.map { FreshnessRule($0) }
  }
}

extension StalePolicy {
  init(_ section: Configuration.Freshness) {
    self.init()
    errorInterval = section.errorInterval.wholeSeconds
  }
}

extension FailurePolicy {
  init(_ section: Configuration.Failures) {
    self.init()
    limit = section.limit
    lifetimes = [:]
    for (status, time) in section.ttl.compactMap(Configuration.Failures.parse) {
      lifetimes[status] = time.wholeSeconds
    }
  }
}

extension PassingPolicy {
  init(_ section: Configuration.Imaging) {
    self.init()
    formats.formIntersection(section.formats)
    maximumPixels = section.maximumPixels
  }
}

extension AVIFPolicy {
  init(_ section: Configuration.Imaging, workers: Int) {
    self.init()
    isLater = section.avifLater
    // The other half of the workers stays free for jobs that a request waits for.
    atOnce = workers / 2
  }
}

extension PrefetcherConfiguration {
  init(_ section: Configuration.Prefetch) {
    self.init()
    limit = section.limit
    limitPerHost = section.limitPerHost
    lists = section.lists
  }
}

extension DownloaderConfiguration {
  /// A network or host that is none, and a file that cannot be read, are added to `problems`.
  init(
    _ section: Configuration.Download, _ plan: MemoryPlan, _ problems: inout ConfigurationProblems
  ) {
    self.init()
    timeout = section.timeout
    connectTimeout = section.connectTimeout
    lowSpeedTime = section.lowSpeedTime
    firstByteTimeout = section.firstByteTimeout
    (retries, retryDelay) = (section.retries, section.retryDelay)
    (breakerThreshold, breakerOpenTime) = (section.breakerThreshold, section.breakerOpenTime)
    order = section.order == "lifo" ? .lifo : .fifo
    limit = section.limit
    limitPerHost = section.limitPerHost
    (queueLimit, queueTimeout) = (section.queueLimit, section.queueTimeout)
    maximumBytes = section.maximumBytes
    maximumBytesInFlight =
      section.maximumBytesInFlight ?? plan.bodies(ofAtMost: section.maximumBytes)
    maximumRedirects = section.maximumRedirects
    userAgent = "Pictor/\(pictorVersion)"
    problems.collect { () throws(ConfigurationError) in
      try require(section.caFile, at: "download.ca_file", isFolder: false)
    }
    caFile = section.caFile.isEmpty ? nil : section.caFile
    allowedNetworks = networks(section.allowNetworks, at: "download.allow_networks", &problems)
    hosts.allowed = patterns(of: section.allowHosts, at: "download.allow_hosts", &problems)
    hosts.denied = patterns(of: section.denyHosts, at: "download.deny_hosts", &problems)
  }
}

extension ImagerPoolConfiguration {
  /// Where the folder of this program, in which the worker lies, cannot be told, that is added to `problems`.
  init(
    _ section: Configuration.Imaging, _ plan: MemoryPlan, _ problems: inout ConfigurationProblems
  ) {
    let executable = problems.collect { () throws(ConfigurationError) in
      try Self.besideThisProgram("pictor-imager")
    }
    self.init(executable: executable ?? "")
    workers = section.workers > 0 ? section.workers : plan.workers
    jobDeadline = section.deadline
    processorTime = section.processorTime
    queueLimit = section.queueLimit
    maximumJobsPerWorker = section.jobsPerWorker
    maximumWorkerMemory = section.workerMemory ?? plan.workerMemory
    retireAboveResidentBytes = section.retireAbove ?? plan.retireAbove
    niceness = section.niceness
    limits.formats = Set(section.formats)
    limits.maximumPixels = section.maximumPixels
    limits.maximumFrames = section.maximumFrames
    limits.failOn = FailOn(rawValue: section.failOn) ?? .warning
    limits.maximumResultPixels = section.maximumResultPixels
    limits.efforts = section.efforts
    // An estimate may be wrong by half; the time itself is the limit that counts.
    limits.mostSeconds = 1.5 * (section.processorTime / .seconds(1))
  }

  private static func besideThisProgram(_ name: String) throws(ConfigurationError) -> String {
    var buffer = [CChar](repeating: 0, count: Int(PATH_MAX))
    let count = readlink("/proc/self/exe", &buffer, buffer.count - 1)
    guard count > 0 else {
      throw ConfigurationError(at: "/proc/self/exe", errnoText())
    }
    let path = String(decoding: buffer[..<count].map(UInt8.init(bitPattern:)), as: UTF8.self)
    return path[...(path.lastIndex(of: "/") ?? path.startIndex)] + name
  }
}

extension Duration {
  /// Whole seconds, rounded down, as in HTTP headers.
  var wholeSeconds: Int { Int(components.seconds) }
}

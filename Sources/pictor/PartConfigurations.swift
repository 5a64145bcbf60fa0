// PartConfigurations: from the configuration's sections to what each part wants to know.

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

/// What each part is told. Making it finds what the keys' own ranges cannot, so it is made before anything is started,
/// and by `--check-config`.
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
  /// How long the server goes on listening after it is asked to stop.
  let shutdownDelay: Duration

  /// - Parameters:
  ///   - environment: Where secrets may stand.
  ///   - room: Bytes of memory that there are, which what is configured as `auto` has its share of.
  /// - Throws: the first value that cannot be used, in one line.
  init(
    _ configuration: Configuration, environment: [String: String] = [:],
    room: Int = MemoryRoom.bytes()
  ) throws(ConfigurationError) {
    let plan = MemoryPlan(room: room, cores: max(sysconf(CInt(_SC_NPROCESSORS_ONLN)), 1))
    server = ServerConfiguration(configuration.server)
    server.operatorTokens = configuration.admin.tokens
    server.maximumUpload = configuration.download.maximumBytes
    server.presets = configuration.presets
    server.autoFormats = configuration.imaging.autoFormats
    server.maximumResultPixels = configuration.imaging.maximumResultPixels
    server.keyFilter = CacheKeyFilter(configuration.hosts)
    server.watermarks = try configuration.watermarkURLs()
    server.allowsLocalWatermarks = !configuration.sources.localRoot.isEmpty
    if let (name, error) = server.invalidPreset {
      throw ConfigurationError(at: "presets.\(name)", error.message)
    }
    memory = MemoryTierConfiguration(configuration.memory, plan)
    disk = DiskTierConfiguration(configuration.disk, plan)
    freshness = FreshnessConfiguration(configuration.freshness, configuration.hosts)
    stale = StalePolicy(configuration.freshness)
    failures = FailurePolicy(configuration.failures)
    downloader = try DownloaderConfiguration(configuration.download, plan)
    for (index, rule) in configuration.hosts.enumerated() {
      downloader.hostRules.append(
        try HostRule(rule, environment: environment, at: "hosts: rule \(index + 1)"))
    }
    if let proxy = configuration.download.proxy {
      downloader.proxy = try ProxyURL.url(
        of: proxy, environment: environment, at: "download.proxy")
    }
    let root = configuration.sources.localRoot
    try require(root, at: "sources.local_root", isFolder: true)
    local = LocalFiles(
      root: root.isEmpty ? nil : root, maximumBytes: configuration.download.maximumBytes,
      lifetime: configuration.sources.localLifetime.wholeSeconds)
    imagers = try ImagerPoolConfiguration(configuration.imaging, plan)
    passing = PassingPolicy(configuration.imaging)
    avif = AVIFPolicy(configuration.imaging, workers: imagers.workers)
    derives = configuration.imaging.derive
    prefetcher = PrefetcherConfiguration(configuration.prefetch)
    shutdownDelay = configuration.server.shutdownDelay
  }
}

/// The patterns of a list of hosts.
private func patterns(
  of texts: [String], at key: String
) throws(ConfigurationError) -> [HostPattern] {
  var patterns: [HostPattern] = []
  for text in texts {
    guard let pattern = HostPattern(text) else {
      throw ConfigurationError(
        at: key, "'\(text)' is no host such as example.com or *.example.com")
    }
    patterns.append(pattern)
  }
  return patterns
}

/// A file or folder that is named has to be there and readable; an empty path names none.
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
  /// - Throws: `ConfigurationError` naming what is no URL, or a local one without a local root.
  fileprivate func watermarkURLs() throws(ConfigurationError) -> [String: SourceURL] {
    var urls: [String: SourceURL] = [:]
    for (name, text) in watermarks.sorted(by: { $0.key < $1.key }) {
      let place = "watermarks.\(name)"
      do throws(ImageError) {
        urls[name] = try SourceURL(parsing: text)
      } catch {
        throw ConfigurationError(at: place, error.message)
      }
      guard urls[name]?.scheme != .local || !sources.localRoot.isEmpty else {
        throw ConfigurationError(at: place, "'\(text)' needs sources.local_root")
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
    // The other half is for what somebody waits for.
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
  /// - Throws: `ConfigurationError` naming the network or host that is none, or the file that cannot be read.
  init(_ section: Configuration.Download, _ plan: MemoryPlan) throws(ConfigurationError) {
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
    queueLimit = section.queueLimit
    maximumBytes = section.maximumBytes
    maximumBytesInFlight =
      section.maximumBytesInFlight ?? plan.bodies(ofAtMost: section.maximumBytes)
    maximumRedirects = section.maximumRedirects
    userAgent = "Pictor/\(pictorVersion)"
    try require(section.caFile, at: "download.ca_file", isFolder: false)
    caFile = section.caFile.isEmpty ? nil : section.caFile
    for text in section.allowNetworks {
      guard let network = CIDR(text) else {
        throw ConfigurationError(
          at: "download.allow_networks",
          "'\(text)' is no network: the bits behind its prefix must be 0, as in 10.0.0.0/8")
      }
      allowedNetworks.append(network)
    }
    hosts.allowed = try patterns(of: section.allowHosts, at: "download.allow_hosts")
    hosts.denied = try patterns(of: section.denyHosts, at: "download.deny_hosts")
  }
}

extension ImagerPoolConfiguration {
  /// - Throws: `ConfigurationError` when the folder of this program, where the worker lies, cannot be told.
  init(_ section: Configuration.Imaging, _ plan: MemoryPlan) throws(ConfigurationError) {
    self.init(executable: try Self.besideThisProgram("pictor-imager"))
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
  /// Whole seconds, rounded down, as HTTP counts.
  var wholeSeconds: Int { Int(components.seconds) }
}

// From the configuration's sections to what each part wants to know.

import Caching
import Configuring
import Downloading
import Glibc
import ImagingPool
import ImagingWire
import Model
import Serving

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
    corsOrigin = section.corsOrigin.isEmpty ? nil : section.corsOrigin
  }
}

extension MemoryTierConfiguration {
  init(_ section: Configuration.Memory) {
    self.init()
    limit = section.limit
  }
}

extension DiskTierConfiguration {
  init(_ section: Configuration.Disk) {
    self.init(path: section.path)
    limit = section.limit
    maximumAge = section.maximumAge?.wholeSeconds ?? -1
    cleanInterval = section.cleanInterval
    cleanFraction = section.cleanFraction
    promotionThreshold = section.promotionThreshold
    writeQueueLimit = section.writeQueueLimit
  }
}

extension FreshnessConfiguration {
  init(_ section: Configuration.Freshness) {
    self.init()
    defaultLifetime = section.defaultLifetime.wholeSeconds
  }
}

extension DownloaderConfiguration {
  /// - Throws: `ConfigurationError` naming the network or host that is none.
  init(_ section: Configuration.Download) throws(ConfigurationError) {
    self.init()
    timeout = section.timeout
    connectTimeout = section.connectTimeout
    limit = section.limit
    limitPerHost = section.limitPerHost
    queueLimit = section.queueLimit
    maximumBytes = section.maximumBytes
    maximumBytesInFlight = section.maximumBytesInFlight
    maximumRedirects = section.maximumRedirects
    userAgent = "Pictor/\(pictorVersion)"
    caFile = section.caFile.isEmpty ? nil : section.caFile
    for text in section.allowNetworks {
      guard let network = CIDR(text) else {
        throw ConfigurationError(at: "download.allow_networks", "'\(text)' is no network")
      }
      allowedNetworks.append(network)
    }
    for text in section.allowHosts {
      guard let pattern = HostPattern(text) else {
        throw ConfigurationError(at: "download.allow_hosts", "'\(text)' is no host")
      }
      allowedHosts.append(pattern)
    }
  }
}

extension ImagerPoolConfiguration {
  /// - Throws: `ConfigurationError` when the folder of this program, where the worker lies, cannot be told.
  init(_ section: Configuration.Imaging) throws(ConfigurationError) {
    self.init(executable: try Self.besideThisProgram("pictor-imager"))
    if section.workers > 0 { workers = section.workers }
    jobDeadline = section.deadline
    queueLimit = section.queueLimit
    maximumJobsPerWorker = section.jobsPerWorker
    maximumWorkerMemory = section.workerMemory
    retireAboveResidentBytes = section.retireAbove
    niceness = section.niceness
    limits.formats = Set(section.formats)
    limits.maximumPixels = section.maximumPixels
    limits.maximumFrames = section.maximumFrames
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

// StartCheck: checks without a start whether this machine has what a configuration needs.

import Caching
import Core
import Downloading
import Glibc
import ImagingPool
import Serving

/// Finds reasons why a start would fail, besides mistakes in the configuration: limits, address,
/// folder, programs, files.
///
/// Changes nothing: it creates no folder, and a running server keeps its address and its lock. It
/// starts a worker only to see whether it can be sealed.
struct StartCheck {
  /// Problems that must be solved before a start.
  private(set) var problems = ConfigurationProblems()
  /// Resources of another process, perhaps the running server's. They stop a start.
  private(set) var occupied: [String] = []
  /// Whether the disk tier is off, or its folder can be used.
  private(set) var canUseFolder = true

  private let parts: PartConfigurations

  /// Checks everything, before there are many threads. Waits for disks, each call with a deadline.
  ///
  /// - Parameters:
  ///   - descriptors: The maximum number of open descriptors.
  ///   - isAlone: whether no start follows, which would find out whether workers can be sealed.
  init(_ parts: PartConfigurations, descriptors: Int, isAlone: Bool) {
    self.parts = parts
    let hasRoom = checkLimits(descriptors)
    checkAddresses()
    checkDisk()
    if checkWorker(), isAlone, hasRoom { checkSandbox() }
    checkAccessLog()
    // Without room for threads, reading a file would wait forever.
    if hasRoom { checkLocalImages() }
  }

  /// All reasons for which a start fails.
  var allProblems: [String] { problems.lines + occupied }

  private mutating func checkLimits(_ descriptors: Int) -> Bool {
    do throws(ResourceProbe.Failure) {
      try ResourceProbe.run(
        files: descriptors, loops: parts.server.workers,
        otherListeners: parts.server.operatorAddresses.isEmpty ? 0 : 1,
        workers: parts.imagers.workers,
        bytes: parts.memory.limit + parts.memory.responseLimit
          + parts.downloader.maximumBytesInFlight)
      return true
    } catch {
      problems.add(line: error.description)
      return false
    }
  }

  private mutating func checkAddresses() {
    let server = parts.server
    let clients = server.inherited.clients.isEmpty ? server.settings.clientAddresses : []
    // Overlaps are already reported.
    for (index, address) in clients.enumerated()
    where !clients[..<index].contains(where: address.excludes) {
      check(address, beside: clients)
    }
    if server.inherited.operators.isEmpty, let own = server.operatorAddress,
      !clients.contains(where: own.overlaps)
    {
      check(own, beside: [])
    }
  }

  private mutating func check(_ address: ListenAddress, beside others: [ListenAddress]) {
    do throws(ServerError) {
      try ListenCheck.run(address, beside: others)
    } catch {
      if case .addressInUse = error {
        occupied.append(error.description)
      } else {
        problems.add(line: error.description)
      }
    }
  }

  private mutating func checkDisk() {
    guard let path = parts.disk.path, parts.disk.limit > 0 else { return }
    do throws(DiskTierError) {
      try DiskTier.check(path: path)
    } catch {
      if case .inUse = error {
        occupied.append(error.description)
      } else {
        problems.add(line: error.description)
        canUseFolder = false
      }
    }
  }

  /// Returns whether the worker's program is there.
  private mutating func checkWorker() -> Bool {
    let path = parts.imagers.executable
    guard !path.isEmpty, access(path, X_OK) != 0 else { return !path.isEmpty }
    problems.add(line: "cannot start the worker \(path): \(errnoText())")
    return false
  }

  /// Checks that a worker can be sealed if it has to be, by starting one.
  private mutating func checkSandbox() {
    guard parts.imagers.sandbox == .required else { return }
    var configuration = parts.imagers
    configuration.workers = 1
    let pool = ImagerPool(configuration: configuration, log: .silent)
    do throws(ImagerStartError) {
      try pool.start()
    } catch {
      problems.add(line: error.description)
    }
  }

  /// Checks that the file for the lines of requests can be opened, without creating it.
  private mutating func checkAccessLog() {
    let path = parts.keys.log.access.path
    guard !path.isEmpty, let reason = LogFile.problem(of: path) else { return }
    problems.add(at: "log.access_path", "'\(path)' cannot be opened: \(reason)")
  }

  /// Checks that watermarks and fallback images below the local root exist. Those of other hosts
  /// are loaded when they are requested.
  private mutating func checkLocalImages() {
    guard access(parts.keys.sources.localRoot, R_OK | X_OK) == 0 else { return }
    check(parts.server.watermarks, at: "watermarks")
    check(parts.server.fallbacks, at: "fallbacks")
  }

  /// Checks the local ones of these images.
  private mutating func check(_ urls: [String: SourceURL], at key: String) {
    let urls = urls.filter { $0.value.scheme == .local }
    for (name, url) in urls.sorted(by: { $0.key < $1.key }) {
      guard let error = Self.failure(of: url, parts.local) else { continue }
      let reason =
        if case .sourceNotFound = error {
          "there is no readable file below sources.local_root; symbolic links are not followed"
        } else {
          error.message
        }
      problems.add(at: "\(key).\(name)", "'\(url.text)': \(reason)")
    }
  }

  /// Returns why a local file cannot be loaded. Blocks.
  private static func failure(of url: SourceURL, _ files: LocalFiles) -> ImageError? {
    waiting { () -> ImageError? in
      do throws(ImageError) {
        _ = try await files.load(LoadRequest(url: url))
        return nil
      } catch {
        return error
      }
    }
  }
}

// PartConfigurations: the settings that each part receives, compared with the part's own defaults.

@testable import Core
import TestSupport
import Testing

@testable import pictor

@Suite(.onOwnThreads) struct PartConfigurationsTests {
  /// A part's settings by name.
  private func settings(_ part: Any) -> [String: String] {
    Dictionary(
      uniqueKeysWithValues: Mirror(reflecting: part).children.filter { $0.label != "keys" }.map {
        ($0.label ?? "", "\($0.value)")
      })
  }

  /// Two defaults of one setting would diverge, and tests of a part would differ from the server.
  @Test func `each part's own defaults equal those of the configuration`() throws {
    let parts = try PartConfigurations(Configuration(), room: 64 << 30)
    // Random, and the same for both.
    var server = type(of: parts.server).init()
    server.id = parts.server.id
    #expect(!server.id.isEmpty && parts.downloader.serverID == server.id)
    var pairs: [(told: Any, own: Any)] = [
      (parts.server, server), (parts.memory, type(of: parts.memory).init()),
      (parts.freshness, type(of: parts.freshness).init()),
    ]
    pairs.append((parts.disk, type(of: parts.disk).init(path: parts.disk.path)))
    var downloader = type(of: parts.downloader).init()
    downloader.userAgent = parts.downloader.userAgent
    downloader.serverID = server.id
    pairs.append((parts.downloader, downloader))
    let imagers = type(of: parts.imagers).init(executable: parts.imagers.executable)
    pairs.append((parts.imagers, imagers))
    for (told, own) in pairs {
      let told = settings(told)
      let own = settings(own)
      for name in told.keys where !["limits", "sourceRules"].contains(name) {
        #expect(told[name] == own[name], "\(name)")
      }
    }
    #expect(parts.imagers.limits == imagers.limits)
  }

  /// Keys whose effect the tests of one part show: the program must give them to that part.
  @Test(arguments: [
    ("download.limit", "7"), ("download.order", "lifo"),
    ("download.proxy", "http://127.0.0.1:7"), ("download.queue_limit", "7"),
    ("download.connect_timeout", "7s"), ("download.first_byte_timeout", "7s"),
    ("imaging.queue_limit", "7"),
    ("imaging.save_data_reduction", "7"), ("memory.count_limit", "7"), ("memory.pressure", "0"),
    ("memory.limit", "7MiB"), ("disk.limit", "7MiB"), ("server.grace_time", "7s"),
    ("server.active_requests_per_client", "7"), ("server.client_hints", "true"),
    ("server.fallback_status", "200"), ("server.presets_only", "true"),
    ("server.proxy_protocol", "true"), ("server.size_steps", "20,40"),
    ("sources.local_lifetime", "7s"),
  ])
  func `a key changes the settings of a part`(key: String, value: String) throws {
    var configuration = Configuration()
    configuration.server.id = "me"
    let usual = settings(try PartConfigurations(configuration, room: 64 << 30))
    try configuration.apply(option: key, value: value)
    #expect(settings(try PartConfigurations(configuration, room: 64 << 30)) != usual)
  }

  @Test func `a budget decides the shares of all parts, and jobs get what is left`() throws {
    var configuration = Configuration()
    configuration.memory.budget = 358 << 20
    configuration.imaging.workers = 2
    let parts = try PartConfigurations(configuration, room: 64 << 30)
    #expect(parts.memory.limit >> 20 == 63 && parts.memory.responseLimit >> 20 == 31)
    #expect(parts.imagers.expensiveJobMemory >> 20 == 83)
    #expect(parts.imagers.limits.maximumQuickBytes >> 20 == 41)
    #expect(parts.imagers.limits.maximumBytes == parts.imagers.maximumWorkerMemory)
    // And a part that has more leaves less for jobs
    configuration.memory.limit = 100 << 20
    let others = try PartConfigurations(configuration, room: 64 << 30)
    #expect(others.imagers.expensiveJobMemory < parts.imagers.expensiveJobMemory - (17 << 20))
  }

  @Test func `a budget below the parts' own limits is an error`() {
    var configuration = Configuration()
    configuration.memory.budget = 200 << 20
    configuration.memory.limit = 300 << 20
    let error = #expect(throws: ConfigurationError.self) {
      try PartConfigurations(configuration, room: 64 << 30)
    }
    #expect(error.map { "\($0)" }?.contains("memory.budget") == true)
  }

  @Test func `the connection limit leaves descriptors for other work`() {
    #expect(DescriptorLimit.connections(wanted: 4_096, limit: 1_048_576) == 4_096)
    #expect(DescriptorLimit.connections(wanted: 4_096, limit: .max) == 4_096)
    #expect(DescriptorLimit.connections(wanted: 4_096, limit: 1_024) == 256)
    #expect(DescriptorLimit.connections(wanted: 4_096, limit: 256) == 64)
    #expect(DescriptorLimit.connections(wanted: 20, limit: 1_024) == 20)
    #expect(DescriptorLimit.keptFiles(connections: 4_096, limit: .max) == 4_096)
    #expect(DescriptorLimit.keptFiles(connections: 4_096, limit: 10_704) == 1_000)
    #expect(DescriptorLimit.keptFiles(connections: 256, limit: 1_024) == 0)
    #expect(DescriptorLimit.keptFiles(connections: 20, limit: 256) == 0)
  }

  @Test(arguments: [
    ("download.allow_networks", "10.0.0.1/8", "10.0.0.0/8"),
    ("download.allow_networks", "1.2.3.4.5", "not a network"),
    ("download.allow_hosts", "a..b", "not a host"), ("download.deny_hosts", "a..b", "not a host"),
    ("download.ca_file", "/nonexistent.pem", "No such file"),
    ("download.ca_file", "/tmp", "a folder"),
    ("sources.local_root", "/nonexistent", "No such file"),
    ("sources.local_root", "/dev/null", "not a folder"),
  ])
  func `unusable settings are found before the server starts`(
    key: String, value: String, reason: String
  ) throws {
    var configuration = Configuration()
    try configuration.apply(option: key, value: value)
    do throws(ConfigurationError) {
      _ = try PartConfigurations(configuration)
      Issue.record("\(value) was taken")
    } catch {
      #expect(error.description.hasPrefix("\(key): '\(value)' "))
      #expect(error.description.contains(reason))
    }
  }

  @Test(arguments: ["watermarks.near", "server.samples"])
  func `a local watermark or sample of the page requires a local root`(key: String) throws {
    var configuration = Configuration()
    if key == "server.samples" {
      configuration.server.samples = ["http://h/a.png", "local:///a.png"]
    } else {
      configuration.watermarks = ["far": "http://h/a.png", "near": "local:///a.png"]
    }
    #expect {
      _ = try PartConfigurations(configuration)
    } throws: {
      "\($0)" == "\(key): 'local:///a.png' needs sources.local_root"
    }
    configuration.sources.localRoot = "/tmp"
    let parts = try PartConfigurations(configuration).server
    #expect(parts.watermarks.mapValues(\.text) == configuration.watermarks)
    #expect(parts.samples == configuration.server.samples)
    #expect(parts.allowsLocalWatermarks)
  }
}

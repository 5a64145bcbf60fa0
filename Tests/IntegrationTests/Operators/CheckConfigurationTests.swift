// --check-config with real folders, files and addresses, and the same errors at a start.

import Glibc
import TestSupport
import Testing

@Suite(.onOwnThreads) struct CheckConfigurationTests {
  private let folder: TemporaryFolder

  init() throws { folder = try TemporaryFolder() }

  /// Valid options without warnings.
  private var right: [String] {
    [
      "--server.port", "0", "--server.connections", "16", "--disk.path", folder.path + "/cache",
    ]
  }

  private func run(
    _ options: [String], environment: [String: String] = [:]
  ) throws -> (status: CInt, lines: [String], log: String) {
    let pictor = try PictorProcess(
      in: folder, options, environment: environment, isServer: false)
    let status = try pictor.end(0)
    return (status, pictor.complaints.map { String($0.dropFirst("pictor: ".count)) }, pictor.log)
  }

  /// Checks that the check and a start report this single error.
  private func expect(
    _ line: String, of options: [String], sourceLocation: SourceLocation = #_sourceLocation
  ) throws {
    for arguments in [["--check-config"] + right + options, right + options] {
      let (status, lines, log) = try run(arguments)
      #expect(status == 1, sourceLocation: sourceLocation)
      #expect(lines == [line], "\(log)", sourceLocation: sourceLocation)
    }
  }

  @Test func `a valid configuration is reported in one line and leaves no files`() throws {
    let (status, _, log) = try run(["--check-config"] + right)
    #expect(status == 0)
    #expect(log == "the configuration is valid\n")
    #expect(access(folder.path + "/cache", F_OK) != 0)
  }

  @Test func `keys that leave jobs only their least memory are named with their values`() throws {
    // Given: of 512 MiB the tier takes 200, and other parts 180 without being set
    let options = right + ["--memory.budget", "512MiB", "--imaging.workers", "4"]
    // When
    let (status, lines, _) = try run(["--check-config", "--memory.limit", "200MiB"] + options)
    // Then
    #expect(status == 0 && lines.count == 1)
    let line = try #require(lines.first)
    #expect(line.hasPrefix("warning: jobs have only their least memory, 256 MiB for "))
    #expect(
      line.contains("of memory.budget 511 MiB, memory.limit 200 MiB") && line.contains("leave 1"))
    // And: what is less than its automatic share takes nothing from jobs
    let small = ["--check-config", "--memory.limit", "20MiB", "--imaging.workers", "1"]
    #expect(try run(small + right).lines == [])
  }

  @Test func `a check and a start report all errors at once`() throws {
    // Given: errors of each kind
    try folder.write(
      "pictor.json5",
      bytes: Array(
        """
        { server: { prot: 1, address: "203.0.113.9" }, log: { level: "loud" },
          presets: { thumb: "breadth=1", big: "w=0" },
          hosts: [ { host: "a", token: "env:NOT_SET" }, { host: "b", token: "file:/nonexistent" } ],
          download: { ca_file: "/nonexistent.pem", allow_networks: ["10.0.0.1/8"],
            allow_hosts: ["a.example"] },
          sources: { local_root: "\(folder.path)" }, watermarks: { logo: "local:///none.png" } }
        """.utf8))
    try folder.write("file", bytes: [1])
    let options = [
      "--config", folder.path + "/pictor.json5", "--port", "1", "--server.port", "0",
      "--disk.path", folder.path + "/file/cache",
      // Few enough for any limit of open files, which else has a warning of its own.
      "--server.connections", "16", "--server.operator_address", "127.0.0.1:0",
    ]
    let expected = [
      "--port: unknown option; did you mean --server.port?",
      "\(folder.path)/pictor.json5: log.level: 'loud' is not allowed: debug, info, warning or error",
      "\(folder.path)/pictor.json5: server.prot: unknown key; did you mean server.port?",
      "PICTOR_MEMORY_LIMIT: 'much' is not allowed: auto or a size such as \"64MiB\" "
        + "(B, KiB, MiB, GiB, TiB), at least 0B, at most 1024TiB",
      "presets.big: w='0' is not allowed: a whole number from 1 to 65535, "
        + "or per cent of the image's such as 50%, or auto",
      "presets.thumb: unknown parameter 'breadth'",
      "download.ca_file: '/nonexistent.pem' cannot be read: No such file or directory (2)",
      "download.allow_networks: '10.0.0.1/8' is not a network: "
        + "the bits after its prefix must be 0, as in 10.0.0.0/8",
      "hosts: rule 1, token: the environment variable NOT_SET is not set",
      "hosts: rule 2, token: '/nonexistent' cannot be read: No such file or directory",
      "cannot listen on 203.0.113.9:0: Cannot assign requested address (99)",
      "the cache folder '\(folder.path)/file/cache' cannot be used: Not a directory (20)",
      "watermarks.logo: 'local:///none.png': there is no readable file below "
        + "sources.local_root; symbolic links are not followed",
    ]
    for arguments in [["--check-config"] + options, options] {
      // When
      let (status, lines, log) = try run(
        arguments, environment: ["PICTOR_MEMORY_LIMIT": "much"])
      // Then
      #expect(status == 1)
      #expect(lines == expected, "\(log)")
    }
  }

  @Test func `resources that a running server holds cause warnings`() throws {
    // Given
    let origin = try Origin()
    origin.serve("/a.jpg", bytes: try TestImages.jpeg(width: 30, height: 20))
    let pictor = try PictorProcess(in: folder)
    let options = ["--server.port", "\(pictor.port)", "--disk.path", folder.path + "/cache"]
    let occupied = [
      "cannot listen on 127.0.0.1:\(pictor.port): Address already in use (98)",
      "the cache folder '\(folder.path)/cache' is in use by another process: stop it, "
        + "or name another folder in disk.path",
    ]
    // When
    for _ in 0..<20 {
      let (status, lines, log) = try run(
        ["--check-config", "--server.connections", "16"] + options)
      #expect(status == 0)
      #expect(lines == occupied.map { "warning: " + $0 })
      #expect(log.hasSuffix("the configuration is valid\n"))
    }
    // Then
    #expect(try pictor.get(origin.target("/a.jpg")).status == 200)
    try pictor.waitFor("it is on disk") { $0.disk.stores > 0 && $0.disk.failures == 0 }
    let second = try run(options)
    #expect(second.status == 1 && second.lines == occupied)
    #expect(try pictor.end() == 0)
    #expect(try run(["--check-config", "--server.connections", "16"] + options).lines.isEmpty)
  }

  @Test func `paths must name a file or folder of the expected kind`() throws {
    try folder.write("text", bytes: Array("no certificate".utf8))
    try expect(
      "download.ca_file: '\(folder.path)/text' contains no PEM certificate",
      of: ["--download.ca_file", folder.path + "/text"])
    try expect(
      "fleet.s3.ca_file: '\(folder.path)/text' contains no PEM certificate",
      of: [
        "--fleet.redis", "redis://127.0.0.1", "--fleet.s3.bucket", "shared", "--fleet.s3.ca_file",
        folder.path + "/text",
      ])
    try expect(
      "sources.local_root: '\(folder.path)/text' is not a folder",
      of: ["--sources.local_root", folder.path + "/text"])
    let proc = try run(["--check-config"] + right + ["--disk.path", "/proc/pictor/cache"])
    #expect(proc.status == 1 && proc.lines.count == 1)
    #expect(
      proc.lines.first?.hasPrefix("the cache folder '/proc/pictor/cache' cannot be used: ") == true)
    // A disabled tier needs no folder.
    let off = ["--disk.path", "/proc/pictor", "--disk.limit", "0"]
    #expect(try run(["--check-config"] + right + off).status == 0)
  }

  @Test func `a local watermark must exist and must not be a symbolic link`() throws {
    // Given
    mkdir(folder.path + "/root", 0o755)
    let options = [
      "--sources.local_root", folder.path + "/root", "--watermarks", "logo=local:///logo.png",
    ]
    let line =
      "watermarks.logo: 'local:///logo.png': there is no readable file below "
      + "sources.local_root; symbolic links are not followed"
    symlink("/etc/hostname", folder.path + "/root/logo.png")
    // Then
    try expect(line, of: options)
    // When
    unlink(folder.path + "/root/logo.png")
    try folder.write("root/logo.png", bytes: try TestImages.jpeg(width: 3, height: 2))
    // Then
    #expect(try run(["--check-config"] + right + options).status == 0)
  }

  @Test(arguments: ["healthcheck", "prefetch", "purge", "explain", "doctor", "check", "sign"])
  func `each command has its own help, and invalid use suggests the nearest option`(
    command: String
  ) throws {
    let help = try run([command, "--help"])
    #expect(help.status == 0 && help.log.hasPrefix("pictor \(command): "))
    let wrong = try run([command, "--port", "1", "x"])
    #expect(wrong.status == (command == "healthcheck" ? 1 : 2))
    #expect(
      wrong.lines.first == "--port: unknown option; did you mean --server.port?")
  }
}

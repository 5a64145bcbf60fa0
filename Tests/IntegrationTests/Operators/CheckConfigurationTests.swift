// Tests of --check-config against real folders, files and addresses, and of what a start says of the same mistakes.

import Glibc
import TestSupport
import Testing

@Suite(.onOwnThreads) struct CheckConfigurationTests {
  private let folder: TemporaryFolder

  init() throws { folder = try TemporaryFolder() }

  /// Options under which nothing is wrong, and nothing is warned of.
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

  /// Checks that one mistake is told alone, by the check and by a start.
  private func expect(
    _ line: String, of options: [String], sourceLocation: SourceLocation = #_sourceLocation
  ) throws {
    for arguments in [["--check-config"] + right + options, right + options] {
      let (status, lines, log) = try run(arguments)
      #expect(status == 1, sourceLocation: sourceLocation)
      #expect(lines == [line], "\(log)", sourceLocation: sourceLocation)
    }
  }

  @Test func `what can be used is one line, and nothing is left behind`() throws {
    let (status, _, log) = try run(["--check-config"] + right)
    #expect(status == 0)
    #expect(log == "the configuration can be used\n")
    #expect(access(folder.path + "/cache", F_OK) != 0)
  }

  @Test func `all mistakes are told at once, by a check and by a start`() throws {
    // Given: mistakes of each kind
    try folder.write(
      "pictor.json5",
      Array(
        """
        { server: { prot: 1, address: "203.0.113.9" }, log: { level: "loud" },
          presets: { thumb: "breadth=1", big: "w=0" },
          hosts: [ { host: "a", token: "env:NOT_SET" }, { host: "b", token: "file:/nonexistent" } ],
          download: { ca_file: "/nonexistent.pem", allow_networks: ["10.0.0.1/8"] },
          sources: { local_root: "\(folder.path)" }, watermarks: { logo: "local:///none.png" } }
        """.utf8))
    try folder.write("file", [1])
    let options = [
      "--config", folder.path + "/pictor.json5", "--port", "1", "--server.port", "0",
      "--disk.path", folder.path + "/file/cache",
    ]
    let expected = [
      "--port: there is no such option; did you mean --server.port?",
      "\(folder.path)/pictor.json5: log.level: 'loud' is not allowed: debug, info, warning or error",
      "\(folder.path)/pictor.json5: server.prot: there is no such key; did you mean server.port?",
      "PICTOR_MEMORY_LIMIT: 'much' is not allowed: auto or a size such as \"64MiB\" "
        + "(B, KiB, MiB, GiB, TiB), at least 0B",
      "presets.big: w='0' is not allowed: a whole number from 1 to 65535",
      "presets.thumb: there is no parameter 'breadth'",
      "download.ca_file: '/nonexistent.pem' cannot be read: No such file or directory (2)",
      "download.allow_networks: '10.0.0.1/8' is no network: "
        + "the bits behind its prefix must be 0, as in 10.0.0.0/8",
      "hosts: rule 1, token: the environment variable NOT_SET is not set",
      "hosts: rule 2, token: '/nonexistent' cannot be read: No such file or directory",
      "cannot listen on 203.0.113.9:0: Cannot assign requested address (99)",
      "the cache folder '\(folder.path)/file/cache' cannot be used: Not a directory (20)",
      "watermarks.logo: 'local:///none.png': there is no such file below sources.local_root that "
        + "can be read; links are not followed",
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

  @Test func `what a running server has is a warning, and it keeps it`() throws {
    // Given
    let origin = try Origin()
    origin.serve("/a.jpg", try TestImages.jpeg(width: 30, height: 20))
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
      #expect(log.hasSuffix("the configuration can be used\n"))
    }
    // Then
    #expect(try pictor.get(origin.target("/a.jpg")).status == 200)
    try pictor.waitFor("it is on disk") { $0.disk.stores > 0 && $0.disk.failures == 0 }
    let second = try run(options)
    #expect(second.status == 1 && second.lines == occupied)
    #expect(try pictor.end() == 0)
    #expect(try run(["--check-config", "--server.connections", "16"] + options).lines.isEmpty)
  }

  @Test func `files and folders have to be what they are named as`() throws {
    try folder.write("text", Array("no certificate".utf8))
    try expect(
      "download.ca_file: '\(folder.path)/text' holds no certificate in PEM",
      of: ["--download.ca_file", folder.path + "/text"])
    try expect(
      "sources.local_root: '\(folder.path)/text' is no folder",
      of: ["--sources.local_root", folder.path + "/text"])
    let proc = try run(["--check-config"] + right + ["--disk.path", "/proc/pictor/cache"])
    #expect(proc.status == 1 && proc.lines.count == 1)
    #expect(
      proc.lines.first?.hasPrefix("the cache folder '/proc/pictor/cache' cannot be used: ") == true)
    // A tier that is off needs no folder.
    let off = ["--disk.path", "/proc/pictor", "--disk.limit", "0"]
    #expect(try run(["--check-config"] + right + off).status == 0)
  }

  @Test func `a local watermark has to be there, and no link`() throws {
    // Given
    mkdir(folder.path + "/root", 0o755)
    let options = [
      "--sources.local_root", folder.path + "/root", "--watermarks", "logo=local:///logo.png",
    ]
    let line =
      "watermarks.logo: 'local:///logo.png': there is no such file below sources.local_root that "
      + "can be read; links are not followed"
    symlink("/etc/hostname", folder.path + "/root/logo.png")
    // Then
    try expect(line, of: options)
    // When
    unlink(folder.path + "/root/logo.png")
    try folder.write("root/logo.png", try TestImages.jpeg(width: 3, height: 2))
    // Then
    #expect(try run(["--check-config"] + right + options).status == 0)
  }

  @Test func `variables that are no keys are warned of with the nearest`() throws {
    let (status, lines, _) = try run(
      ["--check-config"] + right, environment: ["PICTOR_PORT": "1", "PICTOR_SERVICE_HOST": "h"])
    #expect(status == 0)
    #expect(
      lines == [
        "warning: PICTOR_PORT is no setting; did you mean PICTOR_SERVER_PORT?",
        "warning: PICTOR_SERVICE_HOST is no setting",
      ])
    let pictor = try PictorProcess(in: folder, environment: ["PICTOR_PORT": "1"])
    #expect(pictor.log.contains("did you mean PICTOR_SERVER_PORT?"))
  }

  @Test(arguments: ["healthcheck", "prefetch", "purge"])
  func `each command has its own help, and a wrong use suggests the nearest`(
    command: String
  ) throws {
    let help = try run([command, "--help"])
    #expect(help.status == 0 && help.log.hasPrefix("pictor \(command): "))
    let wrong = try run([command, "--port", "1", "x"])
    #expect(wrong.status == (command == "healthcheck" ? 1 : 2))
    #expect(
      wrong.lines.first == "--port: there is no such option; did you mean --server.port?")
  }
}

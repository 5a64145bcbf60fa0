// The operators' listener, named tokens and their rotation in the real program, with its commands.

import FoundationEssentials
import Glibc
import TestSupport
import Testing

@Suite(.onOwnThreads) final class OperatorListenerProgramTests: OriginSuite {
  override init() throws {
    try super.init()
    origin.serve("/a.jpg", bytes: try TestImages.jpeg(width: 30, height: 20))
  }

  private static let listener = ["--server.operator_address", "127.0.0.1:0"]

  private func status(
    _ method: String, path: String, of pictor: PictorProcess, token: String
  ) throws -> Int {
    try HTTPClient(port: pictor.operatorPort).request(
      method, target: path, headers: ["Authorization": "Bearer " + token]
    ).status
  }

  /// Runs a command for a server and returns its exit status and its output.
  private func run(
    _ arguments: [String], for pictor: PictorProcess,
    environment: [String: String] = [:]
  ) throws -> (status: CInt, output: String) {
    let command = try PictorProcess(
      in: folder,
      arguments + [
        "--server.port", "\(pictor.port)", "--server.operator_address", "\(pictor.operatorPort)",
      ], environment: environment, isServer: false)
    return (try command.end(0), command.log)
  }

  @Test func `commands use the operators' listener and the first token with the scopes`() throws {
    // Given
    let tokens = """
      [{ name: 'elsewhere', token: 'env:ONLY_THE_SERVER_HAS_IT' },
       { name: 'reader', token: 'env:READER', scopes: ['read'] },
       { name: 'cleaner', token: 'env:CLEANER', scopes: ['purge'] },
       { name: 'loader', token: 'env:LOADER', scopes: ['read', 'write'] }]
      """
    let secrets = [
      "READER": "secret-of-the-reader", "CLEANER": "secret-of-the-cleaner",
      "LOADER": "secret-of-the-loader", "PICTOR_ADMIN_TOKENS": tokens,
    ]
    let pictor = try PictorProcess(
      in: folder, Self.listener,
      environment: secrets.merging(["ONLY_THE_SERVER_HAS_IT": "secret-of-elsewhere"]) { $1 })
    #expect(try pictor.get(origin.target("/a.jpg")).status == 200)
    #expect(try pictor.get("/admin/downloads").status == 404)
    try folder.write("list", bytes: Array(origin.url("/a.jpg").utf8))
    // When
    let purge = try run(["purge", origin.url("/a.jpg")], for: pictor, environment: secrets)
    let prefetch = try run(
      ["prefetch", folder.path + "/list"], for: pictor, environment: secrets)
    let explain = try run(["explain", origin.url("/a.jpg")], for: pictor, environment: secrets)
    // Then
    #expect(explain.status == 0 && explain.output.contains("/a.jpg"), "\(explain.output)")
    #expect(purge.status == 0 && purge.output.contains("purged: 1 in memory"), "\(purge.output)")
    #expect(prefetch.status == 0, "\(prefetch.output)")
    #expect(pictor.log.contains("\"operator\":\"cleaner\""))
    #expect(pictor.log.contains("\"operator\":\"loader\""))
    // When no token has the scope
    let reader = ["PICTOR_ADMIN_TOKENS": "[{ token: 'env:R', scopes: ['read'] }]"]
    let refused = try run(["purge", "--all"], for: pictor, environment: reader)
    #expect(refused.status == 1)
    #expect(refused.output == "pictor: no token of admin.tokens has the scope purge\n")
    // Or it cannot be read
    let unread = ["PICTOR_ADMIN_TOKENS": "env:NOT_SET_HERE"]
    let missing = try run(["purge", "--all"], for: pictor, environment: unread)
    #expect(missing.status == 1 && missing.output.contains("NOT_SET_HERE is not set"))
    #expect(try pictor.end() == 0)
    #expect(!pictor.log.contains("secret-of"))
  }

  @Test func `SIGHUP rereads the files of tokens`() throws {
    // Given
    let file = folder.path + "/token"
    func write(_ text: String) throws {
      try Data(text.utf8).write(to: URL(fileURLWithPath: file), options: .atomic)
    }
    try write("the-first-token-of-all\n")
    let pictor = try PictorProcess(
      in: folder,
      Self.listener + ["--admin.tokens", "[{ name: 'deploy', token: 'file:\(file)' }]"])
    #expect(
      try status("GET", path: "/admin/failed", of: pictor, token: "the-first-token-of-all") == 200)
    // When
    try write("the-second-token-of-all\n")
    kill(pictor.id, SIGHUP)
    // Wrong tokens are counted, so the new one is not tried before it counts.
    try blockUntil("the change is logged") {
      pictor.log.contains("\"changed\":\"admin.tokens\"")
    }
    // Then
    #expect(
      try status("GET", path: "/admin/failed", of: pictor, token: "the-second-token-of-all") == 200)
    #expect(
      try status("GET", path: "/admin/failed", of: pictor, token: "the-first-token-of-all") == 401)
    // When the file is gone
    unlink(file)
    kill(pictor.id, SIGHUP)
    // Then the last token stays
    try blockUntil("the error is logged") {
      pictor.log.contains("the configuration was not reloaded")
    }
    #expect(
      try status("GET", path: "/admin/failed", of: pictor, token: "the-second-token-of-all") == 200)
    #expect(try pictor.end() == 0)
    #expect(!pictor.log.contains("token-of-all"))
  }

  @Test func `clients cannot have the operators' listener loaded as a source`() throws {
    let pictor = try PictorProcess(in: folder, Self.listener)
    for host in ["127.0.0.1", "localhost", "0.0.0.0", "127.1"] {
      let url = encoded("http://\(host):\(pictor.operatorPort)/stats")
      let answer = try pictor.get("/image?url=\(url)")
      #expect(answer.status == 403 && answer.text.contains("forbidden_source"), "\(host)")
    }
  }

  @Test(arguments: [
    (["--server.operator_address", "18085", "--server.port", "18085"], "overlaps"),
    (["--server.operator_address", "[::]:18085", "--server.port", "18085"], "overlaps"),
    (["--server.operator_address", "203.0.113.9:1"], "cannot listen on 203.0.113.9:1"),
    (["--server.operator_address", "localhost:1"], "is not allowed: a port (on 127.0.0.1)"),
    (["--admin.tokens", "env:NOT_SET_ANYWHERE"], "NOT_SET_ANYWHERE is not set"),
  ])
  func `a check and a start refuse the same mistakes`(options: [String], problem: String) throws {
    let right = [
      "--server.port", "0", "--server.connections", "16", "--disk.path", folder.path + "/cache",
    ]
    for mode in [["--check-config"], []] {
      let pictor = try PictorProcess(in: folder, mode + right + options, isServer: false)
      #expect(try pictor.end(0) == 1)
      let complaints = pictor.complaints
      #expect(complaints.count == 1, "\(pictor.log)")
      #expect(complaints.first?.contains(problem) == true, "\(pictor.log)")
    }
  }
}

// SandboxTests: what a worker that has been taken over can still do.

import CAttacks
import Core
import Glibc
import TestSupport
import Testing

@testable import ImagingPool

@Suite(
  .onOwnThreads, .serialized, .timeLimit(.minutes(2)),
  .ifSealable)
struct SandboxTests {
  /// Attacks that fail in a sealed worker with another error than EPERM and EACCES. glibc needs
  /// ENOSYS to replace the call by clone(2).
  private static let otherErrors = ["clone3": ENOSYS]

  @Test func `a sealed worker is refused everything that it tries`() async throws {
    let results = try await results(of: .required)
    #expect(results.count > 60)
    for (name, code) in results {
      if let expected = Self.otherErrors[name] {
        #expect(code == expected, "\(name)")
      } else {
        #expect(code == EPERM || code == EACCES, "\(name): \(errnoText(code))")
      }
    }
  }

  @Test func `the same attacks succeed without a sandbox`() async throws {
    let results = try await results(of: .off)
    for (name, code) in results where !Self.needsMore.contains(name) {
      #expect(code == 0, "\(name): \(errnoText(code))")
    }
    #expect(results.count > 60)
  }

  private static let names = (0..<pictor_attack_count()).map {
    String(cString: pictor_attack_name($0))
  }

  /// Attacks that need a privilege or kernel feature: they may fail without a sandbox, too.
  private static let needsMore = Set(
    names.indices.filter { pictor_attack_needs_more(CInt($0)) != 0 }.map { names[$0] })

  /// Runs the attacker in the place of a worker. Returns the errno of each attack, 0 if it worked.
  private func results(of mode: SandboxMode) async throws -> [String: CInt] {
    // Given a folder like a cache, and two other processes of the same user. One stands for the
    // server: this process may be closed, because another test changed its user.
    let folder = try TemporaryFolder()
    try folder.write("secret", bytes: [1, 2, 3])
    try folder.write("victim", bytes: [1])
    let server = try ChildProcess(["sleep", "60"])
    let sibling = try ChildProcess(["sleep", "60"])
    defer {
      server.kill()
      sibling.kill()
    }
    var configuration = PoolSupport.configuration()
    configuration.executable = TestBuild.programFolder + "/attacker"
    configuration.settings.sandbox = mode
    let text = "\(server.id)\n\(sibling.id)\n\(folder.path)"
    let job = ImageJob(
      file: try PoolSupport.file(of: Array(text.utf8)), transform: Transform(), density: 1)
    // When
    var detail = ""
    try await PoolSupport.withPool(configuration) { pool in
      let sandbox = pool.figures.sandbox
      #expect((sandbox.landlock > 0 && sandbox.seccomp.isSet) == (mode == .required))
      do {
        _ = try await pool.process(job)
      } catch let error as ImageError {
        detail = error.logDetail ?? error.code
      }
    }
    let codes = detail.split(separator: " ").compactMap { CInt($0) }
    #expect(codes.count == Self.names.count, "\(detail)")
    return Dictionary(zip(Self.names, codes)) { $1 }
  }
}

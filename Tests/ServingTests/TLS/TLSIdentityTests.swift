// TLSIdentityTests: what is wrong with a certificate, and in which file.

import Glibc
import TestSupport
import Testing

@testable import Serving

struct TLSIdentityTests {
  private let files: CertificateFiles

  init() throws { files = try CertificateFiles(TestCertificate("one")) }

  private func problem() -> TLSError? {
    do throws(TLSError) {
      _ = try TLSIdentity(certificate: files.certificate, key: files.key)
      return nil
    } catch {
      return error
    }
  }

  @Test func `a sound pair has its expiry and no warning`() throws {
    let identity = try TLSIdentity(certificate: files.certificate, key: files.key)
    #expect(abs(identity.expiry - Int(time(nil)) - 86_400) < 600)
    #expect(identity.warnings.isEmpty)
  }

  @Test func `an expired certificate and a readable key are warnings`() throws {
    try files.write(TestCertificate("old", validFor: -60))
    chmod(files.key, 0o644)
    let identity = try TLSIdentity(certificate: files.certificate, key: files.key)
    #expect(identity.warnings.count == 2)
    #expect(identity.warnings.first?.contains("has expired") == true)
  }

  @Test func `a key of another certificate does not match`() throws {
    try files.folder.write("key.pem", bytes: Array(TestCertificate("two").key.utf8))
    #expect(problem() == .mismatch(certificate: files.certificate, key: files.key))
    #expect(problem()?.isAboutKey == true)
  }

  @Test(arguments: ["", "junk", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"])
  func `files without PEM are named`(text: String) throws {
    try files.folder.write("key.pem", bytes: Array(text.utf8))
    #expect(problem()?.description.contains("'\(files.key)' contains no PEM private key") == true)
    try files.folder.write("certificate.pem", bytes: Array(text.utf8))
    let found = try #require(problem())
    #expect(found.description.contains("'\(files.certificate)' contains no PEM certificate"))
    #expect(!found.isAboutKey)
  }

  @Test func `missing files and folders are unreadable`() throws {
    unlink(files.key)
    guard case .unreadable(files.key, true, _)? = problem() else {
      Issue.record("the key was read")
      return
    }
    #expect(throws: TLSError.self) {
      _ = try TLSIdentity(certificate: files.folder.path, key: files.key)
    }
  }

  @Test func `a chain whose file is cut off is refused`() throws {
    // Given
    let one = TestCertificate("one")
    let files = try CertificateFiles(one)
    let own = one.certificate
    var chain = own + TestCertificate("two").certificate
    while chain.last == "\n" { chain.removeLast() }
    for cut in [1, 5, 24, 30, 100, chain.utf8.count - own.utf8.count - 6] {
      // When
      try files.folder.write("certificate.pem", bytes: Array(chain.utf8.dropLast(cut)))
      // Then
      #expect("\(cut)") {
        _ = try files.load()
      } throws: {
        "\($0)".contains("it is cut off") && ($0 as? TLSError)?.isAboutKey == false
      }
    }
    let onWindows = chain.replacing("\n", with: "\r\n") + "  \r\n"
    for text in [own, chain, onWindows, "----- one\n" + chain] {
      try files.folder.write("certificate.pem", bytes: Array(text.utf8))
      #expect(throws: Never.self) { _ = try files.load() }
    }
  }
}

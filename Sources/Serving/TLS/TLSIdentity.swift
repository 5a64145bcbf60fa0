// TLSIdentity: a certificate with its key, as GnuTLS uses them.

import CGnuTLS
import Glibc
import Model
import Platform

/// The reason why a certificate cannot be used. The description is one line for the operator.
public enum TLSError: Error, Hashable, Sendable, CustomStringConvertible {
  /// A file cannot be read.
  case unreadable(path: String, isKey: Bool, reason: String)
  /// The file has no certificate in PEM.
  case noCertificate(path: String, reason: String)
  /// The file has no usable private key in PEM. A key with a password is not usable.
  case noKey(path: String, reason: String)
  /// The key belongs to another certificate.
  case mismatch(certificate: String, key: String)
  /// GnuTLS has no memory, or refuses the certificate.
  case unusable(path: String, reason: String)

  /// Whether the file of the key is to be mended.
  public var isAboutKey: Bool {
    switch self {
    case .unreadable(_, let isKey, _): isKey
    case .noKey, .mismatch: true
    case .noCertificate, .unusable: false
    }
  }

  /// One line that names the file.
  public var description: String {
    switch self {
    case .unreadable(let path, _, let reason): "'\(path)' cannot be read: \(reason)"
    case .noCertificate(let path, let reason): "'\(path)' contains no PEM certificate: \(reason)"
    case .noKey(let path, let reason):
      "'\(path)' contains no PEM private key without a password: \(reason)"
    case .mismatch(let certificate, let key):
      "the key in '\(key)' does not belong to the certificate in '\(certificate)'"
    case .unusable(let path, let reason): "'\(path)' cannot be used: \(reason)"
    }
  }
}

/// A certificate chain with its key. Sessions retain the one with which they began.
public final class TLSIdentity: @unchecked Sendable {
  // Sound as Sendable: the credentials do not change after `init`, and GnuTLS lets sessions of
  // several threads share them.

  /// The end of the certificate's validity, in seconds since 1970.
  public let expiry: Int
  /// What an operator should mend, although the certificate is usable.
  public let warnings: [String]
  let credentials: gnutls_certificate_credentials_t

  /// Maximum certificates of a chain.
  private static let longestChain: UInt32 = 16
  /// Maximum bytes of a file.
  private static let largestFile = 1 << 20

  /// Reads both files, and checks that key and certificate match.
  ///
  /// - Parameters:
  ///   - certificate: the path of a PEM file: the server's certificate first, then its chain.
  ///   - key: the path of a PEM file with the key.
  ///   - now: seconds since 1970.
  public init(
    certificate: String, key: String, now: Int = Int(time(nil))
  ) throws(TLSError) {
    let chainText = try Self.read(certificate, isKey: false)
    let keyText = try Self.read(key, isKey: true)
    var made: gnutls_certificate_credentials_t?
    guard gnutls_certificate_allocate_credentials(&made) == 0, let made else {
      throw .unusable(path: certificate, reason: "no memory")
    }
    do throws(TLSError) {
      expiry = try Self.set(
        chainText.bytes, keyText.bytes, of: made, certificate: certificate, key: key)
    } catch {
      gnutls_certificate_free_credentials(made)
      throw error
    }
    credentials = made
    var warnings: [String] = []
    if expiry <= now { warnings.append("the certificate in '\(certificate)' has expired") }
    if keyText.mode & 0o004 != 0 {
      warnings.append("every user of the machine can read the key in '\(key)'")
    }
    self.warnings = warnings
  }

  deinit { gnutls_certificate_free_credentials(credentials) }

  /// Gives the texts to GnuTLS. Returns the expiry of the first certificate.
  private static func set(
    _ chainText: [UInt8], _ keyText: [UInt8], of credentials: gnutls_certificate_credentials_t,
    certificate: String, key: String
  ) throws(TLSError) -> Int {
    guard isWhole(chainText) else {
      throw .unusable(path: certificate, reason: "it is cut off, or still being written")
    }
    var chain = [gnutls_x509_crt_t?](repeating: nil, count: Int(longestChain))
    var count = longestChain
    var status = withDatum(chainText) {
      gnutls_x509_crt_list_import(
        &chain, &count, &$0, GNUTLS_X509_FMT_PEM,
        GNUTLS_X509_CRT_LIST_IMPORT_FAIL_IF_EXCEED.rawValue)
    }
    guard status > 0, let first = chain[0] else {
      throw .noCertificate(path: certificate, reason: text(status))
    }
    let length = status
    defer { for certificate in chain.prefix(Int(length)) { gnutls_x509_crt_deinit(certificate) } }
    var privateKey: gnutls_x509_privkey_t?
    guard gnutls_x509_privkey_init(&privateKey) == 0, let privateKey else {
      throw .unusable(path: key, reason: "no memory")
    }
    defer { gnutls_x509_privkey_deinit(privateKey) }
    status = withDatum(keyText) {
      gnutls_x509_privkey_import2(
        privateKey, &$0, GNUTLS_X509_FMT_PEM, nil, GNUTLS_PKCS_PLAIN.rawValue)
    }
    guard status == 0 else { throw .noKey(path: key, reason: text(status)) }
    status = gnutls_certificate_set_x509_key(credentials, &chain, length, privateKey)
    if status == GNUTLS_E_CERTIFICATE_KEY_MISMATCH {
      throw .mismatch(certificate: certificate, key: key)
    }
    guard status >= 0 else { throw .unusable(path: certificate, reason: text(status)) }
    return Int(gnutls_x509_crt_get_expiration_time(first))
  }

  /// Whether each part of a PEM file has its end (RFC 7468, section 3). GnuTLS takes the certificates in front of a part
  /// without one for the whole chain.
  private static func isWhole(_ text: [UInt8]) -> Bool {
    let (begin, end) = ("-----BEGIN ".utf8, "-----END ".utf8)
    let lines = text.split { $0 == UInt8(ascii: "\n") || $0 == UInt8(ascii: "\r") }
    let marks = lines.filter { $0.starts(with: begin) || $0.starts(with: end) }
    // A last line without its end may be a part of a mark.
    if text.last != UInt8(ascii: "\n"), let last = lines.last, last.first == UInt8(ascii: "-") {
      guard last == marks.last else { return false }
    }
    return marks.count.isMultiple(of: 2)
      && marks.enumerated().allSatisfy { place, mark in
        let last = mark.lastIndex { $0 != UInt8(ascii: " ") } ?? mark.startIndex
        return mark.starts(with: place.isMultiple(of: 2) ? begin : end)
          && mark[...last].dropFirst(10).suffix(5).elementsEqual("-----".utf8)
      }
  }

  private static func withDatum(
    _ bytes: [UInt8], _ body: (inout gnutls_datum_t) -> CInt
  ) -> CInt {
    var bytes = bytes
    return bytes.withUnsafeMutableBufferPointer { buffer in
      var datum = gnutls_datum_t(data: buffer.baseAddress, size: UInt32(buffer.count))
      return body(&datum)
    }
  }

  /// Reads a regular file, with its permissions.
  private static func read(
    _ path: String, isKey: Bool
  ) throws(TLSError) -> (bytes: [UInt8], mode: mode_t) {
    let file = OwnedDescriptor(owning: open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK))
    var status = stat()
    guard file.value >= 0, fstat(file.value, &status) == 0 else {
      throw .unreadable(path: path, isKey: isKey, reason: errnoText())
    }
    guard status.st_mode & S_IFMT == S_IFREG, status.st_size <= largestFile else {
      throw .unreadable(
        path: path, isKey: isKey, reason: "it is not a file of at most 1 MiB")
    }
    var bytes = [UInt8](repeating: 0, count: max(Int(status.st_size), 1))
    let count = Glibc.read(file.value, &bytes, bytes.count)
    guard count >= 0 else { throw .unreadable(path: path, isKey: isKey, reason: errnoText()) }
    return (Array(bytes[..<count]), status.st_mode)
  }

  /// GnuTLS's text of an error.
  static func text(_ status: CInt) -> String {
    gnutls_strerror(status).map { String(cString: $0) } ?? "error \(status)"
  }
}

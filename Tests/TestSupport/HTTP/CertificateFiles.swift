// CertificateFiles: a certificate and its key in files of a folder.

import Glibc

/// Certificate and key in files of a folder of their own.
public struct CertificateFiles: Sendable {
  /// The folder.
  public let folder: TemporaryFolder
  /// The path of the certificate.
  public var certificate: String { folder.path + "/certificate.pem" }
  /// The path of its key.
  public var key: String { folder.path + "/key.pem" }

  /// Writes the first files.
  public init(_ first: TestCertificate) throws {
    folder = try TemporaryFolder()
    try write(first)
  }

  /// Replaces both files.
  public func write(_ pair: TestCertificate) throws {
    try folder.write("certificate.pem", bytes: Array(pair.certificate.utf8))
    try folder.write("key.pem", bytes: Array(pair.key.utf8))
    chmod(key, 0o600)
  }
}

extension HTTPClient {
  /// Connects with TLS.
  public static func encrypted(
    port: Int, receiveBuffer: Int? = nil, priorities: String = "NORMAL",
    resuming earlier: [UInt8] = []
  ) throws(HTTPClientError) -> HTTPClient {
    let client = try HTTPClient(port: port, receiveBuffer: receiveBuffer)
    try client.beginTLS(priorities, resuming: earlier)
    return client
  }
}

// TestCertificate: certificates that tests make.

import CGnuTLS
import Glibc

/// A self-signed certificate and its key, as PEM.
public struct TestCertificate: Sendable {
  /// The certificate.
  public let certificate: String
  /// Its key.
  public let key: String

  /// Makes a key (ECDSA, 256 bits) and a certificate for `name`.
  ///
  /// - Parameter seconds: how long it is valid from now; negative: since when it is not.
  public init(_ name: String, validFor seconds: Int = 86_400) {
    var key: gnutls_x509_privkey_t?
    var made: gnutls_x509_crt_t?
    gnutls_x509_privkey_init(&key)
    gnutls_x509_crt_init(&made)
    defer {
      gnutls_x509_crt_deinit(made)
      gnutls_x509_privkey_deinit(key)
    }
    let bits = gnutls_sec_param_to_pk_bits(GNUTLS_PK_ECDSA, GNUTLS_SEC_PARAM_HIGH)
    gnutls_x509_privkey_generate(key, GNUTLS_PK_ECDSA, bits, 0)
    gnutls_x509_crt_set_version(made, 3)
    var serial = UInt64.random(in: 1...(1 << 60))
    gnutls_x509_crt_set_serial(made, &serial, 8)
    gnutls_x509_crt_set_activation_time(made, time(nil) - 1_000_000)
    gnutls_x509_crt_set_expiration_time(made, time(nil) + seconds)
    gnutls_x509_crt_set_dn(made, "CN=\(name)", nil)
    gnutls_x509_crt_set_key(made, key)
    gnutls_x509_crt_sign2(made, made, key, GNUTLS_DIG_SHA256, 0)
    var text = gnutls_datum_t()
    gnutls_x509_crt_export2(made, GNUTLS_X509_FMT_PEM, &text)
    certificate = Self.take(text)
    text = gnutls_datum_t()
    gnutls_x509_privkey_export2_pkcs8(
      key, GNUTLS_X509_FMT_PEM, nil, GNUTLS_PKCS_PLAIN.rawValue, &text)
    self.key = Self.take(text)
  }

  private static func take(_ text: gnutls_datum_t) -> String {
    defer { pictor_tls_free(text.data) }
    return String(
      decoding: UnsafeBufferPointer(start: text.data, count: Int(text.size)), as: UTF8.self)
  }
}

// LoggedHeader: the fields of a request's header that the log uses.

import CMicrohttpd
import Glibc
import Model

/// The logged fields of a request's header. Read only for lines that are written.
struct LoggedHeader {
  /// The maximum length of `User-Agent` in the log, in bytes.
  private static let longestAgent = 256

  /// The lines of `X-Forwarded-For`, in order.
  private(set) var forwardedFor: [[UInt8]] = []
  /// The lines of `Forwarded`, in order.
  private(set) var forwarded: [[UInt8]] = []
  /// `User-Agent`, cut.
  private(set) var userAgent: String?
  /// `Referer`; the log cuts it.
  private(set) var referer: String?

  /// Reads the header of the request on a connection; empty without a connection.
  init(on connection: OpaquePointer?) {
    guard let connection else { return }
    withUnsafeMutablePointer(to: &self) { header in
      _ = MHD_get_connection_values(
        connection, .HEADER_KIND,
        { context, _, name, value in
          guard let context, let name, let value else { return .YES }
          context.assumingMemoryBound(to: LoggedHeader.self).pointee.read(name, value: value)
          return .YES
        }, header)
    }
  }

  private mutating func read(_ name: UnsafePointer<CChar>, value: UnsafePointer<CChar>) {
    func bytes() -> [UInt8] { Array(UnsafeRawBufferPointer(start: value, count: strlen(value))) }
    if strcasecmp(name, "User-Agent") == 0 {
      if userAgent == nil { userAgent = Self.cut(bytes()) }
    } else if strcasecmp(name, "Referer") == 0 {
      if referer == nil { referer = String(decoding: bytes(), as: UTF8.self) }
    } else if strcasecmp(name, "X-Forwarded-For") == 0 {
      forwardedFor.append(bytes())
    } else if strcasecmp(name, "Forwarded") == 0 {
      forwarded.append(bytes())
    }
  }

  private static func cut(_ bytes: [UInt8]) -> String {
    guard bytes.count > longestAgent else { return String(decoding: bytes, as: UTF8.self) }
    // Masked before it is cut, as in `Log`.
    let text = SecretMask.masked(String(decoding: bytes, as: UTF8.self))
    return String(decoding: text.utf8.prefix(longestAgent), as: UTF8.self) + "…"
  }
}

// TextEncodings: the character encodings of an SVG that glibc has in modules of their own.

import Glibc

/// Encodings beyond those that libxml2 knows itself (UTF-8, UTF-16, ISO-8859-1, ASCII). iconv(3) loads code for each.
enum TextEncodings {
  /// The encodings that SVGs of the web have.
  private static let names = [
    "ISO-8859-2", "ISO-8859-5", "ISO-8859-7", "ISO-8859-9", "ISO-8859-15", "WINDOWS-1250",
    "WINDOWS-1251",
    "WINDOWS-1252", "KOI8-R", "SHIFT_JIS", "EUC-JP", "GBK", "GB18030", "BIG5", "EUC-KR",
  ]

  /// Loads the modules for decoding. They stay loaded, because the conversions are never closed.
  static func load() {
    for name in names { _ = iconv_open("UTF-8", name) }
  }
}

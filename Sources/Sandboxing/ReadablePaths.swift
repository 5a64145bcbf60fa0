// ReadablePaths: the files that libraries open while images are decoded.

/// What a sealed worker can still read. Nothing of it is secret, and nothing can be written.
///
/// Libraries are not among it: they are loaded before. Sources and results are descriptors, which
/// need no path. Measured with strace(1) over all formats.
enum ReadablePaths {
  /// Files, and folders with all that is below them. Missing ones are skipped.
  static let all = [
    // Fontconfig and FreeType, for the text of an SVG.
    "/etc/fonts", "/usr/share/fontconfig", "/var/cache/fontconfig", "/usr/share/fonts",
    "/usr/local/share/fonts",
    // The number of processors: glibc, libaom, libde265, libjxl.
    "/sys/devices/system/cpu", "/proc/cpuinfo",
    // glibc: names of locales and the time zone.
    "/usr/share/locale/locale.alias", "/etc/localtime", "/usr/share/zoneinfo",
    "/dev/null", "/dev/urandom",
  ]
}

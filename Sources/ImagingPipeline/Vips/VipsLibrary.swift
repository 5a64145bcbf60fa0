// VipsLibrary: starts libvips, takes its errors, and cleans up after each job.

import CVips
import Core
import Glibc

/// The process-wide state of libvips.
enum VipsLibrary {
  /// Starts libvips on the first call; every call reports the outcome.
  static func start() throws(ImageError) {
    if let failure { throw failure }
  }

  /// The reason why libvips did not start; `nil` if it runs. Swift initializes a static once under
  /// a lock, whereas a second concurrent `vips_init` returns before the first is ready.
  private static let failure: ImageError? = {
    g_log_set_default_handler(silence, nil)
    // GdkPixbuf decodes images inside an SVG, and would load modules for BMP, ICO, XPM and any
    // other installed format. An empty module list leaves the built-in PNG and JPEG. GdkPixbuf
    // reads the variable once, later.
    setenv("GDK_PIXBUF_MODULE_FILE", "/dev/null", 1)
    // Keeps libvips from loading its modules at start. Three of Debian's five are for formats that
    // are not accepted (ImageMagick, PDF, OpenSlide), and each costs time and memory. HEIF and JPEG
    // XL are loaded on demand.
    setenv("VIPSHOME", "/dev/null", 1)
    // ORC compiles vector programs to machine code, for which it needs executable memory. A sealed
    // worker gets none, and ORC would abort it. Without machine code, libvips uses its own C; the
    // results are the same sealed and open. Some operations ignore `vips_vector_set_enabled`, so
    // ORC itself is told, before it starts.
    setenv("ORC_CODE", "emulate", 1)
    // libvips takes a file in /tmp for more than 100 MiB of pixels. A sealed worker can create
    // none, and pixels would outlive a crash there. The worker's memory limit is the limit.
    setenv("VIPS_DISC_THRESHOLD", "1024g", 1)
    guard vips_init("pictor") == 0 else {
      return .internal(detail: "libvips does not start: \(takeErrorText())")
    }
    vips_vector_set_enabled(0)
    // An imaging worker runs one job at a time; a second thread would compete with other workers
    // for the same core. With two threads, libvips 8.14 also loses the error of a decoder that
    // fails at once: 545 of 3,200 damaged JPEGs gave an image, and none with one thread.
    vips_concurrency_set(1)
    // Operations do not repeat between jobs, and a cache would keep a source's bytes in use after
    // the job.
    vips_cache_set_max(0)
    vips_cache_set_max_mem(0)
    vips_cache_set_max_files(0)
    blockOtherLoaders()
    return nil
  }()

  private static let allowedLoaders = ImageFormat.allCases.compactMap(\.codec.loader)

  /// Blocks all loaders but those in use. `vips_block_untrusted_set` would block SVG and allow the
  /// text formats.
  ///
  /// Blocking all loaders first would be shorter, but then no thread could open an image for a
  /// moment. Several threads of the tests open images while one starts the pipeline.
  static func blockOtherLoaders() {
    vips_class_map_all(
      g_type_from_name("VipsForeignLoad"),
      { loader, _ in
        // A class of GObject starts with its `GTypeClass`.
        let type = UnsafeMutableRawPointer(loader)?.assumingMemoryBound(to: GTypeClass.self)
        guard let type, let name = vips_nickname_find(type.pointee.g_type) else { return nil }
        let nickname = String(cString: name)
        if !VipsLibrary.allowedLoaders.contains(where: nickname.hasPrefix) {
          vips_operation_block_set(g_type_name_from_class(type), 1)
        }
        return nil
      }, nil)
  }

  /// Loads both modules and all encodings now. What fails stays an error of the first image that
  /// needs it. The conversions are never closed, so their modules stay loaded.
  static func loadModules() {
    _ = (heifFailure, jxlFailure)
    for name in encodings { _ = iconv_open("UTF-8", name) }
  }

  /// Why the module of HEIC and AVIF, which links libheif and three video codecs, or that of
  /// JPEG XL cannot be loaded, on first use; `nil` if it is.
  static let heifFailure = failure(toLoad: "Heif")
  static let jxlFailure = failure(toLoad: "Jxl")

  /// Loads a module; returns `nil` if its loader is available.
  private static func failure(toLoad module: String) -> ImageError? {
    // The loader exists already if libvips was built without modules or has loaded them.
    guard g_type_from_name("VipsForeignLoad\(module)") == 0 else { return nil }
    guard let library = pictor_vips_library_path().map({ String(cString: $0) }),
      let slash = library.lastIndex(of: "/")
    else { return .unsupportedFormat(detail: "libvips's modules: no path") }
    let modules = "vips-modules-\(vips_version(0)).\(vips_version(1))"
    let path = String(library[...slash]) + modules + "/vips-\(module.lowercased()).so"
    // Never closed, because its loaders are registered as libvips types.
    guard let opened = g_module_open(path, G_MODULE_BIND_LAZY) else {
      return .unsupportedFormat(detail: String(cString: g_module_error()))
    }
    pictor_vips_load_heif_codecs(opened)
    return nil
  }

  /// Silences GLib's log, which describes each fault of untrusted images on standard error.
  /// Messages before an abort are still printed.
  private static let silence: GLogFunc = { domain, level, message, data in
    if level.rawValue & (G_LOG_FLAG_FATAL.rawValue | G_LOG_LEVEL_ERROR.rawValue) != 0 {
      g_log_default_handler(domain, level, message, data)
    }
  }

  /// Takes libvips's error text and returns the error of a failure in `stage`.
  ///
  /// libvips decodes lazily, so a damaged source may surface in any stage, as may a fault of the
  /// stage itself. Only a failure to open is certainly the source's; `Blame` settles the others.
  static func failure(in stage: StaticString) -> ImageError {
    let text = takeErrorText()
    let detail = "\(stage): \(text)"
    if Blame.isOfMemory(text) { return .outOfMemory(detail: detail) }
    let isOfSource = stage.description == Loader.openingStage.description
    return isOfSource ? .undecodable(detail: detail) : .ofVariant(.undecodable(detail: detail))
  }

  /// Clears the error buffer after a job.
  static func tidyUp() {
    vips_error_clear()
  }

  /// Returns libvips's error text on one line, and clears the error buffer.
  static func takeErrorText() -> String {
    guard let buffer = vips_error_buffer_copy() else { return "" }
    defer { g_free(buffer) }
    return String(cString: buffer).split(separator: "\n").joined(separator: "; ")
  }

  /// The encodings that SVGs of the web have, beyond those that libxml2 knows itself (UTF-8,
  /// UTF-16, ISO-8859-1, ASCII). iconv(3) loads code for each.
  private static let encodings = [
    "ISO-8859-2", "ISO-8859-5", "ISO-8859-7", "ISO-8859-9", "ISO-8859-15", "WINDOWS-1250",
    "WINDOWS-1251", "WINDOWS-1252", "KOI8-R", "SHIFT_JIS", "EUC-JP", "GBK", "GB18030", "BIG5",
    "EUC-KR",
  ]
}

// VipsLibrary: libvips as a whole: starting it, its error buffer, and what is swept up after each job.

import CVips
import Glibc
import Model

/// What belongs to libvips and the process rather than to one image.
enum VipsLibrary {
  /// Starts libvips the first time, and says every time how that went.
  static func start() throws(ImageError) {
    if let failure { throw failure }
  }

  /// `nil` once libvips runs. Swift sets a static up once, whichever thread comes first, which `vips_init` by itself
  /// does not promise: called from two threads it lets the second one go before it is ready.
  private static let failure: ImageError? = {
    g_log_set_default_handler(silence, nil)
    // Images inside of an SVG are decoded by GdkPixbuf, which would load a module for BMP, ICO, XPM and whatever else
    // is installed. With an empty list of modules it knows PNG and JPEG, which are built in. It is read once, later.
    setenv("GDK_PIXBUF_MODULE_FILE", "/dev/null", 1)
    // libvips would load its modules from below this. Of Debian's five three are for formats that nobody may send
    // (ImageMagick, PDF, OpenSlide); without modules a worker starts in half the processor time and holds 6 MB less. The
    // two others, HEIF and JPEG XL, are loaded when they are needed.
    setenv("VIPSHOME", "/dev/null", 1)
    guard vips_init("pictor") == 0 else {
      return .internal(detail: "libvips does not start: \(takeErrorText())")
    }
    // One job at a time is what a worker does; a second thread would fight with the worker beside it for the same core.
    vips_concurrency_set(1)
    // No operation repeats between jobs, and what a cache holds would keep a source's bytes in use after the job.
    vips_cache_set_max(0)
    vips_cache_set_max_mem(0)
    vips_cache_set_max_files(0)
    // Everything of libvips's own guessing is closed; vips_block_untrusted_set would close SVG and leave the text
    // formats.
    vips_operation_block_set("VipsForeignLoad", 1)
    for loader in ["Jpeg", "Png", "Nsgif", "Webp", "Tiff", "Heif", "Svg", "Jxl", "Jp2k"] {
      vips_operation_block_set("VipsForeignLoad\(loader)", 0)
    }
    return nil
  }()

  /// Makes the loaders for HEIC and AVIF known to libvips, the first time one is needed: they are in a module of their
  /// own, with libheif and three video codecs behind it.
  ///
  /// - Throws: `ImageError.unsupportedFormat` where there is no such module.
  static func loadHEIF() throws(ImageError) {
    if let heifFailure { throw heifFailure }
  }

  /// The same for JPEG XL, behind whose module is libjxl.
  static func loadJXL() throws(ImageError) {
    if let jxlFailure { throw jxlFailure }
  }

  private static let heifFailure = failure(toLoad: "heif", having: "VipsForeignLoadHeif")
  private static let jxlFailure = failure(toLoad: "jxl", having: "VipsForeignLoadJxl")

  /// Loads a module; `nil` once its loader is there.
  private static func failure(toLoad module: String, having loader: String) -> ImageError? {
    // Where libvips was built without modules, or with them loaded by somebody else, it is there already.
    guard g_type_from_name(loader) == 0 else { return nil }
    guard let library = pictor_vips_library_path().map({ String(cString: $0) }),
      let slash = library.lastIndex(of: "/")
    else { return .unsupportedFormat(detail: "libvips's modules: no path") }
    let modules = "vips-modules-\(vips_version(0)).\(vips_version(1))"
    let path = String(library[...slash]) + modules + "/vips-\(module).so"
    // Never closed: its loaders are types of libvips from now on.
    guard g_module_open(path, G_MODULE_BIND_LAZY) != nil else {
      return .unsupportedFormat(detail: String(cString: g_module_error()))
    }
    return nil
  }

  /// GLib's log says what strangers' images have wrong with them, line after line, on standard error: nobody's
  /// business. What GLib is about to abort for is printed as ever.
  private static let silence: GLogFunc = { domain, level, message, data in
    if level.rawValue & (G_LOG_FLAG_FATAL.rawValue | G_LOG_LEVEL_ERROR.rawValue) != 0 {
      g_log_default_handler(domain, level, message, data)
    }
  }

  /// Takes libvips's error text away and makes the error of what failed in `stage`.
  ///
  /// libvips decodes as late as it can, so a damaged source may come to light in any stage, and so may a fault of the
  /// stage itself. Only where the source is opened is it known to be to blame; `Blame` finds out about the rest.
  static func failure(in stage: StaticString) -> ImageError {
    let text = takeErrorText()
    let detail = "\(stage): \(text)"
    if Blame.isOfMemory(text) { return .outOfMemory(detail: detail) }
    let isOfSource = stage.description == Loader.openingStage.description
    return isOfSource ? .undecodable(detail: detail) : .ofVariant(.undecodable(detail: detail))
  }

  /// Drops what a job may have left behind.
  static func tidyUp() {
    vips_error_clear()
  }

  /// What libvips wrote into its error buffer, in one line, and empties the buffer.
  static func takeErrorText() -> String {
    guard let buffer = vips_error_buffer_copy() else { return "" }
    defer { g_free(buffer) }
    return String(cString: buffer).split(separator: "\n").joined(separator: "; ")
  }
}

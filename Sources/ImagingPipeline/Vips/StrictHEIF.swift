// StrictHEIF: has libheif refuse a grid with a tile that cannot be decoded.

import CVips
import Core

/// libheif 1.23 leaves such a tile empty, and says so only to callers that ask; libvips does not.
/// It gets its options from the function here, which the program exports by libheif's name, and
/// which the dynamic linker finds first (Package.swift).
enum StrictHEIF {
  fileprivate typealias Allocation = @convention(c) () -> UnsafeMutableRawPointer?

  /// libheif's own function.
  fileprivate static let allocation = Lock<Allocation?>(nil)

  /// Where `strict_decoding` is in `heif_decoding_options`, behind two bytes, four pointers and a
  /// byte, and the first version of that struct that has it, which is its first byte.
  fileprivate static let offset = 5 * MemoryLayout<UnsafeRawPointer>.stride + 1
  fileprivate static let firstVersion = 3

  /// Finds libheif's function.
  static func start(_ module: OpaquePointer) {
    var found: UnsafeMutableRawPointer?
    guard g_module_symbol(module, "heif_decoding_options_alloc", &found) != 0, let found else {
      return
    }
    allocation.withLock { $0 = unsafeBitCast(found, to: Allocation.self) }
  }
}

/// Returns libheif's usual options, but for tiles.
@c(heif_decoding_options_alloc)
public func strictOptionsOfLibheif() -> UnsafeMutableRawPointer? {
  let options = StrictHEIF.allocation.withLock { $0 }?()
  if let options, options.load(as: UInt8.self) >= StrictHEIF.firstVersion {
    options.storeBytes(of: 1, toByteOffset: StrictHEIF.offset, as: UInt8.self)
  }
  return options
}

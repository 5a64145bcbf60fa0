// StrictHEIF: has libheif refuse a grid with a tile that cannot be decoded.

import Glibc

/// libheif 1.23 leaves such a tile empty, and says so only to callers that ask; libvips does not.
/// It gets its options from the function here, which the program exports by libheif's name, and
/// which the dynamic linker finds first (Package.swift).
private enum StrictHEIF {
  typealias Allocation = @convention(c) () -> UnsafeMutableRawPointer?

  /// The offset of `strict_decoding` in `heif_decoding_options`: behind two bytes, four pointers
  /// and a byte.
  static let offset = 5 * MemoryLayout<UnsafeRawPointer>.stride + 1
  /// The first version of the struct that has it. Byte 0 is the version.
  static let firstVersion = 3

  /// libheif's own function: the next one of this name (RTLD_NEXT of dlsym(3)). libvips's module
  /// is loaded for all to see.
  static var allocation: Allocation? {
    let next = UnsafeMutableRawPointer(bitPattern: -1)
    return dlsym(next, "heif_decoding_options_alloc").map { unsafeBitCast($0, to: Allocation.self) }
  }
}

/// Returns libheif's usual options, but strict: what codecs only warn of is an error, too.
@c(heif_decoding_options_alloc)
public func strictOptionsOfLibheif() -> UnsafeMutableRawPointer? {
  let options = StrictHEIF.allocation?()
  if let options, options.load(as: UInt8.self) >= StrictHEIF.firstVersion {
    options.storeBytes(of: 1, toByteOffset: StrictHEIF.offset, as: UInt8.self)
  }
  return options
}

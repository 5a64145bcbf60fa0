// TIFFDirectories: tells the pages of a TIFF from reduced copies and masks.

import Platform

/// The chain of directories of a TIFF or BigTIFF (TIFF 6.0, section 2).
///
/// A pyramid stores its levels in the same chain as pages. `NewSubfileType` distinguishes them
/// (TIFF 6.0, section 8).
struct TIFFDirectories {
  /// The directories that are not pages, in ascending order. Empty if no directory is a page; then
  /// every directory counts as one.
  private(set) var others: [Int] = []

  /// The maximum number of directories read; every later directory counts as a page.
  private static let maximumRead = 65_536

  /// Reads the chain. An unreadable directory counts as a page, and libtiff decides about it.
  ///
  /// - Parameter count: The number of directories that libtiff counts.
  init(of file: UnsafeRawBufferPointer, count: Int) {
    guard let reader = TIFFReader(file) else { return }
    var place = reader.firstDirectory
    let last = min(count, Self.maximumRead)
    for index in 0..<last {
      guard let directory = place.flatMap({ reader.directory(at: $0) }) else { break }
      if directory.isPartOfPage { others.append(index) }
      place = directory.next
    }
    if others.count == count { others = [] }
  }

  /// Returns how many of `directories` are pages.
  func pages(of directories: Int) -> Int { directories - others.count }

  /// Returns the directory index of a page.
  func directory(ofPage page: Int) -> Int {
    others.reduce(page) { $1 <= $0 ? $0 + 1 : $0 }
  }
}

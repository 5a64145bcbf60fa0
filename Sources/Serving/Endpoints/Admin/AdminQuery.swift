// AdminQuery: parses the queries of admin endpoints.

import Core

/// The parameters of an admin endpoint, each at most once unless the endpoint allows more.
struct AdminQuery {
  private var values: [(name: String, value: String)] = []

  /// Parses a raw query, without its `?`.
  ///
  /// - Parameters:
  ///   - query: the query.
  ///   - allowed: the names of the parameters.
  ///   - repeatable: the names that may be given more than once.
  /// - Throws: `unknownParameter`, or `invalidParameter` for a value that cannot be decoded and for
  ///   a repeated parameter.
  init(
    _ query: ArraySlice<UInt8>, allowed: [String] = [], repeatable: [String] = []
  ) throws(ImageError) {
    for piece in query.split(separator: UInt8(ascii: "&")) {
      let parts = piece.split(
        separator: UInt8(ascii: "="), maxSplits: 1, omittingEmptySubsequences: false)
      guard let name = PercentEncoding.decode(parts[0]), (allowed + repeatable).contains(name)
      else {
        throw .unknownParameter(displayable(parts[0]))
      }
      let raw = parts.count > 1 ? parts[1] : []
      guard let value = PercentEncoding.decode(raw) else {
        throw .invalidParameter(
          name: name, value: displayable(raw),
          allowed: "it is not percent-encoded UTF-8 without NUL")
      }
      guard repeatable.contains(name) || self[name] == nil else {
        throw .invalidParameter(
          name: name, value: displayable(value), allowed: "it may be given only once")
      }
      values.append((name, value))
    }
  }

  /// The value of a parameter, the first of a repeatable one.
  subscript(_ name: String) -> String? { values.first { $0.name == name }?.value }

  /// Returns all values of a repeatable parameter.
  func all(_ name: String) -> [String] { values.filter { $0.name == name }.map(\.value) }

  /// Returns a number from 0 to 1, or `nil` if the parameter is missing.
  ///
  /// - Throws: `invalidParameter` for any other value.
  func fraction(_ name: String) throws(ImageError) -> Double? {
    guard let text = self[name] else { return nil }
    // Without signs, exponents and hexadecimal digits.
    let isPlain = text.utf8.allSatisfy { (48...57).contains($0) || $0 == UInt8(ascii: ".") }
    guard isPlain, let value = Double(text), (0...1).contains(value) else {
      throw .invalidParameter(
        name: name, value: displayable(text), allowed: "a number from 0 to 1")
    }
    return value
  }
}

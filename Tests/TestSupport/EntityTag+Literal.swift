// EntityTag+Literal: entity tags as literals, for comparisons in tests.

import Core

extension EntityTag: ExpressibleByStringInterpolation {
  /// Creates a tag from its text, quotes included.
  public init(stringLiteral text: String) { self.init(text) }
}

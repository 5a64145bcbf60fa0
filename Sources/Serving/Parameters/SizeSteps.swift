// SizeSteps: the sizes to which `w` and `h` of unsigned requests are rounded.

/// The steps of `w` and `h` in points. Fewer sizes are fewer variants to render and to store.
struct SizeSteps: Sendable {
  /// In ascending order.
  private let steps: [Int]

  /// - Parameter steps: points, at least 1, in ascending order; empty: sizes stay as they are.
  init(_ steps: [Int]) { self.steps = steps }

  /// Whether sizes stay as they are.
  var isEmpty: Bool { steps.isEmpty }

  /// Returns a box in points whose longer side is the smallest step that is at least as long, or the
  /// last step. The other side keeps the aspect ratio, which `fit` may show: rounded, at least 1.
  func rounded(width: Int?, height: Int?) -> (width: Int?, height: Int?) {
    let longer = max(width ?? 0, height ?? 0)
    guard longer > 0, let step = steps.first(where: { $0 >= longer }) ?? steps.last else {
      return (width, height)
    }
    func scaled(_ side: Int) -> Int { max(1, (side * step + longer / 2) / longer) }
    return (width.map(scaled), height.map(scaled))
  }
}

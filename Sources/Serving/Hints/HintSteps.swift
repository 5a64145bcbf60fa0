// HintSteps: the steps to which the numbers of client hints are rounded.

import Model

/// Rounds hints up to steps. A client chooses its hints freely, also for a signed URL, so the steps
/// bound how many different results one URL has.
struct HintSteps: Sendable {
  /// `server.size_steps`, in points; if empty, `widths` counts.
  private let points: SizeSteps
  /// Widths in pixels, each at most a half larger than the one before, from 64 on a third.
  private static let widths = [
    32, 48, 64, 80, 96, 128, 160, 192, 256, 320, 384, 512, 640, 768, 1_024, 1_280, 1_536, 1_920,
    2_560, 3_072, 3_840,
  ]
  /// Densities. Page zoom makes others, such as 1.1 and 2.625.
  private static let densities = [1, 1.5, 2, 3, 4]

  /// - Parameter points: the configured steps of `w`; without steps, the built-in ones count.
  init(_ points: SizeSteps) { self.points = points }

  /// Returns the smallest density that is at least as large, or the largest. A hundredth more
  /// counts as equal.
  static func density(_ hint: Double) -> Double {
    densities.first { $0 >= hint - 0.01 } ?? 4
  }

  /// Returns the width of a box in points.
  ///
  /// - Parameters:
  ///   - pixels: the width in physical pixels, at least 1.
  ///   - density: pixels per point, above 0.
  func width(of pixels: Int, at density: Double) -> Int {
    guard points.isEmpty else {
      let exact = Self.points(pixels, at: density)
      return points.rounded(width: exact, height: nil).width ?? exact
    }
    let step = Self.widths.first { $0 >= pixels } ?? 3_840
    return Self.points(step, at: density)
  }

  /// Returns the least points that have these pixels, in the range of `w`. A rounding error of the
  /// division adds no point.
  private static func points(_ pixels: Int, at density: Double) -> Int {
    let range = Sizing.sideRange
    let exact = (Double(pixels) / density - 1e-6).rounded(.up)
    return exact >= Double(range.upperBound)
      ? range.upperBound : max(Int(exact), range.lowerBound)
  }
}

// BudgetFigures: the part of `/stats` about bytes that are held in memory and in files.

import Platform

/// Figures of a budget of bytes.
public struct BudgetFigures: Codable, Hashable, Sendable {
  /// Bytes held now.
  public var bytes = 0
  /// The most bytes that were ever held at one time.
  public var peak = 0
  /// The maximum, in bytes.
  public var limit = 0
  /// How often bytes did not fit.
  public var refused = 0

  /// Creates figures of zero.
  public init() {}

  /// Creates the figures of a budget.
  public init(_ budget: ByteBudget) {
    bytes = budget.used
    peak = budget.peak
    limit = budget.limit
    refused = budget.refused
  }
}

/// Figures of all budgets of bytes.
public struct BudgetsFigures: Codable, Hashable, Sendable {
  /// Bodies of sources in memory, from their first byte to their last use.
  public var bodies: BudgetFigures
  /// Variants in memory: those of the memory tier, and those that are being sent or stored.
  public var variants: BudgetFigures
  /// The estimated memory of expensive jobs that run.
  public var jobs: BudgetFigures
  /// Variants in files without a name, until they are sent; `nil` without a disk tier.
  public var files: BudgetFigures?

  /// Creates the figures.
  public init(
    bodies: BudgetFigures = BudgetFigures(), variants: BudgetFigures = BudgetFigures(),
    jobs: BudgetFigures = BudgetFigures(), files: BudgetFigures? = nil
  ) {
    self.bodies = bodies
    self.variants = variants
    self.jobs = jobs
    self.files = files
  }
}

// RankedCases: enumerations whose cases are in an order.

/// An enumeration that declares its cases in their order, the lowest first.
public protocol RankedCases: CaseIterable, Comparable where AllCases == [Self] {}

extension RankedCases {
  /// The place in the order, from 0. Allocates nothing.
  @inlinable public var rank: Int { Self.allCases.firstIndex(of: self) ?? 0 }

  /// Compares the places in the order.
  @inlinable public static func < (left: Self, right: Self) -> Bool { left.rank < right.rank }
}

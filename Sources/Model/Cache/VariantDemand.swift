// VariantDemand: who asks the disk tier to store a variant, and its answer.

/// Who asks the disk tier to store a variant, and how often.
public enum VariantDemand: Hashable, Sendable {
  /// A request in the operator's vocabulary: a signed URL, a preset, a prefetch. The disk tier
  /// stores the variant at once.
  case vouched
  /// A free-form request (`LoadOptions.isFreeForm`), the first for its key that is known.
  case first
  /// A free-form request for a key that was asked for before.
  case repeated
  /// No request: the variant replaces a stored one, and keeps its place among the free-form ones.
  case replacement
}

/// The answer of the disk tier to a variant.
public enum StoreOutcome: Hashable, Sendable {
  /// The variant is readable at once, and written in the background.
  case stored
  /// The variant is stored if its key is asked for again.
  case deferred
  /// The tier is disabled or full, or the variant is too large or purged.
  case refused
}

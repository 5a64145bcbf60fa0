// RandomSteps: how far the random walks of model tests go.

import Glibc

/// The length of a random walk against a model.
public enum RandomSteps {
  /// Returns the number of steps of a walk: a fifth of `count` in `make test`, and all of it in
  /// `make test-long`, which sets `PICTOR_TEST_LONG`.
  public static func upTo(_ count: Int) -> Int {
    getenv("PICTOR_TEST_LONG") == nil ? count / 5 : count
  }
}

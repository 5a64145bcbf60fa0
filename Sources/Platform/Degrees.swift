// Degrees: the sine and cosine of angles.

import Glibc

extension Double {
  /// The cosine and the sine of this angle in degrees.
  public var cosineAndSine: (Double, Double) { (cos(self * .pi / 180), sin(self * .pi / 180)) }
}

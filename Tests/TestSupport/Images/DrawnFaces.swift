// DrawnFaces: drawn heads that a detector of faces finds.

import Core
import Glibc

extension Pixels {
  /// Returns an image of drawn heads before a sky whose blue is a quarter of the column, so that a
  /// part of it tells where it was cut.
  ///
  /// - Parameter faces: The middle of each head, and half the width of its hair. dlib's box is 0.9
  ///   of that to each side, and a tenth lower.
  public static func heads(
    width: Int, height: Int, _ faces: [(x: Double, y: Double, half: Double)]
  ) -> Pixels {
    var image = Pixels(width: width, height: height) { x, _ in [200, 200, UInt8(min(x / 4, 255))] }
    // Of a half of 1: the middle, the radii, the lightness, and how soft the edge is.
    let parts: [(x: Double, y: Double, rx: Double, ry: Double, light: Double, soft: Double)] = [
      (0, -0.15, 1, 1.35, 60, 0.15), (0, 0.1, 0.82, 1.15, 175, 0.15),
      (-0.38, -0.48, 0.25, 0.07, 70, 0.4), (0.38, -0.48, 0.25, 0.07, 70, 0.4),
      (-0.38, -0.25, 0.19, 0.1, 60, 0.4), (0.38, -0.25, 0.19, 0.1, 60, 0.4),
      (0, 0.1, 0.09, 0.3, 195, 0.6), (0, 0.28, 0.2, 0.07, 110, 0.5), (0, 0.62, 0.36, 0.1, 85, 0.4),
    ]
    for face in faces {
      for part in parts {
        let (x, y) = (face.x + part.x * face.half, face.y + part.y * face.half)
        let (rx, ry) = (part.rx * face.half, part.ry * face.half)
        for row in max(0, Int(y - ry * 1.6))...min(height - 1, Int(y + ry * 1.6) + 1) {
          for column in max(0, Int(x - rx * 1.6))...min(width - 1, Int(x + rx * 1.6) + 1) {
            let distance = hypot((Double(column) - x) / rx, (Double(row) - y) / ry)
            let alpha = min(1, max(0, (1 + part.soft - distance) / (2 * part.soft)))
            for index in (row * width + column) * 3..<(row * width + column) * 3 + 3 {
              let value = Double(image.values[index])
              image.values[index] = UInt8(value + (part.light - value) * alpha)
            }
          }
        }
      }
    }
    return image
  }
}

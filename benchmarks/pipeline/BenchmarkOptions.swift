// BenchmarkOptions: what the pipeline's benchmark is told on its command line.

import Core

/// The command line of `benchmark-pipeline`.
struct BenchmarkOptions {
  /// Path of the source.
  let file: String
  /// Width of the result in pixels.
  let width: Int
  /// How long the loop runs, in s of wall-clock time; at least one job is done.
  let seconds: Double
  /// Format of the result; `nil`: Pictor's choice.
  private(set) var format: ImageFormat?
  /// Quality of the result; `nil`: the format's default.
  private(set) var quality: Int?
  /// The encoder's effort; `nil`: the format's default.
  private(set) var effort: Int?
  /// Where the result is written, once; `nil`: nowhere.
  private(set) var out: String?
  /// The most threads of a job.
  private(set) var threads = 1
  /// What is done to the pixels.
  private(set) var effects = Effects()
  /// Whether the result shows the source's faces.
  private(set) var showsFaces = false
  /// Whether `vips_thumbnail_buffer` and a save take the pipeline's place.
  private(set) var isPlain = false

  static let usage =
    "benchmark-pipeline FILE WIDTH SECONDS [--format NAME] [--quality N] [--effort N] [--out FILE] [--plain] "
    + "[--faces] [--threads N] [--effect blur|sharpen|saturation=NUMBER] [--effect radius|tint|grayscale]"

  /// Reads the arguments after the program's name; `nil` where they make no sense.
  init?(arguments: [String]) {
    guard arguments.count >= 3, let width = Int(arguments[1]), Sizing.sideRange.contains(width),
      let seconds = Double(arguments[2]), seconds >= 0
    else { return nil }
    file = arguments[0]
    self.width = width
    self.seconds = seconds
    var rest = arguments.dropFirst(3)
    while let name = rest.popFirst() {
      switch name {
      case "--plain": isPlain = true
      case "--faces": showsFaces = true
      case "--format":
        guard let format = rest.popFirst().flatMap(ImageFormat.init) else { return nil }
        self.format = format
      case "--quality":
        guard let number = rest.popFirst().flatMap({ Int($0) }), 1...100 ~= number else {
          return nil
        }
        quality = number
      case "--effort":
        guard let number = rest.popFirst().flatMap({ Int($0) }), 0...10 ~= number else {
          return nil
        }
        effort = number
      case "--threads":
        guard let count = rest.popFirst().flatMap({ Int($0) }), 1...64 ~= count else { return nil }
        threads = count
      case "--effect":
        guard let effect = rest.popFirst(), add(effect) else { return nil }
      case "--out":
        guard let out = rest.popFirst() else { return nil }
        self.out = out
      default: return nil
      }
    }
  }
  /// Takes an effect over; `false` where there is none of that name.
  private mutating func add(_ effect: String) -> Bool {
    let parts = effect.split(separator: "=", maxSplits: 1)
    let number = parts.count == 2 ? Double(parts[1]) : nil
    switch (parts.first, number) {
    case ("blur", let sigma?): effects.blur = sigma
    case ("sharpen", let sigma?): effects.sharpen = sigma
    case ("saturation", let factor?): effects.saturation = factor
    case ("radius", nil): effects.radius = .maximum
    case ("tint", nil): effects.tint = Color(red: 255, green: 0, blue: 0, alpha: 128)
    case ("grayscale", nil): effects.isGrayscale = true
    default: return false
    }
    return true
  }
}

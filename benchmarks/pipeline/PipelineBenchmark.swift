// PipelineBenchmark: the imaging pipeline called in a loop on one thread, as a worker calls it, and what that costs.

import Core
import Glibc
import ImagingPipeline

/// The floor of a miss: what server and workers together spend on one is compared with this.
enum PipelineBenchmark {
  /// Runs the loop and prints one line of JSON; the result is the exit status.
  static func run(arguments: [String]) -> CInt {
    guard let options = BenchmarkOptions(arguments: arguments) else {
      complain(BenchmarkOptions.usage)
      return 64  // EX_USAGE
    }
    do {
      let source = try FileBytes(path: options.file)
      let job = try Job(options)
      var cost = JobCost()
      let (first, faces) = try job.run(source.bytes) { cost = $0 }
      if let out = options.out { try FileBytes.write(first, to: out) }
      let start = ProcessTimes.now
      var jobs = 0
      var spent = ProcessTimes()
      repeat {
        _ = try job.run(source.bytes)
        jobs += 1
        spent = ProcessTimes.now - start
      } while spent.wall < options.seconds
      let cpu = spent.cpu * 1_000 / Double(jobs)
      let wall = spent.wall * 1_000 / Double(jobs)
      let estimate = rounded(cost.seconds * 1_000)
      print(
        #"{"jobs":\#(jobs),"cpu_ms":\#(rounded(cpu)),"wall_ms":\#(rounded(wall)),"bytes":\#(first.count),"#
          + #""faces":\#(faces),"estimated_ms":\#(estimate),"refused":\#(job.isRefused(source.bytes))}"#
      )
      return 0
    } catch {
      complain((error as? ImageError).map { $0.logDetail ?? $0.code } ?? "\(error)")
      return 1
    }
  }

  /// To the microsecond.
  private static func rounded(_ milliseconds: Double) -> Double {
    (milliseconds * 1_000).rounded() / 1_000
  }

  private static func complain(_ text: String) {
    var line = "benchmark-pipeline: \(text)\n"
    line.withUTF8 { _ = write(STDERR_FILENO, $0.baseAddress, $0.count) }
  }
}

/// What is done again and again.
private struct Job {
  private let pipeline: Pipeline
  private let transform: Transform
  private var limits = ImagingLimits()
  private let plain: PlainThumbnail?

  init(_ options: BenchmarkOptions) throws(ImageError) {
    // Also where the pipeline is not what is measured: it sets libvips up as a worker has it.
    pipeline = try Pipeline()
    var transform = Transform()
    transform.sizing.width = options.width
    transform.output.format = options.format
    transform.output.quality = options.quality
    transform.effects = options.effects
    if options.showsFaces {
      transform.selection.crop = Crop(
        width: .pixels(0), height: .pixels(0), at: .faces(margin: Crop.usualMargin))
    }
    self.transform = transform
    limits.maximumThreads = options.threads
    if let effort = options.effort {
      switch options.format {
      case .webp: limits.efforts.webp = effort
      case .avif: limits.efforts.avif = effort
      case .gif: limits.efforts.gif = effort
      case .png: limits.efforts.png = effort
      default:
        throw .invalidParameter(
          name: "effort", value: "\(effort)", allowed: "a format that has one")
      }
    }
    plain = options.isPlain ? PlainThumbnail(width: options.width, format: options.format) : nil
  }

  /// Does it once, however long it is estimated to take; gives the result's bytes, the faces as x, y, width and height,
  /// and the estimate to `note`.
  func run(
    _ source: UnsafeRawBufferPointer, note: @escaping (JobCost) -> Void = { _ in }
  ) throws(ImageError) -> (bytes: [UInt8], faces: [[Int]]) {
    if let plain { return (try plain.make(from: source), []) }
    var limits = limits
    (limits.maximumSeconds, limits.maximumSecondsOfPixels) = (.infinity, .infinity)
    let image = try pipeline.process(source, transform: transform, density: 1, limits: limits) {
      note($0)
      return true
    }
    let faces = (image.report.faces ?? []).map { [$0.x, $0.y, $0.size.width, $0.size.height] }
    return (image.withUnsafeBytes { Array($0) }, faces)
  }

  /// Whether a worker refuses it before it begins.
  func isRefused(_ source: UnsafeRawBufferPointer) -> Bool {
    do throws(ImageError) {
      _ = try pipeline.process(source, transform: transform, density: 1, limits: limits) { _ in
        false
      }
    } catch .cancelled { return false } catch { return true }
    return false
  }
}

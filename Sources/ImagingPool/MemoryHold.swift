// MemoryHold: holds a worker to the memory that its job was admitted with.

import ImagingWire
import Model
import Platform

extension WorkerSlot {
  /// Lowers the worker's limits of memory and of its result to what the job was admitted with, or lifts them for a job that
  /// was admitted with the whole memory of a worker. A machine that refuses this has estimates and no limit for them.
  ///
  /// - Returns: whether the worker has less than its whole memory for the job.
  func hold(_ worker: WorkerProcess, for id: UInt64, _ job: ImageJob) -> Bool {
    let bytes = admittedBytes(id).flatMap { job.mayFindColours(configuration.limits) ? nil : $0 }
    do throws(SystemError) {
      try worker.holdMemory(
        to: bytes.map { $0 + configuration.memorySlack },
        resultBytes: ImagerPoolConfiguration.resultBytes(ofMemory: bytes ?? 0))
    } catch {
      core.log.debug("a worker's memory limit stays", fields: ["reason": .string("\(error)")])
    }
    return worker.isHeld
  }

  /// The memory that the job may take, in bytes; `nil` for all that its worker can have.
  ///
  /// Each worker has a part of its own. An expensive job has what was estimated, if that is more.
  private func admittedBytes(_ id: UInt64) -> Int? {
    guard let whole = configuration.maximumWorkerMemory else { return nil }
    let part = configuration.limits.maximumQuickBytes
    let admitted = max(core.bytesOfLong(id) ?? 0, part)
    return admitted < whole ? admitted : nil
  }

  /// Admits a job that needs more memory than estimated with the whole memory of a worker.
  ///
  /// - Returns: whether the job continues here; otherwise it is queued again.
  func takesWholeMemory(_ id: UInt64) -> Bool {
    core.counters.underestimated.add()
    return core.takesLong(id, bytes: configuration.maximumWorkerMemory ?? .max)
  }
}

extension ImageJob {
  /// Whether libimagequant finds the colours of the result, as far as that is known: for a GIF, and for a PNG of a source
  /// with a palette. With less memory it finds other colours and reports no error, so these jobs have the whole memory of
  /// a worker.
  fileprivate func mayFindColours(_ limits: ImagingLimits) -> Bool {
    let format = transform.output.format
    if (format ?? SourceHead.format(of: file)) == .gif { return true }
    return limits.keepsPalettes && (format ?? .png) == .png && SourceHead.mayHavePalette(file)
  }
}

extension Result<ProcessedImage, ImageError> {
  /// Whether missing memory may be the cause. Some decoders and encoders report a failed allocation as any other failure,
  /// tolerant ones as damage, and libimagequant not at all.
  var mayLackMemory: Bool {
    switch self {
    case .success(let image): image.report.isDamaged || image.rendered?.format == .gif
    case .failure(let error): error.mayLackMemory
    }
  }
}

extension ImageError {
  fileprivate var mayLackMemory: Bool {
    switch self {
    case .outOfMemory, .undecodable, .internal: true
    case .watermark(let cause), .ofVariant(let cause): cause.mayLackMemory
    default: false
    }
  }
}

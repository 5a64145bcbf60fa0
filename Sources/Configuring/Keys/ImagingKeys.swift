// ImagingKeys: the keys of the imaging settings.

import Model

extension Configuration {
  /// The keys below `imaging`.
  static let imagingKeys: [ConfigurationKey] =
    [
      .integer(
        "imaging.workers", at: \.imaging.workers,
        purpose: "worker processes; 0: one per core, at most one per 160MiB of memory", in: 0...256
      ).atStart,
      .duration(
        "imaging.deadline", at: \.imaging.jobDeadline,
        purpose: "time for one image; then its worker is killed",
        in: .milliseconds(100)...(.seconds(3_600))),
      .duration(
        "imaging.processor_time", at: \.imaging.processorTime,
        purpose: "processor time for one image, all threads of its worker together; beyond it, 422",
        in: .milliseconds(100)...(.seconds(3_600))),
      .integer(
        "imaging.queue_limit", at: \.imaging.queueLimit,
        purpose: "jobs that may wait for a worker; beyond it, 503",
        in: 0...1_000_000),
      .sizeOrAuto(
        "imaging.worker_memory", at: \.imaging.workerMemory,
        purpose:
          "bytes that a worker may allocate; beyond it, 503; auto: 2GiB, at most half of memory",
        atLeast: 64 << 20
      ).atStart,
      .choice(
        "imaging.sandbox", \.imaging.sandbox,
        "required: workers are sealed by Landlock and seccomp, or nothing starts; if_possible: by "
          + "what the kernel has; off: not"
      ).atStart,
      .formats("imaging.formats", at: \.imaging.formats, purpose: "formats that are decoded"),
      .formats(
        "imaging.auto_formats", at: \.imaging.autoFormats,
        purpose:
          "formats that format=auto offers to clients whose Accept names them, the best first; "
          + "[]: none",
        from: ImageFormat.negotiable, mayBeEmpty: true),
      .integer(
        "imaging.maximum_pixels", at: \.imaging.maximumPixels,
        purpose: "pixels of a source, all frames together; beyond it, 422", in: 1...10_000_000_000),
      .integer(
        "imaging.maximum_result_pixels", at: \.imaging.maximumResultPixels,
        purpose:
          "pixels of a result; larger ones are scaled down; limitbytes is at most 4 times as many",
        in: 1...1_000_000_000),
      .integer(
        "imaging.maximum_frames", at: \.imaging.maximumFrames,
        purpose: "frames of a source; beyond it, 422",
        in: 1...100_000),
      .choice(
        "imaging.fail_on", \.imaging.failOn,
        "damage that is 422: warning: any lost pixels, error: a broken structure, truncated: "
          + "an early end, none: only undecodable sources"),
      .boolean(
        "imaging.avif_later", at: \.imaging.defersAVIF,
        purpose: "whether WebP, JPEG or PNG is served until a negotiated AVIF is encoded"),
      .integer(
        "imaging.recompress_after", at: \.imaging.recompressAfter,
        purpose:
          "hits in memory after which idle workers encode an image once with more effort; 0: never",
        in: 0...1_000_000),
      .boolean(
        "imaging.derive", at: \.imaging.derives,
        purpose:
          "whether a small image may be rendered from a stored larger one if its source is not "
          + "stored"),
    ] + qualityKeys

  /// Qualities and efforts of encoders, for requests that name none.
  private static let qualityKeys: [ConfigurationKey] =
    ImageFormat.lossy.map { format in
      .integer(
        "imaging.\(format.rawValue)_quality", at: \.imaging.qualities[lossy: format],
        purpose: "quality of \(format.traits.title) without quality=",
        in: OutputOptions.qualityRange)
    } + encoderKeys

  /// How qualities change, and efforts.
  private static let encoderKeys: [ConfigurationKey] = [
    .integer(
      "imaging.save_data_reduction", at: \.imaging.saveDataReduction,
      purpose:
        "how much lower these qualities are for clients that send Save-Data: on; 0: not lower",
      in: 0...99),
    .integer(
      "imaging.webp_effort", at: \.imaging.efforts.webp,
      purpose: "libwebp's effort; higher: slower, fewer bytes", in: EncoderEfforts.webpRange),
    .integer(
      "imaging.avif_effort", at: \.imaging.efforts.avif,
      purpose: "libaom's effort, 9 minus its speed; from 4 on an image takes seconds",
      in: EncoderEfforts.avifRange),
  ]
}

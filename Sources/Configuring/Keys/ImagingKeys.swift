// ImagingKeys: the keys of the imaging settings.

import Model

extension Configuration {
  /// The keys below `imaging`.
  static let imagingKeys: [ConfigurationKey] =
    [
      .integer(
        "imaging.workers", \.imaging.workers,
        "worker processes; 0: one per core, at most one per 160MiB of memory", 0...256),
      .duration(
        "imaging.deadline", \.imaging.jobDeadline, "time for one image; then its worker is killed",
        .milliseconds(100)...(.seconds(3_600))),
      .duration(
        "imaging.processor_time", \.imaging.processorTime,
        "processor time for one image, all threads of its worker together; beyond it, 422",
        .milliseconds(100)...(.seconds(3_600))),
      .integer(
        "imaging.queue_limit", \.imaging.queueLimit,
        "jobs that may wait for a worker; beyond it, 503",
        0...1_000_000),
      .integer(
        "imaging.jobs_per_worker", \.imaging.maximumJobsPerWorker,
        "jobs after which a worker is replaced, so that leaks stay small", 1...1_000_000_000),
      .sizeOrAuto(
        "imaging.worker_memory", \.imaging.workerMemory,
        "bytes that a worker may allocate; beyond it, 503; auto: 2GiB, at most half of memory",
        atLeast: 64 << 20),
      .sizeOrAuto(
        "imaging.retire_above", \.imaging.retireAbove,
        "resident bytes above which a worker is replaced; auto: 256MiB, at most 1/8 of memory",
        atLeast: 32 << 20),
      .integer(
        "imaging.niceness", \.imaging.niceness,
        "niceness of the workers; higher: responses come before encodes", 0...19),
      .formats("imaging.formats", \.imaging.formats, "formats that are decoded"),
      .formats(
        "imaging.auto_formats", \.imaging.autoFormats,
        "formats that format=auto offers clients that name them in Accept, the best first; "
          + "[]: none",
        from: ImageFormat.negotiable, mayBeEmpty: true),
      .integer(
        "imaging.maximum_pixels", \.imaging.maximumPixels,
        "pixels of a source, all frames together; beyond it, 422", 1...10_000_000_000),
      .integer(
        "imaging.maximum_result_pixels", \.imaging.maximumResultPixels,
        "pixels of a result; larger ones are scaled down; limitbytes is at most 4 times as many",
        1...1_000_000_000),
      .integer(
        "imaging.maximum_frames", \.imaging.maximumFrames, "frames of a source; beyond it, 422",
        1...100_000),
      .choice(
        "imaging.fail_on", \.imaging.failOn,
        "damage that is 422: warning: any lost pixels, error: a broken structure, truncated: "
          + "an early end, none: only undecodable sources; allowed damage has X-Damaged: 1"),
      .boolean(
        "imaging.avif_later", \.imaging.defersAVIF,
        "whether WebP, JPEG or PNG is served until a negotiated AVIF is encoded"),
      .boolean(
        "imaging.derive", \.imaging.derives,
        "whether a small image may be rendered from a stored larger one if its source is not "
          + "stored"),
    ] + qualityKeys

  /// Qualities and efforts of encoders, for requests that name none.
  private static let qualityKeys: [ConfigurationKey] = [
    .integer(
      "imaging.jpeg_quality", \.imaging.qualities.jpeg, "quality of a JPEG without quality=",
      Transform.qualityRange),
    .integer(
      "imaging.webp_quality", \.imaging.qualities.webp, "quality of a WebP without quality=",
      Transform.qualityRange),
    .integer(
      "imaging.avif_quality", \.imaging.qualities.avif, "quality of an AVIF without quality=",
      Transform.qualityRange),
    .integer(
      "imaging.jxl_quality", \.imaging.qualities.jxl, "quality of a JPEG XL without quality=",
      Transform.qualityRange),
    .integer(
      "imaging.png_effort", \.imaging.efforts.png,
      "zlib's level for PNG; higher: slower, fewer bytes", EncoderEfforts.pngRange),
    .integer(
      "imaging.gif_effort", \.imaging.efforts.gif,
      "libimagequant's effort for GIF; higher: slower, better colours",
      EncoderEfforts.gifRange),
    .integer(
      "imaging.webp_effort", \.imaging.efforts.webp,
      "libwebp's effort; higher: slower, fewer bytes", EncoderEfforts.webpRange),
    .integer(
      "imaging.avif_effort", \.imaging.efforts.avif,
      "libaom's effort, 9 minus its speed; from 4 on an image takes seconds",
      EncoderEfforts.avifRange),
    .integer(
      "imaging.jxl_effort", \.imaging.efforts.jxl,
      "libjxl's effort; higher: slower, fewer bytes", EncoderEfforts.jxlRange),
  ]
}

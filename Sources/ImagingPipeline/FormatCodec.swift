// FormatCodec: the table of what reads, checks and writes each format. The facts that the server
// needs as well are in `ImageFormat`.

import Core

/// A row of the table.
struct FormatCodec {
  typealias Bytes = UnsafeRawBufferPointer

  /// The name of libvips's loader; `nil` for a format that Pictor decodes itself.
  var loader: String?
  /// Why the module of libvips that has the loader and the saver cannot be loaded; `nil` if it is
  /// loaded, or if libvips needs none. The call loads it.
  var failure: () -> ImageError? = { nil }
  /// Rewrites a source that browsers show and its decoder does not; `nil` for nearly all sources.
  var mended: (Bytes) -> [UInt8]? = { _ in nil }
  /// Checks the lengths in the container.
  var checkLengths: (Bytes) throws(ContainerFault) -> Void = { _ in }
  /// Decides whether all pixels are there.
  var soundness: (Bytes) -> Soundness = { _ in .unknown }
  /// Counts the frames of an animation that libvips shows one image of, as readers do that do not
  /// know the animation.
  var undecodedFrames: (Bytes) -> Int = { _ in 1 }
  /// Removes the metadata; `nil` for a file with unknown parts.
  var stripped: (Bytes) -> [UInt8]? = { _ in nil }
  /// The name of libvips's saver; `nil` for a format that is no output, or that Pictor encodes
  /// itself.
  var saver: String?
  /// The saver's arguments.
  var arguments: (_ output: Output, _ quality: Int) -> String = { _, _ in "" }
}

extension ImageFormat {
  /// The format's row.
  var codec: FormatCodec {
    switch self {
    case .jpeg:
      FormatCodec(
        loader: "jpegload", checkLengths: ContainerLengths.checkJPEG,
        soundness: Soundness.ofJPEG, stripped: Stripping.strippedJPEG)
    case .png:
      FormatCodec(
        loader: "pngload", mended: SourceMending.mendedPNG,
        checkLengths: ContainerLengths.checkPNG, soundness: PNGCheck.soundness,
        undecodedFrames: UndecodedAnimation.framesOfPNG, stripped: Stripping.strippedPNG)
    case .gif:
      FormatCodec(
        loader: "gifload", mended: GIFTransparency.mended,
        checkLengths: ContainerLengths.checkGIF, soundness: GIFCheck.soundness, saver: "gifsave",
        arguments: { output, _ in
          "effort=\(output.efforts.gif),dither=\(Output.dither),interlace=\(output.isInterlaced)"
            + (output.paletteBits.map { ",bitdepth=\($0)" } ?? "")
        })
    case .webp:
      FormatCodec(
        loader: "webpload", checkLengths: ContainerLengths.checkWebP,
        stripped: Stripping.strippedWebP, saver: "webpsave",
        arguments: { output, quality in
          output.isLossless
            ? "lossless=true,effort=\(output.efforts.webp)"
            : "Q=\(quality),effort=\(output.efforts.webp)"
        })
    case .tiff:
      FormatCodec(
        loader: "tiffload", checkLengths: TIFF.check, saver: "tiffsave",
        // Deflate takes 5.6 times as long for 9 % fewer bytes (a photograph of 1200×800).
        arguments: { output, _ in
          "compression=" + (output.efforts.png > 0 ? "lzw,predictor=horizontal" : "none")
        })
    case .heic, .avif:
      FormatCodec(
        loader: "heifload", failure: { VipsLibrary.heifFailure }, mended: HEIFMending.mended,
        checkLengths: BoxLengths.check, undecodedFrames: UndecodedAnimation.framesOfHEIF,
        saver: "heifsave",
        arguments: { output, quality in
          "compression=av1,bitdepth=8,effort=\(output.efforts.avif),"
            + (output.isLossless ? "lossless=true,subsample-mode=off" : "Q=\(quality)")
            + (output.chroma == nil || output.isLossless
              ? "" : ",subsample-mode=" + (output.chroma == .full ? "off" : "on"))
        })
    case .svg: FormatCodec(loader: "svgload", mended: VectorText.mended)
    case .jxl:
      FormatCodec(
        loader: "jxlload", failure: { VipsLibrary.jxlFailure },
        // The bare codestream contains no lengths.
        checkLengths: { source throws(ContainerFault) in
          if !source.starts(with: [0xff, 0x0a]) { try BoxLengths.check(source) }
        },
        undecodedFrames: UndecodedAnimation.framesOfJXL, saver: "jxlsave",
        // One effort less takes two fifths of the time for a fifth to a half more bytes. libjxl
        // refuses what libvips asks for below quality 5, and libvips then encodes at libjxl's
        // default.
        arguments: { output, quality in
          output.isLossless ? "lossless=true,effort=3" : "Q=\(max(quality, 5)),effort=5"
        })
    case .jp2: FormatCodec(loader: "jp2kload", checkLengths: ContainerLengths.checkJPEG2000)
    // The readers are Pictor's own and check each access.
    case .bmp, .ico: FormatCodec()
    }
  }
}

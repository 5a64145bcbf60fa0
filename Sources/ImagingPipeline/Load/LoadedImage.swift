// LoadedImage: a source as the loader hands it on.

/// A decoded source, or its first part that is decoded on demand.
struct LoadedImage: ~Copyable {
  /// The pixels; the frames of an animation are stacked vertically.
  let image: Image
  /// The window of the used region in the image, or in each of its frames.
  let window: Window
}

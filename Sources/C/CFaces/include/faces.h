// faces: finds frontal faces in a grey image. No policy.
#pragma once

#ifdef __cplusplus
extern "C" {
#endif

/// The box of a face in pixels. It may exceed the image.
struct pictor_face {
  int x, y, width, height;
};

/// Finds faces, at most `maximum`, the surest first. A face has at least about 70 pixels.
///
/// `grey` has `height` rows of `width` bytes. Returns the number of faces; -1 without memory.
int pictor_find_faces(
    const unsigned char *grey, int width, int height, struct pictor_face *faces, int maximum);

#ifdef __cplusplus
}
#endif

// faces: dlib's detector of frontal faces, histograms of oriented gradients in a pyramid.
//
// Only headers of dlib are used. `model` has the weights of its frontal_face_detector.h unpacked
// (scripts/faces-model): dlib takes half a second for that, and needs its library, which brings
// BLAS, LAPACK and 100 MB of other models along.
#include "faces.h"

#include <dlib/assert.h>
#include <dlib/test_for_odr_violations.h>
// The configuration of Debian's library. Without these, dlib's own code computes.
#undef DLIB_USE_BLAS
#undef DLIB_USE_LAPACK
#include <dlib/image_processing/object_detector.h>
#include <dlib/image_processing/scan_fhog_pyramid.h>

using Scanner = dlib::scan_fhog_pyramid<dlib::pyramid_down<6>>;
using Detector = dlib::object_detector<Scanner>;

alignas(float) static const unsigned char model[] = {
#embed "model"
};

/// The model knows faces that look ahead, to the left, to the right, or are tilted to either side.
static Detector made() {
  Scanner scanner;
  scanner.set_cell_size(8);
  scanner.set_padding(0);
  scanner.set_detection_window_size(80, 80);
  scanner.set_min_pyramid_layer_size(64, 64);
  std::vector<dlib::matrix<double, 0, 1>> views(5);
  const float *weight = reinterpret_cast<const float *>(model);
  for (auto &view : views) {
    view.set_size(sizeof model / sizeof *weight / views.size());
    for (double &value : view) value = *weight++;
  }
  return Detector(scanner, dlib::test_box_overlap(0.330082, 0.788571), views);
}

int pictor_find_faces(
    const unsigned char *grey, int width, int height, pictor_face *faces, int maximum) {
#ifdef __SSE4_1__
  // What the compiler may use for this file; every processor since 2011 has it.
  if (!__builtin_cpu_supports("sse4.1")) return 0;
#endif
  try {
    thread_local Detector detector = made();  // A search changes it.
    dlib::array2d<unsigned char> image(height, width);
    for (int y = 0; y < height; y++) std::copy_n(grey + size_t(y) * width, width, &image[y][0]);
    int count = 0;
    for (const dlib::rectangle &box : detector(image)) {
      if (count == maximum) break;
      faces[count++] = {int(box.left()), int(box.top()), int(box.width()), int(box.height())};
    }
    return count;
  } catch (...) {
    return -1;
  }
}

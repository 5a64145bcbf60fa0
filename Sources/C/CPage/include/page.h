// page: the files of the page at `/`, as parts of the program. No policy.
#pragma once

#include <stddef.h>

/// A file of the page. `name` and `bytes` live as long as the program.
struct pictor_page_file {
  const char *name;
  const unsigned char *bytes;
  size_t count;
};

/// Returns the file at an index, or a file without a name behind the last one.
struct pictor_page_file pictor_page_file(size_t index);

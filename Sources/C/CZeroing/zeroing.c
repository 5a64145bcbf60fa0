// zeroing: the worker's own malloc(3) and its kin, glibc's with all bytes set to 0. The dynamic
// linker prefers a program's symbols to the C library's, so every decoder calls these.
//
// A decoder that leaves pixels unwritten then leaves zeros, and never what an earlier job left in
// that memory. calloc(3) and free(3) stay glibc's.

#define _GNU_SOURCE
#include "zeroing.h"

#include <dlfcn.h>
#include <errno.h>
#include <malloc.h>
#include <string.h>

#if __has_feature(thread_sanitizer) || __has_feature(address_sanitizer)

int pictor_zeroes_memory(void) { return 1; }

#else

int pictor_zeroes_memory(void) { return dlsym(RTLD_DEFAULT, "malloc") == (void *)malloc; }

// glibc's own, under the names that it keeps for programs that replace the public ones.
void *__libc_malloc(size_t size);
void *__libc_realloc(void *memory, size_t size);
void *__libc_memalign(size_t alignment, size_t size);

// Weak, for the test program, which is linked with the worker's parts and has counting ones.
#define WEAK __attribute__((weak))

/// Whether a block is a mapping of its own, which the kernel has zeroed: bit 1 of its size field.
static int is_mapped(const void *memory) { return (((const size_t *)memory)[-1] & 2) != 0; }

/// Zeroes a block from a place on, all its usable bytes: a later realloc may keep it in place.
static void *zeroed(void *memory, size_t from) {
  if (memory == NULL || is_mapped(memory)) return memory;
  size_t size = malloc_usable_size(memory);
  if (from < size) memset((char *)memory + from, 0, size - from);
  return memory;
}

WEAK void *malloc(size_t size) { return zeroed(__libc_malloc(size), 0); }

WEAK void *realloc(void *memory, size_t size) {
  size_t old = memory == NULL ? 0 : malloc_usable_size(memory);
  return zeroed(__libc_realloc(memory, size), old);
}

WEAK void *memalign(size_t alignment, size_t size) {
  return zeroed(__libc_memalign(alignment, size), 0);
}

WEAK void *aligned_alloc(size_t alignment, size_t size) { return memalign(alignment, size); }

WEAK int posix_memalign(void **memory, size_t alignment, size_t size) {
  if (alignment % sizeof(void *) != 0 || (alignment & (alignment - 1)) != 0 || alignment == 0)
    return EINVAL;
  void *found = memalign(alignment, size);
  if (found == NULL) return ENOMEM;
  *memory = found;
  return 0;
}

#endif

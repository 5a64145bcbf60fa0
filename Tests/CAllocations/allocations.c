// allocations: glibc's malloc and its kin for tests, with a count for each calling thread.

#include "allocations.h"

#include <errno.h>
#include <stddef.h>

static __thread long allocations;

long pictor_thread_allocations(void) { return allocations; }

#if __has_feature(thread_sanitizer) || __has_feature(address_sanitizer)

int pictor_counts_allocations(void) { return 0; }

#else

int pictor_counts_allocations(void) { return 1; }

// glibc's own, under the names it keeps for programs that replace the public ones.
void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *memory, size_t size);
void *__libc_memalign(size_t alignment, size_t size);

void *malloc(size_t size) {
  allocations++;
  return __libc_malloc(size);
}

void *calloc(size_t count, size_t size) {
  allocations++;
  return __libc_calloc(count, size);
}

void *realloc(void *memory, size_t size) {
  allocations++;
  return __libc_realloc(memory, size);
}

void *memalign(size_t alignment, size_t size) {
  allocations++;
  return __libc_memalign(alignment, size);
}

void *aligned_alloc(size_t alignment, size_t size) { return memalign(alignment, size); }

int posix_memalign(void **memory, size_t alignment, size_t size) {
  if (alignment % sizeof(void *) != 0 || (alignment & (alignment - 1)) != 0) return EINVAL;
  void *found = memalign(alignment, size);
  if (found == NULL) return ENOMEM;
  *memory = found;
  return 0;
}

#endif

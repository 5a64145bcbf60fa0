// The parser of replies of hiredis, with a bound for the elements of one reply.

#pragma once

#include <hiredis/hiredis.h>
#include <stdlib.h>

typedef struct {
  redisReader *reader;
  redisReplyObjectFunctions limited;
  const redisReplyObjectFunctions *original;
  int limit;
  int left;
} pictor_redis_reader;

// The counts of elements in version 1, and before.
#if HIREDIS_MAJOR >= 1
typedef size_t pictor_redis_count;
#else
typedef int pictor_redis_count;
#endif

// Refuses an array beyond the limits of elements, nested ones counted together: hiredis allocates
// an array at its head, before its elements arrive.
static inline void *pictor_redis_array(const redisReadTask *task, pictor_redis_count elements) {
  pictor_redis_reader *own = task->privdata;
  if (task->parent == NULL) own->left = own->limit;
  // Replies are copied and freed recursively. Before version 1 the parser nests at most seven.
  int depth = 0;
  for (const redisReadTask *above = task->parent; above != NULL; above = above->parent) depth++;
  if (depth > 7) return NULL;
  if (elements > (pictor_redis_count)own->left) return NULL;
  own->left -= (int)elements;
  return own->original->createArray(task, elements);
}

static inline pictor_redis_reader *pictor_redis_reader_new(int elements) {
  pictor_redis_reader *own = calloc(1, sizeof *own);
  if (own == NULL) return NULL;
  own->reader = redisReaderCreate();
  if (own->reader == NULL) {
    free(own);
    return NULL;
  }
  own->limit = elements;
  own->original = own->reader->fn;
  own->limited = *own->reader->fn;
  own->limited.createArray = pictor_redis_array;
  own->reader->fn = &own->limited;
  own->reader->privdata = own;
  return own;
}

static inline void pictor_redis_reader_free(pictor_redis_reader *own) {
  redisReaderFree(own->reader);
  free(own);
}

// Sets `reply` to the next complete reply, or to NULL.
static inline int pictor_redis_next(pictor_redis_reader *own, redisReply **reply) {
  void *object = NULL;
  int status = redisReaderGetReply(own->reader, &object);
  *reply = object;
  return status;
}

static inline const char *pictor_redis_error(const pictor_redis_reader *own) {
  return own->reader->errstr;
}

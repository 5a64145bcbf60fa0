// What Swift cannot call of curl/curl.h by itself, and of memory files: one call a function, no policy.
#pragma once

#include <curl/curl.h>
#include <fcntl.h>
#include <linux/memfd.h>

static inline CURLcode pictor_curl_set_long(CURL *handle, CURLoption option, long value) {
  return curl_easy_setopt(handle, option, value);
}

static inline CURLcode pictor_curl_set_string(CURL *handle, CURLoption option, const char *value) {
  return curl_easy_setopt(handle, option, value);
}

static inline CURLcode pictor_curl_set_pointer(CURL *handle, CURLoption option, void *value) {
  return curl_easy_setopt(handle, option, value);
}

static inline CURLcode pictor_curl_set_write_function(
    CURL *handle, CURLoption option, curl_write_callback function) {
  return curl_easy_setopt(handle, option, function);
}

static inline CURLcode pictor_curl_set_open_socket_function(
    CURL *handle, curl_opensocket_callback function) {
  return curl_easy_setopt(handle, CURLOPT_OPENSOCKETFUNCTION, function);
}

static inline CURLcode pictor_curl_get_long(CURL *handle, CURLINFO info, long *value) {
  return curl_easy_getinfo(handle, info, value);
}

static inline CURLcode pictor_curl_get_offset(CURL *handle, CURLINFO info, curl_off_t *value) {
  return curl_easy_getinfo(handle, info, value);
}

static inline CURLcode pictor_curl_get_string(CURL *handle, CURLINFO info, char **value) {
  return curl_easy_getinfo(handle, info, value);
}

static inline CURLMcode pictor_curl_multi_set_long(CURLM *multi, CURLMoption option, long value) {
  return curl_multi_setopt(multi, option, value);
}

// glibc declares memory files with _GNU_SOURCE alone, which Swift's Glibc is imported without. The numbers are those
// of the kernel's include/uapi/linux/fcntl.h, which cannot be included beside glibc's fcntl.h.
int memfd_create(const char *name, unsigned int flags);

/// memfd_create(2), close-on-exec, sealable.
static inline int pictor_curl_memory_file(const char *name) {
  return memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
}

/// fcntl(2), F_ADD_SEALS: no shrinking, growing, writing or further sealing.
static inline int pictor_curl_seal_memory_file(int descriptor) {
  return fcntl(descriptor, 1033, 0x0001 | 0x0002 | 0x0004 | 0x0008);
}

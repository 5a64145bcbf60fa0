// CCurl: the variadic functions of curl/curl.h, which Swift cannot call. One call a function, no
// policy.
#pragma once

#include <curl/curl.h>

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

static inline CURLcode pictor_curl_set_prereq_function(CURL *handle, curl_prereq_callback function) {
  return curl_easy_setopt(handle, CURLOPT_PREREQFUNCTION, function);
}

static inline CURLcode pictor_curl_get_long(CURL *handle, CURLINFO info, long *value) {
  return curl_easy_getinfo(handle, info, value);
}

static inline CURLcode pictor_curl_get_offset(CURL *handle, CURLINFO info, curl_off_t *value) {
  return curl_easy_getinfo(handle, info, value);
}

static inline CURLcode pictor_curl_get_list(
    CURL *handle, CURLINFO info, struct curl_slist **value) {
  return curl_easy_getinfo(handle, info, value);
}

static inline CURLSHcode pictor_curl_share_data(CURLSH *share, curl_lock_data data) {
  return curl_share_setopt(share, CURLSHOPT_SHARE, data);
}

static inline CURLMcode pictor_curl_multi_set_long(CURLM *multi, CURLMoption option, long value) {
  return curl_multi_setopt(multi, option, value);
}

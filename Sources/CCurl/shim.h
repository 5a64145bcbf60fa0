// What Swift cannot call of curl/curl.h by itself: one call a function, no policy.
#pragma once

#include <curl/curl.h>

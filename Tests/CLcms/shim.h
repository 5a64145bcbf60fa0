// littleCMS, which libvips uses too: tests call it as the reference for colours.
#pragma once

#include <lcms2.h>

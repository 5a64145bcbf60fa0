// littleCMS, which libvips uses too: tests call it by themselves, as the reference that colours are held to.
#pragma once

#include <lcms2.h>

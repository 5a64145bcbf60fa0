// zeroing: memory that holds nothing of an earlier job.
#pragma once

/// Whether the shared libraries of this process call the malloc(3) of this file. A sanitizer's
/// build has one of its own, and counts as one that does.
int pictor_zeroes_memory(void);

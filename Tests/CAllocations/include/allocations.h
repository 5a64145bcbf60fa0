// How often a thread takes memory from malloc, for tests that hold a budget.
#pragma once

/// Whether anything is counted: under a sanitizer malloc is the sanitizer's own.
int pictor_counts_allocations(void);

/// Calls of malloc and its kin on this thread so far. Freeing does not count.
long pictor_thread_allocations(void);

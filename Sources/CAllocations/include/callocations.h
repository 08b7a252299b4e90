#ifndef CALLOCATIONS_H
#define CALLOCATIONS_H

/// The number of allocations in this process, by any thread: malloc, calloc, realloc and their aligned variants.
unsigned long callocations_count(void);

#endif

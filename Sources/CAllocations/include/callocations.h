#ifndef CALLOCATIONS_H
#define CALLOCATIONS_H

/// How often memory was asked for in this process, by any thread: malloc, calloc, realloc and their aligned kin.
unsigned long callocations_count(void);

#endif

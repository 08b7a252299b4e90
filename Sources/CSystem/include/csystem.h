// What Swift cannot import from glibc: GNU-only calls and function-like macros.
#ifndef CSYSTEM_H
#define CSYSTEM_H

#include <features.h>
#include <sys/types.h>
#include <sys/select.h>

/// Accepts a connection; the new descriptor is non-blocking and close-on-exec. Answers -1 and sets errno on failure.
int csystem_accept(int listener, void *address, unsigned int *length);

/// Makes a non-blocking, close-on-exec eventfd. Answers -1 and sets errno on failure.
int csystem_eventfd(void);

#endif

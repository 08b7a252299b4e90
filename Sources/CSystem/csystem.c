#define _GNU_SOURCE
#include <sys/eventfd.h>
#include <sys/socket.h>

#include "csystem.h"

int csystem_accept(int listener, void *address, unsigned int *length) {
    return accept4(listener, address, length, SOCK_NONBLOCK | SOCK_CLOEXEC);
}

int csystem_eventfd(void) { return eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC); }

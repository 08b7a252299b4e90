#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include "csystem.h"

static __thread void *current_loop;

int csystem_accept(int listener, void *address, unsigned int *length) {
    return accept4(listener, address, length, SOCK_NONBLOCK | SOCK_CLOEXEC);
}

int csystem_eventfd(void) { return eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC); }

void *csystem_current_loop(void) { return current_loop; }

void csystem_set_current_loop(void *loop) { current_loop = loop; }

void csystem_name_thread(const char *name) {
    char kept[16];
    strncpy(kept, name, sizeof kept - 1);
    kept[sizeof kept - 1] = 0;
    pthread_setname_np(pthread_self(), kept);
}

void csystem_ignore_sigpipe(void) { signal(SIGPIPE, SIG_IGN); }

#define TEXT_OF(token) #token
#define TEXT(macro) TEXT_OF(macro)

const char *csystem_commit(void) { return TEXT(HTTPWARE_COMMIT); }

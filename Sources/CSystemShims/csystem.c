#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdint.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "csystem.h"

static __thread void *current_loop;

int csystem_accept(int listener, void *address, unsigned int *length) {
    return accept4(listener, address, length, SOCK_NONBLOCK | SOCK_CLOEXEC);
}

int csystem_spawn_close_from(void *actions, int first) {
    return posix_spawn_file_actions_addclosefrom_np(actions, first);
}

int csystem_spawn_change_folder(void *actions, const char *path) {
    return posix_spawn_file_actions_addchdir_np(actions, path);
}

// The number of pidfd_open(2) is the same for all architectures.
int csystem_process_descriptor(int process) { return (int)syscall(434, process, 0); }

int csystem_eventfd(void) { return eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC); }

int csystem_epoll(void) { return epoll_create1(EPOLL_CLOEXEC); }

int csystem_epoll_add(int epoll, int descriptor, void *tag) {
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = tag};
    return epoll_ctl(epoll, EPOLL_CTL_ADD, descriptor, &event);
}

int csystem_epoll_remove(int epoll, int descriptor) { return epoll_ctl(epoll, EPOLL_CTL_DEL, descriptor, NULL); }

int csystem_epoll_take(int epoll, void **tags, int most) {
    struct epoll_event events[64];
    int count = epoll_wait(epoll, events, most < 64 ? most : 64, 0);
    for (int index = 0; index < count; index++) tags[index] = events[index].data.ptr;
    return count;
}

void *csystem_current_loop(void) { return current_loop; }

void csystem_set_current_loop(void *loop) { current_loop = loop; }

void csystem_name_thread(const char *name) {
    char kept[16];
    strncpy(kept, name, sizeof kept - 1);
    kept[sizeof kept - 1] = 0;
    pthread_setname_np(pthread_self(), kept);
}

void csystem_ignore_sigpipe(void) { signal(SIGPIPE, SIG_IGN); }

int csystem_pipe(int *ends, int size) {
    if (pipe2(ends, O_NONBLOCK | O_CLOEXEC) != 0) return -1;
    int given = fcntl(ends[1], F_SETPIPE_SZ, size);
    return given >= 0 ? given : fcntl(ends[1], F_GETPIPE_SZ);
}

int csystem_blocking_pipe(int *ends) { return pipe2(ends, O_CLOEXEC); }

long csystem_splice(int from, int to, unsigned long count) {
    return splice(from, NULL, to, NULL, count, SPLICE_F_MOVE | SPLICE_F_NONBLOCK);
}

long csystem_splice_memory(int pipe, const void *bytes, unsigned long count) {
    struct iovec piece = {(void *)bytes, count};
    return vmsplice(pipe, &piece, 1, SPLICE_F_NONBLOCK);
}

// The same as in <linux/openat2.h> and <linux/mman.h>, which some build systems are too old to have. The numbers of the
// calls are the same for all architectures.
struct open_how_of_linux {
    uint64_t flags, mode, resolve;
};
enum { OPENAT2 = 437, CACHESTAT = 451, NO_MAGICLINKS = 0x02, BENEATH = 0x08, CACHED = 0x20 };

int csystem_open_beneath(int folder, const char *path, int flags, int cached) {
    struct open_how_of_linux how = {
        .flags = (uint64_t)flags, .resolve = BENEATH | NO_MAGICLINKS | (cached ? CACHED : 0)};
    return (int)syscall(OPENAT2, folder, path, &how, sizeof how);
}

int csystem_path_only(void) { return O_PATH; }

int csystem_no_follow(void) { return O_NOFOLLOW; }

long csystem_read_cached(int file, void *buffer, unsigned long count, long offset) {
    struct iovec piece = {buffer, count};
    return preadv2(file, &piece, 1, offset, RWF_NOWAIT);
}

long csystem_cached_pages(int file, long offset, long count) {
    struct {
        uint64_t offset, length;
    } range = {(uint64_t)offset, (uint64_t)count};
    struct {
        uint64_t cached, dirty, written, evicted, evicted_lately;
    } pages = {0};
    return syscall(CACHESTAT, file, &range, &pages, 0) == 0 ? (long)pages.cached : -1;
}

int csystem_is_in_memory(int file) {
    struct statfs system;
    return fstatfs(file, &system) == 0 && (system.f_type == 0x01021994 || (unsigned)system.f_type == 0x858458f6u);
}

long csystem_send_file(int socket, int file, long offset, unsigned long count) {
    off_t place = offset;
    return sendfile(socket, file, &place, count);
}

long csystem_receive(int descriptor, void *buffer, unsigned long count) {
    return syscall(SYS_recvfrom, descriptor, buffer, count, 0, NULL, NULL);
}

long csystem_send(int descriptor, const void *bytes, unsigned long count) {
    return syscall(SYS_sendto, descriptor, bytes, count, 0, NULL, 0);
}

// The program links the one of CBuildCommit in its place.
__attribute__((weak)) const char *csystem_commit(void) { return "unknown"; }

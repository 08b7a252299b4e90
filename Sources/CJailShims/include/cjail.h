// Starts a program in a network namespace of its own, and receives DNS queries with the address that they were sent to.
#ifndef CJAIL_H
#define CJAIL_H

#include <features.h>
#include <sys/types.h>
#include <sys/select.h>

#include <netinet/in.h>

/// The steps of a start, to name the one that failed.
enum cjail_step {
    CJAIL_FORK = 1,
    CJAIL_NAMESPACES = 2,
    CJAIL_USERS = 3,
    CJAIL_ROUTES = 4,
    CJAIL_LISTEN = 5,
    CJAIL_PASS = 6,
    CJAIL_RUN = 7,
    CJAIL_FAMILIES = 8,
};

/// The most listeners of one start: one message passes as many descriptors (SCM_MAX_FD).
#define CJAIL_MOST 250

/// A listener inside: TCP, or UDP if `is_datagram`; at every address, or only at the loopback.
struct cjail_listener {
    unsigned short port;
    unsigned char is_datagram;
    /// 0 for every address, 4 for 127.0.0.1, 6 for ::1
    unsigned char loopback;
};

/// What is started. All of it is read before `cjail_start` returns, or by the child in its own memory.
struct cjail_order {
    /// The command, found by PATH, and its environment; both end with null.
    char *const *arguments;
    char *const *variables;
    /// The signal mask of the program: a `sigset_t`.
    const void *mask;
    /// Messages of netlink, one after another; each asks for an answer.
    const void *messages;
    size_t messages_count;
    const struct cjail_listener *listeners;
    int listeners_count;
};

/// A start: the child, which waits, and the channel to it.
struct cjail_child {
    pid_t process;
    int channel;
    /// On failure: the step, and errno.
    int step;
    int error;
    /// The descriptors of the listeners, as ordered, non-blocking and close-on-exec.
    int descriptors[CJAIL_MOST];
};

/// Makes a child in new user and network namespaces, with the routes and listeners of the order. The child waits for `cjail_release`, and ends if
/// the channel is closed. Returns 0, or -1 with `step` and `error`; then no child and no descriptor is left.
int cjail_start(const struct cjail_order *order, struct cjail_child *child);

/// Lets the child run its program, and closes the channel. Returns 0, or the errno with which the program could not be run; the child then
/// ends.
int cjail_release(struct cjail_child *child);

/// Receives one datagram, with its sender and the address that it was sent to. Returns its length, or -1 and errno.
ssize_t cjail_receive(int descriptor, void *buffer, size_t count, struct sockaddr_in6 *from, struct in6_addr *to);

/// Sends one datagram, from the address that its question was sent to. Returns its length, or -1 and errno.
ssize_t cjail_send(
    int descriptor, const void *bytes, size_t count, const struct sockaddr_in6 *to, const struct in6_addr *from);

#endif

#define _GNU_SOURCE
#include "cjail.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/netlink.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

// After the fork, the child makes system calls only: another thread may have held a lock of the C library.

// What the child says: a step with an error, or that the step is done.
struct note {
    int step;
    int error;
};

static int read_whole(int channel, void *buffer, size_t count) {
    size_t done = 0;
    while (done < count) {
        ssize_t some = read(channel, (char *)buffer + done, count - done);
        if (some < 0 && errno == EINTR) continue;
        if (some <= 0) return -1;
        done += (size_t)some;
    }
    return 0;
}

// MARK: The child

static void say(int channel, int step, int error) {
    struct note note = {step, error};
    while (send(channel, &note, sizeof note, MSG_NOSIGNAL) < 0 && errno == EINTR) {}
}

static void fail(int channel, int step) __attribute__((noreturn));
static void fail(int channel, int step) {
    say(channel, step, errno != 0 ? errno : EIO);
    _exit(127);
}

// Sends each message to the kernel and awaits its answer. That an address or a route exists already is no error.
static int change_routes(const char *messages, size_t count) {
    int socket_ = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
    if (socket_ < 0) return -1;
    struct sockaddr_nl kernel = {.nl_family = AF_NETLINK};
    size_t place = 0;
    while (count - place >= sizeof(struct nlmsghdr)) {
        struct nlmsghdr head;
        memcpy(&head, messages + place, sizeof head);
        if (head.nlmsg_len < sizeof head || NLMSG_ALIGN(head.nlmsg_len) > count - place) break;
        if (sendto(socket_, messages + place, head.nlmsg_len, 0, (struct sockaddr *)&kernel, sizeof kernel) < 0) {
            return -1;
        }
        struct {
            struct nlmsghdr head;
            struct nlmsgerr error;
            char rest[1024];
        } answer;
        ssize_t length;
        do length = recv(socket_, &answer, sizeof answer, 0);
        while (length < 0 && errno == EINTR);
        if (length < (ssize_t)(sizeof answer.head + sizeof answer.error.error)) return -1;
        int error = answer.head.nlmsg_type == NLMSG_ERROR ? -answer.error.error : EBADMSG;
        // The first byte behind the head is the family. Where the kernel has no IPv6, nothing can use it either.
        int is_optional = head.nlmsg_len > sizeof head && messages[place + sizeof head] == AF_INET6;
        if (error != 0 && error != EEXIST && !is_optional) {
            errno = error;
            return -1;
        }
        place += NLMSG_ALIGN(head.nlmsg_len);
    }
    close(socket_);
    return 0;
}

static int on(int socket_, int level, int option) {
    int one = 1;
    return setsockopt(socket_, level, option, &one, sizeof one);
}

enum { FREEBIND6 = 78 };

// A listener at every address of both families, or at one of the loopback.
static int listener(const struct cjail_listener *wanted) {
    int type = (wanted->is_datagram ? SOCK_DGRAM : SOCK_STREAM) | SOCK_NONBLOCK | SOCK_CLOEXEC;
    struct sockaddr_in6 six = {.sin6_family = AF_INET6, .sin6_port = htons(wanted->port)};
    struct sockaddr_in four = {.sin_family = AF_INET, .sin_port = htons(wanted->port)};
    int is_four = wanted->loopback == 4;
    int made = is_four ? -1 : socket(AF_INET6, type, 0);
    if (made < 0) {
        is_four = 1;
        made = socket(AF_INET, type, 0);
        if (made < 0) return -1;
    }
    if (wanted->loopback == 6) six.sin6_addr = in6addr_loopback;
    if (wanted->loopback != 0) four.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int zero = 0;
    if (!is_four && wanted->loopback == 0) setsockopt(made, IPPROTO_IPV6, IPV6_V6ONLY, &zero, sizeof zero);
    if (!is_four && wanted->loopback == 6) on(made, IPPROTO_IPV6, IPV6_V6ONLY);
    on(made, SOL_SOCKET, SO_REUSEADDR);
    if (wanted->is_datagram) {
        // The answer must come from the address of the question.
        if (is_four) {
            on(made, IPPROTO_IP, IP_PKTINFO);
        } else {
            on(made, IPPROTO_IPV6, IPV6_RECVPKTINFO);
            on(made, IPPROTO_IPV6, FREEBIND6);
        }
        on(made, IPPROTO_IP, IP_FREEBIND);
    }
    int bound =
        is_four ? bind(made, (struct sockaddr *)&four, sizeof four) : bind(made, (struct sockaddr *)&six, sizeof six);
    // Without IPv6 in this namespace, ::1 does not exist, and nothing can connect to it.
    if (bound != 0 && wanted->loopback == 6 && errno == EADDRNOTAVAIL) return made;
    if (bound != 0 || (!wanted->is_datagram && listen(made, 4096) != 0)) {
        int error = errno;
        close(made);
        errno = error;
        return -1;
    }
    return made;
}

static int pass(int channel, const int *descriptors, int count) {
    struct note note = {CJAIL_PASS, 0};
    struct iovec piece = {&note, sizeof note};
    union {
        struct cmsghdr head;
        char room[CMSG_SPACE(sizeof(int) * CJAIL_MOST)];
    } control;
    memset(&control, 0, sizeof control);
    struct msghdr message = {.msg_iov = &piece, .msg_iovlen = 1};
    if (count > 0) {
        message.msg_control = &control;
        message.msg_controllen = CMSG_SPACE(sizeof(int) * (size_t)count);
        struct cmsghdr *head = CMSG_FIRSTHDR(&message);
        head->cmsg_level = SOL_SOCKET;
        head->cmsg_type = SCM_RIGHTS;
        head->cmsg_len = CMSG_LEN(sizeof(int) * (size_t)count);
        memcpy(CMSG_DATA(head), descriptors, sizeof(int) * (size_t)count);
    }
    return sendmsg(channel, &message, MSG_NOSIGNAL) < 0 ? -1 : 0;
}

// close_range(2), or one by one where the kernel lacks it.
static void close_between(unsigned first, unsigned last) {
    if (first > last || syscall(436, first, last, 0) == 0) return;
    long most = sysconf(_SC_OPEN_MAX);
    if (most < 0 || most > 1048576) most = 1048576;
    for (unsigned number = first; number <= last && number < (unsigned)most; number++) close((int)number);
}

// The program could otherwise change the routes, or see packets, if it is root inside. It could reach nothing by that, but the wall is to stay.
static void drop_network_rights(void) {
    prctl(PR_CAPBSET_DROP, CAP_NET_ADMIN, 0, 0, 0);
    prctl(PR_CAPBSET_DROP, CAP_NET_RAW, 0, 0, 0);
}

// The architectures whose calls the kernel takes from this process, and how each numbers socket(2). An older call for all sockets,
// socketcall(2), cannot be judged, because its arguments are in memory.
#if defined(__x86_64__)
#define NATIVE AUDIT_ARCH_X86_64
#define OTHER AUDIT_ARCH_I386
enum { OTHER_SOCKET = 359, OTHER_SOCKETCALL = 102, OTHER_IOCTL = 54 };
#elif defined(__aarch64__)
#define NATIVE AUDIT_ARCH_AARCH64
#define OTHER AUDIT_ARCH_ARM
enum { OTHER_SOCKET = 281, OTHER_SOCKETCALL = 102, OTHER_IOCTL = 54 };
#else
#error "how does this architecture number socket(2)?"
#endif
// The calls of x32 are those of x86-64 with this bit; no other call has it.
enum { FOREIGN_BIT = 0x40000000 };

enum { IO_URING_SETUP = 425 };

#define LOAD(member) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, member))
#define IF(value, yes, no) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, yes, no)
#define ANSWER(value) BPF_STMT(BPF_RET | BPF_K, value)

// A network namespace holds only some families of sockets. Those of virtual machines (AF_VSOCK), for one, reach the host from any of them. So only
// the families that it holds can be used; io_uring, which makes sockets without the call, cannot. The program shares the terminal of the user's
// shell, so it must not type into it: TIOCSTI and TIOCLINUX are refused.
static int allow_families(void) {
    struct sock_filter code[] = {
        LOAD(arch),  // 0
        IF(NATIVE, 0, 6),  // 1: else 8
        LOAD(nr),  // 2
        BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, FOREIGN_BIT, 20, 0),  // 3: 24
        IF(IO_URING_SETUP, 19, 0),  // 4: 24
        IF(SYS_socket, 8, 0),  // 5: 14
        IF(SYS_ioctl, 12, 0),  // 6: 19
        ANSWER(SECCOMP_RET_ALLOW),  // 7
        IF(OTHER, 0, 15),  // 8: else 24
        LOAD(nr),  // 9
        IF(IO_URING_SETUP, 13, 0),  // 10: 24
        IF(OTHER_SOCKETCALL, 12, 0),  // 11: 24
        IF(OTHER_IOCTL, 6, 0),  // 12: 19
        IF(OTHER_SOCKET, 0, 8),  // 13: else 22
        LOAD(args[0]),  // 14
        IF(AF_UNIX, 6, 0),  // 15: 22
        IF(AF_INET, 5, 0),  // 16: 22
        IF(AF_INET6, 4, 0),  // 17: 22
        IF(AF_NETLINK, 3, 4),  // 18: 22, else 23
        LOAD(args[1]),  // 19
        IF(TIOCSTI, 4, 0),  // 20: 25
        IF(TIOCLINUX, 3, 0),  // 21: 25
        ANSWER(SECCOMP_RET_ALLOW),  // 22
        ANSWER(SECCOMP_RET_ERRNO | EAFNOSUPPORT),  // 23
        ANSWER(SECCOMP_RET_ERRNO | ENOSYS),  // 24
        ANSWER(SECCOMP_RET_ERRNO | EPERM),  // 25
    };
    struct sock_fprog program = {sizeof code / sizeof code[0], code};
    return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0);
}

static void run_child(const struct cjail_order *order, int channel) __attribute__((noreturn));
static void run_child(const struct cjail_order *order, int channel) {
    char word;
    int descriptors[CJAIL_MOST];
    errno = 0;
    if (syscall(SYS_unshare, CLONE_NEWUSER | CLONE_NEWNET) != 0) fail(channel, CJAIL_NAMESPACES);
    say(channel, CJAIL_NAMESPACES, 0);
    if (read_whole(channel, &word, 1) != 0) _exit(127);
    if (change_routes(order->messages, order->messages_count) != 0) fail(channel, CJAIL_ROUTES);
    for (int index = 0; index < order->listeners_count; index++) {
        descriptors[index] = listener(&order->listeners[index]);
        if (descriptors[index] < 0) fail(channel, CJAIL_LISTEN);
    }
    if (allow_families() != 0) fail(channel, CJAIL_FAMILIES);
    if (pass(channel, descriptors, order->listeners_count) != 0) fail(channel, CJAIL_PASS);
    for (int index = 0; index < order->listeners_count; index++) close(descriptors[index]);
    // The parent may have ended, and with it everything that the program could reach.
    if (read_whole(channel, &word, 1) != 0) _exit(127);
    drop_network_rights();
    signal(SIGPIPE, SIG_DFL);
    sigprocmask(SIG_SETMASK, order->mask, NULL);
    close_between(3, (unsigned)channel - 1);
    close_between((unsigned)channel + 1, ~0U);
    execvpe(order->arguments[0], order->arguments, order->variables);
    fail(channel, CJAIL_RUN);
}

// MARK: The parent

static int write_file(pid_t process, const char *name, const char *text) {
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/%s", (int)process, name);
    int file = open(path, O_WRONLY | O_CLOEXEC);
    if (file < 0) return -1;
    size_t count = strlen(text);
    ssize_t written = write(file, text, count);
    int error = errno;
    close(file);
    errno = error;
    return written == (ssize_t)count ? 0 : -1;
}

// A map in which everybody that this process knows is the same inside.
static int same_for_all(const char *name, char *text, size_t room) {
    char path[32];
    snprintf(path, sizeof path, "/proc/self/%s", name);
    FILE *file = fopen(path, "re");
    if (file == NULL) return -1;
    unsigned long inside, outside, count;
    size_t length = 0;
    while (length + 64 < room && fscanf(file, "%lu %lu %lu", &inside, &outside, &count) == 3) {
        length += (size_t)snprintf(text + length, room - length, "%lu %lu %lu\n", inside, inside, count);
    }
    fclose(file);
    return length > 0 ? 0 : -1;
}

static int write_map(pid_t process, const char *name, unsigned id) {
    char text[1024];
    if (geteuid() == 0 && same_for_all(name, text, sizeof text) == 0 && write_file(process, name, text) == 0) return 0;
    snprintf(text, sizeof text, "%u %u 1\n", id, id);
    return write_file(process, name, text);
}

// The user is itself inside. Root knows everybody, so that programs can drop its rights; others know nobody else, and no groups.
static int map_users(pid_t process) {
    if (geteuid() != 0 && write_file(process, "setgroups", "deny") != 0) return -1;
    return write_map(process, "uid_map", geteuid()) != 0 || write_map(process, "gid_map", getegid()) != 0 ? -1 : 0;
}

static int give_up(struct cjail_child *child, int step, int error) {
    if (child->channel >= 0) close(child->channel);
    if (child->process > 0) {
        kill(child->process, SIGKILL);
        while (waitpid(child->process, NULL, 0) < 0 && errno == EINTR) {}
    }
    child->channel = -1;
    child->step = step;
    child->error = error;
    return -1;
}

// Reads what the child says, with the descriptors that it passes. Returns 0 if the step is done.
static int hear(struct cjail_child *child, int step, int count) {
    struct note note;
    struct iovec piece = {&note, sizeof note};
    union {
        struct cmsghdr head;
        char room[CMSG_SPACE(sizeof(int) * CJAIL_MOST)];
    } control;
    struct msghdr message = {
        .msg_iov = &piece, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control};
    ssize_t length;
    do length = recvmsg(child->channel, &message, MSG_CMSG_CLOEXEC);
    while (length < 0 && errno == EINTR);
    int given = 0;
    struct cmsghdr *head = length > 0 ? CMSG_FIRSTHDR(&message) : NULL;
    if (head != NULL && head->cmsg_level == SOL_SOCKET && head->cmsg_type == SCM_RIGHTS) {
        given = (int)((head->cmsg_len - CMSG_LEN(0)) / sizeof(int));
        memcpy(child->descriptors, CMSG_DATA(head), sizeof(int) * (size_t)given);
    }
    int error = 0;
    if (length != sizeof note) error = length < 0 ? errno : ECHILD;
    else if (note.error != 0 || note.step != step) error = note.error != 0 ? note.error : EPROTO;
    // A full table of descriptors cuts the list short.
    else if (given != count) error = EMFILE;
    if (error == 0) return 0;
    for (int index = 0; index < given; index++) close(child->descriptors[index]);
    return give_up(child, length == sizeof note && note.error != 0 ? note.step : step, error);
}

int cjail_start(const struct cjail_order *order, struct cjail_child *child) {
    child->process = 0;
    child->channel = -1;
    int ends[2];
    if (order->listeners_count > CJAIL_MOST) return give_up(child, CJAIL_LISTEN, E2BIG);
    // Packets, so that each note arrives whole; the end of the other side is seen, too.
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) return give_up(child, CJAIL_FORK, errno);
    child->channel = ends[0];
    pid_t process = fork();
    if (process == 0) {
        close(ends[0]);
        run_child(order, ends[1]);
    }
    int error = errno;
    close(ends[1]);
    if (process < 0) return give_up(child, CJAIL_FORK, error);
    child->process = process;
    if (hear(child, CJAIL_NAMESPACES, 0) != 0) return -1;
    if (map_users(process) != 0) return give_up(child, CJAIL_USERS, errno);
    if (send(child->channel, "m", 1, MSG_NOSIGNAL) != 1) return give_up(child, CJAIL_USERS, errno);
    return hear(child, CJAIL_PASS, order->listeners_count);
}

int cjail_release(struct cjail_child *child) {
    struct note note = {CJAIL_RUN, 0};
    int error = 0;
    if (send(child->channel, "g", 1, MSG_NOSIGNAL) != 1) error = errno;
    // The channel closes with the start of the program. Otherwise the child says why there is none.
    ssize_t length;
    do length = error == 0 ? recv(child->channel, &note, sizeof note, 0) : 0;
    while (length < 0 && errno == EINTR);
    if (length == sizeof note) error = note.error;
    close(child->channel);
    child->channel = -1;
    return error;
}

// MARK: Datagrams

ssize_t cjail_receive(int descriptor, void *buffer, size_t count, struct sockaddr_in6 *from, struct in6_addr *to) {
    struct iovec piece = {buffer, count};
    union {
        struct cmsghdr head;
        char room[256];
    } control;
    memset(from, 0, sizeof *from);
    memset(to, 0, sizeof *to);
    struct msghdr message = {.msg_name = from,
        .msg_namelen = sizeof *from,
        .msg_iov = &piece,
        .msg_iovlen = 1,
        .msg_control = &control,
        .msg_controllen = sizeof control};
    ssize_t length = recvmsg(descriptor, &message, 0);
    if (length < 0) return -1;
    for (struct cmsghdr *head = CMSG_FIRSTHDR(&message); head != NULL; head = CMSG_NXTHDR(&message, head)) {
        if (head->cmsg_level == IPPROTO_IPV6 && head->cmsg_type == IPV6_PKTINFO) {
            struct in6_pktinfo info;
            memcpy(&info, CMSG_DATA(head), sizeof info);
            *to = info.ipi6_addr;
        } else if (head->cmsg_level == IPPROTO_IP && head->cmsg_type == IP_PKTINFO) {
            struct in_pktinfo info;
            memcpy(&info, CMSG_DATA(head), sizeof info);
            to->s6_addr[10] = to->s6_addr[11] = 0xff;
            memcpy(&to->s6_addr[12], &info.ipi_addr, 4);
        }
    }
    return length;
}

ssize_t cjail_send(
    int descriptor, const void *bytes, size_t count, const struct sockaddr_in6 *to, const struct in6_addr *from) {
    struct iovec piece = {(void *)bytes, count};
    union {
        struct cmsghdr head;
        char room[256];
    } control;
    memset(&control, 0, sizeof control);
    struct msghdr message = {.msg_name = (void *)to,
        .msg_namelen = to->sin6_family == AF_INET ? sizeof(struct sockaddr_in) : sizeof *to,
        .msg_iov = &piece,
        .msg_iovlen = 1,
        .msg_control = &control,
        .msg_controllen = sizeof control};
    struct cmsghdr *head = CMSG_FIRSTHDR(&message);
    if (to->sin6_family == AF_INET) {
        struct in_pktinfo info = {0};
        memcpy(&info.ipi_spec_dst, &from->s6_addr[12], 4);
        head->cmsg_level = IPPROTO_IP;
        head->cmsg_type = IP_PKTINFO;
        head->cmsg_len = CMSG_LEN(sizeof info);
        memcpy(CMSG_DATA(head), &info, sizeof info);
        message.msg_controllen = CMSG_SPACE(sizeof info);
    } else {
        struct in6_pktinfo info = {.ipi6_addr = *from};
        head->cmsg_level = IPPROTO_IPV6;
        head->cmsg_type = IPV6_PKTINFO;
        head->cmsg_len = CMSG_LEN(sizeof info);
        memcpy(CMSG_DATA(head), &info, sizeof info);
        message.msg_controllen = CMSG_SPACE(sizeof info);
    }
    return sendmsg(descriptor, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
}

// What Swift cannot import from glibc: GNU-only calls, thread-local variables and function-like macros.
#ifndef CSYSTEM_H
#define CSYSTEM_H

#include <features.h>
#include <sys/types.h>
#include <sys/select.h>

/// Accepts a connection; the new descriptor is non-blocking and close-on-exec. Answers -1 and sets errno on failure.
int csystem_accept(int listener, void *address, unsigned int *length);

/// Makes a non-blocking, close-on-exec eventfd. Answers -1 and sets errno on failure.
int csystem_eventfd(void);

/// The loop that runs on the calling thread, or null. A real call, never inlined: a coroutine that changes its thread
/// must not keep the address of the variable.
void *csystem_current_loop(void);

/// Sets the loop of the calling thread; null when it ends.
void csystem_set_current_loop(void *loop);

/// Lets a child process have no descriptor from that one on. `actions` are `posix_spawn_file_actions_t`. Answers 0, or the error.
int csystem_spawn_close_from(void *actions, int first);

/// Names the calling thread for tools; at most 15 bytes are kept.
void csystem_name_thread(const char *name);

/// Ignores SIGPIPE for the whole process, so that a write to a closed connection answers EPIPE.
void csystem_ignore_sigpipe(void);

/// Makes a non-blocking, close-on-exec pipe of so many bytes: `ends[0]` is read, `ends[1]` written. Answers the size that the
/// system gave, which may be smaller; -1 and errno on failure.
int csystem_pipe(int *ends, int size);

/// Moves bytes between a pipe and another descriptor without copying them to the process. Answers how many; 0 at the end,
/// -1 and errno on failure.
long csystem_splice(int from, int to, unsigned long count);

/// Puts pages of memory into a pipe without copying them: what they hold must not change while it is on its way. Answers how many
/// bytes; -1 and errno on failure.
long csystem_splice_memory(int pipe, const void *bytes, unsigned long count);

/// Opens what a relative path leads to from a folder and never outside of it: openat2(2) with RESOLVE_BENEATH and
/// RESOLVE_NO_MAGICLINKS. `cached` does not wait for a disk: EAGAIN where it would have to. Answers a descriptor, -1 and errno on
/// failure; ENOSYS where the system has no such call.
int csystem_open_beneath(int folder, const char *path, int flags, int cached);

/// Flags of open(2) that Swift cannot import: names a file without opening it; not through a symbolic link.
int csystem_path_only(void);
int csystem_no_follow(void);

/// As `pread`, but of what lies in memory only: EAGAIN where the disk would be waited for, EOPNOTSUPP where the file system cannot tell.
long csystem_read_cached(int file, void *buffer, unsigned long count, long offset);

/// How many pages of that part of a file lie in memory: cachestat(2), Linux 6.5. -1 and errno on failure; EPERM for a file that the
/// process neither owns nor may write.
long csystem_cached_pages(int file, long offset, long count);

/// Whether the file system of that file has no disk: tmpfs, ramfs.
int csystem_is_in_memory(int file);

/// Moves bytes of a file from there on to a socket without copying them to the process. Answers how many; 0 at the file's end, -1
/// and errno on failure.
long csystem_send_file(int socket, int file, long offset, unsigned long count);

/// As `recv` and `send` without flags, but no points where a thread may be cancelled: glibc has each of those make ready for
/// that, with two locked instructions, and nobody here cancels a thread.
long csystem_receive(int descriptor, void *buffer, unsigned long count);
long csystem_send(int descriptor, const void *bytes, unsigned long count);

/// Makes an epoll instance, close-on-exec. Answers -1 and sets errno on failure.
int csystem_epoll(void);

/// Has it watch a descriptor for something to read, under a tag. Answers -1 and sets errno on failure.
int csystem_epoll_add(int epoll, int descriptor, void *tag);

/// Has it forget the descriptor.
int csystem_epoll_remove(int epoll, int descriptor);

/// Takes the tags of descriptors that are ready, at most 64, without waiting. Answers how many; -1 and errno on failure.
int csystem_epoll_take(int epoll, void **tags, int most);

/// The commit that the program was built from, as Package.swift was told by HTTPWARE_COMMIT; else "unknown".
const char *csystem_commit(void);

#endif

// Parts of glibc that Swift cannot import: GNU-only calls, thread-local variables and function-like macros.
#ifndef CSYSTEM_H
#define CSYSTEM_H

#include <features.h>
#include <sys/types.h>
#include <sys/select.h>

/// Accepts a connection; the new descriptor is non-blocking and close-on-exec. Returns -1 and sets errno on failure.
int csystem_accept(int listener, void *address, unsigned int *length);

/// Creates a non-blocking, close-on-exec eventfd. Returns -1 and sets errno on failure.
int csystem_eventfd(void);

/// The loop that runs on the calling thread, or null. A real call, never inlined: a coroutine that changes its thread
/// must not keep the address of the variable.
void *csystem_current_loop(void);

/// Sets the loop of the calling thread; null when it ends.
void csystem_set_current_loop(void *loop);

/// Closes all descriptors from that one on in a child process. `actions` are `posix_spawn_file_actions_t`. Returns 0, or the
/// error.
int csystem_spawn_close_from(void *actions, int first);

/// Changes the working directory in a child process, after the former actions. Returns 0, or the error.
int csystem_spawn_change_folder(void *actions, const char *path);

/// A close-on-exec descriptor that is readable when the child process has ended: pidfd_open(2). -1 and errno on failure; ENOSYS if the
/// system lacks the call.
int csystem_process_descriptor(int process);

/// Names the calling thread for tools; at most 15 bytes are kept.
void csystem_name_thread(const char *name);

/// Ignores SIGPIPE in the whole process, so that a write to a closed connection returns EPIPE.
void csystem_ignore_sigpipe(void);

/// Creates a non-blocking, close-on-exec pipe of this size: `ends[0]` is for reading, `ends[1]` for writing. Returns the actual
/// size, which may be smaller, or -1 and errno on failure.
int csystem_pipe(int *ends, int size);

/// Creates a close-on-exec pipe whose ends wait. Returns -1 and sets errno on failure.
int csystem_blocking_pipe(int *ends);

/// Moves bytes between a pipe and another descriptor without copying them to the process. Returns their number; 0 at the end,
/// -1 and errno on failure.
long csystem_splice(int from, int to, unsigned long count);

/// Puts pages of memory into a pipe without copying them. Their content must not change until it was sent. Returns the number of
/// bytes, or -1 and errno on failure.
long csystem_splice_memory(int pipe, const void *bytes, unsigned long count);

/// Opens a relative path below a folder and never outside of it: openat2(2) with RESOLVE_BENEATH and
/// RESOLVE_NO_MAGICLINKS. `cached` does not wait for a disk: EAGAIN if it would have to. Returns a descriptor, or -1 and errno on
/// failure; ENOSYS if the system lacks the call.
int csystem_open_beneath(int folder, const char *path, int flags, int cached);

/// Flags of open(2) that Swift cannot import. One names a file without opening it, the other does not follow a symbolic link.
int csystem_path_only(void);
int csystem_no_follow(void);

/// Like `pread`, but only for content in memory. EAGAIN if it would wait for the disk, EOPNOTSUPP if the file system does not
/// know.
long csystem_read_cached(int file, void *buffer, unsigned long count, long offset);

/// The number of pages of that part of a file in memory: cachestat(2), Linux 6.5. -1 and errno on failure; EPERM if the process
/// neither owns the file nor may write it.
long csystem_cached_pages(int file, long offset, long count);

/// Whether the file is in a file system without a disk: tmpfs, ramfs.
int csystem_is_in_memory(int file);

/// Moves bytes of a file from an offset to a socket without copying them to the process. Returns their number; 0 at the file's
/// end, -1 and errno on failure.
long csystem_send_file(int socket, int file, long offset, unsigned long count);

/// Like `recv` and `send` without flags, but without a point at which a thread may be cancelled. glibc prepares for a
/// cancellation with two locked instructions, and HttpWare cancels no threads.
long csystem_receive(int descriptor, void *buffer, unsigned long count);
long csystem_send(int descriptor, const void *bytes, unsigned long count);

/// Creates a close-on-exec epoll instance. Returns -1 and sets errno on failure.
int csystem_epoll(void);

/// Watches a descriptor for input, under a tag. Returns -1 and sets errno on failure.
int csystem_epoll_add(int epoll, int descriptor, void *tag);

/// Stops watching the descriptor.
int csystem_epoll_remove(int epoll, int descriptor);

/// Writes the tags of readable descriptors, at most 64, without waiting. Returns their number, or -1 and errno on failure.
int csystem_epoll_take(int epoll, void **tags, int most);

/// The C libraries that the process has loaded, in the order of loading. A line each: the name, the version as the library or the
/// name of its file states it, and the path, with tabs between them. The caller frees the text; null if memory is exhausted.
char *csystem_libraries(void);

/// The commit from which the program was built, passed to Package.swift in HTTPWARE_COMMIT; otherwise "unknown", as in tests.
const char *csystem_commit(void);

#endif

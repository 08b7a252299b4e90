// What an origin server received: requests, read strictly, and how two of them differ.
#ifndef RECEIVED_H
#define RECEIVED_H

#include <stddef.h>

enum framing { FRAMED_NONE, FRAMED_LENGTH, FRAMED_CHUNKED };

// Places in the bytes of one side.
struct received {
    size_t head, head_length;  // with the empty line
    size_t content, content_length;  // without the transfer coding
    size_t trailers, trailers_length;  // without the empty line
    enum framing framing;
    int is_sentinel, is_connect;
};

enum { MOST_ATOMS = 12, ATOM = 40 };
struct atoms {
    char text[MOST_ATOMS][ATOM];
    int count;
};
void add_atom(struct atoms *atoms, const char *verb, const char *name, size_t length);

// Reads one request from the bytes of a connection. Returns how many bytes it takes, 0 if more are needed, -1 if it is malformed. The head, the
// decoded content and the trailers are appended to `store` at `*used`, which has room for `length` bytes.
long read_request(const char *bytes, size_t length, char *store, size_t *used, struct received *request);

// The faults of a request that was sent: "sends bare-lf" and so on. RFC 9110 §2.4, §7.6.1, RFC 9112 §2.2, §3, §5, §6.
void find_faults(const char *store, const struct received *request, struct atoms *atoms);

// How `theirs` differs from `ours`: "changes target", "lacks te", "adds x-a", and so on.
void compare(const char *our_store, const struct received *ours, const char *their_store, const struct received *theirs,
    struct atoms *atoms);

#endif

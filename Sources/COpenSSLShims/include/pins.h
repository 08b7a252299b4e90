// The public keys that a client requires.
#ifndef COPENSSL_PINS_H
#define COPENSSL_PINS_H

#include <stddef.h>

struct ssl_ctx_st;

/// Accepts a server only if its verified chain has a certificate with one of these keys. Each digest is the SHA-256 of a
/// SubjectPublicKeyInfo, 32 bytes; the digests are copied. Returns 1 on success.
int copenssl_set_pins(struct ssl_ctx_st *context, const unsigned char *digests, size_t count);

#endif

// What Swift cannot import from OpenSSL: function-like macros, and constants that are casts. SSL_CTX, SSL and the others are
// pointers that this header need not know.
#ifndef COPENSSL_H
#define COPENSSL_H

#include <features.h>
#include <sys/types.h>
#include <sys/select.h>
#include <stdint.h>

#include "authority.h"
#include "certify.h"
#include "jose.h"
#include "pins.h"

struct ssl_st;
struct ssl_ctx_st;
struct x509_st;
struct evp_mac_ctx_st;
struct bio_st;

/// Settings that both sides share: memory that idle connections give back, partial writes, no compression, no renegotiation,
/// no version before 1.2.
void copenssl_prepare(struct ssl_ctx_st *context);

/// Settings of a server: its own order of ciphers, a connection that ends without close_notify has ended (every request says
/// where it ends), no cache of sessions beside the tickets.
void copenssl_prepare_server(struct ssl_ctx_st *context);

/// Settings of a client: new sessions are given to the callback and kept nowhere else.
void copenssl_prepare_client(struct ssl_ctx_st *context);

/// A BIO over whichever socket it is pointed to, which it never closes; NULL without memory.
struct bio_st *copenssl_new_socket(void);

/// Lets a session read and write through such a BIO, beside others; takes a reference of its own. Answers 1 on success.
int copenssl_use_socket(struct ssl_st *session, struct bio_st *socket);

/// Lets a session read and write through another session, which has to outlive it. Answers 1 on success.
int copenssl_use_session(struct ssl_st *session, struct ssl_st *carrier);

/// Points the session's BIO to the session's socket: before each call that may read or write.
void copenssl_point(struct ssl_st *session, int descriptor);

/// Frees what only the handshake needed and OpenSSL would keep: both sides' keys of this one exchange, the private one wiped,
/// and the list of the client's ciphers.
void copenssl_forget_handshake(struct ssl_st *session);

/// Sets the lowest version: 2 for TLS 1.2, 3 for TLS 1.3. Answers 1 on success.
int copenssl_set_least_version(struct ssl_ctx_st *context, int minor);

/// Sets the key exchange groups, in order. Answers 1 on success.
int copenssl_set_groups(struct ssl_ctx_st *context, const char *groups);

/// Adds a certificate to the chain of the one that was set last; takes a reference of its own. Answers 1 on success.
int copenssl_add_chain(struct ssl_ctx_st *context, struct x509_st *certificate);

/// Sets who chooses a certificate by the name that a client asks for.
void copenssl_set_name_callback(
    struct ssl_ctx_st *context, int (*body)(struct ssl_st *, int *, void *), void *argument);

/// Gives the client of this session no ticket, and takes none.
void copenssl_refuse_tickets(struct ssl_st *session);

/// Sets who gives the stapled OCSP response.
void copenssl_set_staple_callback(struct ssl_ctx_st *context, int (*body)(struct ssl_st *, void *), void *argument);

/// Staples a copy of a response.
void copenssl_staple(struct ssl_st *session, const uint8_t *bytes, long count);

/// Sets the name that a client asks for (SNI). Answers 1 on success.
int copenssl_set_host_name(struct ssl_st *session, const char *name);

/// Authenticates tickets with HMAC-SHA-256 and this key. Answers 1 on success.
int copenssl_set_ticket_mac(struct evp_mac_ctx_st *mac, const uint8_t *key, size_t count);

/// Whether the bytes are a successful OCSP response: until when it holds, in seconds since 1970; INT64_MAX when it does not
/// say, -1 for anything else.
int64_t copenssl_staple_end(const uint8_t *bytes, long count);

/// Calls the body with each subject alternative name of a certificate, while it answers 1: the type ("DNS", "IP", "URI",
/// "email") and the bytes of the name.
void copenssl_each_name(
    const struct x509_st *certificate, int (*body)(void *, const char *, const uint8_t *, long), void *argument);

/// Calls the body with the subject of a certificate, as RFC 2253 writes it: printable ASCII.
void copenssl_subject(
    const struct x509_st *certificate, void (*body)(void *, const uint8_t *, long), void *argument);

/// The same of its issuer.
void copenssl_issuer(
    const struct x509_st *certificate, void (*body)(void *, const uint8_t *, long), void *argument);

/// The library's own error number behind the one that was queued, and 1 in *is_ssl when libssl queued it.
int copenssl_reason(unsigned long error, int *is_ssl);

#endif

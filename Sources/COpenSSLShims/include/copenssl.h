// Parts of OpenSSL that Swift cannot import: function-like macros, and constants that are casts. SSL_CTX, SSL and others are
// opaque pointers in this header.
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

/// Settings for both sides: idle connections release memory, partial writes, no compression, no renegotiation, no version
/// before 1.2.
void copenssl_prepare(struct ssl_ctx_st *context);

/// Settings of a server: its own order of ciphers, and no session cache besides tickets. A connection may end without
/// close_notify, because every request states where it ends.
void copenssl_prepare_server(struct ssl_ctx_st *context);

/// Settings of a client: new sessions are passed to the callback and stored nowhere else.
void copenssl_prepare_client(struct ssl_ctx_st *context);

/// A BIO for the socket that it is set to, which it never closes; NULL without memory.
struct bio_st *copenssl_new_socket(void);

/// Makes a session read and write through such a BIO, which other sessions can share. Retains the BIO. Returns 1 on success.
int copenssl_use_socket(struct ssl_st *session, struct bio_st *socket);

/// Makes a session read and write through another session, which must outlive it. Returns 1 on success.
int copenssl_use_session(struct ssl_st *session, struct ssl_st *carrier);

/// Sets the session's BIO to the session's socket. Call it before each call that may read or write.
void copenssl_point(struct ssl_st *session, int descriptor);

/// Frees data that only the handshake needed but OpenSSL would keep: the keys of this exchange for both sides, the private
/// one wiped, and the list of the client's ciphers.
void copenssl_forget_handshake(struct ssl_st *session);

/// Sets the lowest version: 2 for TLS 1.2, 3 for TLS 1.3. Returns 1 on success.
int copenssl_set_least_version(struct ssl_ctx_st *context, int minor);

/// Sets the key exchange groups, in order. Returns 1 on success.
int copenssl_set_groups(struct ssl_ctx_st *context, const char *groups);

/// The name of the group of the key exchange; NULL without one.
const char *copenssl_group(struct ssl_st *session);

/// Adds a certificate to the chain of the certificate that was set last. Retains it. Returns 1 on success.
int copenssl_add_chain(struct ssl_ctx_st *context, struct x509_st *certificate);

/// Sets the callback that chooses a certificate by the name that a client requests.
void copenssl_set_name_callback(
    struct ssl_ctx_st *context, int (*body)(struct ssl_st *, int *, void *), void *argument);

/// Sends no ticket to the client of this session, and accepts none.
void copenssl_refuse_tickets(struct ssl_st *session);

/// Sets the callback that supplies the stapled OCSP response.
void copenssl_set_staple_callback(struct ssl_ctx_st *context, int (*body)(struct ssl_st *, void *), void *argument);

/// Staples a copy of a response.
void copenssl_staple(struct ssl_st *session, const uint8_t *bytes, long count);

/// Sets the name that a client requests (SNI). Returns 1 on success.
int copenssl_set_host_name(struct ssl_st *session, const char *name);

/// Authenticates tickets with HMAC-SHA-256 and this key. Returns 1 on success.
int copenssl_set_ticket_mac(struct evp_mac_ctx_st *mac, const uint8_t *key, size_t count);

/// The end of validity of a successful OCSP response, in seconds since 1970. INT64_MAX if the response does not state it, -1
/// if the bytes are anything else.
int64_t copenssl_staple_end(const uint8_t *bytes, long count);

/// Calls the body with each subject alternative name of a certificate until it returns 0: the type ("DNS", "IP", "URI",
/// "email") and the bytes of the name.
void copenssl_each_name(
    const struct x509_st *certificate, int (*body)(void *, const char *, const uint8_t *, long), void *argument);

/// Calls the body with the subject of a certificate in the form of RFC 2253: printable ASCII.
void copenssl_subject(const struct x509_st *certificate, void (*body)(void *, const uint8_t *, long), void *argument);

/// Calls the body with the issuer of a certificate in the same form.
void copenssl_issuer(const struct x509_st *certificate, void (*body)(void *, const uint8_t *, long), void *argument);

/// The library's own error number in the queued error. Sets *is_ssl to 1 if libssl queued it.
int copenssl_reason(unsigned long error, int *is_ssl);

#endif

// A certificate authority of our own: its root, and certificates for the hosts whose TLS a forward listener intercepts. RFC 5280.
#ifndef AUTHORITY_H
#define AUTHORITY_H

#include <features.h>
#include <sys/types.h>
#include <sys/select.h>
#include <stdint.h>

struct x509_st;
struct evp_pkey_st;
struct ssl_st;

/// A private key on the curve P-256 in a page of its own, which goes into no core dump and no swap space. OpenSSL has it only
/// while it signs.
struct authority_key;

/// Holds the private key; null if it is not on that curve, or without memory.
struct authority_key *authority_hold(struct evp_pkey_st *key);
void authority_free(struct authority_key *key);

/// The key in a form that OpenSSL signs with; freed by EVP_PKEY_free as soon as it has. Null on failure.
struct evp_pkey_st *authority_unlock(const struct authority_key *key);

/// A new key on the curve P-256; null on failure.
struct evp_pkey_st *authority_make_key(void);

/// A root for the key, signed by itself: for `days` from yesterday. `permitted` ends with null and names the DNS domains that it
/// is limited to; without one it is not limited. Null on failure.
struct x509_st *authority_make_root(
    struct evp_pkey_st *key, const char *name, int days, const char *const *permitted);

/// A certificate of the root for a host, and for the leaf's key: for `days` from yesterday, and not longer than the root. The
/// host is a DNS name, or an address of 4 or 16 bytes where there is one. Null on failure.
struct x509_st *authority_make_leaf(
    struct x509_st *root, struct evp_pkey_st *rootKey, struct evp_pkey_st *leafKey, const char *host,
    const uint8_t *address, size_t addressCount, int days);

/// The key on the curve P-256 in an open file, in PEM; null if there is none.
struct authority_key *authority_read_key(int descriptor);

/// Writes the key to an open file, in PEM. Answers 1 on success.
int authority_write_key(int descriptor, struct evp_pkey_st *key);

/// Whether the certificate may sign others. RFC 5280 §4.2.1.9.
int authority_is_root(struct x509_st *certificate);

/// Calls the body with the certificate in PEM.
void authority_pem(struct x509_st *certificate, void (*body)(void *, const uint8_t *, long), void *argument);

/// Calls the body with the certificate in PKCS#12, as an entry that Java trusts: with that name and password. Answers 1 on success.
int authority_pkcs12(
    struct x509_st *certificate, const char *name, const char *password, void (*body)(void *, const uint8_t *, long),
    void *argument);

/// From when and until when a certificate is valid, in seconds since 1970; 0 on failure.
int authority_validity(const struct x509_st *certificate, int64_t *start, int64_t *end);

/// Lets a session read these bytes before those of its socket. Answers 1 on success.
int authority_read_first(struct ssl_st *session, const uint8_t *bytes, int count);

/// Lets a session that has read them all read from its socket. Answers 1 if it had bytes to read first.
int authority_read_socket(struct ssl_st *session);

#endif

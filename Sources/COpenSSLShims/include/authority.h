// A local certificate authority: its root, and certificates for the hosts whose TLS a forward listener intercepts. RFC 5280.
#ifndef AUTHORITY_H
#define AUTHORITY_H

#include <features.h>
#include <sys/types.h>
#include <sys/select.h>
#include <stdint.h>

struct x509_st;
struct evp_pkey_st;
struct ssl_st;

/// A private key on the curve P-256 in a separate page, which is excluded from core dumps and swap space. OpenSSL has the key
/// only while it signs.
struct authority_key;

/// Stores the private key; null if it is not on that curve, or there is no memory.
struct authority_key *authority_hold(struct evp_pkey_st *key);
void authority_free(struct authority_key *key);

/// The key in a form with which OpenSSL signs. Free it with EVP_PKEY_free immediately afterwards. Null on failure.
struct evp_pkey_st *authority_unlock(const struct authority_key *key);

/// A new key on the curve P-256; null on failure.
struct evp_pkey_st *authority_make_key(void);

/// A new key on the curve P-256 for the certificates of hosts, which are made in less time with it; null on failure.
struct evp_pkey_st *authority_make_leaf_key(void);

/// A self-signed root for the key, valid for `days` from yesterday. `permitted` lists the DNS domains to which the root is
/// limited, and ends with null; if it is empty, there is no limit. Null on failure.
struct x509_st *authority_make_root(struct evp_pkey_st *key, const char *name, int days, const char *const *permitted);

/// A certificate of the root for a host and the leaf's key, valid for `days` from yesterday, but not longer than the root. The
/// host is a DNS name, or an address of 4 or 16 bytes if there is one. Null on failure.
struct x509_st *authority_make_leaf(struct x509_st *root, struct evp_pkey_st *rootKey, struct evp_pkey_st *leafKey,
    const char *host, const uint8_t *address, size_t addressCount, int days);

/// The key on the curve P-256 in an open PEM file; null if there is none.
struct authority_key *authority_read_key(int descriptor);

/// Writes the key to an open file in PEM. Returns 1 on success.
int authority_write_key(int descriptor, struct evp_pkey_st *key);

/// Whether the certificate may sign others. RFC 5280 §4.2.1.9.
int authority_is_root(struct x509_st *certificate);

/// Calls the body with the certificate in PEM.
void authority_pem(struct x509_st *certificate, void (*body)(void *, const uint8_t *, long), void *argument);

/// Calls the body with the certificate in PKCS#12, as an entry that Java trusts, with that name and password. Returns 1 on
/// success.
int authority_pkcs12(struct x509_st *certificate, const char *name, const char *password,
    void (*body)(void *, const uint8_t *, long), void *argument);

/// The start and the end of a certificate's validity, in seconds since 1970; 0 on failure.
int authority_validity(const struct x509_st *certificate, int64_t *start, int64_t *end);

/// Makes a server's session note that it sends its certificate while nothing of the client waits to be read.
void authority_watch_leaf(struct ssl_st *session);

/// Whether what the client sends after its first message may be about the certificate: 1 or 0. A resumed session sends no certificate, and
/// bytes that were there before it was sent are not about it.
int authority_has_sent_leaf(const struct ssl_st *session);

/// Makes a session read these bytes before those of its socket. Returns 1 on success.
int authority_read_first(struct ssl_st *session, const uint8_t *bytes, int count);

/// Makes a session that has read all of these bytes read from its socket. Returns 1 if it had bytes to read first.
int authority_read_socket(struct ssl_st *session);

#endif

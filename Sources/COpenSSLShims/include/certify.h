// Functions for a client of a certificate authority: P-256 keys that sign, requests for certificates (PKCS#10), self-signed
// certificates, and the identifiers for renewal information. RFC 2986, RFC 8555, RFC 8737.
#ifndef CERTIFY_H
#define CERTIFY_H

#include <features.h>
#include <sys/types.h>
#include <sys/select.h>
#include <stdint.h>

struct evp_pkey_st;
struct x509_st;
struct ssl_ctx_st;

/// Receives bytes, which are valid during the call.
typedef void (*certify_body)(void *argument, const uint8_t *bytes, long count);

/// A private key on the curve P-256 from PEM; null if the bytes are not one.
struct evp_pkey_st *certify_read_key(const uint8_t *bytes, long count);

/// Passes the private key in PEM. Returns 1 on success.
int certify_write_key(struct evp_pkey_st *key, certify_body body, void *argument);

/// Writes the public point: X and Y, 32 bytes each. Returns 1 on success.
int certify_point(struct evp_pkey_st *key, uint8_t *point);

/// Writes the ES256 signature over the bytes: R and S, 32 bytes each. RFC 7518 §3.4. Returns 1 on success.
int certify_sign(struct evp_pkey_st *key, const uint8_t *bytes, size_t count, uint8_t *signature);

/// Passes a certificate request for these DNS names in DER; the list ends with null. Returns 1 on success.
int certify_request(struct evp_pkey_st *key, const char *const *names, certify_body body, void *argument);

/// Passes a self-signed certificate for one DNS name in PEM, valid from an hour ago for `days`. With the 32 bytes of a digest
/// it is the answer to a challenge of tls-alpn-01 (RFC 8737 §3). Returns 1 on success.
int certify_self(
    struct evp_pkey_st *key, const char *name, int days, const uint8_t *digest, certify_body body, void *argument);

/// Passes the key identifier of the certificate's authority, as stated in the certificate. Returns 1 if there is one.
int certify_authority(struct x509_st *certificate, certify_body body, void *argument);

/// Passes the content bytes of the serial number in DER. Returns 1 on success.
int certify_serial(struct x509_st *certificate, certify_body body, void *argument);

#endif

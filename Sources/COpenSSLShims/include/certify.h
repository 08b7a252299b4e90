// What a client of a certificate authority needs: keys on the curve P-256 that sign, requests for certificates (PKCS#10),
// certificates that are signed by their own key, and what renewal information is asked for by. RFC 2986, RFC 8555, RFC 8737.
#ifndef CERTIFY_H
#define CERTIFY_H

#include <features.h>
#include <sys/types.h>
#include <sys/select.h>
#include <stdint.h>

struct evp_pkey_st;
struct x509_st;
struct ssl_ctx_st;

/// Gives bytes to the argument; the bytes last as long as the call.
typedef void (*certify_body)(void *argument, const uint8_t *bytes, long count);

/// A private key on the curve P-256 in PEM; null if the bytes are none.
struct evp_pkey_st *certify_read_key(const uint8_t *bytes, long count);

/// The private key in PEM. Answers 1 on success.
int certify_write_key(struct evp_pkey_st *key, certify_body body, void *argument);

/// The public point: X and Y, 32 bytes each. Answers 1 on success.
int certify_point(struct evp_pkey_st *key, uint8_t *point);

/// The signature of ES256 over the bytes: R and S, 32 bytes each. RFC 7518 §3.4. Answers 1 on success.
int certify_sign(struct evp_pkey_st *key, const uint8_t *bytes, size_t count, uint8_t *signature);

/// A request for a certificate for these DNS names, in DER; the list ends with null. Answers 1 on success.
int certify_request(struct evp_pkey_st *key, const char *const *names, certify_body body, void *argument);

/// A certificate for one DNS name, signed by its own key, in PEM: from an hour ago, for `days`. With 32 bytes of a digest it is
/// the answer to a challenge of tls-alpn-01 (RFC 8737 §3). Answers 1 on success.
int certify_self(
    struct evp_pkey_st *key, const char *name, int days, const uint8_t *digest, certify_body body, void *argument);

/// The key identifier of the certificate's authority, as it stands in the certificate. Answers 1 if there is one.
int certify_authority(struct x509_st *certificate, certify_body body, void *argument);

/// The content of the DER of the serial number. Answers 1 on success.
int certify_serial(struct x509_st *certificate, certify_body body, void *argument);

#endif

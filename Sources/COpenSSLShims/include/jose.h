// Digests and the signatures of JSON Web Tokens: OpenSSL calls that are deprecated for good reasons elsewhere, macros, and
// parameters that only C can put together. RFC 7515, RFC 7518, RFC 8037.
#ifndef JOSE_H
#define JOSE_H

#include <features.h>
#include <sys/types.h>
#include <sys/select.h>
#include <stdint.h>

struct evp_pkey_st;
struct evp_pkey_ctx_st;

/// SHA-256 of the salt and then the bytes, into 32 bytes. Allocates nothing.
void jose_sha256(const uint8_t *salt, size_t saltCount, const uint8_t *bytes, size_t count, uint8_t *digest);

/// A key for HMAC with SHA-256, which is only read once it is made; null when there is no memory.
struct jose_hmac;
struct jose_hmac *jose_hmac_make(const uint8_t *key, size_t count);
void jose_hmac_free(struct jose_hmac *key);

/// HMAC with SHA-256 of the bytes, into 32 bytes. Allocates nothing. RFC 2104.
void jose_hmac_sha256(const struct jose_hmac *key, const uint8_t *bytes, size_t count, uint8_t *mac);

/// Whether the bytes are equal, in a time that depends on their number only: 1 or 0.
int jose_equal(const uint8_t *left, const uint8_t *right, size_t count);

/// A public RSA key of its modulus and exponent, both big-endian; null when they are none.
struct evp_pkey_st *jose_rsa_key(const uint8_t *modulus, size_t modulusCount, const uint8_t *exponent, size_t exponentCount);

/// A public key on a curve ("P-256", "P-384"), of its uncompressed point; null when the point is not on the curve.
struct evp_pkey_st *jose_curve_key(const char *curve, const uint8_t *point, size_t count);

/// A public Ed25519 key of its 32 bytes; null on failure.
struct evp_pkey_st *jose_edwards_key(const uint8_t *bytes, size_t count);

/// What kind of key it is: 1 RSA, 2 P-256, 3 P-384, 4 Ed25519, 5 RSA for PSS only, else 0.
int jose_key_kind(const struct evp_pkey_st *key);

/// The size of the key in bits.
int jose_key_bits(const struct evp_pkey_st *key);

/// The public key in a PEM text: of a public key, or of a certificate. Null when there is none.
struct evp_pkey_st *jose_read_pem(const char *text, int count);

/// The private key in a PEM text; null when there is none, or one with a passphrase.
struct evp_pkey_st *jose_read_private_pem(const char *text, int count);

/// How a signature is made. Ed25519 is for `jose_sign` only.
enum jose_algorithm { JOSE_RS256, JOSE_PS256, JOSE_ES256, JOSE_ES384, JOSE_PS512, JOSE_EDDSA };

/// What checks signatures of one kind with a key, one after the other, on one thread at a time; null on failure. To set it up
/// takes a tenth of a check. Freed by `EVP_PKEY_CTX_free`.
struct evp_pkey_ctx_st *jose_checker(struct evp_pkey_st *key, int algorithm);

/// Whether the signature over the bytes is the key's: 1 or 0. A signature of ECDSA is R and S, one behind the other.
/// RFC 7518 §3.3–3.5.
int jose_check(
    struct evp_pkey_ctx_st *checker, int algorithm, const uint8_t *bytes, size_t count, const uint8_t *signature,
    size_t signatureCount);

/// The same for a key of Ed25519. RFC 8037 §3.1.
int jose_check_edwards(
    struct evp_pkey_st *key, const uint8_t *bytes, size_t count, const uint8_t *signature, size_t signatureCount);

/// Signs the bytes with a private key. A signature of ECDSA is R and S, one behind the other. Answers the number of bytes, at most
/// `room`; 0 on failure.
size_t jose_sign(
    struct evp_pkey_st *key, int algorithm, const uint8_t *bytes, size_t count, uint8_t *signature, size_t room);

#endif

// Digests and the signatures of JSON Web Tokens. These use OpenSSL functions that are deprecated, macros, and parameters that
// only C can build. RFC 7515, RFC 7518, RFC 8037.
#ifndef JOSE_H
#define JOSE_H

#include <features.h>
#include <sys/types.h>
#include <sys/select.h>
#include <stdint.h>

struct evp_pkey_st;
struct evp_pkey_ctx_st;

/// Writes the SHA-256 of the salt followed by the bytes into 32 bytes. Allocates nothing.
void jose_sha256(const uint8_t *salt, size_t saltCount, const uint8_t *bytes, size_t count, uint8_t *digest);

/// A key for HMAC with SHA-256, which is not changed after its creation; null if there is no memory.
struct jose_hmac;
struct jose_hmac *jose_hmac_make(const uint8_t *key, size_t count);
void jose_hmac_free(struct jose_hmac *key);

/// Writes the HMAC with SHA-256 of the bytes into 32 bytes. Allocates nothing. RFC 2104.
void jose_hmac_sha256(const struct jose_hmac *key, const uint8_t *bytes, size_t count, uint8_t *mac);

/// A key for HMAC with SHA-384 or SHA-512, by the size of their digests: 48 or 64. Null if there is no memory.
struct jose_hmac_long;
struct jose_hmac_long *jose_hmac_long_make(const uint8_t *key, size_t count, size_t size);
void jose_hmac_long_free(struct jose_hmac_long *key);

/// Writes the HMAC of the bytes, of the key's size, into 64 bytes. Allocates nothing.
void jose_hmac_long(const struct jose_hmac_long *key, const uint8_t *bytes, size_t count, uint8_t *mac);

/// Whether the bytes are equal: 1 or 0. The time depends only on their number.
int jose_equal(const uint8_t *left, const uint8_t *right, size_t count);

/// A public RSA key from its modulus and exponent, both big-endian; null if they are invalid.
struct evp_pkey_st *jose_rsa_key(
    const uint8_t *modulus, size_t modulusCount, const uint8_t *exponent, size_t exponentCount);

/// A public key on a curve ("P-256", "P-384", "P-521") from its uncompressed point; null if the point is not on the curve.
struct evp_pkey_st *jose_curve_key(const char *curve, const uint8_t *point, size_t count);

/// A public Ed25519 key from its 32 bytes; null on failure.
struct evp_pkey_st *jose_edwards_key(const uint8_t *bytes, size_t count);

/// The kind of key: 1 RSA, 2 P-256, 3 P-384, 4 Ed25519, 5 RSA for PSS only, 6 P-521, 0 for any other.
int jose_key_kind(const struct evp_pkey_st *key);

/// The size of the key in bits.
int jose_key_bits(const struct evp_pkey_st *key);

/// The public key in a PEM text, which contains a public key or a certificate. Null if there is none.
struct evp_pkey_st *jose_read_pem(const char *text, int count);

/// The private key in a PEM text; null if there is none, or it has a passphrase.
struct evp_pkey_st *jose_read_private_pem(const char *text, int count);

/// The kind of signature. Ed25519 is for `jose_sign` only.
enum jose_algorithm {
    JOSE_RS256,
    JOSE_RS384,
    JOSE_RS512,
    JOSE_PS256,
    JOSE_PS384,
    JOSE_PS512,
    JOSE_ES256,
    JOSE_ES384,
    JOSE_ES512,
    JOSE_EDDSA
};

/// A context that checks signatures of one kind with a key, one at a time and on one thread at a time; null on failure. Creating
/// it takes a tenth of the time of a check. Freed by `EVP_PKEY_CTX_free`.
struct evp_pkey_ctx_st *jose_checker(struct evp_pkey_st *key, int algorithm);

/// Whether the signature over the bytes was made with the key: 1 or 0. An ECDSA signature is R followed by S. RFC 7518 §3.3–3.5.
int jose_check(struct evp_pkey_ctx_st *checker, int algorithm, const uint8_t *bytes, size_t count,
    const uint8_t *signature, size_t signatureCount);

/// Checks a signature with an Ed25519 key. RFC 8037 §3.1.
int jose_check_edwards(
    struct evp_pkey_st *key, const uint8_t *bytes, size_t count, const uint8_t *signature, size_t signatureCount);

/// Signs the bytes with a private key. An ECDSA signature is R followed by S. Returns the number of bytes, at most `room`; 0 on
/// failure.
size_t jose_sign(
    struct evp_pkey_st *key, int algorithm, const uint8_t *bytes, size_t count, uint8_t *signature, size_t room);

#endif

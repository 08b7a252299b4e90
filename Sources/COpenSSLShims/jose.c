// SHA256_Init and related functions use no table of algorithms and allocate nothing: a digest is computed for every
// request.
#define OPENSSL_SUPPRESS_DEPRECATED
#include "jose.h"

#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/param_build.h>
#include <openssl/pem.h>
#include <openssl/rsa.h>
#include <openssl/sha.h>
#include <openssl/x509.h>
#include <string.h>

void jose_sha256(const uint8_t *salt, size_t saltCount, const uint8_t *bytes, size_t count, uint8_t *digest) {
    SHA256_CTX state;
    SHA256_Init(&state);
    if (saltCount != 0) SHA256_Update(&state, salt, saltCount);
    if (count != 0) SHA256_Update(&state, bytes, count);
    SHA256_Final(digest, &state);
}

struct jose_hmac {
    SHA256_CTX inner, outer;
};

// RFC 2104 §2. The first two blocks depend only on the key, and are computed once: §4.
struct jose_hmac *jose_hmac_make(const uint8_t *key, size_t count) {
    uint8_t block[64] = {0}, padded[64];
    struct jose_hmac *made = OPENSSL_malloc(sizeof *made);
    if (made == NULL) return NULL;
    if (count > sizeof block) jose_sha256(NULL, 0, key, count, block);
    else memcpy(block, key, count);
    for (size_t at = 0; at < sizeof block; at++) padded[at] = block[at] ^ 0x36;
    SHA256_Init(&made->inner);
    SHA256_Update(&made->inner, padded, sizeof padded);
    for (size_t at = 0; at < sizeof block; at++) padded[at] = block[at] ^ 0x5c;
    SHA256_Init(&made->outer);
    SHA256_Update(&made->outer, padded, sizeof padded);
    OPENSSL_cleanse(block, sizeof block);
    OPENSSL_cleanse(padded, sizeof padded);
    return made;
}

void jose_hmac_free(struct jose_hmac *key) { OPENSSL_clear_free(key, sizeof *key); }

void jose_hmac_sha256(const struct jose_hmac *key, const uint8_t *bytes, size_t count, uint8_t *mac) {
    SHA256_CTX state = key->inner;
    SHA256_Update(&state, bytes, count);
    SHA256_Final(mac, &state);
    state = key->outer;
    SHA256_Update(&state, mac, 32);
    SHA256_Final(mac, &state);
}

struct jose_hmac_long {
    SHA512_CTX inner, outer;
    size_t size;
};

// As above; SHA-384 is SHA-512 with another start, and cut off. FIPS 180-4 §5.3.4.
static void start_long(SHA512_CTX *state, size_t size) { size == 48 ? SHA384_Init(state) : SHA512_Init(state); }

struct jose_hmac_long *jose_hmac_long_make(const uint8_t *key, size_t count, size_t size) {
    uint8_t block[128] = {0}, padded[128];
    struct jose_hmac_long *made = OPENSSL_malloc(sizeof *made);
    if (made == NULL) return NULL;
    made->size = size;
    if (count > sizeof block) {
        start_long(&made->inner, size);
        SHA512_Update(&made->inner, key, count);
        SHA512_Final(block, &made->inner);
    } else memcpy(block, key, count);
    for (size_t at = 0; at < sizeof block; at++) padded[at] = block[at] ^ 0x36;
    start_long(&made->inner, size);
    SHA512_Update(&made->inner, padded, sizeof padded);
    for (size_t at = 0; at < sizeof block; at++) padded[at] = block[at] ^ 0x5c;
    start_long(&made->outer, size);
    SHA512_Update(&made->outer, padded, sizeof padded);
    OPENSSL_cleanse(block, sizeof block);
    OPENSSL_cleanse(padded, sizeof padded);
    return made;
}

void jose_hmac_long_free(struct jose_hmac_long *key) { OPENSSL_clear_free(key, sizeof *key); }

void jose_hmac_long(const struct jose_hmac_long *key, const uint8_t *bytes, size_t count, uint8_t *mac) {
    SHA512_CTX state = key->inner;
    SHA512_Update(&state, bytes, count);
    SHA512_Final(mac, &state);
    state = key->outer;
    SHA512_Update(&state, mac, key->size);
    SHA512_Final(mac, &state);
}

int jose_equal(const uint8_t *left, const uint8_t *right, size_t count) {
    return CRYPTO_memcmp(left, right, count) == 0;
}

static EVP_PKEY *key_of(const char *type, OSSL_PARAM_BLD *builder) {
    EVP_PKEY *key = NULL;
    OSSL_PARAM *parameters = OSSL_PARAM_BLD_to_param(builder);
    EVP_PKEY_CTX *context = EVP_PKEY_CTX_new_from_name(NULL, type, NULL);
    if (parameters == NULL || context == NULL || EVP_PKEY_fromdata_init(context) != 1
        || EVP_PKEY_fromdata(context, &key, EVP_PKEY_PUBLIC_KEY, parameters) != 1) {
        EVP_PKEY_free(key);
        key = NULL;
    }
    EVP_PKEY_CTX_free(context);
    OSSL_PARAM_free(parameters);
    return key;
}

/// Whether the key satisfies the rules of its kind. If it does not, the key is freed.
static EVP_PKEY *checked(EVP_PKEY *key) {
    if (key != NULL) {
        EVP_PKEY_CTX *context = EVP_PKEY_CTX_new_from_pkey(NULL, key, NULL);
        if (context == NULL || EVP_PKEY_public_check(context) != 1) {
            EVP_PKEY_free(key);
            key = NULL;
        }
        EVP_PKEY_CTX_free(context);
    }
    ERR_clear_error();
    return key;
}

EVP_PKEY *jose_rsa_key(const uint8_t *modulus, size_t modulusCount, const uint8_t *exponent, size_t exponentCount) {
    EVP_PKEY *key = NULL;
    BIGNUM *n = BN_bin2bn(modulus, (int)modulusCount, NULL), *e = BN_bin2bn(exponent, (int)exponentCount, NULL);
    OSSL_PARAM_BLD *builder = OSSL_PARAM_BLD_new();
    if (n != NULL && e != NULL && builder != NULL && OSSL_PARAM_BLD_push_BN(builder, OSSL_PKEY_PARAM_RSA_N, n) == 1
        && OSSL_PARAM_BLD_push_BN(builder, OSSL_PKEY_PARAM_RSA_E, e) == 1)
        key = key_of("RSA", builder);
    OSSL_PARAM_BLD_free(builder);
    BN_free(n);
    BN_free(e);
    return checked(key);
}

EVP_PKEY *jose_curve_key(const char *curve, const uint8_t *point, size_t count) {
    EVP_PKEY *key = NULL;
    OSSL_PARAM_BLD *builder = OSSL_PARAM_BLD_new();
    if (builder != NULL && OSSL_PARAM_BLD_push_utf8_string(builder, OSSL_PKEY_PARAM_GROUP_NAME, curve, 0) == 1
        && OSSL_PARAM_BLD_push_octet_string(builder, OSSL_PKEY_PARAM_PUB_KEY, point, count) == 1)
        key = key_of("EC", builder);
    OSSL_PARAM_BLD_free(builder);
    return checked(key);
}

EVP_PKEY *jose_edwards_key(const uint8_t *bytes, size_t count) {
    EVP_PKEY *key = EVP_PKEY_new_raw_public_key(EVP_PKEY_ED25519, NULL, bytes, count);
    ERR_clear_error();
    return key;
}

int jose_key_kind(const EVP_PKEY *key) {
    char curve[32] = "";
    switch (EVP_PKEY_get_base_id(key)) {
    case EVP_PKEY_RSA: return 1;
    case EVP_PKEY_ED25519: return 4;
    case EVP_PKEY_RSA_PSS: return 5;
    case EVP_PKEY_EC:
        if (EVP_PKEY_get_group_name(key, curve, sizeof curve, NULL) != 1) {
            ERR_clear_error();
            return 0;
        }
        return strcmp(curve, "prime256v1") == 0 || strcmp(curve, "P-256") == 0  ? 2
               : strcmp(curve, "secp384r1") == 0 || strcmp(curve, "P-384") == 0 ? 3
               : strcmp(curve, "secp521r1") == 0 || strcmp(curve, "P-521") == 0 ? 6
                                                                                : 0;
    default: return 0;
    }
}

int jose_key_bits(const EVP_PKEY *key) { return EVP_PKEY_get_bits(key); }

EVP_PKEY *jose_read_pem(const char *text, int count) {
    EVP_PKEY *key = NULL;
    BIO *memory = BIO_new_mem_buf(text, count);
    if (memory != NULL) key = PEM_read_bio_PUBKEY(memory, NULL, NULL, NULL);
    BIO_free(memory);
    if (key == NULL && (memory = BIO_new_mem_buf(text, count)) != NULL) {
        X509 *certificate = PEM_read_bio_X509(memory, NULL, NULL, NULL);
        if (certificate != NULL) key = X509_get_pubkey(certificate);
        X509_free(certificate);
        BIO_free(memory);
    }
    return checked(key);
}

/// Refuses a passphrase, because there is no user to ask.
static int no_passphrase(char *room, int size, int isWriting, void *argument) { return -1; }

EVP_PKEY *jose_read_private_pem(const char *text, int count) {
    EVP_PKEY *key = NULL;
    BIO *memory = BIO_new_mem_buf(text, count);
    if (memory != NULL) key = PEM_read_bio_PrivateKey(memory, NULL, no_passphrase, NULL);
    BIO_free(memory);
    ERR_clear_error();
    return key;
}

/// Converts R and S to DER for OpenSSL. Returns the number of bytes, or 0 if they are invalid.
static int der_of(const uint8_t *signature, size_t half, uint8_t *der, size_t room) {
    int count = 0;
    ECDSA_SIG *parts = ECDSA_SIG_new();
    BIGNUM *r = BN_bin2bn(signature, (int)half, NULL), *s = BN_bin2bn(signature + half, (int)half, NULL);
    if (parts != NULL && r != NULL && s != NULL && ECDSA_SIG_set0(parts, r, s) == 1) {
        r = s = NULL;  // they are the signature's own now
        count = i2d_ECDSA_SIG(parts, NULL);
        if (count > 0 && (size_t)count <= room) count = i2d_ECDSA_SIG(parts, &der);
        else count = 0;
    }
    BN_free(r);
    BN_free(s);
    ECDSA_SIG_free(parts);
    return count;
}

static const EVP_MD *digest_of(int algorithm) {
    switch (algorithm) {
    case JOSE_EDDSA: return NULL;
    case JOSE_RS384:
    case JOSE_PS384:
    case JOSE_ES384: return EVP_sha384();
    case JOSE_RS512:
    case JOSE_PS512:
    case JOSE_ES512: return EVP_sha512();
    default: return EVP_sha256();
    }
}

/// The length of R, and of S, in an ECDSA signature; 0 for any other. RFC 7518 §3.4.
static size_t half_of(int algorithm) {
    switch (algorithm) {
    case JOSE_ES256: return 32;
    case JOSE_ES384: return 48;
    case JOSE_ES512: return 66;
    default: return 0;
    }
}

/// Whether the RSA padding could be set for the algorithm.
static int set_padding(EVP_PKEY_CTX *context, int algorithm) {
    switch (algorithm) {
    case JOSE_RS256:
    case JOSE_RS384:
    case JOSE_RS512: return EVP_PKEY_CTX_set_rsa_padding(context, RSA_PKCS1_PADDING) == 1;
    case JOSE_PS256:
    case JOSE_PS384:
    case JOSE_PS512:
        return EVP_PKEY_CTX_set_rsa_padding(context, RSA_PKCS1_PSS_PADDING) == 1
               && EVP_PKEY_CTX_set_rsa_pss_saltlen(context, RSA_PSS_SALTLEN_DIGEST) == 1
               && EVP_PKEY_CTX_set_rsa_mgf1_md(context, digest_of(algorithm)) == 1;
    default: return 1;
    }
}

EVP_PKEY_CTX *jose_checker(EVP_PKEY *key, int algorithm) {
    EVP_PKEY_CTX *context = EVP_PKEY_CTX_new_from_pkey(NULL, key, NULL);
    int isReady = context != NULL && EVP_PKEY_verify_init(context) == 1
                  && EVP_PKEY_CTX_set_signature_md(context, digest_of(algorithm)) == 1
                  && set_padding(context, algorithm);
    if (!isReady) {
        EVP_PKEY_CTX_free(context);
        ERR_clear_error();
        return NULL;
    }
    return context;
}

int jose_check(EVP_PKEY_CTX *context, int algorithm, const uint8_t *bytes, size_t count, const uint8_t *signature,
    size_t signatureCount) {
    uint8_t der[160], digest[64];
    size_t half = half_of(algorithm);
    if (half != 0) {
        if (signatureCount != 2 * half) return 0;
        int made = der_of(signature, half, der, sizeof der);
        if (made <= 0) return 0;
        signature = der;
        signatureCount = (size_t)made;
    }
    size_t digestCount = (size_t)EVP_MD_get_size(digest_of(algorithm));
    switch (digestCount) {
    case 48: SHA384(bytes, count, digest); break;
    case 64: SHA512(bytes, count, digest); break;
    default: jose_sha256(NULL, 0, bytes, count, digest);
    }
    int isGood = EVP_PKEY_verify(context, signature, signatureCount, digest, digestCount) == 1;
    if (!isGood) ERR_clear_error();
    return isGood;
}

int jose_check_edwards(
    EVP_PKEY *key, const uint8_t *bytes, size_t count, const uint8_t *signature, size_t signatureCount) {
    EVP_MD_CTX *context = EVP_MD_CTX_new();
    int isGood = context != NULL && EVP_DigestVerifyInit(context, NULL, NULL, NULL, key) == 1
                 && EVP_DigestVerify(context, signature, signatureCount, bytes, count) == 1;
    EVP_MD_CTX_free(context);
    if (!isGood) ERR_clear_error();
    return isGood;
}

/// Converts a DER signature to R followed by S. Returns 1 on success.
static int halves_of(const uint8_t *der, size_t count, uint8_t *signature, size_t half) {
    ECDSA_SIG *parts = d2i_ECDSA_SIG(NULL, &der, (long)count);
    int isWhole = parts != NULL && BN_bn2binpad(ECDSA_SIG_get0_r(parts), signature, (int)half) == (int)half
                  && BN_bn2binpad(ECDSA_SIG_get0_s(parts), signature + half, (int)half) == (int)half;
    ECDSA_SIG_free(parts);
    return isWhole;
}

size_t jose_sign(EVP_PKEY *key, int algorithm, const uint8_t *bytes, size_t count, uint8_t *signature, size_t room) {
    uint8_t der[160];
    size_t made = 0, half = half_of(algorithm);
    EVP_PKEY_CTX *settings = NULL;
    EVP_MD_CTX *context = EVP_MD_CTX_new();
    if (context != NULL && room >= 2 * half
        && EVP_DigestSignInit(context, &settings, digest_of(algorithm), NULL, key) == 1
        && set_padding(settings, algorithm)) {
        size_t derCount = sizeof der, length = room;
        if (half == 0) {
            if (EVP_DigestSign(context, signature, &length, bytes, count) == 1) made = length;
        } else if (EVP_DigestSign(context, der, &derCount, bytes, count) == 1) {
            if (halves_of(der, derCount, signature, half)) made = 2 * half;
        }
    }
    EVP_MD_CTX_free(context);
    if (made == 0) ERR_clear_error();
    return made;
}

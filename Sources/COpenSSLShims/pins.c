#include <openssl/sha.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <pthread.h>
#include <string.h>

#include "pins.h"

struct pins {
    size_t count;
    unsigned char digests[][SHA256_DIGEST_LENGTH];
};

static int slot = -1;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void release(void *parent, void *pins, CRYPTO_EX_DATA *data, int index, long number, void *argument) {
    (void)parent, (void)data, (void)index, (void)number, (void)argument;
    OPENSSL_free(pins);
}

static void make_slot(void) { slot = SSL_CTX_get_ex_new_index(0, NULL, NULL, NULL, release); }

static int is_pinned(const struct pins *pins, X509 *certificate) {
    unsigned char *key = NULL;
    int length = i2d_X509_PUBKEY(X509_get_X509_PUBKEY(certificate), &key);
    if (length <= 0) return 0;
    unsigned char digest[SHA256_DIGEST_LENGTH];
    SHA256(key, (size_t)length, digest);
    OPENSSL_free(key);
    for (size_t index = 0; index < pins->count; index++) {
        if (memcmp(pins->digests[index], digest, sizeof digest) == 0) return 1;
    }
    return 0;
}

// Called for each certificate. The server's own comes last; by then everything else was verified and the chain is
// complete.
static int verify(int is_valid, X509_STORE_CTX *store) {
    if (!is_valid || X509_STORE_CTX_get_error_depth(store) != 0) return is_valid;
    SSL *session = X509_STORE_CTX_get_ex_data(store, SSL_get_ex_data_X509_STORE_CTX_idx());
    const struct pins *pins = session == NULL ? NULL : SSL_CTX_get_ex_data(SSL_get_SSL_CTX(session), slot);
    STACK_OF(X509) *chain = X509_STORE_CTX_get0_chain(store);
    for (int index = 0; pins != NULL && index < sk_X509_num(chain); index++) {
        if (is_pinned(pins, sk_X509_value(chain, index))) return 1;
    }
    X509_STORE_CTX_set_error(store, X509_V_ERR_APPLICATION_VERIFICATION);
    return 0;
}

int copenssl_set_pins(SSL_CTX *context, const unsigned char *digests, size_t count) {
    if (pthread_once(&once, make_slot) != 0 || slot < 0 || count > 1024) return 0;
    struct pins *pins = OPENSSL_malloc(sizeof *pins + count * SHA256_DIGEST_LENGTH);
    if (pins == NULL) return 0;
    pins->count = count;
    memcpy(pins->digests, digests, count * SHA256_DIGEST_LENGTH);
    if (SSL_CTX_set_ex_data(context, slot, pins) != 1) {
        OPENSSL_free(pins);
        return 0;
    }
    SSL_CTX_set_verify(context, SSL_VERIFY_PEER, verify);
    return 1;
}

#include "certify.h"

#include <openssl/asn1.h>
#include <openssl/bio.h>
#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/ec.h>
#include <openssl/ecdsa.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509v3.h>
#include <string.h>

static int is_p256(const EVP_PKEY *key) {
    char group[32];
    size_t count = 0;
    return EVP_PKEY_is_a(key, "EC") && EVP_PKEY_get_group_name(key, group, sizeof group, &count) == 1
           && strcmp(group, "prime256v1") == 0;
}

static int no_passphrase(char *text, int size, int is_writing, void *argument) {
    (void)text, (void)size, (void)is_writing, (void)argument;
    return -1;
}

EVP_PKEY *certify_read_key(const uint8_t *bytes, long count) {
    if (count <= 0 || count > 65536) return NULL;
    BIO *memory = BIO_new_mem_buf(bytes, (int)count);
    EVP_PKEY *key = memory == NULL ? NULL : PEM_read_bio_PrivateKey(memory, NULL, no_passphrase, NULL);
    BIO_free(memory);
    if (key != NULL && !is_p256(key)) {
        EVP_PKEY_free(key);
        key = NULL;
    }
    ERR_clear_error();
    return key;
}

int certify_write_key(EVP_PKEY *key, certify_body body, void *argument) {
    BIO *memory = BIO_new(BIO_s_mem());
    int done = memory != NULL && PEM_write_bio_PrivateKey(memory, key, NULL, NULL, 0, NULL, NULL) == 1;
    char *text = NULL;
    long count = memory == NULL ? 0 : BIO_get_mem_data(memory, &text);
    if (done) body(argument, (const uint8_t *)text, count);
    if (text != NULL) OPENSSL_cleanse(text, (size_t)count);
    BIO_free(memory);
    ERR_clear_error();
    return done;
}

int certify_point(EVP_PKEY *key, uint8_t *point) {
    uint8_t bytes[65];
    size_t count = 0;
    int done = EVP_PKEY_get_octet_string_param(key, OSSL_PKEY_PARAM_PUB_KEY, bytes, sizeof bytes, &count) == 1
               && count == sizeof bytes && bytes[0] == 4;
    if (done) memcpy(point, bytes + 1, 64);
    ERR_clear_error();
    return done;
}

int certify_sign(EVP_PKEY *key, const uint8_t *bytes, size_t count, uint8_t *signature) {
    uint8_t der[128];
    size_t size = sizeof der;
    EVP_MD_CTX *context = EVP_MD_CTX_new();
    int done = context != NULL && EVP_DigestSignInit(context, NULL, EVP_sha256(), NULL, key) == 1
               && EVP_DigestSign(context, der, &size, bytes, count) == 1;
    EVP_MD_CTX_free(context);
    const uint8_t *place = der;
    ECDSA_SIG *pair = done ? d2i_ECDSA_SIG(NULL, &place, (long)size) : NULL;
    done = pair != NULL && BN_bn2binpad(ECDSA_SIG_get0_r(pair), signature, 32) == 32
           && BN_bn2binpad(ECDSA_SIG_get0_s(pair), signature + 32, 32) == 32;
    ECDSA_SIG_free(pair);
    ERR_clear_error();
    return done;
}

static int push_name(GENERAL_NAMES *names, const char *text) {
    GENERAL_NAME *name = GENERAL_NAME_new();
    ASN1_IA5STRING *string = ASN1_IA5STRING_new();
    if (name == NULL || string == NULL || ASN1_STRING_set(string, text, (int)strlen(text)) != 1) {
        GENERAL_NAME_free(name);
        ASN1_IA5STRING_free(string);
        return 0;
    }
    GENERAL_NAME_set0_value(name, GEN_DNS, string);
    if (sk_GENERAL_NAME_push(names, name) > 0) return 1;
    GENERAL_NAME_free(name);
    return 0;
}

int certify_request(EVP_PKEY *key, const char *const *texts, certify_body body, void *argument) {
    X509_REQ *request = X509_REQ_new();
    GENERAL_NAMES *names = GENERAL_NAMES_new();
    STACK_OF(X509_EXTENSION) *extensions = NULL;
    int done = request != NULL && names != NULL && X509_REQ_set_version(request, X509_REQ_VERSION_1) == 1
               && X509_REQ_set_pubkey(request, key) == 1;
    for (; done && *texts != NULL; texts++) done = push_name(names, *texts);
    done = done && X509V3_add1_i2d(&extensions, NID_subject_alt_name, names, 0, X509V3_ADD_DEFAULT) == 1
           && X509_REQ_add_extensions(request, extensions) == 1 && X509_REQ_sign(request, key, EVP_sha256()) > 0;
    uint8_t *der = NULL;
    int count = done ? i2d_X509_REQ(request, &der) : 0;
    done = count > 0;
    if (done) body(argument, der, count);
    OPENSSL_free(der);
    sk_X509_EXTENSION_pop_free(extensions, X509_EXTENSION_free);
    GENERAL_NAMES_free(names);
    X509_REQ_free(request);
    ERR_clear_error();
    return done;
}

/// The extension acmeIdentifier: critical, an OCTET STRING of 32 bytes. RFC 8737 §3.
static int add_challenge(X509 *certificate, const uint8_t *digest) {
    uint8_t value[34] = {4, 32};
    memcpy(value + 2, digest, 32);
    ASN1_OBJECT *name = OBJ_txt2obj("1.3.6.1.5.5.7.1.31", 1);
    ASN1_OCTET_STRING *string = ASN1_OCTET_STRING_new();
    X509_EXTENSION *extension = NULL;
    int done = name != NULL && string != NULL && ASN1_OCTET_STRING_set(string, value, sizeof value) == 1
               && (extension = X509_EXTENSION_create_by_OBJ(NULL, name, 1, string)) != NULL
               && X509_add_ext(certificate, extension, -1) == 1;
    X509_EXTENSION_free(extension);
    ASN1_OCTET_STRING_free(string);
    ASN1_OBJECT_free(name);
    return done;
}

static int set_serial(X509 *certificate) {
    uint8_t bytes[16];
    if (RAND_bytes(bytes, sizeof bytes) != 1) return 0;
    bytes[0] = (bytes[0] & 0x7f) | 0x40;
    BIGNUM *number = BN_bin2bn(bytes, sizeof bytes, NULL);
    int done = number != NULL && BN_to_ASN1_INTEGER(number, X509_get_serialNumber(certificate)) != NULL;
    BN_free(number);
    return done;
}

int certify_self(EVP_PKEY *key, const char *text, int days, const uint8_t *digest, certify_body body, void *argument) {
    X509 *certificate = X509_new();
    GENERAL_NAMES *names = GENERAL_NAMES_new();
    BIO *memory = BIO_new(BIO_s_mem());
    X509_NAME *subject = certificate == NULL ? NULL : X509_get_subject_name(certificate);
    // The name states its purpose, so that clients and people do not mistake the certificate for a valid one.
    const char *title = digest == NULL ? "httpware: no certificate yet" : "ACME challenge";
    int done =
        subject != NULL && names != NULL && memory != NULL && X509_set_version(certificate, X509_VERSION_3) == 1
        && set_serial(certificate) && X509_gmtime_adj(X509_getm_notBefore(certificate), -3600) != NULL
        && X509_time_adj_ex(X509_getm_notAfter(certificate), days, 0, NULL) != NULL
        && X509_set_pubkey(certificate, key) == 1
        && X509_NAME_add_entry_by_NID(subject, NID_commonName, MBSTRING_UTF8, (const uint8_t *)title, -1, -1, 0) == 1
        && X509_set_issuer_name(certificate, subject) == 1 && push_name(names, text)
        && X509_add1_ext_i2d(certificate, NID_subject_alt_name, names, 0, X509V3_ADD_DEFAULT) == 1
        && (digest == NULL || add_challenge(certificate, digest)) && X509_sign(certificate, key, EVP_sha256()) > 0
        && PEM_write_bio_X509(memory, certificate) == 1;
    if (done) {
        char *pem = NULL;
        long count = BIO_get_mem_data(memory, &pem);
        body(argument, (const uint8_t *)pem, count);
    }
    BIO_free(memory);
    GENERAL_NAMES_free(names);
    X509_free(certificate);
    ERR_clear_error();
    return done;
}

int certify_authority(X509 *certificate, certify_body body, void *argument) {
    const ASN1_OCTET_STRING *identifier = X509_get0_authority_key_id(certificate);
    if (identifier == NULL || ASN1_STRING_length(identifier) <= 0) return 0;
    body(argument, ASN1_STRING_get0_data(identifier), ASN1_STRING_length(identifier));
    return 1;
}

int certify_serial(X509 *certificate, certify_body body, void *argument) {
    uint8_t *der = NULL;
    int count = i2d_ASN1_INTEGER(X509_get_serialNumber(certificate), &der);
    // After the type and a length of one byte: RFC 5280 §4.1.2.2 allows 20 bytes.
    int done = count > 2 && count < 130;
    if (done) body(argument, der + 2, count - 2);
    OPENSSL_free(der);
    ERR_clear_error();
    return done;
}

// For EVP_PKEY_assign_EC_KEY: see authority_make_leaf_key.
#define OPENSSL_SUPPRESS_DEPRECATED

#include "authority.h"

#include <sys/ioctl.h>
#include <openssl/bio.h>
#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/params.h>
#include <openssl/pem.h>
#include <openssl/pkcs12.h>
#include <openssl/rand.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum { day = 86400, page_size = 4096 };

struct authority_key {
    uint8_t number[32];  // the least byte first, as OpenSSL takes it on this machine
    uint8_t point[65];
};

static void *own_page(void) {
    void *page = mmap(NULL, page_size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED) return NULL;
    madvise(page, page_size, MADV_DONTDUMP);
    mlock(page, page_size);  // where the limit allows
    return page;
}

static void free_page(void *page) {
    OPENSSL_cleanse(page, page_size);
    munmap(page, page_size);
}

struct authority_key *authority_hold(EVP_PKEY *key) {
    struct authority_key *held = own_page();
    BIGNUM *number = NULL;
    size_t count = 0;
    if (held == NULL) return NULL;
    int done =
        EVP_PKEY_get_bn_param(key, OSSL_PKEY_PARAM_PRIV_KEY, &number) == 1
        && BN_bn2nativepad(number, held->number, sizeof held->number) == sizeof held->number
        && EVP_PKEY_get_octet_string_param(key, OSSL_PKEY_PARAM_PUB_KEY, held->point, sizeof held->point, &count) == 1
        && count == sizeof held->point;
    BN_clear_free(number);
    EVP_PKEY *tried = done ? authority_unlock(held) : NULL;
    done = tried != NULL && EVP_PKEY_eq(tried, key) == 1;
    EVP_PKEY_free(tried);
    ERR_clear_error();
    if (done) return held;
    free_page(held);
    return NULL;
}

void authority_free(struct authority_key *key) {
    if (key != NULL) free_page(key);
}

EVP_PKEY *authority_unlock(const struct authority_key *key) {
    OSSL_PARAM parts[] = {
        OSSL_PARAM_construct_utf8_string(OSSL_PKEY_PARAM_GROUP_NAME, "P-256", 0),
        OSSL_PARAM_construct_BN(OSSL_PKEY_PARAM_PRIV_KEY, (uint8_t *)key->number, sizeof key->number),
        OSSL_PARAM_construct_octet_string(OSSL_PKEY_PARAM_PUB_KEY, (uint8_t *)key->point, sizeof key->point),
        OSSL_PARAM_construct_end(),
    };
    EVP_PKEY *made = NULL;
    EVP_PKEY_CTX *context = EVP_PKEY_CTX_new_from_name(NULL, "EC", NULL);
    if (context != NULL && EVP_PKEY_fromdata_init(context) == 1)
        EVP_PKEY_fromdata(context, &made, EVP_PKEY_KEYPAIR, parts);
    EVP_PKEY_CTX_free(context);
    ERR_clear_error();
    return made;
}

EVP_PKEY *authority_make_key(void) { return EVP_EC_gen("P-256"); }

// X509_set_pubkey writes such a key into a certificate directly. Any other key it encodes, then decodes what it has encoded, by
// searching all providers: four signatures' time for each certificate.
EVP_PKEY *authority_make_leaf_key(void) {
    EC_KEY *number = EC_KEY_new_by_curve_name(NID_X9_62_prime256v1);
    EVP_PKEY *key = EVP_PKEY_new();
    if (number != NULL && key != NULL && EC_KEY_generate_key(number) == 1 && EVP_PKEY_assign_EC_KEY(key, number) == 1)
        return key;
    EC_KEY_free(number);
    EVP_PKEY_free(key);
    ERR_clear_error();
    return NULL;
}

static int set_serial(X509 *certificate) {
    // RFC 5280 §4.1.2.2: positive, at most 20 bytes. The CA/Browser Forum requires at least 64 random bits.
    uint8_t bytes[16];
    if (RAND_bytes(bytes, sizeof bytes) != 1) return 0;
    bytes[0] = (bytes[0] & 0x7f) | 0x40;
    BIGNUM *number = BN_bin2bn(bytes, sizeof bytes, NULL);
    int done = number != NULL && BN_to_ASN1_INTEGER(number, X509_get_serialNumber(certificate)) != NULL;
    BN_free(number);
    return done;
}

static int set_name(X509 *certificate, const char *name) {
    X509_NAME *subject = X509_get_subject_name(certificate);
    if (X509_NAME_add_entry_by_NID(subject, NID_organizationName, MBSTRING_UTF8, (const uint8_t *)"httpware", -1, -1, 0)
        != 1)
        return 0;
    // A common name has at most 64 characters. RFC 5280 appendix A.1.
    if (name == NULL || strlen(name) > 64) return 1;
    return X509_NAME_add_entry_by_NID(subject, NID_commonName, MBSTRING_UTF8, (const uint8_t *)name, -1, -1, 0);
}

static int add(X509 *certificate, int nid, void *value, int is_critical) {
    return value != NULL && X509_add1_ext_i2d(certificate, nid, value, is_critical, X509V3_ADD_DEFAULT) == 1;
}

static int add_usage(X509 *certificate, int first, int second) {
    ASN1_BIT_STRING *bits = ASN1_BIT_STRING_new();
    int done = bits != NULL && ASN1_BIT_STRING_set_bit(bits, first, 1)
               && (second < 0 || ASN1_BIT_STRING_set_bit(bits, second, 1)) && add(certificate, NID_key_usage, bits, 1);
    ASN1_BIT_STRING_free(bits);
    return done;
}

static int add_constraints(X509 *certificate, int is_root) {
    BASIC_CONSTRAINTS *constraints = BASIC_CONSTRAINTS_new();
    if (constraints == NULL) return 0;
    constraints->ca = is_root ? 0xff : 0;
    if (is_root) {
        constraints->pathlen = ASN1_INTEGER_new();
        if (constraints->pathlen != NULL) ASN1_INTEGER_set(constraints->pathlen, 0);
    }
    int done = add(certificate, NID_basic_constraints, constraints, 1);
    BASIC_CONSTRAINTS_free(constraints);
    return done;
}

/// The identifier of a key: the first 20 bytes of the SHA-256 of the public key. RFC 7093 §2.
static ASN1_OCTET_STRING *key_identifier(const X509 *certificate) {
    uint8_t digest[EVP_MAX_MD_SIZE];
    unsigned int count = 0;
    if (X509_pubkey_digest(certificate, EVP_sha256(), digest, &count) != 1) return NULL;
    ASN1_OCTET_STRING *identifier = ASN1_OCTET_STRING_new();
    if (identifier != NULL) ASN1_OCTET_STRING_set(identifier, digest, 20);
    return identifier;
}

/// The issuer's identifier is the one that its certificate states, which another program may have made in another way. RFC 5280 §4.2.1.1.
static int add_identifiers(X509 *certificate, X509 *issuer) {
    ASN1_OCTET_STRING *own = key_identifier(certificate);
    int done = add(certificate, NID_subject_key_identifier, own, 0);
    ASN1_OCTET_STRING_free(own);
    if (!done || issuer == NULL) return done;
    AUTHORITY_KEYID *authority = AUTHORITY_KEYID_new();
    if (authority == NULL) return 0;
    const ASN1_OCTET_STRING *stated = X509_get0_subject_key_id(issuer);
    authority->keyid = stated != NULL ? ASN1_OCTET_STRING_dup(stated) : key_identifier(issuer);
    done = authority->keyid != NULL && add(certificate, NID_authority_key_identifier, authority, 0);
    AUTHORITY_KEYID_free(authority);
    return done;
}

static GENERAL_NAME *general_name(int type, const uint8_t *bytes, int count) {
    GENERAL_NAME *name = GENERAL_NAME_new();
    ASN1_STRING *text = type == GEN_DNS ? ASN1_IA5STRING_new() : ASN1_OCTET_STRING_new();
    if (name == NULL || text == NULL || ASN1_STRING_set(text, bytes, count) != 1) {
        GENERAL_NAME_free(name);
        ASN1_STRING_free(text);
        return NULL;
    }
    GENERAL_NAME_set0_value(name, type, text);
    return name;
}

static int add_alternative(X509 *certificate, const char *host, const uint8_t *address, size_t count) {
    GENERAL_NAMES *names = GENERAL_NAMES_new();
    GENERAL_NAME *name = count > 0 ? general_name(GEN_IPADD, address, (int)count)
                                   : general_name(GEN_DNS, (const uint8_t *)host, (int)strlen(host));
    int done = names != NULL && name != NULL && sk_GENERAL_NAME_push(names, name) > 0;
    if (!done) GENERAL_NAME_free(name);
    done = done && add(certificate, NID_subject_alt_name, names, 0);
    GENERAL_NAMES_free(names);
    return done;
}

static int add_subtree(STACK_OF(GENERAL_SUBTREE) *list, GENERAL_NAME *name) {
    GENERAL_SUBTREE *subtree = GENERAL_SUBTREE_new();
    if (subtree == NULL || name == NULL) {
        GENERAL_SUBTREE_free(subtree);
        GENERAL_NAME_free(name);
        return 0;
    }
    GENERAL_NAME_free(subtree->base);
    subtree->base = name;
    if (sk_GENERAL_SUBTREE_push(list, subtree) > 0) return 1;
    GENERAL_SUBTREE_free(subtree);
    return 0;
}

/// RFC 5280 §4.2.1.10. A limit to DNS names does not limit addresses, so these are excluded.
static int add_limits(X509 *certificate, const char *const *permitted) {
    static const uint8_t every[32];
    NAME_CONSTRAINTS *limits = NAME_CONSTRAINTS_new();
    if (limits == NULL) return 0;
    limits->permittedSubtrees = sk_GENERAL_SUBTREE_new_null();
    limits->excludedSubtrees = sk_GENERAL_SUBTREE_new_null();
    int done = limits->permittedSubtrees != NULL && limits->excludedSubtrees != NULL
               && add_subtree(limits->excludedSubtrees, general_name(GEN_IPADD, every, 8))
               && add_subtree(limits->excludedSubtrees, general_name(GEN_IPADD, every, 32));
    for (; done && *permitted != NULL; permitted++) {
        GENERAL_NAME *name = general_name(GEN_DNS, (const uint8_t *)*permitted, (int)strlen(*permitted));
        done = add_subtree(limits->permittedSubtrees, name);
    }
    done = done && add(certificate, NID_name_constraints, limits, 1);
    NAME_CONSTRAINTS_free(limits);
    return done;
}

static X509 *begin(EVP_PKEY *key, const char *name, int days) {
    X509 *certificate = X509_new();
    if (certificate != NULL && X509_set_version(certificate, X509_VERSION_3) == 1 && set_serial(certificate)
        && X509_gmtime_adj(X509_getm_notBefore(certificate), -day) != NULL
        && X509_time_adj_ex(X509_getm_notAfter(certificate), days - 1, 0, NULL) != NULL
        && X509_set_pubkey(certificate, key) == 1 && set_name(certificate, name))
        return certificate;
    X509_free(certificate);
    return NULL;
}

static X509 *finish(X509 *certificate, EVP_PKEY *key, int is_complete) {
    if (is_complete && X509_sign(certificate, key, EVP_sha256()) > 0) return certificate;
    ERR_clear_error();
    X509_free(certificate);
    return NULL;
}

X509 *authority_make_root(EVP_PKEY *key, const char *name, int days, const char *const *permitted) {
    X509 *root = begin(key, name, days);
    if (root == NULL) return NULL;
    int done = X509_set_issuer_name(root, X509_get_subject_name(root)) == 1 && add_constraints(root, 1)
               && add_usage(root, 5, 6)  // keyCertSign, cRLSign
               && add_identifiers(root, NULL) && (*permitted == NULL || add_limits(root, permitted));
    return finish(root, key, done);
}

X509 *authority_make_leaf(X509 *root, EVP_PKEY *rootKey, EVP_PKEY *leafKey, const char *host, const uint8_t *address,
    size_t addressCount, int days) {
    X509 *leaf = begin(leafKey, host, days);
    if (leaf == NULL) return NULL;
    if (ASN1_TIME_compare(X509_get0_notAfter(leaf), X509_get0_notAfter(root)) > 0)
        X509_set1_notAfter(leaf, X509_get0_notAfter(root));
    EXTENDED_KEY_USAGE *usage = EXTENDED_KEY_USAGE_new();
    int done = usage != NULL && sk_ASN1_OBJECT_push(usage, OBJ_nid2obj(NID_server_auth)) > 0
               && X509_set_issuer_name(leaf, X509_get_subject_name(root)) == 1 && add_constraints(leaf, 0)
               && add_usage(leaf, 0, -1)  // digitalSignature
               && add(leaf, NID_ext_key_usage, usage, 0) && add_alternative(leaf, host, address, addressCount)
               && add_identifiers(leaf, root);
    EXTENDED_KEY_USAGE_free(usage);
    return finish(leaf, rootKey, done);
}

/// Decodes the base64 of a PEM text between its first two lines that begin with a hyphen. Returns the number of bytes, or 0 on
/// failure.
static size_t decode_pem(const char *text, uint8_t *bytes) {
    const char *line = strchr(text, '\n');
    if (strncmp(text, "-----BEGIN", 10) != 0 || line == NULL) return 0;
    size_t count = 0;
    uint32_t bits = 0, held = 0;
    for (const char *next = line; *next != 0 && *next != '-' && *next != '='; next++) {
        uint32_t value;
        if (*next >= 'A' && *next <= 'Z') value = (uint32_t)(*next - 'A');
        else if (*next >= 'a' && *next <= 'z') value = (uint32_t)(*next - 'a' + 26);
        else if (*next >= '0' && *next <= '9') value = (uint32_t)(*next - '0' + 52);
        else if (*next == '+') value = 62;
        else if (*next == '/') value = 63;
        else if (*next == '\n' || *next == '\r' || *next == ' ') continue;
        else return 0;
        bits = bits << 6 | value;
        held += 6;
        if (held >= 8) {
            held -= 8;
            bytes[count++] = (uint8_t)(bits >> held);
        }
    }
    return count;
}

/// Finds the private key of P-256 in DER, as PKCS#8 or alone: the version 1, then 32 bytes. RFC 5958, RFC 5915 §3.
static const uint8_t *find_number(const uint8_t *bytes, size_t count) {
    static const uint8_t start[] = {2, 1, 1, 4, 32};
    for (size_t place = 0; place + sizeof start + 32 <= count; place++)
        if (memcmp(bytes + place, start, sizeof start) == 0) return bytes + place + sizeof start;
    return NULL;
}

/// Creates the key from the bytes of its number, most significant byte first. Returns 1 on success.
static int set_number(struct authority_key *key, const uint8_t *number) {
    int done = 0;
    EC_GROUP *group = EC_GROUP_new_by_curve_name(NID_X9_62_prime256v1);
    EC_POINT *point = group != NULL ? EC_POINT_new(group) : NULL;
    BIGNUM *big = BN_bin2bn(number, 32, NULL);
    if (point != NULL && big != NULL && !BN_is_zero(big) && BN_cmp(big, EC_GROUP_get0_order(group)) < 0) {
        for (int place = 0; place < 32; place++) key->number[place] = number[31 - place];
        done = EC_POINT_mul(group, point, big, NULL, NULL, NULL) == 1
               && EC_POINT_point2oct(group, point, POINT_CONVERSION_UNCOMPRESSED, key->point, sizeof key->point, NULL)
                      == sizeof key->point;
    }
    BN_clear_free(big);
    EC_POINT_free(point);
    EC_GROUP_free(group);
    return done;
}

// Not OpenSSL's own reader: its decoded bytes would stay in freed memory, and so in a core dump.
struct authority_key *authority_read_key(int descriptor) {
    char *text = own_page();
    uint8_t *bytes = own_page();
    struct authority_key *key = own_page();
    int done = 0;
    if (text != NULL && bytes != NULL && key != NULL) {
        size_t count = 0;
        ssize_t more = 1;
        while (more > 0 && count < page_size - 1) {
            more = read(descriptor, text + count, page_size - 1 - count);
            if (more > 0) count += (size_t)more;
        }
        const uint8_t *number = more == 0 ? find_number(bytes, decode_pem(text, bytes)) : NULL;
        done = number != NULL && set_number(key, number);
    }
    if (text != NULL) free_page(text);
    if (bytes != NULL) free_page(bytes);
    ERR_clear_error();
    if (done) return key;
    if (key != NULL) free_page(key);
    return NULL;
}

int authority_write_key(int descriptor, EVP_PKEY *key) {
    BIO *memory = BIO_new(BIO_s_mem());
    if (memory == NULL) return 0;
    int done = PEM_write_bio_PrivateKey(memory, key, NULL, NULL, 0, NULL, NULL);
    char *text = NULL;
    long count = BIO_get_mem_data(memory, &text), sent = 0;
    while (done && sent < count) {
        ssize_t more = write(descriptor, text + sent, (size_t)(count - sent));
        if (more <= 0) done = 0;
        sent += more;
    }
    if (text != NULL) OPENSSL_cleanse(text, (size_t)count);
    BIO_free(memory);
    ERR_clear_error();
    return done;
}

int authority_is_root(X509 *certificate) { return X509_check_ca(certificate) == 1; }

static void give(BIO *memory, void (*body)(void *, const uint8_t *, long), void *argument) {
    char *text = NULL;
    long count = BIO_get_mem_data(memory, &text);
    if (text != NULL) body(argument, (const uint8_t *)text, count);
}

void authority_pem(X509 *certificate, void (*body)(void *, const uint8_t *, long), void *argument) {
    BIO *memory = BIO_new(BIO_s_mem());
    if (memory != NULL && PEM_write_bio_X509(memory, certificate) == 1) give(memory, body, argument);
    BIO_free(memory);
    ERR_clear_error();
}

int authority_pkcs12(X509 *certificate, const char *name, const char *password,
    void (*body)(void *, const uint8_t *, long), void *argument) {
    // Java trusts a certificate without a key only if it has this attribute.
    static const char trusted[] = "2.16.840.1.113894.746875.1.1";
    int nid = OBJ_txt2nid(trusted);
    if (nid == NID_undef) nid = OBJ_create(trusted, "oracle-jdk-trustedkeyusage", "Trusted key usage (Oracle)");
    STACK_OF(PKCS12_SAFEBAG) *bags = NULL;
    STACK_OF(PKCS7) *safes = NULL;
    PKCS12 *archive = NULL;
    BIO *memory = BIO_new(BIO_s_mem());
    PKCS12_SAFEBAG *bag = PKCS12_add_cert(&bags, certificate);
    int done = bag != NULL && PKCS12_add_friendlyname_utf8(bag, name, -1) == 1;
    if (done) {
        ASN1_OBJECT *any = OBJ_nid2obj(NID_anyExtendedKeyUsage);
        X509_ATTRIBUTE *attribute = X509_ATTRIBUTE_create(nid, V_ASN1_OBJECT, any);
        STACK_OF(X509_ATTRIBUTE) *attributes = (STACK_OF(X509_ATTRIBUTE) *)PKCS12_SAFEBAG_get0_attrs(bag);
        done = attribute != NULL && attributes != NULL && sk_X509_ATTRIBUTE_push(attributes, attribute) > 0;
    }
    // The file holds a public certificate, so the password protects nothing, and the content is not encrypted.
    done = done && PKCS12_add_safe(&safes, bags, -1, 0, password) == 1 && (archive = PKCS12_add_safes(safes, 0)) != NULL
           && PKCS12_set_mac(archive, password, -1, NULL, 0, 10000, EVP_sha256()) == 1 && memory != NULL
           && i2d_PKCS12_bio(memory, archive) == 1;
    if (done) give(memory, body, argument);
    BIO_free(memory);
    PKCS12_free(archive);
    sk_PKCS7_pop_free(safes, PKCS7_free);
    sk_PKCS12_SAFEBAG_pop_free(bags, PKCS12_SAFEBAG_free);
    ERR_clear_error();
    return done;
}

static int64_t seconds(const ASN1_TIME *time) {
    struct tm parts;
    return ASN1_TIME_to_tm(time, &parts) == 1 ? (int64_t)timegm(&parts) : 0;
}

int authority_validity(const X509 *certificate, int64_t *start, int64_t *end) {
    *start = seconds(X509_get0_notBefore(certificate));
    *end = seconds(X509_get0_notAfter(certificate));
    return *start != 0 && *end != 0;
}

static void note_leaf(
    int is_sent, int version, int type, const void *bytes, size_t count, SSL *session, void *argument) {
    (void)version;
    (void)argument;
    if (!is_sent || type != SSL3_RT_HANDSHAKE || count == 0 || *(const uint8_t *)bytes != SSL3_MT_CERTIFICATE) return;
    // Nothing of this flight has left yet: bytes that wait now come from a client that has not seen the certificate.
    int waiting = 0;
    ioctl((int)BIO_get_fd(SSL_get_wbio(session), NULL), FIONREAD, &waiting);
    if (waiting == 0 && !SSL_has_pending(session) && BIO_pending(SSL_get_rbio(session)) == 0)
        SSL_set_ex_data(session, 0, session);
}

void authority_watch_leaf(SSL *session) { SSL_set_msg_callback(session, note_leaf); }

int authority_has_sent_leaf(const SSL *session) { return SSL_get_ex_data(session, 0) != NULL; }

int authority_read_first(SSL *session, const uint8_t *bytes, int count) {
    BIO *memory = BIO_new(BIO_s_mem());
    if (memory == NULL) return 0;
    BIO_set_mem_eof_return(memory, -1);
    if (BIO_write(memory, bytes, count) != count) {
        BIO_free(memory);
        return 0;
    }
    SSL_set0_rbio(session, memory);
    return 1;
}

int authority_read_socket(SSL *session) {
    BIO *socket = SSL_get_wbio(session);
    if (SSL_get_rbio(session) == socket) return 0;
    BIO_up_ref(socket);
    SSL_set0_rbio(session, socket);
    return 1;
}

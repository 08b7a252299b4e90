#include "copenssl.h"

#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/ocsp.h>
#include <openssl/params.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <string.h>
#include <time.h>

void copenssl_prepare(SSL_CTX *context) {
    SSL_CTX_set_mode(
        context, SSL_MODE_RELEASE_BUFFERS | SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
    SSL_CTX_set_options(context, SSL_OP_NO_COMPRESSION | SSL_OP_NO_RENEGOTIATION);
    SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION);
    SSL_CTX_set_read_ahead(context, 1);
}

void copenssl_prepare_server(SSL_CTX *context) {
    SSL_CTX_set_options(context, SSL_OP_CIPHER_SERVER_PREFERENCE | SSL_OP_IGNORE_UNEXPECTED_EOF);
    SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
    SSL_CTX_set_dh_auto(context, 1);
}

void copenssl_prepare_client(SSL_CTX *context) {
    SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_CLIENT | SSL_SESS_CACHE_NO_INTERNAL);
}

BIO *copenssl_new_socket(void) {
    BIO *socket = BIO_new(BIO_s_socket());
    if (socket != NULL) BIO_set_fd(socket, -1, BIO_NOCLOSE);
    return socket;
}

int copenssl_use_socket(SSL *session, BIO *socket) {
    if (BIO_up_ref(socket) != 1) return 0;
    SSL_set_bio(session, socket, socket);  // which takes the one reference for both
    return 1;
}

int copenssl_use_session(SSL *session, SSL *carrier) {
    BIO *inner = BIO_new(BIO_f_ssl());
    if (inner == NULL) return 0;
    BIO_set_ssl(inner, carrier, BIO_NOCLOSE);
    SSL_set_bio(session, inner, inner);  // which takes the one reference for both
    return 1;
}

void copenssl_point(SSL *session, int descriptor) {
    BIO *socket = SSL_get_wbio(session);  // it may have other bytes to read first
    BIO_clear_flags(socket, BIO_FLAGS_IN_EOF);  // which was another connection's
    BIO_set_fd(socket, descriptor, BIO_NOCLOSE);
}

static void forget(EVP_PKEY *key) {
    EVP_PKEY_set_type(key, EVP_PKEY_NONE);  // frees what the key holds, and fails as it should
    EVP_PKEY_free(key);
}

void copenssl_forget_handshake(SSL *session) {
    EVP_PKEY *key = NULL;
    if (SSL_get_tmp_key(session, &key) == 1) forget(key);
    if (SSL_get_peer_tmp_key(session, &key) == 1) forget(key);
    STACK_OF(SSL_CIPHER) *offered = SSL_get_client_ciphers(session);
    if (offered != NULL) {
        sk_SSL_CIPHER_zero(offered);
        sk_SSL_CIPHER_reserve(offered, 0);
    }
    SSL_set_msg_callback(session, NULL);
    ERR_clear_error();
}

int copenssl_set_least_version(SSL_CTX *context, int minor) {
    return (int)SSL_CTX_set_min_proto_version(context, minor >= 3 ? TLS1_3_VERSION : TLS1_2_VERSION);
}

int copenssl_set_groups(SSL_CTX *context, const char *groups) { return (int)SSL_CTX_set1_groups_list(context, groups); }

const char *copenssl_group(SSL *session) {
    int group = (int)SSL_get_negotiated_group(session);
    return group ? SSL_group_to_name(session, group) : NULL;
}

int copenssl_add_chain(SSL_CTX *context, X509 *certificate) {
    return (int)SSL_CTX_add1_chain_cert(context, certificate);
}

void copenssl_set_name_callback(SSL_CTX *context, int (*body)(SSL *, int *, void *), void *argument) {
    SSL_CTX_set_tlsext_servername_callback(context, body);
    SSL_CTX_set_tlsext_servername_arg(context, argument);
}

void copenssl_set_staple_callback(SSL_CTX *context, int (*body)(SSL *, void *), void *argument) {
    SSL_CTX_set_tlsext_status_cb(context, body);
    SSL_CTX_set_tlsext_status_arg(context, argument);
}

void copenssl_staple(SSL *session, const uint8_t *bytes, long count) {
    unsigned char *copy = OPENSSL_memdup(bytes, (size_t)count);
    if (copy != NULL) SSL_set_tlsext_status_ocsp_resp(session, copy, count);  // given back with the session
}

int copenssl_set_host_name(SSL *session, const char *name) { return (int)SSL_set_tlsext_host_name(session, name); }

int copenssl_set_ticket_mac(EVP_MAC_CTX *mac, const uint8_t *key, size_t count) {
    OSSL_PARAM settings[] = {
        OSSL_PARAM_construct_octet_string(OSSL_MAC_PARAM_KEY, (void *)key, count),
        OSSL_PARAM_construct_utf8_string(OSSL_MAC_PARAM_DIGEST, "sha256", 0),
        OSSL_PARAM_construct_end(),
    };
    return EVP_MAC_CTX_set_params(mac, settings);
}

static int64_t end_of(const OCSP_BASICRESP *basic) {
    int64_t end = INT64_MAX;
    for (int index = 0; index < OCSP_resp_count((OCSP_BASICRESP *)basic); index++) {
        ASN1_GENERALIZEDTIME *next = NULL;
        struct tm parts;
        OCSP_SINGLERESP *single = OCSP_resp_get0((OCSP_BASICRESP *)basic, index);
        if (single == NULL) continue;
        OCSP_single_get0_status(single, NULL, NULL, NULL, &next);
        if (next == NULL || ASN1_TIME_to_tm(next, &parts) != 1) continue;
        int64_t seconds = (int64_t)timegm(&parts);
        if (seconds < end) end = seconds;
    }
    return end;
}

int64_t copenssl_staple_end(const uint8_t *bytes, long count) {
    int64_t end = -1;
    OCSP_RESPONSE *response = d2i_OCSP_RESPONSE(NULL, &bytes, count);
    if (response != NULL && OCSP_response_status(response) == OCSP_RESPONSE_STATUS_SUCCESSFUL) {
        OCSP_BASICRESP *basic = OCSP_response_get1_basic(response);
        if (basic != NULL) end = end_of(basic);
        OCSP_BASICRESP_free(basic);
    }
    OCSP_RESPONSE_free(response);
    ERR_clear_error();
    return end;
}

void copenssl_each_name(
    const X509 *certificate, int (*body)(void *, const char *, const uint8_t *, long), void *argument) {
    GENERAL_NAMES *names = X509_get_ext_d2i(certificate, NID_subject_alt_name, NULL, NULL);
    for (int index = 0; index < sk_GENERAL_NAME_num(names); index++) {
        const GENERAL_NAME *name = sk_GENERAL_NAME_value(names, index);
        const ASN1_STRING *text = NULL;
        const char *type = "";
        switch (name->type) {
        case GEN_DNS:
            type = "DNS";
            text = name->d.dNSName;
            break;
        case GEN_IPADD:
            type = "IP";
            text = name->d.iPAddress;
            break;
        case GEN_URI:
            type = "URI";
            text = name->d.uniformResourceIdentifier;
            break;
        case GEN_EMAIL:
            type = "email";
            text = name->d.rfc822Name;
            break;
        default: continue;
        }
        if (!body(argument, type, ASN1_STRING_get0_data(text), ASN1_STRING_length(text))) break;
    }
    GENERAL_NAMES_free(names);
    ERR_clear_error();
}

static void print_name(const X509_NAME *name, void (*body)(void *, const uint8_t *, long), void *argument) {
    BIO *memory = BIO_new(BIO_s_mem());
    if (memory == NULL) return;
    char *text = NULL;
    X509_NAME_print_ex(memory, name, 0, XN_FLAG_RFC2253);
    long count = BIO_get_mem_data(memory, &text);
    if (text != NULL) body(argument, (const uint8_t *)text, count);
    BIO_free(memory);
    ERR_clear_error();
}

void copenssl_subject(const X509 *certificate, void (*body)(void *, const uint8_t *, long), void *argument) {
    print_name(X509_get_subject_name(certificate), body, argument);
}

void copenssl_issuer(const X509 *certificate, void (*body)(void *, const uint8_t *, long), void *argument) {
    print_name(X509_get_issuer_name(certificate), body, argument);
}

int copenssl_reason(unsigned long error, int *is_ssl) {
    *is_ssl = ERR_GET_LIB(error) == ERR_LIB_SSL;
    return ERR_GET_REASON(error);
}

void copenssl_refuse_tickets(SSL *session) {
    SSL_set_options(session, SSL_OP_NO_TICKET);
    SSL_set_num_tickets(session, 0);
}

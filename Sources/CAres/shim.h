#include <features.h>
#include <sys/types.h>
#include <sys/select.h>
#include <ares.h>

// Microseconds until c-ares must be called again; -1 for never. No timeval crosses into Swift: see CLibevent.
static inline long long ares_timeout_microseconds(ares_channel channel) {
    struct timeval left;
    if (!ares_timeout(channel, 0, &left)) return -1;
    return left.tv_sec * 1000000LL + left.tv_usec;
}

// Since c-ares 1.31 answers are kept for their TTL, whatever a caller wants to know: the resolver has its own cache, which is told when to
// look again. Returns the mask with the option that turns the other one off.
static inline int ares_keep_nothing(struct ares_options *options, int mask) {
#ifdef ARES_OPT_QUERY_CACHE
    options->qcache_max_ttl = 0;
    return mask | ARES_OPT_QUERY_CACHE;
#else
    return mask;
#endif
}

// The statuses as plain numbers, which functions take and return: an enum since c-ares 1.28, which Swift imports as a type of its own.
static const int ares_is_success = ARES_SUCCESS;
static const int ares_is_no_data = ARES_ENODATA;
static const int ares_is_not_found = ARES_ENOTFOUND;
static const int ares_is_bad_name = ARES_EBADNAME;
static const int ares_is_no_name = ARES_ENONAME;
static const int ares_is_timeout = ARES_ETIMEOUT;
static const int ares_is_destruction = ARES_EDESTRUCTION;
static const int ares_is_cancelled = ARES_ECANCELLED;

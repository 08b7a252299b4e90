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

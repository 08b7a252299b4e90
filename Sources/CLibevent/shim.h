#include <features.h>
#include <sys/types.h>
#include <sys/select.h>
#include <event2/event.h>

// Swift can name a member of timeval only if it knows which of several modules defines it. That depends on the order in
// which they are built, so no timeval crosses into Swift.
static inline int event_add_after(struct event *event, long long microseconds) {
    struct timeval interval = {microseconds / 1000000, microseconds % 1000000};
    return event_add(event, &interval);
}

// One file: an input goes through sockets, answers and the judgement in one loop without threads, and all of them share the state of its lane.
//
// The differential run: sends each input to several proxies, is the origin server of all of them, and compares the requests that arrive.
//
//     differ PEERS LANES        PEERS: names with commas between them; the first is the program under test
//
// It is driven over its standard input and output by run.py. First it prints a line with the ports of its origin servers: for each peer, for each lane.
// Then it reads lines:
//
//     ports PORT…               the ports of the proxies, in the same order
//     known MUTATION PEER OUTCOME   what a peer may do with that mutation (fields are separated by tabs)
//     run SEED FIRST COUNT SECONDS MANNER     makes inputs: MANNER is `all`, `single`, or the name of one mutation
//     try SEED INDEX PLAIN REQUESTS TRAITS…   makes one input of a recipe, and tells each unknown difference and all that arrived
//     manner MANNER             how the inputs of `try` are chosen, as for `run`
//
// A lane has one proxy listener and one origin server per peer, and handles one input at a time. So every request that arrives at the origin server of
// a lane was caused by the input of that lane, whatever is left of its target.
#include "inputs.h"
#include "received.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum {
    MOST_PEERS = 6,
    MOST_LANES = 64,
    MOST_ITEMS = 24,
    STORE = 1536 * 1024,
    ANSWER = 256 * 1024,
    KEYS = 1 << 17,
    WORD = 40
};

// An input with unknown differences is tried again: a busy machine makes some. A proxy that is silent in the middle of an input for `quiet` seconds
// counts as waiting for more. Before the next try there is a pause, in which a proxy may finish the requests of a connection that was closed.
enum { MOST_TRIES = 3 };
static const double quiet[MOST_TRIES + 1] = {0, 0.12, 0.7, 2}, pauses[MOST_TRIES + 1] = {0, 0, 0.2, 1};

enum end { RUNNING, SENTINEL, CLOSED, WAITING };
enum kind { LISTENER, CLIENT, ORIGIN };

struct socket {
    enum kind kind;
    int fd, peer, lane;
};

// A connection from a proxy to the origin server.
struct upstream {
    struct socket socket;
    char *bytes;
    size_t length, room;
    struct upstream *next;  // those to free after the events
};

struct side {
    struct socket listener, client;
    size_t sent;
    char *answer;
    size_t answered;
    int items[MOST_ITEMS];  // the status of each final response; 0 for a request that was forwarded
    int item_count;
    struct received requests[MOST_ITEMS];
    int request_count;
    char *store;
    size_t used;
    enum end end;
    double heard;
    int sent_garbage;
};

struct lane {
    struct input input;
    struct recipe recipe;
    int tries, is_busy, has_found;
    int is_cut;  // the rest of the input is still to be sent
    double resume;  // when the next try begins; 0 if none does
    struct side sides[MOST_PEERS];
};

static char peers[MOST_PEERS][16];
static int peer_count, lane_count, poller;
static int ports[MOST_PEERS][MOST_LANES];
static struct lane lanes[MOST_LANES];
static struct upstream *ended;
static struct manner manner = {0, -1};
static uint64_t seed, next_index, last_index;
static double deadline;
static long long inputs, requests, retried, connections, agreed;
static int busy, is_trial, cut_lanes;

// While a table is learned, everything is unknown: two tries, and a pause only behind a proxy that was silent.
static int last_try(void) { return manner.only >= 0 ? 2 : MOST_TRIES; }

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

static void fail(const char *what) {
    perror(what);
    exit(1);
}

// MARK: Tables

// An open hash table from texts to counts.
struct counted {
    char *text;
    uint64_t hash;
    long long count;
    size_t length;
    char *example;
};
struct table {
    struct counted slots[KEYS];
    int used;
};
static struct table known, outcomes, unknown;

static struct counted *look(struct table *table, const char *text, int may_add) {
    uint64_t hash = 1469598103934665603u;
    for (const char *each = text; *each; each++) hash = (hash ^ (unsigned char)*each) * 1099511628211u;
    for (size_t place = hash % KEYS;; place = (place + 1) % KEYS) {
        struct counted *slot = &table->slots[place];
        if (!slot->text) {
            if (!may_add || table->used > KEYS / 2) return NULL;
            table->used++;
            slot->text = strdup(text);
            slot->hash = hash;
            return slot;
        }
        if (slot->hash == hash && !strcmp(slot->text, text)) return slot;
    }
}

static int is_known(int mutation, int peer, const char *outcome) {
    char key[160];
    snprintf(key, sizeof key, "%s\t%s\t%s", mutation_name(mutation), peers[peer], outcome);
    if (look(&known, key, 0)) return 1;
    snprintf(key, sizeof key, "%s\t%s\t*", mutation_name(mutation), peers[peer]);
    return look(&known, key, 0) != NULL;
}

// MARK: Comparison

struct set {
    int traits[MOST_REQUESTS * MOST_TRAITS];
    int count;
};

static void gather(struct set *set, const struct request_info *info) {
    for (int each = 0; each < info->count; each++) set->traits[set->count++] = info->traits[each];
}

// Whether a line about two mutations together, of which `mutation` is one, knows the outcome.
static int is_known_with_another(const struct set *set, int mutation, int peer, const char *outcome) {
    for (int each = 0; each < set->count; each++) {
        int other = set->traits[each];
        if (other == mutation) continue;
        char key[200];
        const char *one = mutation_name(mutation), *two = mutation_name(other);
        int is_first = strcmp(one, two) < 0;
        snprintf(key, sizeof key, "%s+%s\t%s\t%s", is_first ? one : two, is_first ? two : one, peers[peer], outcome);
        if (look(&known, key, 0)) return 1;
    }
    return 0;
}

static int explains(const struct set *set, int peer, const char *outcome) {
    for (int each = 0; each < set->count; each++)
        if (is_known(set->traits[each], peer, outcome)) return 1;
    for (int each = 0; each < set->count; each++)
        if (is_known_with_another(set, set->traits[each], peer, outcome)) return 1;
    return 0;
}

// Whether every mutation allows the outcome, alone or together with another one.
static int all_allow(const struct set *set, int peer, const char *outcome) {
    for (int each = 0; each < set->count; each++)
        if (!is_known(set->traits[each], peer, outcome)
            && !is_known_with_another(set, set->traits[each], peer, outcome))
            return 0;
    return 1;
}

// Whether one mutation, or two together, explain that ours does one thing and the peer another one.
static int explains_both(const struct set *set, const char *ours, int peer, const char *theirs) {
    for (int each = 0; each < set->count; each++) {
        int mutation = set->traits[each];
        if (is_known(mutation, 0, ours) && is_known(mutation, peer, theirs)) return 1;
        if (is_known_with_another(set, mutation, 0, ours) && is_known_with_another(set, mutation, peer, theirs))
            return 1;
    }
    return 0;
}

static int by_name(const void *one, const void *other) {
    return strcmp(mutation_name(*(const int *)one), mutation_name(*(const int *)other));
}

static void tell_unknown(
    struct lane *lane, int place, const struct set *set, int peer, const char *ours, const char *theirs) {
    lane->has_found = 1;
    // The last look is the one that counts, with new connections and more patience.
    if (lane->tries < last_try()) return;
    char key[1200];
    struct set sorted = *set;
    qsort(sorted.traits, (size_t)sorted.count, sizeof *sorted.traits, by_name);
    size_t length = 0;
    for (int each = 0; each < sorted.count && length < 1000; each++)
        if (!each || sorted.traits[each] != sorted.traits[each - 1])
            length += (size_t)snprintf(
                key + length, sizeof key - length, "%s%s", length ? "+" : "", mutation_name(sorted.traits[each]));
    snprintf(key + length, sizeof key - length, "\t%s\t%s\t%s", peers[peer], ours, theirs);
    if (is_trial) {
        printf("found\t%s\n", key);
        return;
    }
    struct counted *slot = look(&unknown, key, 1);
    if (!slot) return;
    if (!slot->count++ || lane->input.own < slot->length) {
        char example[128];
        snprintf(
            example, sizeof example, "%llu\t%d\t%d", (unsigned long long)lane->recipe.index, place, lane->input.count);
        free(slot->example);
        slot->example = strdup(example);
        slot->length = lane->input.own;
    }
}

// What a peer did with the request at that place, in a word. `request` is set if it was forwarded.
static void outcome_at(
    const struct lane *lane, int peer, int place, int *forwarded, char word[WORD], const struct received **request) {
    const struct side *side = &lane->sides[peer];
    *request = NULL;
    if (place < side->item_count ? side->items[place] == 0 : *forwarded < side->request_count) {
        *request = &side->requests[(*forwarded)++];
        snprintf(word, WORD, "%s", place < lane->input.count ? "forwards" : "extra");
    } else if (place < side->item_count) {
        snprintf(word, WORD, "%d", side->items[place]);
    } else {
        snprintf(word, WORD, "%s",
            side->sent_garbage      ? "garbage"
            : side->end == SENTINEL ? "end"
            : side->end == CLOSED   ? "closes"
                                    : "waits");
    }
}

// Counts what a peer did, if the input has one mutation, so that it is known to be the cause.
static void count_outcome(const struct lane *lane, int place, int peer, const char *outcome) {
    int mutation = -1, last = place < lane->input.count ? place : lane->input.count - 1;
    for (int each = 0; each <= last; each++) {
        const struct request_info *info = &lane->input.requests[each];
        if (info->count != (each == last)) return;
        if (each == last) mutation = info->traits[0];
    }
    char key[160];
    snprintf(key, sizeof key, "%s\t%s\t%s", mutation_name(mutation), peers[peer], outcome);
    struct counted *slot = look(&outcomes, key, 1);
    if (slot) slot->count++;
}

static void gather_at(const struct lane *lane, int place, struct set *own, struct set *before) {
    own->count = 0;
    if (place >= lane->input.count) return;
    gather(own, &lane->input.requests[place]);
    gather(before, &lane->input.requests[place]);
}

// Judges the program under test alone.
static void judge_ours(struct lane *lane, int may_count) {
    int forwarded = 0;
    struct set own, before = {.count = 0};
    for (int place = 0; place < MOST_ITEMS; place++) {
        char ours[WORD];
        const struct received *request;
        gather_at(lane, place, &own, &before);
        const struct set *allowed = place < lane->input.count ? &own : &before;
        outcome_at(lane, 0, place, &forwarded, ours, &request);
        if (place >= lane->input.count && !strcmp(ours, "end")) return;
        int is_fine = request && place < lane->input.count ? all_allow(&own, 0, ours) : explains(&before, 0, ours);
        if (!is_fine) tell_unknown(lane, place, request ? allowed : &before, 0, ours, ours);
        if (may_count) count_outcome(lane, place, 0, ours);
        // After a malformed request, the start of the next one is unknown. RFC 9112 §6.3.
        const struct side *side = &lane->sides[0];
        int goes_on = side->item_count > place + 1 || side->request_count > forwarded || side->end == SENTINEL;
        if (!strcmp(ours, "400") && goes_on) tell_unknown(lane, place, &before, 0, ours, "goes on");
        if (!request) return;
        struct atoms faults = {.count = 0};
        find_faults(lane->sides[0].store, request, &faults);
        for (int each = 0; each < faults.count; each++) {
            if (!explains(allowed, 0, faults.text[each]))
                tell_unknown(lane, place, allowed, 0, ours, faults.text[each]);
            if (may_count) count_outcome(lane, place, 0, faults.text[each]);
        }
    }
}

// Judges one peer beside the program under test.
static void judge_peer(struct lane *lane, int peer, int may_count) {
    int our_forwarded = 0, their_forwarded = 0;
    struct set own, before = {.count = 0};
    for (int place = 0; place < MOST_ITEMS; place++) {
        char ours[WORD], theirs[WORD];
        const struct received *our_request, *their_request;
        gather_at(lane, place, &own, &before);
        const struct set *allowed = place < lane->input.count ? &own : &before;
        outcome_at(lane, 0, place, &our_forwarded, ours, &our_request);
        outcome_at(lane, peer, place, &their_forwarded, theirs, &their_request);
        int is_same = !strcmp(ours, theirs);
        if (is_same && place >= lane->input.count && !strcmp(ours, "end")) return;
        struct atoms atoms = {.count = 0};
        if (our_request && their_request)
            compare(lane->sides[0].store, our_request, lane->sides[peer].store, their_request, &atoms);
        if (their_request) find_faults(lane->sides[peer].store, their_request, &atoms);
        // A refusal is explained by one mutation alone; a request that only the peer forwards by the mutation that ours refuses.
        if (!is_same && !explains_both(&before, ours, peer, theirs)
            && (their_request || !explains(&before, peer, theirs)))
            tell_unknown(lane, place, our_request && their_request ? allowed : &before, peer, ours, theirs);
        if (may_count) count_outcome(lane, place, peer, theirs);
        int is_apart = !our_request || !their_request || !is_same;
        for (int each = 0; each < atoms.count; each++) {
            // After content that ends elsewhere, the two read different streams.
            is_apart |= !strcmp(atoms.text[each], "changes content");
            const struct set *causes = our_request ? allowed : &before;
            if (!explains(causes, peer, atoms.text[each]))
                tell_unknown(lane, place, causes, peer, ours, atoms.text[each]);
            if (may_count) count_outcome(lane, place, peer, atoms.text[each]);
        }
        if (is_apart) return;
    }
}

static void judge(struct lane *lane) {
    lane->has_found = 0;
    // An input that is tried again is counted the second time. The first look, which has no findings yet, cannot count.
    judge_ours(lane, 0);
    for (int peer = 1; peer < peer_count; peer++) judge_peer(lane, peer, 0);
    if (is_trial || (lane->has_found && lane->tries < last_try())) return;
    int had_found = lane->has_found, tries = lane->tries;
    lane->tries = 0;  // the second pass counts, and tells nothing
    judge_ours(lane, 1);
    for (int peer = 1; peer < peer_count; peer++) judge_peer(lane, peer, 1);
    lane->tries = tries;
    lane->has_found = had_found;
}

// MARK: Sockets

static void watch(struct socket *socket, uint32_t events, int how) {
    struct epoll_event event = {.events = events, .data.ptr = socket};
    if (epoll_ctl(poller, how, socket->fd, &event)) fail("epoll_ctl");
}

static void close_client(struct side *side) {
    if (side->client.fd >= 0) close(side->client.fd);
    side->client.fd = -1;
}

static void end_side(struct lane *lane, struct side *side, enum end end);

static void send_more(struct lane *lane, struct side *side) {
    size_t end = lane->is_cut ? lane->input.cut : lane->input.length;
    while (side->sent < end) {
        ssize_t count =
            send(side->client.fd, lane->input.bytes + side->sent, end - side->sent, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (count < 0) {
            // A proxy that refused early is heard when its answer is read.
            if (errno == EAGAIN) watch(&side->client, EPOLLIN | EPOLLOUT, EPOLL_CTL_MOD);
            else side->sent = lane->input.length;
            return;
        }
        side->sent += (size_t)count;
    }
    if (lane->input.length > 16384) watch(&side->client, EPOLLIN, EPOLL_CTL_MOD);
}

static void open_client(struct side *side) {
    for (int tries = 0; tries < 50; tries++) {
        int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (fd < 0) fail("socket");
        int on = 1;
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
        // The end of a connection leaves nothing behind: a run opens more of them than there are ports.
        struct linger none = {1, 0};
        setsockopt(fd, SOL_SOCKET, SO_LINGER, &none, sizeof none);
        struct sockaddr_in address = {
            .sin_family = AF_INET, .sin_port = htons((uint16_t)ports[side->client.peer][side->client.lane])};
        address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        if (!connect(fd, (struct sockaddr *)&address, sizeof address)) {
            side->client.fd = fd;
            connections++;
            watch(&side->client, EPOLLIN, EPOLL_CTL_ADD);
            return;
        }
        close(fd);
        usleep(20000);
    }
    fprintf(stderr, "differ: %s does not accept connections\n", peers[side->client.peer]);
    exit(1);
}

static void send_input(struct lane *lane) {
    for (int peer = 0; peer < peer_count; peer++) {
        struct side *side = &lane->sides[peer];
        side->sent = side->answered = side->used = 0;
        side->item_count = side->request_count = side->sent_garbage = 0;
        side->end = RUNNING;
        side->heard = now();
    }
    lane->is_busy = peer_count;
    lane->is_cut = lane->input.cut > 0;
    cut_lanes += lane->is_cut;
    for (int peer = 0; peer < peer_count; peer++) {
        struct side *side = &lane->sides[peer];
        if (side->client.fd < 0) open_client(side);
        send_more(lane, side);
    }
}

static void send_rest(struct lane *lane) {
    lane->is_cut = 0;
    cut_lanes--;
    for (int peer = 0; peer < peer_count; peer++)
        if (lane->sides[peer].client.fd >= 0 && lane->sides[peer].end == RUNNING) send_more(lane, &lane->sides[peer]);
}

static void start_next(struct lane *lane) {
    if (next_index >= last_index || now() > deadline) {
        busy--;
        return;
    }
    lane->recipe = (struct recipe){.seed = seed, .index = next_index++, .requests = ~0u};
    for (int each = 0; each < MOST_REQUESTS; each++) lane->recipe.traits[each] = ~0u;
    make_input(&lane->recipe, &manner, &lane->input);
    lane->tries = 1;
    send_input(lane);
}

static void finish(struct lane *lane) {
    cut_lanes -= lane->is_cut;
    lane->is_cut = 0;
    judge(lane);
    int has_waited = 0;
    for (int peer = 0; peer < peer_count; peer++) has_waited |= lane->sides[peer].end == WAITING;
    if (lane->has_found && lane->tries < last_try()) {
        retried += lane->tries == 1;
        lane->tries++;
        for (int peer = 0; peer < peer_count; peer++) close_client(&lane->sides[peer]);
        lane->resume = now() + (manner.only < 0 ? pauses[lane->tries] : has_waited ? 1 : 0);
        return;
    }
    if (is_trial) {
        busy--;
        return;
    }
    inputs++;
    requests += lane->input.count;
    agreed += !lane->has_found;
    start_next(lane);
}

static void end_side(struct lane *lane, struct side *side, enum end end) {
    if (side->end != RUNNING) return;
    side->end = end;
    if (end != SENTINEL) close_client(side);
    if (!--lane->is_busy) finish(lane);
}

// MARK: Answers of the proxies

static const char *field(const char *head, size_t length, const char *name) {
    size_t count = strlen(name);
    for (const char *line = head; (line = memmem(line, length - (size_t)(line - head), "\r\n", 2));) {
        line += 2;
        if ((size_t)(head + length - line) > count && !strncasecmp(line, name, count)) return line + count;
    }
    return NULL;
}

// Reads the complete responses at the start of the answer. Returns whether the input is done.
static int read_answers(struct side *side, int is_closed) {
    size_t from = 0;
    int is_done = 0;
    while (!is_done && from < side->answered) {
        char *head = side->answer + from;
        size_t left = side->answered - from;
        if (left < 12 && !is_closed) break;
        if (left < 12 || memcmp(head, "HTTP/1.", 7)) {
            // HTTP/0.9 has no head. RFC 9112 §2.3 leaves it out.
            if (!is_closed) break;
            if (side->item_count < MOST_ITEMS) side->items[side->item_count++] = 9;
            from = side->answered;
            break;
        }
        char *end = memmem(head, left, "\r\n\r\n", 4);
        if (!end) break;
        size_t length = (size_t)(end + 4 - head);
        int status = atoi(head + 9);
        if (status < 200) {
            from += length;
            continue;
        }
        if (status == 299) {
            side->end = RUNNING;
            from = side->answered;
            is_done = 1;
            break;
        }
        int is_ours = status == 298 || status == 497;
        int closes = 0;
        const char *connection = field(head, length, "connection:");
        if (connection) closes = strncasecmp(connection, " close", 6) == 0;
        size_t body = 0;
        int is_complete = 1;
        const char *stated = field(head, length, "content-length:");
        if (!is_ours && status != 204 && status != 304) {
            // A response to HEAD states a length, but has no content.
            int is_followed = left >= length + 7 && !memcmp(head + length, "HTTP/1.", 7);
            if (is_followed) {
                body = 0;
            } else if (field(head, length, "transfer-encoding:")) {
                char *last = memmem(head + length - 2, left - length + 2, "\r\n0\r\n\r\n", 7);
                if (last) body = (size_t)(last + 7 - head) - length;
                else is_complete = 0;
            } else if (stated) {
                body = (size_t)atoll(stated);
                if (left - length < body) is_complete = 0;
            } else {
                is_complete = 0;
            }
        }
        if (!is_complete && !is_closed && !closes) break;
        if (!is_complete) body = left - length;
        if (side->item_count < MOST_ITEMS) side->items[side->item_count++] = is_ours ? 0 : status;
        from += length + body;
        if (from > side->answered) from = side->answered;
        if (closes) return 2;
    }
    memmove(side->answer, side->answer + from, side->answered - from);
    side->answered -= from;
    return is_done;
}

static void hear_client(struct socket *socket, uint32_t events) {
    struct lane *lane = &lanes[socket->lane];
    struct side *side = &lane->sides[socket->peer];
    if (side->end != RUNNING) {
        // The proxy ends a connection that was kept for the next input, or says more than was asked for.
        close_client(side);
        return;
    }
    side->heard = now();
    if (events & EPOLLOUT) {
        watch(&side->client, EPOLLIN, EPOLL_CTL_MOD);
        send_more(lane, side);
    }
    if (!(events & ~(uint32_t)EPOLLOUT)) return;
    ssize_t count = recv(socket->fd, side->answer + side->answered, ANSWER - side->answered, MSG_DONTWAIT);
    if (count < 0 && errno == EAGAIN) return;
    if (count > 0) side->answered += (size_t)count;
    int is_closed = count <= 0 || side->answered == ANSWER;
    int is_done = read_answers(side, is_closed);
    if (is_done == 1) end_side(lane, side, SENTINEL);
    else if (is_done == 2 || is_closed) end_side(lane, side, CLOSED);
}

// MARK: The origin servers

static void hear_upstream(struct upstream *up) {
    struct lane *lane = &lanes[up->socket.lane];
    struct side *side = &lane->sides[up->socket.peer];
    if (up->room - up->length < 65536) {
        up->room = up->room * 2 + 65536;
        up->bytes = realloc(up->bytes, up->room);
        if (!up->bytes) fail("realloc");
    }
    ssize_t count = recv(up->socket.fd, up->bytes + up->length, up->room - up->length, MSG_DONTWAIT);
    if (count < 0 && errno == EAGAIN) return;
    int is_over = count <= 0;
    if (!is_over) {
        up->length += (size_t)count;
        side->heard = now();
    }
    char answer[512];
    size_t answered = 0;
    while (!is_over && up->length) {
        struct received request;
        if (side->used + up->length > STORE || side->request_count == MOST_ITEMS) {
            is_over = 1;
            break;
        }
        long taken = read_request(up->bytes, up->length, side->store, &side->used, &request);
        if (taken == 0) break;
        if (taken < 0) {
            side->sent_garbage = is_over = 1;
            break;
        }
        memmove(up->bytes, up->bytes + taken, up->length - (size_t)taken);
        up->length -= (size_t)taken;
        if (!request.is_sentinel && side->end == RUNNING) side->requests[side->request_count++] = request;
        static const char usual[] = "HTTP/1.1 298 OK\r\nContent-Length: 0\r\n\r\n",
                          last[] = "HTTP/1.1 299 End\r\nContent-Length: 0\r\n\r\n",
                          tunnel[] = "HTTP/1.1 497 No\r\nContent-Length: 0\r\n\r\n";
        const char *text = request.is_sentinel ? last : request.is_connect ? tunnel : usual;
        if (answered + sizeof usual < sizeof answer) answered += (size_t)sprintf(answer + answered, "%s", text);
    }
    if (answered && send(up->socket.fd, answer, answered, MSG_NOSIGNAL | MSG_DONTWAIT) < 0) is_over = 1;
    if (!is_over) return;
    close(up->socket.fd);
    free(up->bytes);
    up->next = ended;
    ended = up;
}

static void accept_upstream(struct socket *listener) {
    int fd = accept4(listener->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd < 0) return;
    int on = 1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    struct upstream *up = calloc(1, sizeof *up);
    if (!up) fail("calloc");
    up->socket = (struct socket){ORIGIN, fd, listener->peer, listener->lane};
    watch(&up->socket, EPOLLIN, EPOLL_CTL_ADD);
}

static void turn(void) {
    static double looked;
    struct epoll_event events[256];
    static double cut_at;
    int count = epoll_wait(poller, events, 256, cut_lanes ? 1 : 10);
    for (int each = 0; each < count; each++) {
        struct socket *socket = events[each].data.ptr;
        if (socket->kind == LISTENER) accept_upstream(socket);
        else if (socket->kind == ORIGIN) hear_upstream((struct upstream *)socket);
        else if (socket->fd >= 0) hear_client(socket, events[each].events);
    }
    while (ended) {
        struct upstream *up = ended;
        ended = up->next;
        free(up);
    }
    double time = now();
    // The proxies had a moment to read the first part.
    if (cut_lanes && time - cut_at > 0.002) {
        cut_at = time;
        for (int lane = 0; lane < lane_count; lane++)
            if (lanes[lane].is_cut) send_rest(&lanes[lane]);
    }
    if (time - looked < 0.01) return;
    // If this process did not run for a while, the proxies did not either.
    double pause = looked && time - looked > 0.05 ? time - looked : 0;
    looked = time;
    for (int lane = 0; lane < lane_count; lane++) {
        double patience = quiet[lanes[lane].tries];
        if (lanes[lane].resume && time >= lanes[lane].resume) {
            lanes[lane].resume = 0;
            send_input(&lanes[lane]);
        }
        for (int peer = 0; peer < peer_count && lanes[lane].is_busy; peer++) {
            struct side *side = &lanes[lane].sides[peer];
            side->heard += pause;
            if (side->end == RUNNING && time - side->heard > patience) end_side(&lanes[lane], side, WAITING);
        }
    }
}

// MARK: Commands

static void listen_all(void) {
    for (int peer = 0; peer < peer_count; peer++)
        for (int lane = 0; lane < lane_count; lane++) {
            struct side *side = &lanes[lane].sides[peer];
            int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
            struct sockaddr_in address = {.sin_family = AF_INET};
            address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
            socklen_t size = sizeof address;
            if (fd < 0 || bind(fd, (struct sockaddr *)&address, size) || listen(fd, 128)
                || getsockname(fd, (struct sockaddr *)&address, &size))
                fail("listen");
            side->listener = (struct socket){LISTENER, fd, peer, lane};
            side->client = (struct socket){CLIENT, -1, peer, lane};
            side->store = malloc(STORE);
            side->answer = malloc(ANSWER);
            if (!side->store || !side->answer) fail("malloc");
            watch(&side->listener, EPOLLIN, EPOLL_CTL_ADD);
            printf("%d ", ntohs(address.sin_port));
        }
    printf("\n");
    for (int lane = 0; lane < lane_count; lane++) lanes[lane].input.bytes = malloc(MOST_INPUT);
}

static void tell_table(const char *word, const struct table *table) {
    for (int each = 0; each < KEYS; each++) {
        const struct counted *slot = &table->slots[each];
        if (slot->text && slot->count)
            printf("%s\t%lld\t%s\t%s\n", word, slot->count, slot->text, slot->example ? slot->example : "");
    }
}

static void run(const char *line) {
    char how[64];
    unsigned long long first, count, given;
    double seconds;
    if (sscanf(line, "run %llu %llu %llu %lf %63s", &given, &first, &count, &seconds, how) != 5) return;
    seed = given;
    manner = (struct manner){!strcmp(how, "single"), mutation_named(how)};
    next_index = first;
    last_index = first + count;
    double started = now();
    deadline = started + seconds;
    inputs = requests = retried = connections = agreed = 0;
    busy = lane_count;
    for (int lane = 0; lane < lane_count; lane++) start_next(&lanes[lane]);
    double told = started;
    while (busy) {
        turn();
        if (now() - told > 20) {
            told = now();
            printf("progress\t%lld\t%.1f\t%d\n", inputs, told - started, unknown.used);
            fflush(stdout);
        }
    }
    tell_table("outcome", &outcomes);
    tell_table("unknown", &unknown);
    printf(
        "done\t%lld\t%lld\t%.2f\t%lld\t%lld\t%lld\n", inputs, requests, now() - started, retried, connections, agreed);
}

static void try_one(char *line) {
    struct lane *lane = &lanes[0];
    struct recipe recipe = {0};
    char *at = line + 4;
    recipe.seed = strtoull(at, &at, 10);
    recipe.index = strtoull(at, &at, 10);
    recipe.plain = (int)strtol(at, &at, 10);
    recipe.requests = (unsigned)strtoul(at, &at, 10);
    for (int each = 0; each < MOST_REQUESTS; each++) recipe.traits[each] = (unsigned)strtoul(at, &at, 10);
    lane->recipe = recipe;
    make_input(&recipe, &manner, &lane->input);
    for (int peer = 0; peer < peer_count; peer++) close_client(&lane->sides[peer]);
    is_trial = 1;
    busy = 1;
    lane->tries = last_try();
    send_input(lane);
    while (busy) turn();
    is_trial = 0;
    for (int peer = 0; peer < peer_count; peer++) {
        struct side *side = &lane->sides[peer];
        int forwarded = 0;
        for (int place = 0; place < MOST_ITEMS; place++) {
            char word[WORD];
            const struct received *request;
            outcome_at(lane, peer, place, &forwarded, word, &request);
            printf("received\t%s\t%s\t", peers[peer], word);
            size_t length = request ? request->head_length + request->content_length + request->trailers_length : 0;
            for (size_t each = 0; each < length; each++)
                printf("%02x", (unsigned char)side->store[request->head + each]);
            printf("\n");
            if (place >= side->item_count && !request) break;
        }
    }
    printf("bytes\t%d\t", lane->input.made);
    for (size_t each = 0; each < lane->input.own; each++) printf("%02x", (unsigned char)lane->input.bytes[each]);
    printf("\n");
}

int main(int argument_count, char **arguments) {
    if (argument_count != 3) return 1;
    signal(SIGPIPE, SIG_IGN);
    for (char *name = strtok(arguments[1], ","); name && peer_count < MOST_PEERS; name = strtok(NULL, ","))
        snprintf(peers[peer_count++], 16, "%s", name);
    lane_count = atoi(arguments[2]);
    if (peer_count < 2 || lane_count < 1 || lane_count > MOST_LANES) return 1;
    poller = epoll_create1(EPOLL_CLOEXEC);
    if (poller < 0) fail("epoll_create1");
    for (int each = 0; each < mutation_count; each++) printf("mutation\t%s\n", mutation_name(each));
    listen_all();
    fflush(stdout);
    static char line[8192];
    while (fgets(line, sizeof line, stdin)) {
        line[strcspn(line, "\n")] = 0;
        if (!strncmp(line, "ports ", 6)) {
            char *at = line + 6;
            for (int peer = 0; peer < peer_count; peer++)
                for (int lane = 0; lane < lane_count; lane++) ports[peer][lane] = (int)strtol(at, &at, 10);
        } else if (!strncmp(line, "known\t", 6)) {
            look(&known, line + 6, 1);
        } else if (!strncmp(line, "refused\t", 8)) {
            if (mutation_named(line + 8) >= 0) mutation_is_refused(mutation_named(line + 8));
        } else if (!strncmp(line, "run ", 4)) {
            run(line);
            fflush(stdout);
        } else if (!strncmp(line, "manner ", 7)) {
            manner = (struct manner){!strcmp(line + 7, "single"), mutation_named(line + 7)};
        } else if (!strncmp(line, "try ", 4)) {
            try_one(line);
            fflush(stdout);
        }
    }
    return 0;
}

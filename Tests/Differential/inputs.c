#include "inputs.h"

#include <stdio.h>
#include <string.h>

enum part {
    PRE = 1 << 0,
    METHOD = 1 << 1,
    SPACE1 = 1 << 2,
    TARGET = 1 << 3,
    SPACE2 = 1 << 4,
    VERSION = 1 << 5,
    EOL = 1 << 6,
    FIRST = 1 << 7,
    HOST = 1 << 8,
    LINE = 1 << 9,
    LEN = 1 << 10,
    TE = 1 << 11,
    HEADEND = 1 << 12,
    SIZE = 1 << 13,
    EXT = 1 << 14,
    EOL1 = 1 << 15,
    EOL2 = 1 << 16,
    LAST = 1 << 17,
    LASTEOL = 1 << 18,
    TRAILER = 1 << 19,
    END = 1 << 20,
    BYTES = 1 << 21
};
enum need { ANY, NONE, LENGTH, CHUNKED };

struct text {
    const char *bytes;
    int length;
};
struct mutation {
    const char *name;
    int parts;
    enum need need;
    struct text texts[8];
};
#define S(x) {x, sizeof(x) - 1}
#include "mutations.h"

enum { MUTATIONS = sizeof mutations / sizeof *mutations };
const int mutation_count = MUTATIONS;
static unsigned char refused[MUTATIONS];

const char *mutation_name(int mutation) { return mutations[mutation].name; }

int mutation_named(const char *name) {
    for (int each = 0; each < MUTATIONS; each++)
        if (!strcmp(mutations[each].name, name)) return each;
    return -1;
}

void mutation_is_refused(int mutation) { refused[mutation] = 1; }

// splitmix64: a step of a counter, mixed. Every seed is good.
static uint64_t next(uint64_t *state) {
    uint64_t word = (*state += 0x9e3779b97f4a7c15);
    word = (word ^ (word >> 30)) * 0xbf58476d1ce4e5b9;
    word = (word ^ (word >> 27)) * 0x94d049bb133111eb;
    return word ^ (word >> 31);
}
static int below(uint64_t *state, int bound) { return (int)((next(state) >> 16) % (uint64_t)bound); }

static char *at;
static char *limit;

static void put(const char *bytes, size_t length) {
    if (length > (size_t)(limit - at)) length = (size_t)(limit - at);
    memcpy(at, bytes, length);
    at += length;
}
static void put_text(const char *text) { put(text, strlen(text)); }
static void put_repeated(char byte, int count) {
    for (int each = 0; each < count; each++) put(&byte, 1);
}

static const char *const words[] = {
    "a", "bc", "index", "api", "v1", "users", "42", "x-y", "A", "z_0", "%20", "~me", "a.b", "%C3%A4"};
static const char *word(uint64_t *random) { return words[below(random, sizeof words / sizeof *words)]; }

// A text of a mutation, with its placeholders filled in. `length` is the length of the content, `size` that of the chunk.
static void put_filled(struct text text, int length, int size) {
    char number[32];
    for (int each = 0; each < text.length; each++) {
        if (text.bytes[each] != '\x1a') {
            put(text.bytes + each, 1);
            continue;
        }
        switch (text.bytes[++each]) {
        case 'd':
            snprintf(number, sizeof number, "%d", length);
            put_text(number);
            break;
        case 'x':
            snprintf(number, sizeof number, "%x", size);
            put_text(number);
            break;
        case 'X':
            snprintf(number, sizeof number, "%X", size);
            put_text(number);
            break;
        case 'L': put_repeated('l', 9000); break;
        case 'H': put_repeated('h', 20000); break;
        case 'J': put_repeated('j', 70000); break;
        case 'N':
            for (int name = 0; name < 100; name++) {
                snprintf(number, sizeof number, "%sx-n%d", name ? ", " : "", name);
                put_text(number);
            }
            break;
        case 'F':
            for (int line = 0; line < 150; line++) {
                snprintf(number, sizeof number, "X-Many: %d\r\n", line);
                put_text(number);
            }
            break;
        }
    }
}

static const char *const ordinary[] = {
    "Accept: */*\r\n",
    "User-Agent: differ/1.0 (test)\r\n",
    "X-A: b\r\n",
    "X-List: a, b, c\r\n",
    "Cookie: a=b; c=d\r\n",
    "Accept-Language: de, en;q=0.5\r\n",
    "Cache-Control: no-cache\r\n",
    "If-None-Match: \"abc\"\r\n",
    "X-Empty: x\r\n",
    "Authorization: Bearer abc.def\r\n",
    "Referer: http://host.test/before\r\n",
    "Origin: http://host.test\r\n",
    "X-Long-Name-Of-A-Field: 1\r\n",
};
static const char *const lengths[] = {"hello", "0\r\n\r\n", "a", "GET /smuggled HTTP/1.1\r\nHost: host.test\r\n\r\n",
    "0\r\n\r\nGET /smuggled HTTP/1.1\r\nHost: host.test\r\n\r\n", "5\r\nhello\r\n0\r\n\r\n", "\r\n\r\n", "a=b&c=d",
    "{\"a\": [1, 2, 3]}\n"};

struct chosen {
    int mutation;
    int parts;
    uint64_t random;
    int kept;
};

// Replaces, removes, doubles and inserts bytes between two places, with the bytes that parsers care about.
static void edit_bytes(char *start, uint64_t random) {
    static const char bytes[] = "\r\n\r\n \t:,;=\"/\\%#?@[]\0\x01\x0b\x7f\x80\xff"
                                "0159afGHx_-.";
    for (int edits = 1 + below(&random, 3); edits > 0 && at > start; edits--) {
        char *place = start + below(&random, (int)(at - start));
        char byte = bytes[below(&random, sizeof bytes - 1)];
        switch (below(&random, 4)) {
        case 0: *place = byte; break;
        case 1: memmove(place, place + 1, (size_t)(at - place - 1)), at--; break;
        case 2: byte = *place;  // fall through
        default:
            if (at == limit) return;
            memmove(place + 1, place, (size_t)(at - place)), at++;
            *place = byte;
        }
    }
}

static int choose(uint64_t *random, const struct manner *manner, int is_last, struct chosen chosen[], enum need *mode) {
    static const unsigned char counts[20] = {0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1, 2, 2, 2, 2, 2, 3, 3, 3, 4};
    int wanted = manner->single || manner->only >= 0 ? 1 : counts[below(random, 20)];
    int count = 0, taken = 0;
    *mode = ANY;
    for (int tries = 0; count < wanted && tries < 24; tries++) {
        int mutation = manner->only >= 0   ? manner->only
                       : below(random, 30) ? below(random, MUTATIONS)
                                           : mutation_named("bytes/random");
        const struct mutation *it = &mutations[mutation];
        // Random bytes may undo another mutation, so they are alone.
        if (it->parts == BYTES && count) continue;
        if (it->parts == BYTES) wanted = 1;
        if (!is_last && refused[mutation]) continue;
        if (it->need != ANY && *mode != ANY && it->need != *mode) continue;
        if (it->parts & taken & ~LINE) continue;
        int repeated = 0;
        for (int each = 0; each < count; each++) repeated |= chosen[each].mutation == mutation;
        if (repeated) continue;
        if (it->need != ANY) *mode = it->need;
        taken |= it->parts;
        chosen[count++] = (struct chosen){mutation, it->parts, next(random), 1};
    }
    if (*mode == ANY) {
        int dice = below(random, 4);
        *mode = dice < 2 ? NONE : dice == 2 ? LENGTH : CHUNKED;
        // The parts that were taken must stay meaningful: a part of chunks needs chunks.
    }
    return count;
}

static const struct mutation *of_part(struct chosen chosen[], int count, int part, uint64_t **random) {
    for (int each = 0; each < count; each++)
        if (chosen[each].kept && chosen[each].parts & part) {
            *random = &chosen[each].random;
            return &mutations[chosen[each].mutation];
        }
    return NULL;
}

static struct text pick(const struct mutation *mutation, uint64_t random) {
    int count = 0;
    while (count < 8 && mutation->texts[count].bytes) count++;
    return mutation->texts[below(&random, count)];
}

// The rest of "METHOD rest", if the mutation replaces the method, too.
static struct text without_method(const struct mutation *mutation, struct text text) {
    if (!(mutation->parts & METHOD)) return text;
    const char *space = memchr(text.bytes, ' ', (size_t)text.length);
    return (struct text){space + 1, text.length - (int)(space + 1 - text.bytes)};
}

static void make_request(uint64_t random, const struct recipe *recipe, const struct manner *manner, unsigned kept,
    int is_last, struct request_info *info) {
    struct chosen chosen[MOST_TRAITS];
    enum need mode;
    int count = choose(&random, manner, is_last, chosen, &mode);
    info->count = 0;
    for (int each = 0; each < count; each++) {
        chosen[each].kept = kept >> each & 1;
        if (chosen[each].kept) info->traits[info->count++] = chosen[each].mutation;
    }
    int plain = recipe->plain;
    char *start = at;
    uint64_t *dice;
    const struct mutation *it;
    struct text text = {"", 0}, method = {NULL, 0}, target = {NULL, 0};

    // The content comes first: its length stands in the head.
    static char content[4096];
    int length = 0;
    if (mode == LENGTH || mode == CHUNKED) {
        if (plain) {
            memcpy(content, "hello", 5), length = 5;
        } else if (below(&random, 3)) {
            const char *from = lengths[below(&random, sizeof lengths / sizeof *lengths)];
            length = (int)strlen(from);
            memcpy(content, from, (size_t)length);
        } else {
            length = 1 + below(&random, below(&random, 20) ? 60 : 3000);
            for (int each = 0; each < length; each++) content[each] = (char)next(&random);
        }
    }

    if ((it = of_part(chosen, count, PRE, &dice))) put_filled(pick(it, *dice), 0, 0);
    static const char *const without[] = {"GET", "GET", "GET", "GET", "HEAD", "DELETE", "OPTIONS", "GET"};
    static const char *const with[] = {"POST", "POST", "PUT", "PATCH"};
    const char *usual = mode == NONE ? (plain ? "GET" : without[below(&random, 8)])
                        : plain      ? "POST"
                                     : with[below(&random, 4)];
    if ((it = of_part(chosen, count, METHOD, &dice))) {
        method = pick(it, *dice);
        if (it->parts & ~METHOD) {  // "METHOD rest"
            int space = (int)((const char *)memchr(method.bytes, ' ', (size_t)method.length) - method.bytes);
            if (it->parts & TARGET) target = (struct text){method.bytes + space + 1, method.length - space - 1};
            method.length = space;
        }
        put_filled(method, 0, 0);
    } else {
        put_text(usual);
    }
    if ((it = of_part(chosen, count, SPACE1, &dice))) put_filled(pick(it, *dice), 0, 0);
    else put_text(" ");
    if (target.bytes) {
        put_filled(target, 0, 0);
    } else if ((it = of_part(chosen, count, TARGET, &dice))) {
        put_filled(pick(it, *dice), 0, 0);
    } else if (plain) {
        put_text("/a");
    } else {
        int segments = 1 + below(&random, 3);
        for (int each = 0; each < segments; each++) put_text("/"), put_text(word(&random));
        if (!below(&random, 3)) put_text("?q="), put_text(word(&random));
    }
    const char *version = "HTTP/1.1";
    it = of_part(chosen, count, VERSION, &dice);
    if (it && it->parts == VERSION) text = pick(it, *dice);
    if (it && it->parts == VERSION && text.length == 0) {
        version = "";
    } else {
        const struct mutation *space = of_part(chosen, count, SPACE2, &dice);
        if (space) put_filled(pick(space, *dice), 0, 0);
        else put_text(" ");
        if (it && it->parts == VERSION) put(text.bytes, (size_t)text.length), version = "";
        else if (it) version = "HTTP/1.0";
    }
    put_text(version);
    if ((it = of_part(chosen, count, EOL, &dice))) put_filled(pick(it, *dice), 0, 0);
    else put_text("\r\n");

    if ((it = of_part(chosen, count, FIRST, &dice))) put_filled(pick(it, *dice), 0, 0);
    int host_is_last = !plain && !below(&random, 5);
    const struct mutation *host = of_part(chosen, count, HOST, &dice);
    struct text host_text = host ? pick(host, *dice) : (struct text)S("Host: host.test\r\n");
    if (!host_is_last) put_filled(host_text, 0, 0);
    int fields = plain ? 0 : below(&random, 5);
    int used = 0;
    for (int line = 0; line <= fields; line++) {
        for (int each = 0; each < count; each++) {
            if (!(chosen[each].parts & LINE)) continue;
            int place = (int)(chosen[each].random >> 40) % (fields + 1);
            if (place != line || !chosen[each].kept) continue;
            struct text own = pick(&mutations[chosen[each].mutation], chosen[each].random);
            put_filled(without_method(&mutations[chosen[each].mutation], own), length, 0);
        }
        if (line == fields) break;
        int which = below(&random, sizeof ordinary / sizeof *ordinary);
        if (used >> which & 1) continue;
        used |= 1 << which;
        put_text(ordinary[which]);
    }
    if (host_is_last) put_filled(host_text, 0, 0);
    if (mode == LENGTH) {
        if ((it = of_part(chosen, count, LEN, &dice))) put_filled(pick(it, *dice), length, 0);
        else
            put_filled((struct text)S("Content-Length: \x1a"
                                      "d\r\n"),
                length, 0);
    } else if (mode == CHUNKED) {
        if ((it = of_part(chosen, count, TE, &dice))) put_filled(without_method(it, pick(it, *dice)), length, 0);
        else put_text("Transfer-Encoding: chunked\r\n");
    }
    if ((it = of_part(chosen, count, HEADEND, &dice))) put_filled(pick(it, *dice), 0, 0);
    else put_text("\r\n");

    if (mode == LENGTH) put(content, (size_t)length);
    if (mode != CHUNKED) {
        if (of_part(chosen, count, BYTES, &dice)) edit_bytes(start, *dice);
        return;
    }
    int chunks = plain ? 1 : 1 + below(&random, 3);
    if (chunks > length) chunks = 1;
    int odd = below(&random, chunks);
    int done = 0;
    for (int chunk = 0; chunk < chunks; chunk++) {
        int size = chunk == chunks - 1 ? length - done : 1 + (length - done - chunks + chunk) / 2;
        if (size > length - done - (chunks - 1 - chunk)) size = length - done - (chunks - 1 - chunk);
        if (chunk == odd && (it = of_part(chosen, count, SIZE, &dice))) put_filled(pick(it, *dice), length, size);
        else put_filled((struct text)S("\x1ax"), length, size);
        if (chunk == odd && (it = of_part(chosen, count, EXT, &dice))) put_filled(pick(it, *dice), length, size);
        if (chunk == odd && (it = of_part(chosen, count, EOL1, &dice))) put_filled(pick(it, *dice), length, size);
        else put_text("\r\n");
        put(content + done, (size_t)size);
        done += size;
        if (chunk == odd && (it = of_part(chosen, count, EOL2, &dice))) put_filled(pick(it, *dice), length, size);
        else put_text("\r\n");
    }
    if ((it = of_part(chosen, count, LAST, &dice))) put_filled(pick(it, *dice), 0, 0);
    else put_text("0");
    if ((it = of_part(chosen, count, LASTEOL, &dice))) put_filled(pick(it, *dice), 0, 0);
    else put_text("\r\n");
    if ((it = of_part(chosen, count, TRAILER, &dice))) put_filled(pick(it, *dice), 0, 0);
    if ((it = of_part(chosen, count, END, &dice))) put_filled(pick(it, *dice), 0, 0);
    else put_text("\r\n");
    if (of_part(chosen, count, BYTES, &dice)) edit_bytes(start, *dice);
}

void make_input(const struct recipe *recipe, const struct manner *manner, struct input *input) {
    uint64_t random = recipe->seed * 0x2545f4914f6cdd1d + recipe->index;
    next(&random);
    int count = 1;
    if (!manner->single && manner->only < 0 && below(&random, 4)) count += 1 + below(&random, MOST_REQUESTS - 1);
    at = input->bytes;
    limit = input->bytes + MOST_INPUT - 256;
    input->count = 0;
    input->made = count;
    for (int each = 0; each < count; each++) {
        uint64_t own = next(&random);
        if (!(recipe->requests >> each & 1)) continue;
        input->origin[input->count] = each;
        make_request(own, recipe, manner, recipe->traits[each], each == count - 1, &input->requests[input->count++]);
    }
    input->own = (size_t)(at - input->bytes);
    limit += 200;
    put_text("GET " SENTINEL_TARGET " HTTP/1.1\r\nHost: end.test\r\n\r\n");
    input->length = (size_t)(at - input->bytes);
    input->cut = 0;
    if (!below(&random, 6) && !recipe->plain) input->cut = (size_t)below(&random, (int)input->length);
}

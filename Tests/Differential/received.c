#include "received.h"

#include "inputs.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

void add_atom(struct atoms *atoms, const char *verb, const char *name, size_t length) {
    if (atoms->count == MOST_ATOMS) return;
    char *text = atoms->text[atoms->count];
    char clean[24];
    size_t count = 0;
    for (size_t each = 0; each < length; each++) {
        unsigned char byte = (unsigned char)name[each];
        if (count == sizeof clean - 1 || !(isalnum(byte) || byte == '-' || byte == '_')) {
            memcpy(clean, "odd-name", 9), count = 8;
            break;
        }
        clean[count++] = (char)tolower(byte);
    }
    clean[count] = 0;
    snprintf(text, ATOM, "%s%s%s", verb, count ? " " : "", count ? clean : "");
    for (int each = 0; each < atoms->count; each++)
        if (!strcmp(atoms->text[each], text)) return;
    atoms->count++;
}

static const char *find(const char *bytes, size_t length, const char *what, size_t count) {
    return length ? memmem(bytes, length, what, count) : NULL;
}

static int is_name(const char *line, size_t length, const char *name) {
    size_t count = strlen(name);
    return length > count && line[count] == ':' && !strncasecmp(line, name, count);
}

struct line {
    const char *name, *value;
    size_t name_length, value_length;
    char used;
};

// The field lines between two places, which hold whole lines. Values are without white space around them.
static int lines_of(const char *bytes, size_t length, struct line lines[], int most) {
    int count = 0;
    while (length && count < most) {
        const char *end = find(bytes, length, "\r\n", 2);
        size_t own = end ? (size_t)(end - bytes) : length;
        if (own) {
            const char *colon = memchr(bytes, ':', own);
            struct line line = {bytes, bytes + own, own, 0, 0};
            if (colon) {
                line.name_length = (size_t)(colon - bytes);
                line.value = colon + 1;
                line.value_length = own - line.name_length - 1;
                while (line.value_length && (*line.value == ' ' || *line.value == '\t'))
                    line.value++, line.value_length--;
                while (line.value_length && strchr(" \t", line.value[line.value_length - 1])
                       && line.value[line.value_length - 1])
                    line.value_length--;
            }
            lines[count++] = line;
        }
        if (!end) break;
        bytes += own + 2;
        length -= own + 2;
    }
    return count;
}

long read_request(const char *bytes, size_t length, char *store, size_t *used, struct received *request) {
    const char *end = find(bytes, length, "\r\n\r\n", 4);
    if (!end) return 0;
    size_t head = (size_t)(end - bytes) + 4;
    long long stated = -1;
    int is_chunked = 0;
    for (const char *line = bytes; line < end;) {
        const char *line_end = find(line, (size_t)(end + 2 - line), "\r\n", 2);
        size_t own = (size_t)(line_end - line);
        if (is_name(line, own, "content-length")) {
            stated = atoll(line + 15);
        } else if (is_name(line, own, "transfer-encoding")) {
            // The lines are one list, whose empty members do not count. RFC 9110 §5.6.1.2.
            const char *last = line + own;
            while (last > line + 18 && strchr(", \t", last[-1]) && last[-1]) last--;
            if (last > line + 18) is_chunked = last - line >= 25 && !strncasecmp(last - 7, "chunked", 7);
        }
        line = line_end + 2;
    }
    *request = (struct received){.head = *used, .head_length = head};
    const char *line_end = find(bytes, head, "\r\n", 2);
    request->is_sentinel = find(bytes, (size_t)(line_end - bytes), SENTINEL_TARGET " ", sizeof SENTINEL_TARGET) != NULL;
    request->is_connect = head > 8 && !memcmp(bytes, "CONNECT ", 8);
    memcpy(store + *used, bytes, head);
    size_t to = *used + head;
    request->content = to;
    size_t from = head;
    if (is_chunked) {
        request->framing = FRAMED_CHUNKED;
        for (;;) {
            const char *size_end = find(bytes + from, length - from, "\r\n", 2);
            if (!size_end) return length - from > 40000 ? -1 : 0;
            char *digits_end;
            if (!isxdigit((unsigned char)bytes[from])) return -1;
            unsigned long long size = strtoull(bytes + from, &digits_end, 16);
            if (digits_end > size_end || size > MOST_INPUT) return -1;
            from = (size_t)(size_end - bytes) + 2;
            if (!size) break;
            if (length - from < size + 2) return 0;
            memcpy(store + to, bytes + from, size);
            to += size;
            from += size;
            if (bytes[from] != '\r' || bytes[from + 1] != '\n') return -1;
            from += 2;
        }
        request->content_length = to - request->content;
        request->trailers = to;
        if (length - from < 2) return 0;
        if (bytes[from] == '\r' && bytes[from + 1] == '\n') {
            from += 2;
        } else {
            const char *last = find(bytes + from, length - from, "\r\n\r\n", 4);
            if (!last) return 0;
            request->trailers_length = (size_t)(last - bytes) + 2 - from;
            memcpy(store + to, bytes + from, request->trailers_length);
            to += request->trailers_length;
            from = (size_t)(last - bytes) + 4;
        }
    } else if (stated >= 0) {
        request->framing = FRAMED_LENGTH;
        if ((unsigned long long)stated > length - from) return 0;
        memcpy(store + to, bytes + from, (size_t)stated);
        request->content_length = (size_t)stated;
        to += (size_t)stated;
        from += (size_t)stated;
    }
    *used = to;
    return (long)from;
}

static int is_token(const char *bytes, size_t length) {
    for (size_t each = 0; each < length; each++)
        if (!isalnum((unsigned char)bytes[each]) && (!bytes[each] || !strchr("!#$%&'*+-.^_`|~", bytes[each]))) return 0;
    return length > 0;
}

enum { MOST_LINES = 256 };
#define FAULT(name) add_atom(atoms, "sends", name, strlen(name))

void find_faults(const char *store, const struct received *request, struct atoms *atoms) {
    static struct line lines[MOST_LINES];
    const char *head = store + request->head;
    const char *line_end = find(head, request->head_length, "\r\n", 2);
    size_t line_length = (size_t)(line_end - head);
    for (size_t each = 0; each < request->head_length; each++) {
        unsigned char byte = (unsigned char)head[each];
        if (byte == '\r' && head[each + 1] != '\n') FAULT("bare-cr");
        else if (byte == '\n' && (!each || head[each - 1] != '\r')) FAULT("bare-lf");
        else if (!byte) FAULT("nul");
        else if ((byte < ' ' && byte != '\r' && byte != '\n' && byte != '\t') || byte == 0x7f) FAULT("control");
    }
    const char *space = memchr(head, ' ', line_length);
    size_t method = space ? (size_t)(space - head) : 0;
    if (!is_token(head, method)) FAULT("bad-method");
    if (line_length < 9 + method || memcmp(line_end - 9, " HTTP/1.", 8)) FAULT("bad-version");
    else if (space == line_end - 9 || memchr(space + 1, ' ', line_length - method - 10)
             || memchr(head, '\t', line_length))
        FAULT("bad-target");
    int count = lines_of(line_end + 2, request->head_length - line_length - 4, lines, MOST_LINES);
    int hosts = 0, lengths = 0, codings = 0, names_te = 0, names_upgrade = 0, has_te = 0, has_upgrade = 0;
    for (int each = 0; each < count; each++) {
        struct line *line = &lines[each];
        size_t own = (size_t)(line->value + line->value_length - line->name);
        if (line->name[0] == ' ' || line->name[0] == '\t') FAULT("obs-fold");
        else if (!is_token(line->name, line->name_length)) FAULT("bad-name");
        if (is_name(line->name, own, "host") || (line->name_length == 4 && !strncasecmp(line->name, "host", 4)))
            hosts++;
        if (line->name_length == 14 && !strncasecmp(line->name, "content-length", 14)) {
            lengths++;
            for (size_t digit = 0; digit < line->value_length; digit++)
                if (!isdigit((unsigned char)line->value[digit])) FAULT("bad-length");
            if (!line->value_length) FAULT("bad-length");
        }
        if (line->name_length == 17 && !strncasecmp(line->name, "transfer-encoding", 17)) {
            codings++;
            if (line->value_length != 7 || strncasecmp(line->value, "chunked", 7)) FAULT("other-coding");
        }
        if (line->name_length == 2 && !strncasecmp(line->name, "te", 2)) {
            has_te = 1;
            if (line->value_length != 8 || strncasecmp(line->value, "trailers", 8)) FAULT("te");
        }
        if (line->name_length == 7 && !strncasecmp(line->name, "upgrade", 7)) has_upgrade = 1;
        if (line->name_length == 10 && (!strncasecmp(line->name, "keep-alive", 10))) FAULT("keep-alive");
        if (line->name_length == 16 && (!strncasecmp(line->name, "proxy-connection", 16))) FAULT("proxy-connection");
        if (line->name_length == 14 && (!strncasecmp(line->name, "http2-settings", 14))) FAULT("http2-settings");
        if (line->name_length == 10 && !strncasecmp(line->name, "connection", 10)) {
            char value[64];
            snprintf(value, sizeof value, "%.*s", (int)line->value_length, line->value);
            names_te |= strcasestr(value, "te") != NULL;
            names_upgrade |= strcasestr(value, "upgrade") != NULL;
        }
    }
    if (hosts > 1) FAULT("two-hosts");
    if (!hosts) FAULT("without-host");
    if (lengths > 1) FAULT("two-lengths");
    if (codings > 1) FAULT("two-codings");
    if (lengths && codings) FAULT("length-and-coding");
    if (has_te && !names_te) FAULT("te-unnamed");
    if (has_upgrade && !names_upgrade) FAULT("upgrade-unnamed");
}

// Fields that each proxy writes itself. The framing is compared apart.
static int is_own(const struct line *line) {
    static const char *const names[] = {
        "connection", "via", "x-forwarded-proto", "content-length", "transfer-encoding"};
    for (size_t each = 0; each < sizeof names / sizeof *names; each++)
        if (line->name_length == strlen(names[each]) && !strncasecmp(line->name, names[each], line->name_length))
            return 1;
    return 0;
}

static int is_same_name(const struct line *one, const struct line *other) {
    return one->name_length == other->name_length && !strncasecmp(one->name, other->name, one->name_length);
}

static void compare_lines(
    struct line ours[], int our_count, struct line theirs[], int their_count, const char *kind, struct atoms *atoms) {
    char verb[16];
    for (int each = 0; each < our_count; each++) {
        if (ours[each].used || is_own(&ours[each])) continue;
        // The n-th line of a name belongs to the n-th line of that name.
        int other = 0;
        while (other < their_count && (theirs[other].used || !is_same_name(&ours[each], &theirs[other]))) other++;
        ours[each].used = 1;
        if (other == their_count) {
            snprintf(verb, sizeof verb, "lacks%s", kind);
            add_atom(atoms, verb, ours[each].name, ours[each].name_length);
            continue;
        }
        theirs[other].used = 1;
        if (ours[each].value_length != theirs[other].value_length
            || memcmp(ours[each].value, theirs[other].value, ours[each].value_length)) {
            snprintf(verb, sizeof verb, "changes%s", kind);
            add_atom(atoms, verb, ours[each].name, ours[each].name_length);
        }
    }
    for (int each = 0; each < their_count; each++) {
        if (theirs[each].used || is_own(&theirs[each])) continue;
        snprintf(verb, sizeof verb, "adds%s", kind);
        add_atom(atoms, verb, theirs[each].name, theirs[each].name_length);
    }
}

static void request_line(const char *head, size_t length, const char **target, const char **version, const char **end) {
    *end = find(head, length, "\r\n", 2);
    size_t own = (size_t)(*end - head);
    const char *first = memchr(head, ' ', own), *last = memrchr(head, ' ', own);
    *target = first ? first + 1 : *end;
    *version = last && last >= *target ? last + 1 : *end;
}

void compare(const char *our_store, const struct received *ours, const char *their_store, const struct received *theirs,
    struct atoms *atoms) {
    static struct line our_lines[MOST_LINES], their_lines[MOST_LINES];
    const char *our_head = our_store + ours->head, *their_head = their_store + theirs->head;
    const char *our_target, *our_version, *our_end, *their_target, *their_version, *their_end;
    request_line(our_head, ours->head_length, &our_target, &our_version, &our_end);
    request_line(their_head, theirs->head_length, &their_target, &their_version, &their_end);
    size_t method = (size_t)(our_target - our_head), target = (size_t)(our_version - our_target),
           version = (size_t)(our_end - our_version);
    if (method != (size_t)(their_target - their_head) || memcmp(our_head, their_head, method))
        add_atom(atoms, "changes method", "", 0);
    if (target != (size_t)(their_version - their_target) || memcmp(our_target, their_target, target))
        add_atom(atoms, "changes target", "", 0);
    if (version != (size_t)(their_end - their_version) || memcmp(our_version, their_version, version))
        add_atom(atoms, "changes version", "", 0);
    int our_count = lines_of(our_end + 2, ours->head_length - (size_t)(our_end - our_head) - 4, our_lines, MOST_LINES);
    int their_count =
        lines_of(their_end + 2, theirs->head_length - (size_t)(their_end - their_head) - 4, their_lines, MOST_LINES);
    compare_lines(our_lines, our_count, their_lines, their_count, "", atoms);
    // A length in place of chunks, or a length of 0 in place of no framing, means the same.
    if (ours->framing != theirs->framing && theirs->framing != FRAMED_LENGTH)
        add_atom(atoms, theirs->framing == FRAMED_CHUNKED ? "with chunks" : "without framing", "", 0);
    if (ours->content_length != theirs->content_length
        || memcmp(our_store + ours->content, their_store + theirs->content, ours->content_length))
        add_atom(atoms, "changes content", "", 0);
    our_count = lines_of(our_store + ours->trailers, ours->trailers_length, our_lines, MOST_LINES);
    their_count = lines_of(their_store + theirs->trailers, theirs->trailers_length, their_lines, MOST_LINES);
    compare_lines(our_lines, our_count, their_lines, their_count, " trailer", atoms);
}

// Inputs of the differential run: HTTP/1.1 requests that a grammar makes from a seed, and the mutations that make them odd.
#ifndef INPUTS_H
#define INPUTS_H

#include <stddef.h>
#include <stdint.h>

enum { MOST_REQUESTS = 8, MOST_TRAITS = 4, MOST_INPUT = 512 * 1024 };

// The request behind every input. Its arrival shows that the proxy has read the input to its end.
#define SENTINEL_TARGET "/~end"

// What an input is made from. The same recipe always makes the same bytes.
struct recipe {
    uint64_t seed, index;
    unsigned requests;  // a bit for each request that is kept
    unsigned traits[MOST_REQUESTS];  // a bit for each mutation that is kept
    int plain;  // without the random parts that are not mutations
};

struct request_info {
    int traits[MOST_TRAITS];  // places in the table of mutations
    int count;
};

struct input {
    char *bytes;
    size_t length;  // with the sentinel
    size_t own;  // without it
    size_t cut;  // the first bytes are sent alone; 0 if all are sent together
    struct request_info requests[MOST_REQUESTS];
    int count;
    int made;  // the number of requests before the recipe dropped some
    int origin[MOST_REQUESTS];  // the place of each kept request in the recipe
};

// How inputs are chosen: `single` makes requests with one mutation each, one request per input.
struct manner {
    int single;
    int only;  // this mutation, or -1
};

extern const int mutation_count;
const char *mutation_name(int mutation);
// The mutation with that name, or -1.
int mutation_named(const char *name);

// Tells which mutations are accepted by the program under test, so that pipelines have refused requests at their end.
void mutation_is_refused(int mutation);

void make_input(const struct recipe *recipe, const struct manner *manner, struct input *input);

#endif

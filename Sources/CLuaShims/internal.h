// Shared by the parts of this module.
#ifndef CLUASHIMS_INTERNAL_H
#define CLUASHIMS_INTERNAL_H

#include "cluashims.h"

#include <setjmp.h>
#include <lauxlib.h>
#include <lua.h>
#include <lualib.h>

#define SMALL_MOST 256
#define SMALL_CLASSES (SMALL_MOST / 16)
#define MOST_FUNCTIONS 8
#define MOST_KINDS 16
#define MESSAGE_MOST 1024

/// A block of more than SMALL_MOST bytes, in a ring of all such blocks.
struct large_block {
    struct large_block *previous, *next;
    size_t size;
    /// Whether it holds a string.
    size_t is_string;
};

/// A piece of memory that is divided into blocks of one size, and kept until the state ends.
struct slab {
    struct slab *next;
    size_t size;
};

struct free_block {
    struct free_block *next;
};

struct buffer {
    uint8_t *bytes;
    size_t count, capacity;
};

/// A call, or a place for one. Its objects belong to the place and answer only while its call runs.
struct call {
    lua_State *thread;
    int thread_reference;
    int objects_reference;
    int is_used;
    /// The nested calls of `pcall`.
    int protected_depth;
    /// The bytes of the state when the call began.
    size_t used_before;
    /// The rest of the call's time, by the clock and by the thread's own time, in nanoseconds.
    int64_t clock_left, thread_left;
};

struct object {
    int32_t kind;
    int32_t call;
};

struct script_state {
    lua_State *main;
    struct script_limits limits;
    struct script_host host;

    size_t used;
    struct free_block *small[SMALL_CLASSES];
    struct slab *slabs;
    size_t slab_sizes[SMALL_CLASSES];
    struct large_block large;
    /// The live large strings by the power of two of their size.
    uint32_t strings[48];
    /// The powers of two for which there are such strings, as bits.
    uint64_t string_sizes;
    /// Large blocks that were taken since the clock was read last.
    size_t taken;
    /// Bounded work of C functions since the clock was read last, in nanoseconds by estimate.
    int64_t worked;

    /// The thread of Lua that runs now; null if none does.
    lua_State *running;
    int32_t current;
    int is_dead;
    int is_over;
    int main_depth;
    int interval;
    jmp_buf escape;
    int may_escape;
    int64_t began, clock_left, thread_left, thread_began, elapsed;
    int on_thread_time;

    struct call *calls;
    int32_t call_count;
    int functions[MOST_FUNCTIONS];
    int32_t function_count;
    int options_reference;
    int kinds[MOST_KINDS];
    const char *const *function_names;

    int reply;
    struct buffer answer;
    /// Whether the answer is the bytes of one string, without a tag.
    int is_text;
    struct buffer series;
    char message[MESSAGE_MOST];
    size_t message_count;
    int32_t line;
};

static inline struct script_state *state_of(lua_State *thread) {
    return *(struct script_state **)lua_getextraspace(thread);
}

void *script_allocate(void *context, void *block, size_t size, size_t new_size);
void script_free_memory(struct script_state *state);

/// Raises the error of a call whose time has passed.
int script_raise_over(struct script_state *state, lua_State *thread);

/// Lets the next instruction look at the clock.
void script_arm(struct script_state *state);

/// Pushes the file and line of the Lua function that runs, as a message begins; an empty string if none does.
void script_push_where(lua_State *thread);

/// Raises an error with file and line.
int script_error(lua_State *thread, const char *format, ...);

/// Counts work of a C function, and raises an error if the time has passed.
static inline void charge(struct script_state *state, lua_State *thread, int64_t nanoseconds) {
    state->worked += nanoseconds;
    if (state->worked < 50000) return;
    state->worked = 0;
    if (state->is_over || script_is_over(state)) script_raise_over(state, thread);
}

/// The number of instructions between two looks at the clock. An instruction may read the longest string as a whole.
static inline int interval_of(const struct script_state *state) {
    if (!(state->string_sizes >> 10)) return 100;
    int size = 63 - __builtin_clzll(state->string_sizes);
    return size > 15 ? 1 : 100 >> (size - 9);
}

int script_push_series(lua_State *thread, const uint8_t *bytes, size_t count);
int script_write_series(struct script_state *state, lua_State *thread, int index, struct buffer *buffer);
int buffer_append(struct buffer *buffer, const void *bytes, size_t count, size_t most);

/// Replaces the table on top of the stack by an empty one that shows its members and cannot be changed.
void script_freeze(lua_State *thread);

void script_open_text(lua_State *thread);
void script_open_tables(lua_State *thread);
void script_open_base(lua_State *thread);

/// Calls a function of C on the main thread, with a pointer as its argument. Answers with a status.
int script_protected(struct script_state *state, lua_CFunction function, void *argument);

#endif

#include <features.h>
#include <stdlib.h>
#include <string.h>

#include "internal.h"

// A state owns its memory, so that it can be given up in the middle of anything: it is freed without Lua. Small blocks come from slabs,
// large ones from the C library.

static int size_class(size_t size) { return 63 - __builtin_clzll((unsigned long long)size); }

/// The state needs more than it may: the run ends at once, without Lua, and with it the state.
static void *exceeded(struct script_state *state) {
    if (!state->may_escape) return NULL;
    state->is_dead = 1;
    state->line = script_line(state);
    longjmp(state->escape, 1);
}

static void *obtain_small(struct script_state *state, size_t size, int must) {
    int place = (int)((size - 1) / 16);
    struct free_block *block = state->small[place];
    if (block) {
        state->small[place] = block->next;
        return block;
    }
    size_t unit = ((size_t)place + 1) * 16;
    // A class's slabs grow: first 1 KiB, at most 32 KiB.
    size_t bytes = state->slab_sizes[place] ? state->slab_sizes[place] * 2 : 1024;
    if (bytes > 32768) bytes = 32768;
    if (!must && state->used + bytes > state->limits.memory) return exceeded(state);
    struct slab *slab = malloc(bytes);
    if (!slab) return exceeded(state);
    state->slab_sizes[place] = bytes;
    state->used += bytes;
    slab->next = state->slabs;
    slab->size = bytes;
    state->slabs = slab;
    uint8_t *first = (uint8_t *)slab + sizeof(struct slab), *end = (uint8_t *)slab + bytes;
    for (uint8_t *at = first + unit; at + unit <= end; at += unit) {
        struct free_block *next = (struct free_block *)at;
        next->next = state->small[place];
        state->small[place] = next;
    }
    return first;
}

static void *obtain_large(struct script_state *state, size_t size, int is_string, int must) {
    size_t bytes = size + sizeof(struct large_block);
    if (bytes < size) return exceeded(state);
    if (!must && (state->used + bytes > state->limits.memory || (is_string && size > state->limits.string + 64)))
        return exceeded(state);
    struct large_block *block = malloc(bytes);
    if (!block) return exceeded(state);
    state->used += bytes;
    block->size = size;
    block->is_string = (size_t)is_string;
    block->next = state->large.next;
    block->previous = &state->large;
    block->next->previous = block;
    state->large.next = block;
    if (is_string) {
        int length = size_class(size);
        if (state->strings[length]++ == 0) state->string_sizes |= 1ULL << length;
        if (state->running && interval_of(state) < state->interval) script_arm(state);
    }
    state->taken += size;
    if (state->taken > 128 * 1024) {
        state->taken = 0;
        if (state->running && script_is_over(state)) script_arm(state);
    }
    return block + 1;
}

static void release(struct script_state *state, void *pointer, size_t size) {
    if (size == 0) return;
    if (size <= SMALL_MOST) {
        struct free_block *block = pointer;
        int place = (int)((size - 1) / 16);
        block->next = state->small[place];
        state->small[place] = block;
        return;
    }
    struct large_block *block = (struct large_block *)pointer - 1;
    block->previous->next = block->next;
    block->next->previous = block->previous;
    state->used -= block->size + sizeof(struct large_block);
    if (block->is_string) {
        int length = size_class(block->size);
        if (--state->strings[length] == 0) state->string_sizes &= ~(1ULL << length);
    }
    free(block);
}

/// The allocator of a state: `lua_Alloc`. Lua counts on it that a block can always be made smaller.
void *script_allocate(void *context, void *pointer, size_t size, size_t new_size) {
    struct script_state *state = context;
    if (new_size == 0) {
        if (pointer) release(state, pointer, size);
        return NULL;
    }
    if (!pointer) {
        if (new_size <= SMALL_MOST) return obtain_small(state, new_size, 0);
        return obtain_large(state, new_size, size == LUA_TSTRING, 0);
    }
    if (size <= SMALL_MOST && new_size <= SMALL_MOST && (size - 1) / 16 == (new_size - 1) / 16) return pointer;
    int must = new_size <= size;
    void *block = new_size <= SMALL_MOST ? obtain_small(state, new_size, must) : obtain_large(state, new_size, 0, must);
    if (!block) {
        // The system has no memory for a smaller block, and no run can be ended.
        if (must) abort();
        return NULL;
    }
    memcpy(block, pointer, size < new_size ? size : new_size);
    release(state, pointer, size);
    return block;
}

void script_free_memory(struct script_state *state) {
    struct slab *slab = state->slabs;
    while (slab) {
        struct slab *next = slab->next;
        free(slab);
        slab = next;
    }
    struct large_block *block = state->large.next;
    while (block != &state->large) {
        struct large_block *next = block->next;
        free(block);
        block = next;
    }
    state->slabs = NULL;
    state->large.next = state->large.previous = &state->large;
    memset(state->small, 0, sizeof state->small);
    state->used = 0;
}

int buffer_append(struct buffer *buffer, const void *bytes, size_t count, size_t most) {
    if (count > most || buffer->count > most - count) return 0;
    if (buffer->count + count > buffer->capacity) {
        size_t capacity = buffer->capacity ? buffer->capacity * 2 : 512;
        while (capacity < buffer->count + count) capacity *= 2;
        uint8_t *larger = realloc(buffer->bytes, capacity);
        if (!larger) return 0;
        buffer->bytes = larger;
        buffer->capacity = capacity;
    }
    if (count) memcpy(buffer->bytes + buffer->count, bytes, count);
    buffer->count += count;
    return 1;
}

void script_answer_begin(struct script_state *state) {
    state->answer.count = 0;
    state->is_text = 0;
    // A large answer's memory is not kept.
    if (state->answer.capacity > 65536) {
        free(state->answer.bytes);
        state->answer.bytes = NULL;
        state->answer.capacity = 0;
    }
}

/// Gives a string that was appended alone its tag, because another value follows.
static int tag_text(struct script_state *state) {
    state->is_text = 0;
    uint8_t head[5] = {SCRIPT_STRING};
    uint32_t length = (uint32_t)state->answer.count;
    memcpy(head + 1, &length, 4);
    if (!buffer_append(&state->answer, head, 5, state->limits.memory)) return 0;
    memmove(state->answer.bytes + 5, state->answer.bytes, length);
    memcpy(state->answer.bytes, head, 5);
    return 1;
}

int script_answer_string(struct script_state *state, const void *bytes, size_t count) {
    if (count > UINT32_MAX || (state->is_text && !tag_text(state))) return 0;
    if (state->answer.count == 0 && count > 0) {
        state->is_text = buffer_append(&state->answer, bytes, count, state->limits.memory);
        return state->is_text;
    }
    uint8_t head[5] = {SCRIPT_STRING};
    uint32_t length = (uint32_t)count;
    memcpy(head + 1, &length, 4);
    return buffer_append(&state->answer, head, 5, state->limits.memory)
           && buffer_append(&state->answer, bytes, count, state->limits.memory);
}

int script_answer_object(struct script_state *state, int32_t kind) {
    uint8_t bytes[5] = {SCRIPT_OBJECT};
    memcpy(bytes + 1, &kind, 4);
    return script_answer_append(state, bytes, 5);
}

int script_answer_append(struct script_state *state, const void *bytes, size_t count) {
    if (state->is_text && !tag_text(state)) return 0;
    return buffer_append(&state->answer, bytes, count, state->limits.memory);
}

const uint8_t *script_answer(const struct script_state *state, size_t *count) {
    *count = state->answer.count;
    return state->answer.bytes;
}

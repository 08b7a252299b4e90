#include <features.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "internal.h"

static int64_t clock_of(clockid_t clock) {
    struct timespec time;
    clock_gettime(clock, &time);
    return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
}

// Half of the limit is counted by the clock. Another program may have had the processor meanwhile, so the other half is counted by the
// thread's own time. The count begins with the first question, since most calls end before it.
int script_is_over(struct script_state *state) {
    if (state->is_over) return 1;
    if (!state->running) return 0;
    if (state->on_thread_time) return clock_of(CLOCK_THREAD_CPUTIME_ID) - state->thread_began > state->thread_left;
    int64_t now = clock_of(CLOCK_MONOTONIC);
    if (!state->began) {
        state->began = now;
        if (state->clock_left > 0) return 0;
    } else if (now - state->began <= state->clock_left) {
        return 0;
    }
    state->on_thread_time = 1;
    state->thread_began = clock_of(CLOCK_THREAD_CPUTIME_ID);
    return state->thread_left <= 0;
}

static void begin_time(struct script_state *state, int64_t clock_left, int64_t thread_left) {
    state->began = 0;
    state->on_thread_time = 0;
    state->clock_left = clock_left;
    state->thread_left = thread_left;
    state->is_over = 0;
    state->worked = 0;
    state->taken = 0;
}

static void on_count(lua_State *thread, lua_Debug *record) {
    (void)record;
    struct script_state *state = state_of(thread);
    if (state->is_over || script_is_over(state)) script_raise_over(state, thread);
    int interval = interval_of(state);
    if (interval == state->interval) return;
    state->interval = interval;
    lua_sethook(thread, on_count, LUA_MASKCOUNT, interval);
}

static void end_time(struct script_state *state) {
    state->elapsed = state->began ? clock_of(CLOCK_MONOTONIC) - state->began : 0;
}

static void set_hook(struct script_state *state, lua_State *thread) {
    state->interval = interval_of(state);
    if (lua_gethook(thread) != on_count || lua_gethookcount(thread) != state->interval)
        lua_sethook(thread, on_count, LUA_MASKCOUNT, state->interval);
}

void script_arm(struct script_state *state) {
    state->interval = 0;
    lua_sethook(state->running, on_count, LUA_MASKCOUNT, 1);
}

void script_push_where(lua_State *thread) {
    lua_Debug record;
    for (int level = 0; level < 20 && lua_getstack(thread, level, &record); level++) {
        lua_getinfo(thread, "Sl", &record);
        if (record.currentline > 0) {
            lua_pushfstring(thread, "%s:%d: ", record.short_src, record.currentline);
            return;
        }
    }
    lua_pushliteral(thread, "");
}

int script_error(lua_State *thread, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    script_push_where(thread);
    lua_pushvfstring(thread, format, arguments);
    va_end(arguments);
    lua_concat(thread, 2);
    return lua_error(thread);
}

int script_raise_over(struct script_state *state, lua_State *thread) {
    // From now on each instruction raises this error, so no function that catches it goes on.
    if (!state->is_over) {
        state->is_over = 1;
        script_arm(state);
    }
    return script_error(thread, "the script ran for longer than its time");
}

static int32_t line_of(lua_State *thread) {
    lua_Debug record;
    for (int level = 0; level < 50 && lua_getstack(thread, level, &record); level++) {
        lua_getinfo(thread, "l", &record);
        if (record.currentline > 0) return record.currentline;
    }
    return 0;
}

int32_t script_line(struct script_state *state) { return state->running ? line_of(state->running) : 0; }

int32_t script_current(const struct script_state *state) { return state->current; }

int script_may_wait(struct script_state *state) {
    return state->running && state->current >= 0 && lua_isyieldable(state->running);
}

int64_t script_elapsed(const struct script_state *state) { return state->elapsed; }

size_t script_memory(const struct script_state *state) { return state->used; }

static void set_message(struct script_state *state, const char *text, size_t count) {
    if (count > MESSAGE_MOST) count = MESSAGE_MOST;
    memcpy(state->message, text, count);
    state->message_count = count;
}

static void set_message_text(struct script_state *state, const char *text) { set_message(state, text, strlen(text)); }

/// Copies the error value on top of the stack.
static void take_message(struct script_state *state, lua_State *thread) {
    int type = lua_gettop(thread) ? lua_type(thread, -1) : LUA_TNONE;
    if (type == LUA_TSTRING) {
        size_t count;
        const char *text = lua_tolstring(thread, -1, &count);
        set_message(state, text, count);
        return;
    }
    const char *words = "the error value is a ";
    size_t count = strlen(words);
    char text[64];
    memcpy(text, words, count);
    const char *name = type == LUA_TNONE ? "nothing" : lua_typename(thread, type);
    size_t name_count = strlen(name);
    memcpy(text + count, name, name_count);
    set_message(state, text, count + name_count);
}

const uint8_t *script_message(const struct script_state *state, size_t *count, int32_t *line) {
    *count = state->message_count;
    *line = state->line;
    return (const uint8_t *)state->message;
}

static int set_over_memory(struct script_state *state) {
    state->is_dead = 1;
    state->running = NULL;
    state->current = -2;
    set_message_text(state, "the script needed more memory than its limit");
    return SCRIPT_OVERMEMORY;
}

static int on_panic(lua_State *thread) {
    struct script_state *state = state_of(thread);
    if (state->may_escape) {
        state->is_dead = 1;
        longjmp(state->escape, 1);
    }
    return 0;
}

/// Remembers the line of an error before the stack is unwound.
static int on_error(lua_State *thread) {
    state_of(thread)->line = line_of(thread);
    return 1;
}

/// Calls a function of C on the main thread, with a pointer as its argument.
int script_protected(struct script_state *state, lua_CFunction function, void *argument) {
    if (state->is_dead) return SCRIPT_OVERMEMORY;
    state->line = 0;
    int former = state->may_escape;
    state->may_escape = 1;
    if (setjmp(state->escape)) {
        state->may_escape = 0;
        // Not below another run, which is still inside of Lua.
        if (!former) script_free_memory(state);
        return set_over_memory(state);
    }
    lua_State *main = state->main;
    lua_settop(main, 0);
    lua_pushcfunction(main, on_error);
    lua_pushcfunction(main, function);
    lua_pushlightuserdata(main, argument);
    int status = lua_pcall(main, 1, 0, 1);
    state->may_escape = former;
    if (status == LUA_OK) {
        lua_settop(main, 0);
        return SCRIPT_DONE;
    }
    take_message(state, main);
    lua_settop(main, 0);
    return SCRIPT_FAILED;
}

static int open_state(lua_State *thread) {
    script_open_base(thread);
    script_open_text(thread);
    script_open_tables(thread);
    return 0;
}

struct script_state *script_make(const struct script_limits *limits, const struct script_host *host) {
    struct script_state *state = calloc(1, sizeof(struct script_state));
    if (!state) return NULL;
    state->limits = *limits;
    state->host = *host;
    state->current = -2;
    state->options_reference = LUA_NOREF;
    state->large.next = state->large.previous = &state->large;
    for (int place = 0; place < MOST_FUNCTIONS; place++) state->functions[place] = LUA_NOREF;
    for (int place = 0; place < MOST_KINDS; place++) state->kinds[place] = LUA_NOREF;
    state->main = lua_newstate(script_allocate, state);
    if (!state->main) {
        script_free(state);
        return NULL;
    }
    *(struct script_state **)lua_getextraspace(state->main) = state;
    lua_atpanic(state->main, on_panic);
    // Garbage of half of the live memory begins a collection: the limit counts garbage, too.
    lua_gc(state->main, LUA_GCINC, 150, 200, 0);
    if (script_protected(state, open_state, NULL) != SCRIPT_DONE) {
        script_free(state);
        return NULL;
    }
    return state;
}

void script_set_context(struct script_state *state, void *context) { state->host.context = context; }

void script_free(struct script_state *state) {
    if (!state) return;
    script_free_memory(state);
    free(state->calls);
    free(state->answer.bytes);
    free(state->series.bytes);
    free(state);
}

// Loading

struct source {
    const char *bytes;
    size_t count;
    const char *name;
};

static int load(lua_State *thread) {
    struct script_state *state = state_of(thread);
    const struct source *source = lua_touserdata(thread, 1);
    lua_getfield(thread, LUA_REGISTRYINDEX, "script.globals");
    lua_pushnil(thread);
    while (lua_next(thread, -2)) {
        if (lua_istable(thread, -1)) {
            script_freeze(thread);
            lua_pushvalue(thread, -2);
            lua_insert(thread, -2);
            // An existing key, so the traversal may go on.
            lua_rawset(thread, -4);
        } else {
            lua_pop(thread, 1);
        }
    }
    lua_pop(thread, 1);
    if (luaL_loadbufferx(thread, source->bytes, source->count, source->name, "t") != LUA_OK) return lua_error(thread);
    begin_time(state, state->limits.load_time / 2, state->limits.load_time - state->limits.load_time / 2);
    state->running = thread;
    state->current = -1;
    set_hook(state, thread);
    lua_call(thread, 0, 1);
    if (state->is_over) script_raise_over(state, thread);
    state->running = NULL;
    lua_sethook(thread, NULL, 0, 0);
    if (!lua_istable(thread, -1)) return luaL_error(thread, "the script returns no table");
    for (int32_t place = 0; place < state->function_count; place++) {
        lua_pushstring(thread, state->function_names[place]);
        if (lua_rawget(thread, -2) == LUA_TFUNCTION) {
            state->functions[place] = luaL_ref(thread, LUA_REGISTRYINDEX);
        } else {
            lua_pop(thread, 1);
        }
    }
    script_answer_begin(state);
    if (!script_write_series(state, thread, lua_gettop(thread), &state->answer))
        return luaL_error(thread, "the returned table is nested too deeply or too large");
    return 0;
}

int script_load(struct script_state *state, const uint8_t *bytes, size_t count, const char *name,
    const char *const *functions, int32_t function_count) {
    struct source source = {(const char *)bytes, count, name};
    state->function_names = functions;
    state->function_count = function_count < MOST_FUNCTIONS ? function_count : MOST_FUNCTIONS;
    int status = script_protected(state, load, &source);
    if (status == SCRIPT_FAILED && state->is_over) status = SCRIPT_OVERTIME;
    state->running = NULL;
    state->current = -2;
    state->is_over = 0;
    state->function_names = NULL;
    if (!state->is_dead) lua_sethook(state->main, NULL, 0, 0);
    return status;
}

int script_has_function(const struct script_state *state, int32_t function) {
    return function >= 0 && function < MOST_FUNCTIONS && state->functions[function] != LUA_NOREF;
}

static int set_options(lua_State *thread) {
    struct script_state *state = state_of(thread);
    if (script_push_series(thread, state->answer.bytes, state->answer.count) != 1 || !lua_istable(thread, -1))
        return luaL_error(thread, "the options are not a table");
    script_freeze(thread);
    state->options_reference = luaL_ref(thread, LUA_REGISTRYINDEX);
    return 0;
}

int script_set_options(struct script_state *state) { return script_protected(state, set_options, NULL); }

// Calls

static int make_place(lua_State *thread) {
    struct script_state *state = state_of(thread);
    struct call *call = lua_touserdata(thread, 1);
    int32_t number = (int32_t)(call - state->calls);
    if (call->objects_reference == LUA_NOREF) {
        lua_createtable(thread, MOST_KINDS, 0);
        for (int kind = 0; kind < MOST_KINDS; kind++) {
            if (state->kinds[kind] == LUA_NOREF) {
                lua_pushboolean(thread, 0);
            } else {
                struct object *object = lua_newuserdatauv(thread, sizeof(struct object), 0);
                object->kind = kind;
                object->call = number;
                lua_rawgeti(thread, LUA_REGISTRYINDEX, state->kinds[kind]);
                lua_setmetatable(thread, -2);
            }
            lua_rawseti(thread, -2, kind + 1);
        }
        call->objects_reference = luaL_ref(thread, LUA_REGISTRYINDEX);
    }
    lua_State *own = lua_newthread(thread);
    call->thread_reference = luaL_ref(thread, LUA_REGISTRYINDEX);
    call->thread = own;
    return 0;
}

static void leave_place(struct script_state *state, struct call *call, int keeps_thread) {
    call->is_used = 0;
    if (keeps_thread) return;
    // A thread after an error is not used again, because its hook may be off.
    luaL_unref(state->main, LUA_REGISTRYINDEX, call->thread_reference);
    call->thread = NULL;
    call->thread_reference = LUA_NOREF;
    // The stack of a deep recursion is large, and the next call must not fail because of it.
    if (state->used > call->used_before + state->limits.memory / 4) lua_gc(state->main, LUA_GCCOLLECT);
}

static int resume(struct script_state *state, struct call *call, int argument_count) {
    lua_State *thread = call->thread;
    begin_time(state, call->clock_left, call->thread_left);
    state->line = 0;
    state->running = thread;
    state->current = (int32_t)(call - state->calls);
    set_hook(state, thread);
    int result_count = 0;
    state->may_escape = 1;
    if (setjmp(state->escape)) {
        state->may_escape = 0;
        end_time(state);
        // Calls that wait may keep the state for long, but not its memory.
        script_free_memory(state);
        return set_over_memory(state);
    }
    int status = lua_resume(thread, state->main, argument_count, &result_count);
    state->may_escape = 0;
    end_time(state);
    if (status == LUA_YIELD && !state->is_over) {
        call->clock_left -= state->elapsed;
        if (state->on_thread_time) call->thread_left -= clock_of(CLOCK_THREAD_CPUTIME_ID) - state->thread_began;
        state->running = NULL;
        state->current = -2;
        return SCRIPT_WAITS;
    }
    int is_over = state->is_over, result = SCRIPT_DONE;
    if (status == LUA_OK && !is_over) {
        script_answer_begin(state);
        if (result_count > 0
            && !script_write_series(state, thread, lua_gettop(thread) - result_count + 1, &state->answer)) {
            set_message_text(state, "the returned value is nested too deeply or too large");
            result = SCRIPT_FAILED;
        }
    } else {
        take_message(state, thread);
        if (status != LUA_YIELD) state->line = line_of(thread);
        if (is_over) set_message_text(state, "the script ran for longer than its time");
        result = is_over ? SCRIPT_OVERTIME : SCRIPT_FAILED;
    }
    if (status == LUA_OK) lua_settop(thread, 0);
    state->running = NULL;
    state->current = -2;
    state->is_over = 0;
    leave_place(state, call, status == LUA_OK);
    // The collection of what the run has left behind is a part of it.
    if (state->elapsed) end_time(state);
    return result;
}

static int32_t free_place(struct script_state *state) {
    for (int32_t place = 0; place < state->call_count; place++)
        if (!state->calls[place].is_used) return place;
    int32_t count = state->call_count ? state->call_count * 2 : 4;
    if (count > 65536) return -1;
    struct call *calls = realloc(state->calls, (size_t)count * sizeof(struct call));
    if (!calls) return -1;
    memset(calls + state->call_count, 0, (size_t)(count - state->call_count) * sizeof(struct call));
    for (int32_t place = state->call_count; place < count; place++)
        calls[place].thread_reference = calls[place].objects_reference = LUA_NOREF;
    int32_t first = state->call_count;
    state->calls = calls;
    state->call_count = count;
    return first;
}

int script_begin(
    struct script_state *state, int32_t function, const int32_t *arguments, int32_t argument_count, int32_t *number) {
    *number = -1;
    if (state->is_dead) return set_over_memory(state);
    state->line = 0;
    int32_t place = free_place(state);
    if (place < 0 || !script_has_function(state, function) || argument_count > 8) {
        set_message_text(state, place < 0 ? "too many calls of the script wait" : "the script has no such function");
        return SCRIPT_FAILED;
    }
    struct call *call = &state->calls[place];
    if (!call->thread) {
        int status = script_protected(state, make_place, call);
        if (status != SCRIPT_DONE) return status;
    }
    lua_State *thread = call->thread;
    lua_rawgeti(thread, LUA_REGISTRYINDEX, state->functions[function]);
    for (int32_t index = 0; index < argument_count; index++) {
        int32_t argument = arguments[index];
        if (argument == SCRIPT_OPTIONS) {
            lua_rawgeti(thread, LUA_REGISTRYINDEX, state->options_reference);
        } else {
            lua_rawgeti(thread, LUA_REGISTRYINDEX, call->objects_reference);
            lua_rawgeti(thread, -1, argument + 1);
            lua_remove(thread, -2);
        }
    }
    call->is_used = 1;
    call->protected_depth = 0;
    call->used_before = state->used;
    call->clock_left = state->limits.call_time / 2;
    call->thread_left = state->limits.call_time - call->clock_left;
    *number = place;
    return resume(state, call, argument_count);
}

int script_continue(struct script_state *state, int32_t number, int reply) {
    if (state->is_dead) return set_over_memory(state);
    state->reply = reply;
    return resume(state, &state->calls[number], 0);
}

void script_drop(struct script_state *state, int32_t number) {
    if (state->is_dead || number < 0 || number >= state->call_count || !state->calls[number].is_used) return;
    leave_place(state, &state->calls[number], 0);
}

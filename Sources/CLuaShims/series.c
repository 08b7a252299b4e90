#include <features.h>
#include <string.h>

#include "internal.h"

// Values as series of tagged bytes.

#define DEPTH_MOST 64
#define PARTS_MOST 20000

struct reading {
    struct script_state *state;
    const uint8_t *at, *end;
};

static const uint8_t *take(lua_State *thread, struct reading *reading, size_t count) {
    if ((size_t)(reading->end - reading->at) < count) luaL_error(thread, "a value is incomplete");
    const uint8_t *bytes = reading->at;
    reading->at += count;
    return bytes;
}

static uint32_t take_length(lua_State *thread, struct reading *reading) {
    uint32_t length;
    memcpy(&length, take(thread, reading, 4), 4);
    return length;
}

/// Pushes one value. Returns 0 at an end.
static int push_value(lua_State *thread, struct reading *reading, int depth) {
    if (depth > DEPTH_MOST) return luaL_error(thread, "a value is nested too deeply");
    luaL_checkstack(thread, 4, NULL);
    charge(reading->state, thread, 15);
    switch (*take(thread, reading, 1)) {
    case SCRIPT_NIL: lua_pushnil(thread); return 1;
    case SCRIPT_FALSE: lua_pushboolean(thread, 0); return 1;
    case SCRIPT_TRUE: lua_pushboolean(thread, 1); return 1;
    case SCRIPT_INTEGER: {
        int64_t value;
        memcpy(&value, take(thread, reading, 8), 8);
        lua_pushinteger(thread, value);
        return 1;
    }
    case SCRIPT_NUMBER: {
        double value;
        memcpy(&value, take(thread, reading, 8), 8);
        lua_pushnumber(thread, value);
        return 1;
    }
    case SCRIPT_STRING: {
        uint32_t length = take_length(thread, reading);
        lua_pushlstring(thread, (const char *)take(thread, reading, length), length);
        charge(reading->state, thread, 20 + length / 8);
        return 1;
    }
    case SCRIPT_LIST: {
        lua_newtable(thread);
        lua_Integer count = 0;
        while (push_value(thread, reading, depth + 1)) lua_rawseti(thread, -2, ++count);
        charge(reading->state, thread, 50);
        if (count == 0) {
            // Or an empty list would be written as an empty table later.
            lua_getfield(thread, LUA_REGISTRYINDEX, "script.list");
            lua_setmetatable(thread, -2);
        }
        return 1;
    }
    case SCRIPT_TABLE:
        lua_newtable(thread);
        charge(reading->state, thread, 50);
        while (push_value(thread, reading, depth + 1)) {
            if (lua_isnil(thread, -1)) return luaL_error(thread, "a key is nil");
            if (!push_value(thread, reading, depth + 1)) return luaL_error(thread, "a value is missing");
            lua_rawset(thread, -3);
        }
        return 1;
    case SCRIPT_END: return 0;
    case SCRIPT_OBJECT: {
        uint32_t kind = take_length(thread, reading);
        struct script_state *state = reading->state;
        if (kind >= MOST_KINDS || state->current < 0) return luaL_error(thread, "there is no such object");
        lua_rawgeti(thread, LUA_REGISTRYINDEX, state->calls[state->current].objects_reference);
        lua_rawgeti(thread, -1, (lua_Integer)kind + 1);
        lua_remove(thread, -2);
        return 1;
    }
    case SCRIPT_NULL: lua_pushlightuserdata(thread, NULL); return 1;
    default: return luaL_error(thread, "a value is malformed");
    }
}

int script_push_series(lua_State *thread, const uint8_t *bytes, size_t count) {
    struct reading reading = {state_of(thread), bytes, bytes + count};
    int values = 0;
    while (reading.at < reading.end) {
        if (values == 250) return luaL_error(thread, "there are too many values");
        if (!push_value(thread, &reading, 0)) return luaL_error(thread, "a value is malformed");
        values++;
    }
    return values;
}

// The rest of this file calls only functions of Lua that never raise an error.

static int append_tag(struct buffer *buffer, uint8_t tag, size_t most) { return buffer_append(buffer, &tag, 1, most); }

/// Whether all keys of the table are 1, 2 and so on.
static int is_list(lua_State *thread, int index) {
    if (lua_getmetatable(thread, index)) {
        lua_rawgetp(thread, -1, (const void *)&script_push_series);
        int is_marked = lua_toboolean(thread, -1);
        lua_pop(thread, 2);
        if (is_marked) return 1;
    }
    lua_Unsigned length = lua_rawlen(thread, index), count = 0;
    if (length == 0) return 0;
    lua_pushnil(thread);
    while (lua_next(thread, index)) {
        lua_pop(thread, 1);
        if (!lua_isinteger(thread, -1) || (lua_Unsigned)lua_tointegerx(thread, -1, NULL) - 1 >= length) {
            lua_pop(thread, 1);
            return 0;
        }
        count++;
    }
    return count == length;
}

/// Writes a value that has at most the remaining number of parts: reading a series takes time that no limit of the state covers.
static int write_value(lua_State *thread, int index, struct buffer *buffer, size_t most, int depth, int *parts_left) {
    if (--*parts_left < 0) return 0;
    switch (lua_type(thread, index)) {
    case LUA_TNIL: return append_tag(buffer, SCRIPT_NIL, most);
    case LUA_TBOOLEAN: return append_tag(buffer, lua_toboolean(thread, index) ? SCRIPT_TRUE : SCRIPT_FALSE, most);
    case LUA_TNUMBER:
        if (lua_isinteger(thread, index)) {
            int64_t value = lua_tointegerx(thread, index, NULL);
            return append_tag(buffer, SCRIPT_INTEGER, most) && buffer_append(buffer, &value, 8, most);
        } else {
            double value = lua_tonumberx(thread, index, NULL);
            return append_tag(buffer, SCRIPT_NUMBER, most) && buffer_append(buffer, &value, 8, most);
        }
    case LUA_TSTRING: {
        size_t count;
        const char *bytes = lua_tolstring(thread, index, &count);
        if (count > UINT32_MAX) return 0;
        uint32_t length = (uint32_t)count;
        return append_tag(buffer, SCRIPT_STRING, most) && buffer_append(buffer, &length, 4, most)
               && buffer_append(buffer, bytes, count, most);
    }
    case LUA_TLIGHTUSERDATA: return append_tag(buffer, SCRIPT_NULL, most);
    case LUA_TTABLE: break;
    default: return append_tag(buffer, SCRIPT_OTHER, most);
    }
    if (depth >= DEPTH_MOST || !lua_checkstack(thread, 6)) return 0;
    int top = lua_gettop(thread);
    index = lua_absindex(thread, index);
    // A read-only table shows another one.
    if (lua_getmetatable(thread, index)) {
        if (lua_rawgetp(thread, -1, (const void *)&script_freeze) == LUA_TTABLE) index = top + 2;
    }
    if (lua_rawlen(thread, index) > (lua_Unsigned)*parts_left) {
        lua_settop(thread, top);
        return 0;
    }
    int isList = is_list(thread, index), isWritten = append_tag(buffer, isList ? SCRIPT_LIST : SCRIPT_TABLE, most);
    if (isList) {
        lua_Integer length = (lua_Integer)lua_rawlen(thread, index);
        for (lua_Integer place = 1; isWritten && place <= length; place++) {
            lua_rawgeti(thread, index, place);
            isWritten = write_value(thread, -1, buffer, most, depth + 1, parts_left);
            lua_pop(thread, 1);
        }
    } else {
        lua_pushnil(thread);
        while (isWritten && lua_next(thread, index)) {
            isWritten = write_value(thread, -2, buffer, most, DEPTH_MOST, parts_left)
                        && write_value(thread, -1, buffer, most, depth + 1, parts_left);
            lua_pop(thread, 1);
        }
    }
    lua_settop(thread, top);
    return isWritten && append_tag(buffer, SCRIPT_END, most);
}

int script_write_series(struct script_state *state, lua_State *thread, int index, struct buffer *buffer) {
    if (!lua_checkstack(thread, 6)) return 0;
    int parts_left = PARTS_MOST;
    return write_value(thread, index, buffer, state->limits.string * 4, 0, &parts_left);
}

// Arguments

int32_t script_argument_count(const struct script_state *state) { return lua_gettop(state->running); }

int script_argument_tag(const struct script_state *state, int32_t place) {
    lua_State *thread = state->running;
    switch (lua_type(thread, place)) {
    case LUA_TNONE:
    case LUA_TNIL: return SCRIPT_NIL;
    case LUA_TBOOLEAN: return lua_toboolean(thread, place) ? SCRIPT_TRUE : SCRIPT_FALSE;
    case LUA_TNUMBER: return lua_isinteger(thread, place) ? SCRIPT_INTEGER : SCRIPT_NUMBER;
    case LUA_TSTRING: return SCRIPT_STRING;
    case LUA_TTABLE: return SCRIPT_TABLE;
    case LUA_TLIGHTUSERDATA: return SCRIPT_NULL;
    case LUA_TUSERDATA: return SCRIPT_OBJECT;
    default: return SCRIPT_OTHER;
    }
}

int script_argument_is_true(const struct script_state *state, int32_t place) {
    return lua_toboolean(state->running, place);
}

int64_t script_argument_integer(const struct script_state *state, int32_t place) {
    return lua_type(state->running, place) == LUA_TNUMBER ? lua_tointegerx(state->running, place, NULL) : 0;
}

double script_argument_number(const struct script_state *state, int32_t place) {
    return lua_type(state->running, place) == LUA_TNUMBER ? lua_tonumberx(state->running, place, NULL) : 0;
}

const uint8_t *script_argument_bytes(const struct script_state *state, int32_t place, size_t *count) {
    *count = 0;
    if (lua_type(state->running, place) != LUA_TSTRING) return NULL;
    return (const uint8_t *)lua_tolstring(state->running, place, count);
}

int script_argument_series(struct script_state *state, int32_t place, const uint8_t **bytes, size_t *count) {
    state->series.count = 0;
    int isWritten = script_write_series(state, state->running, place, &state->series);
    *bytes = state->series.bytes;
    *count = state->series.count;
    return isWritten;
}

#include <features.h>
#include <string.h>

#include "internal.h"

// The library `table`. Each of its loops counts its steps, since Lua's own loops in C know no limit of time. They respect metamethods.

#define UNPACKED_MOST 4096

static lua_Integer check_table(lua_State *thread) {
    luaL_checktype(thread, 1, LUA_TTABLE);
    return luaL_len(thread, 1);
}

static int insert(lua_State *thread) {
    struct script_state *state = state_of(thread);
    lua_Integer end = (lua_Integer)((lua_Unsigned)check_table(thread) + 1);
    int count = lua_gettop(thread);
    if (count == 2) {
        lua_seti(thread, 1, end);
        return 0;
    }
    if (count != 3) return script_error(thread, "'insert' needs two or three arguments");
    lua_Integer place = luaL_checkinteger(thread, 2);
    luaL_argcheck(thread, (lua_Unsigned)place - 1 < (lua_Unsigned)end, 2, "position out of bounds");
    for (lua_Integer at = end; at > place; at--) {
        charge(state, thread, 30);
        lua_geti(thread, 1, at - 1);
        lua_seti(thread, 1, at);
    }
    lua_seti(thread, 1, place);
    return 0;
}

static int take_out(lua_State *thread) {
    struct script_state *state = state_of(thread);
    lua_Integer end = check_table(thread);
    lua_Integer place = luaL_optinteger(thread, 2, end);
    if (lua_gettop(thread) > 1)
        luaL_argcheck(
            thread, (lua_Unsigned)place - 1 <= (lua_Unsigned)end || end + 1 == place, 2, "position out of bounds");
    lua_geti(thread, 1, place);
    for (; place < end; place++) {
        charge(state, thread, 30);
        lua_geti(thread, 1, place + 1);
        lua_seti(thread, 1, place);
    }
    lua_pushnil(thread);
    lua_seti(thread, 1, place);
    return 1;
}

static int move(lua_State *thread) {
    struct script_state *state = state_of(thread);
    luaL_checktype(thread, 1, LUA_TTABLE);
    lua_Integer first = luaL_checkinteger(thread, 2), end = luaL_checkinteger(thread, 3),
                to = luaL_checkinteger(thread, 4);
    int target = lua_isnoneornil(thread, 5) ? 1 : 5;
    luaL_checktype(thread, target, LUA_TTABLE);
    if (end >= first) {
        luaL_argcheck(thread, first > 0 || end < LUA_MAXINTEGER + first, 3, "too many elements to move");
        lua_Integer count = end - first + 1;
        luaL_argcheck(thread, to <= LUA_MAXINTEGER - count + 1, 4, "destination wrap around");
        int is_backward = to > first && to <= end && (target == 1 || lua_compare(thread, 1, target, LUA_OPEQ));
        for (lua_Integer step = 0; step < count; step++) {
            lua_Integer place = is_backward ? count - 1 - step : step;
            charge(state, thread, 30);
            lua_geti(thread, 1, first + place);
            lua_seti(thread, target, to + place);
        }
    }
    lua_pushvalue(thread, target);
    return 1;
}

static int concat(lua_State *thread) {
    struct script_state *state = state_of(thread);
    lua_Integer length = check_table(thread);
    size_t separator_count;
    const char *separator = luaL_optlstring(thread, 2, "", &separator_count);
    lua_Integer place = luaL_optinteger(thread, 3, 1), end = luaL_optinteger(thread, 4, length);
    size_t total = 0;
    luaL_Buffer buffer;
    luaL_buffinit(thread, &buffer);
    for (; place <= end; place++) {
        charge(state, thread, 40);
        int type = lua_geti(thread, 1, place);
        if (type != LUA_TSTRING && type != LUA_TNUMBER)
            return script_error(thread, "the value at index %I is a %s: 'concat' needs strings", (LUAI_UACINT)place,
                luaL_typename(thread, -1));
        size_t count;
        lua_tolstring(thread, -1, &count);
        total += count + separator_count;
        if (total > state->limits.string)
            return script_error(thread, "the string would have more than %I bytes", (LUAI_UACINT)state->limits.string);
        charge(state, thread, (int64_t)count / 8);
        luaL_addvalue(&buffer);
        if (place == end) break;
        luaL_addlstring(&buffer, separator, separator_count);
    }
    luaL_pushresult(&buffer);
    return 1;
}

static int pack(lua_State *thread) {
    int count = lua_gettop(thread);
    lua_createtable(thread, count, 1);
    lua_insert(thread, 1);
    for (int place = count; place >= 1; place--) lua_seti(thread, 1, place);
    lua_pushinteger(thread, count);
    lua_setfield(thread, 1, "n");
    return 1;
}

static int unpack(lua_State *thread) {
    lua_Integer first = luaL_optinteger(thread, 2, 1);
    lua_Integer end = lua_isnoneornil(thread, 3) ? luaL_len(thread, 1) : luaL_checkinteger(thread, 3);
    if (first > end) return 0;
    lua_Unsigned count = (lua_Unsigned)end - (lua_Unsigned)first;
    if (count >= UNPACKED_MOST || !lua_checkstack(thread, (int)count + 1))
        return script_error(thread, "too many results to unpack");
    for (lua_Unsigned step = 0; step <= count; step++) lua_geti(thread, 1, first + (lua_Integer)step);
    charge(state_of(thread), thread, (int64_t)count * 20);
    return (int)count + 1;
}

// Sorting by a heap takes n log n steps whatever the order function answers.

static int is_less(lua_State *thread, int left, int right) {
    charge(state_of(thread), thread, 50);
    if (lua_isnil(thread, 2)) return lua_compare(thread, left, right, LUA_OPLT);
    lua_pushvalue(thread, 2);
    lua_pushvalue(thread, left);
    lua_pushvalue(thread, right);
    lua_call(thread, 2, 1);
    int result = lua_toboolean(thread, -1);
    lua_pop(thread, 1);
    return result;
}

/// Moves the value on top of the stack, for which the place is free, to its place in the heap.
static void sift(lua_State *thread, lua_Integer place, lua_Integer end) {
    int value = lua_gettop(thread);
    while (place * 2 <= end) {
        lua_Integer child = place * 2;
        lua_geti(thread, 1, child);
        if (child < end) {
            lua_geti(thread, 1, child + 1);
            if (is_less(thread, value + 1, value + 2)) {
                child++;
                lua_remove(thread, value + 1);
            } else {
                lua_settop(thread, value + 1);
            }
        }
        if (!is_less(thread, value, value + 1)) {
            lua_settop(thread, value);
            break;
        }
        lua_seti(thread, 1, place);
        place = child;
    }
    lua_seti(thread, 1, place);
}

static int sort(lua_State *thread) {
    lua_Integer count = check_table(thread);
    if (count < 2) return 0;
    luaL_argcheck(thread, count < 10000000, 1, "array too big");
    if (!lua_isnoneornil(thread, 2)) luaL_checktype(thread, 2, LUA_TFUNCTION);
    lua_settop(thread, 2);
    luaL_checkstack(thread, 10, NULL);
    for (lua_Integer place = count / 2; place >= 1; place--) {
        lua_geti(thread, 1, place);
        sift(thread, place, count);
    }
    for (lua_Integer end = count; end > 1; end--) {
        lua_geti(thread, 1, end);
        lua_geti(thread, 1, 1);
        lua_seti(thread, 1, end);
        sift(thread, 1, end - 1);
    }
    return 0;
}

void script_open_tables(lua_State *thread) {
    static const luaL_Reg functions[] = {
        {"concat", concat},
        {"insert", insert},
        {"move", move},
        {"pack", pack},
        {"remove", take_out},
        {"sort", sort},
        {"unpack", unpack},
        {NULL, NULL},
    };
    lua_getfield(thread, LUA_REGISTRYINDEX, "script.globals");
    luaL_newlib(thread, functions);
    lua_setfield(thread, -2, "table");
    lua_settop(thread, 0);
}

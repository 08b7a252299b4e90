#include <features.h>
#include <string.h>

#include "internal.h"

// The global names, read-only tables, metatables, and the objects and functions of the host.

static int refuse_write(lua_State *thread) {
    size_t count;
    const char *key = lua_type(thread, 2) == LUA_TSTRING ? lua_tolstring(thread, 2, &count) : luaL_typename(thread, 2);
    return script_error(thread, "this table is read-only: '%s' cannot be assigned", key);
}

static int refuse_global_write(lua_State *thread) {
    const char *key = lua_type(thread, 2) == LUA_TSTRING ? lua_tolstring(thread, 2, NULL) : luaL_typename(thread, 2);
    return script_error(thread, "global variables are read-only: write 'local %s'", key);
}

static int refuse_global_read(lua_State *thread) {
    const char *key = lua_type(thread, 2) == LUA_TSTRING ? lua_tolstring(thread, 2, NULL) : luaL_typename(thread, 2);
    return script_error(thread, "the variable '%s' is not defined", key);
}

// Like `next`, of the table that a read-only one shows, which the script must not get.
static int frozen_next(lua_State *thread) {
    lua_settop(thread, 2);
    charge(state_of(thread), thread, 5000);
    lua_pushvalue(thread, lua_upvalueindex(1));
    lua_replace(thread, 1);
    if (lua_next(thread, 1)) return 2;
    lua_pushnil(thread);
    return 1;
}

static int frozen_pairs(lua_State *thread) {
    lua_pushvalue(thread, lua_upvalueindex(1));
    lua_pushcclosure(thread, frozen_next, 1);
    lua_pushnil(thread);
    lua_pushnil(thread);
    return 3;
}

static int frozen_length(lua_State *thread) {
    lua_pushinteger(thread, (lua_Integer)lua_rawlen(thread, lua_upvalueindex(1)));
    return 1;
}

void script_freeze(lua_State *thread) {
    luaL_checkstack(thread, 8, NULL);
    int data = lua_gettop(thread);
    // Tables inside first. They are the values of keys that exist, so the traversal may go on.
    lua_pushnil(thread);
    while (lua_next(thread, data)) {
        if (!lua_istable(thread, -1)) {
            lua_pop(thread, 1);
            continue;
        }
        script_freeze(thread);
        lua_pushvalue(thread, -2);
        lua_insert(thread, -2);
        lua_rawset(thread, data);
    }
    lua_newtable(thread);
    lua_createtable(thread, 0, 8);
    lua_pushvalue(thread, data);
    lua_setfield(thread, -2, "__index");
    lua_pushcfunction(thread, refuse_write);
    lua_setfield(thread, -2, "__newindex");
    lua_pushboolean(thread, 0);
    lua_setfield(thread, -2, "__metatable");
    lua_pushvalue(thread, data);
    lua_pushcclosure(thread, frozen_pairs, 1);
    lua_setfield(thread, -2, "__pairs");
    lua_pushvalue(thread, data);
    lua_pushcclosure(thread, frozen_length, 1);
    lua_setfield(thread, -2, "__len");
    lua_pushvalue(thread, data);
    lua_rawsetp(thread, -2, (const void *)&script_freeze);
    lua_setmetatable(thread, -2);
    lua_remove(thread, data);
}

// Lua looks over all free places of a table behind the key, so each step may be long.
static int own_next(lua_State *thread) {
    luaL_checktype(thread, 1, LUA_TTABLE);
    lua_settop(thread, 2);
    charge(state_of(thread), thread, 5000);
    if (lua_next(thread, 1)) return 2;
    lua_pushnil(thread);
    return 1;
}

static int own_pairs(lua_State *thread) {
    luaL_checkany(thread, 1);
    if (luaL_getmetafield(thread, 1, "__pairs") != LUA_TNIL) {
        lua_pushvalue(thread, 1);
        lua_call(thread, 1, 3);
        return 3;
    }
    luaL_checktype(thread, 1, LUA_TTABLE);
    lua_pushcfunction(thread, own_next);
    lua_pushvalue(thread, 1);
    lua_pushnil(thread);
    return 3;
}

// Lua looks at all frames of the stack for each error that is caught, so an error is charged, and the nesting has a limit.
#define PROTECTED_MOST 32

static int *protected_depth(struct script_state *state) {
    return state->current >= 0 ? &state->calls[state->current].protected_depth : &state->main_depth;
}

static int end_protected(lua_State *thread, int status, lua_KContext context) {
    (void)context;
    struct script_state *state = state_of(thread);
    --*protected_depth(state);
    if (status == LUA_OK || status == LUA_YIELD) return lua_gettop(thread);
    charge(state, thread, 50000);
    lua_pushboolean(thread, 0);
    lua_insert(thread, -2);
    return 2;
}

static int call_protected(lua_State *thread) {
    luaL_checkany(thread, 1);
    int *depth = protected_depth(state_of(thread));
    if (*depth >= PROTECTED_MOST) return script_error(thread, "calls of 'pcall' are nested too deeply");
    ++*depth;
    lua_pushboolean(thread, 1);
    lua_insert(thread, 1);
    int status = lua_pcallk(thread, lua_gettop(thread) - 2, LUA_MULTRET, 0, 0, end_protected);
    return end_protected(thread, status, 0);
}

static const char *const events[] = {
    "__index",
    "__newindex",
    "__call",
    "__tostring",
    "__name",
    "__eq",
    "__lt",
    "__le",
    "__concat",
    "__len",
    "__pairs",
    "__close",
    "__unm",
    "__add",
    "__sub",
    "__mul",
    "__div",
    "__idiv",
    "__mod",
    "__pow",
    "__band",
    "__bor",
    "__bxor",
    "__bnot",
    "__shl",
    "__shr",
};

// A table gets a copy of its metatable, which the script cannot change later. So it never has a finalizer (which would run at any time) or
// weak members (whose collection can take a time that grows with the square of their number), and what is called is a function: a chain
// of callable tables takes such a time, too.
static int set_metatable(lua_State *thread) {
    luaL_checktype(thread, 1, LUA_TTABLE);
    int type = lua_type(thread, 2);
    luaL_argexpected(thread, type == LUA_TNIL || type == LUA_TTABLE, 2, "nil or table");
    lua_settop(thread, 2);
    if (lua_getmetatable(thread, 1)) {
        int is_protected = lua_rawgetp(thread, -1, (const void *)&set_metatable) != LUA_TTABLE;
        if (!is_protected) {
            lua_pushliteral(thread, "__metatable");
            is_protected = lua_rawget(thread, -2) != LUA_TNIL;
        }
        if (is_protected) return script_error(thread, "cannot change a protected metatable");
        lua_settop(thread, 2);
    }
    if (type == LUA_TNIL) {
        lua_setmetatable(thread, 1);
        return 1;
    }
    static const char *const absent[] = {"__gc", "__mode"};
    for (size_t place = 0; place < 2; place++) {
        lua_pushstring(thread, absent[place]);
        if (lua_rawget(thread, 2) != LUA_TNIL)
            return script_error(thread, "a metatable must not have '%s'", absent[place]);
        lua_pop(thread, 1);
    }
    lua_createtable(thread, 0, 4);
    for (size_t place = 0; place < sizeof(events) / sizeof(events[0]); place++) {
        lua_pushstring(thread, events[place]);
        lua_pushvalue(thread, -1);
        int kind = lua_rawget(thread, 2);
        if (kind == LUA_TNIL) {
            lua_pop(thread, 2);
            continue;
        }
        if (place == 2 && kind != LUA_TFUNCTION)
            return script_error(thread, "a metatable's '__call' must be a function");
        lua_rawset(thread, 3);
    }
    lua_pushliteral(thread, "__metatable");
    lua_pushvalue(thread, -1);
    if (lua_rawget(thread, 2) == LUA_TNIL) {
        lua_pop(thread, 1);
        lua_pushvalue(thread, 2);
    }
    lua_rawset(thread, 3);
    lua_pushvalue(thread, 2);
    lua_rawsetp(thread, 3, (const void *)&set_metatable);
    lua_setmetatable(thread, 1);
    lua_settop(thread, 1);
    charge(state_of(thread), thread, 300);
    return 1;
}

void script_open_base(lua_State *thread) {
    luaL_requiref(thread, "_G", luaopen_base, 0);
    lua_newtable(thread);
    static const char *const kept[] = {
        "assert",
        "error",
        "getmetatable",
        "ipairs",
        "rawequal",
        "rawget",
        "rawlen",
        "select",
        "tonumber",
        "tostring",
        "type",
    };
    for (size_t place = 0; place < sizeof(kept) / sizeof(kept[0]); place++) {
        lua_getfield(thread, -2, kept[place]);
        lua_setfield(thread, -2, kept[place]);
    }
    lua_pushcfunction(thread, call_protected);
    lua_setfield(thread, -2, "pcall");
    lua_pushcfunction(thread, own_next);
    lua_setfield(thread, -2, "next");
    lua_pushcfunction(thread, own_pairs);
    lua_setfield(thread, -2, "pairs");
    lua_pushcfunction(thread, set_metatable);
    lua_setfield(thread, -2, "setmetatable");
    luaL_requiref(thread, "math", luaopen_math, 0);
    lua_setfield(thread, -2, "math");
    lua_newtable(thread);
    lua_pushcfunction(thread, refuse_global_read);
    lua_setfield(thread, -2, "__index");
    lua_setmetatable(thread, -2);
    lua_pushvalue(thread, -1);
    lua_setfield(thread, LUA_REGISTRYINDEX, "script.globals");
    // What a script sees as its variables is an empty table, so that each assignment is refused.
    lua_newtable(thread);
    lua_createtable(thread, 0, 4);
    lua_pushvalue(thread, -3);
    lua_setfield(thread, -2, "__index");
    lua_pushcfunction(thread, refuse_global_write);
    lua_setfield(thread, -2, "__newindex");
    lua_pushboolean(thread, 0);
    lua_setfield(thread, -2, "__metatable");
    lua_setmetatable(thread, -2);
    lua_rawseti(thread, LUA_REGISTRYINDEX, LUA_RIDX_GLOBALS);
    // Marks empty lists.
    lua_newtable(thread);
    lua_pushboolean(thread, 0);
    lua_setfield(thread, -2, "__metatable");
    lua_pushboolean(thread, 1);
    lua_rawsetp(thread, -2, (const void *)&script_push_series);
    lua_setfield(thread, LUA_REGISTRYINDEX, "script.list");
    lua_settop(thread, 0);
}

// The host

static int finish(lua_State *thread, struct script_state *state, int reply, int iterates);

static int iterate(lua_State *thread) {
    lua_Integer place = lua_tointeger(thread, lua_upvalueindex(2));
    lua_pushinteger(thread, place + 2);
    lua_replace(thread, lua_upvalueindex(2));
    lua_rawgeti(thread, lua_upvalueindex(1), place);
    lua_rawgeti(thread, lua_upvalueindex(1), place + 1);
    return 2;
}

static int continued(lua_State *thread, int status, lua_KContext iterates) {
    (void)status;
    struct script_state *state = state_of(thread);
    return finish(thread, state, state->reply, (int)iterates);
}

static int finish(lua_State *thread, struct script_state *state, int reply, int iterates) {
    if (reply == SCRIPT_REPLIES) {
        charge(state, thread, 200);
        if (state->is_text) {
            lua_pushlstring(thread, (const char *)state->answer.bytes, state->answer.count);
            return 1;
        }
        int count = script_push_series(thread, state->answer.bytes, state->answer.count);
        if (!iterates || count != 1 || !lua_istable(thread, -1)) return count;
        lua_pushinteger(thread, 1);
        lua_pushcclosure(thread, iterate, 2);
        return 1;
    }
    if (reply == SCRIPT_LATER && script_may_wait(state)) return lua_yieldk(thread, 0, iterates, continued);
    script_push_where(thread);
    if (reply == SCRIPT_REFUSES) {
        lua_pushlstring(thread, (const char *)state->answer.bytes, state->answer.count);
    } else {
        lua_pushliteral(thread, "the script cannot wait here");
    }
    lua_concat(thread, 2);
    return lua_error(thread);
}

static int use(lua_State *thread, int use, int32_t kind, int32_t number, int iterates) {
    struct script_state *state = state_of(thread);
    script_answer_begin(state);
    // The host's frames must not be jumped over.
    state->may_escape = 0;
    int reply = state->host.use(state->host.context, use, kind, number);
    state->may_escape = 1;
    return finish(thread, state, reply, iterates);
}

static int call_function(lua_State *thread) {
    return use(thread, SCRIPT_FUNCTION, 0, (int32_t)lua_tointeger(thread, lua_upvalueindex(1)), 0);
}

static struct object *check_object(lua_State *thread, int32_t kind) {
    struct object *object = lua_type(thread, 1) == LUA_TUSERDATA ? lua_touserdata(thread, 1) : NULL;
    if (!object || object->kind != kind) {
        script_error(thread, "a method needs its object: write ':' between them");
        return NULL;
    }
    if (object->call != state_of(thread)->current) {
        script_error(thread, "this object belongs to another call of the script");
        return NULL;
    }
    return object;
}

static int call_method(lua_State *thread) {
    int32_t kind = (int32_t)lua_tointeger(thread, lua_upvalueindex(2));
    check_object(thread, kind);
    return use(thread, SCRIPT_METHOD, kind, (int32_t)lua_tointeger(thread, lua_upvalueindex(1)),
        lua_toboolean(thread, lua_upvalueindex(3)));
}

static int unknown_member(lua_State *thread) {
    luaL_getmetafield(thread, 1, "__name");
    const char *name = lua_type(thread, 2) == LUA_TSTRING ? lua_tostring(thread, 2) : luaL_typename(thread, 2);
    return script_error(thread, "%s has no member '%s'", lua_tostring(thread, -1), name);
}

/// Reads or assigns: the member's number, or a key. Only Lua calls it, with an object of the kind.
static int reach(lua_State *thread, int read, int read_key) {
    const struct object *object = lua_touserdata(thread, 1);
    if (object->call != state_of(thread)->current)
        return script_error(thread, "this object belongs to another call of the script");
    lua_pushvalue(thread, 2);
    int type = lua_rawget(thread, lua_upvalueindex(1));
    if (type == LUA_TNUMBER) {
        int32_t number = (int32_t)lua_tointegerx(thread, -1, NULL);
        lua_settop(thread, -2);
        return use(thread, read, object->kind, number, 0);
    }
    if (type == LUA_TFUNCTION) {
        if (read == SCRIPT_READ) return 1;
        return script_error(thread, "a method cannot be assigned");
    }
    lua_settop(thread, -2);
    if (!lua_toboolean(thread, lua_upvalueindex(2))) return unknown_member(thread);
    return use(thread, read_key, object->kind, 0, 0);
}

static int read_member(lua_State *thread) { return reach(thread, SCRIPT_READ, SCRIPT_READ_KEY); }
static int write_member(lua_State *thread) { return reach(thread, SCRIPT_WRITE, SCRIPT_WRITE_KEY); }

struct addition {
    const char *library;
    const char *name;
    int32_t kind, number;
    int flag;
};

static int add_function(lua_State *thread) {
    const struct addition *addition = lua_touserdata(thread, 1);
    lua_getfield(thread, LUA_REGISTRYINDEX, "script.globals");
    if (*addition->library) {
        lua_pushstring(thread, addition->library);
        if (lua_rawget(thread, -2) != LUA_TTABLE) {
            lua_pop(thread, 1);
            lua_newtable(thread);
            lua_pushstring(thread, addition->library);
            lua_pushvalue(thread, -2);
            lua_rawset(thread, -4);
        }
    }
    lua_pushstring(thread, addition->name);
    if (addition->number < 0) {
        lua_pushlightuserdata(thread, NULL);
    } else {
        lua_pushinteger(thread, addition->number);
        lua_pushcclosure(thread, call_function, 1);
    }
    lua_rawset(thread, -3);
    return 0;
}

static int add_kind(lua_State *thread) {
    const struct addition *addition = lua_touserdata(thread, 1);
    struct script_state *state = state_of(thread);
    lua_newtable(thread);
    lua_newtable(thread);
    int names = lua_gettop(thread);
    lua_CFunction functions[] = {read_member, write_member};
    const char *const members[] = {"__index", "__newindex"};
    for (int place = 0; place < 2; place++) {
        lua_pushvalue(thread, names);
        lua_pushboolean(thread, addition->flag);
        lua_pushcclosure(thread, functions[place], 2);
        lua_setfield(thread, names - 1, members[place]);
    }
    lua_setfield(thread, names - 1, "names");
    lua_pushboolean(thread, 0);
    lua_setfield(thread, -2, "__metatable");
    lua_pushstring(thread, addition->name);
    lua_setfield(thread, -2, "__name");
    state->kinds[addition->kind] = luaL_ref(thread, LUA_REGISTRYINDEX);
    return 0;
}

static int add_member(lua_State *thread) {
    const struct addition *addition = lua_touserdata(thread, 1);
    lua_rawgeti(thread, LUA_REGISTRYINDEX, state_of(thread)->kinds[addition->kind]);
    lua_getfield(thread, -1, "names");
    lua_pushstring(thread, addition->name);
    lua_pushinteger(thread, addition->number);
    if (addition->flag) {
        lua_pushinteger(thread, addition->kind);
        lua_pushboolean(thread, addition->flag == 2);
        lua_pushcclosure(thread, call_method, 3);
    }
    lua_rawset(thread, -3);
    return 0;
}

int script_add_function(struct script_state *state, const char *library, const char *name, int32_t number) {
    struct addition addition = {library, name, 0, number, 0};
    return script_protected(state, add_function, &addition);
}

int script_add_kind(struct script_state *state, int32_t kind, const char *name, int has_keys) {
    if (kind < 0 || kind >= MOST_KINDS) return SCRIPT_FAILED;
    struct addition addition = {"", name, kind, 0, has_keys};
    return script_protected(state, add_kind, &addition);
}

int script_add_property(struct script_state *state, int32_t kind, const char *name, int32_t number) {
    struct addition addition = {"", name, kind, number, 0};
    return script_protected(state, add_member, &addition);
}

int script_add_method(struct script_state *state, int32_t kind, const char *name, int32_t number, int iterates) {
    struct addition addition = {"", name, kind, number, iterates ? 2 : 1};
    return script_protected(state, add_member, &addition);
}

// memmem is an extension of GNU.
#define _GNU_SOURCE
#include <features.h>
#include <stdlib.h>
#include <string.h>

#include "internal.h"

// The libraries `string` and `utf8`: Lua's own, except functions that search for patterns, and those whose work is not bounded by the
// length of a string.

#define RESULTS_MOST 4096
#define FORMAT_MOST 1000

/// A position as Lua's functions take it, where -1 is the last byte.
static size_t position(lua_Integer place, size_t count) {
    if (place > 0) return (size_t)place;
    if (place == 0) return 1;
    if (place < -(lua_Integer)count) return 1;
    return count + (size_t)place + 1;
}

static int search(lua_State *thread, const char *subject, size_t subject_count, const char *pattern,
    size_t pattern_count, size_t from, int may_anchor, struct script_match *match) {
    struct script_state *state = state_of(thread);
    charge(state, thread, 100);
    int result = state->host.match(state->host.context, (const uint8_t *)subject, subject_count,
        (const uint8_t *)pattern, pattern_count, from, may_anchor, match);
    if (result == -2) return script_raise_over(state, thread);
    if (result < 0) return script_error(thread, "%s", match->fault);
    return result;
}

static void push_capture(lua_State *thread, const char *subject, const struct script_match *match, int place) {
    if (match->captures[place].end < 0) {
        lua_pushinteger(thread, match->captures[place].start + 1);
    } else {
        lua_pushlstring(thread, subject + match->captures[place].start,
            (size_t)(match->captures[place].end - match->captures[place].start));
    }
}

/// Pushes all captures; if there are none, and the whole is asked for, the whole match.
static int push_captures(lua_State *thread, const char *subject, const struct script_match *match, int whole) {
    if (match->count == 0 && whole) {
        lua_pushlstring(thread, subject + match->start, (size_t)(match->end - match->start));
        return 1;
    }
    luaL_checkstack(thread, match->count, "too many captures");
    for (int place = 0; place < match->count; place++) push_capture(thread, subject, match, place);
    return match->count;
}

static int find_or_match(lua_State *thread, int finds) {
    size_t subject_count, pattern_count;
    const char *subject = luaL_checklstring(thread, 1, &subject_count);
    const char *pattern = luaL_checklstring(thread, 2, &pattern_count);
    size_t from = position(luaL_optinteger(thread, 3, 1), subject_count) - 1;
    if (from > subject_count) {
        lua_pushnil(thread);
        return 1;
    }
    int is_plain = finds && lua_toboolean(thread, 4);
    if (finds && !is_plain) {
        is_plain = 1;
        for (size_t at = 0; is_plain && at < pattern_count; at++)
            is_plain = !pattern[at] || !strchr("^$*+?.([%-", pattern[at]);
    }
    if (is_plain) {
        charge(state_of(thread), thread, (int64_t)(subject_count - from) / 4);
        const char *found =
            pattern_count == 0 ? subject + from : memmem(subject + from, subject_count - from, pattern, pattern_count);
        if (!found) {
            lua_pushnil(thread);
            return 1;
        }
        lua_pushinteger(thread, found - subject + 1);
        lua_pushinteger(thread, found - subject + (lua_Integer)pattern_count);
        return 2;
    }
    struct script_match match;
    if (!search(thread, subject, subject_count, pattern, pattern_count, from, 1, &match)) {
        lua_pushnil(thread);
        return 1;
    }
    if (!finds) return push_captures(thread, subject, &match, 1);
    lua_pushinteger(thread, match.start + 1);
    lua_pushinteger(thread, match.end);
    return 2 + push_captures(thread, subject, &match, 0);
}

static int find(lua_State *thread) { return find_or_match(thread, 1); }
static int match_once(lua_State *thread) { return find_or_match(thread, 0); }

// The upvalues are the string, the pattern, the position, and the end of the last match or -1.
static int next_match(lua_State *thread) {
    size_t subject_count, pattern_count;
    const char *subject = lua_tolstring(thread, lua_upvalueindex(1), &subject_count);
    const char *pattern = lua_tolstring(thread, lua_upvalueindex(2), &pattern_count);
    lua_Integer from = lua_tointeger(thread, lua_upvalueindex(3)), last = lua_tointeger(thread, lua_upvalueindex(4));
    while (from <= (lua_Integer)subject_count) {
        struct script_match match;
        if (!search(thread, subject, subject_count, pattern, pattern_count, (size_t)from, 0, &match)) break;
        if (match.end == last) {
            // An empty match directly behind the last one is not another.
            from = match.start + 1;
            continue;
        }
        lua_pushinteger(thread, match.end);
        lua_replace(thread, lua_upvalueindex(3));
        lua_pushinteger(thread, match.end);
        lua_replace(thread, lua_upvalueindex(4));
        return push_captures(thread, subject, &match, 1);
    }
    lua_pushinteger(thread, (lua_Integer)subject_count + 1);
    lua_replace(thread, lua_upvalueindex(3));
    return 0;
}

static int match_all(lua_State *thread) {
    size_t subject_count;
    luaL_checklstring(thread, 1, &subject_count);
    luaL_checkstring(thread, 2);
    size_t from = position(luaL_optinteger(thread, 3, 1), subject_count) - 1;
    lua_settop(thread, 2);
    lua_pushinteger(thread, from > subject_count ? (lua_Integer)subject_count + 1 : (lua_Integer)from);
    lua_pushinteger(thread, -1);
    lua_pushcclosure(thread, next_match, 4);
    return 1;
}

static void check_length(lua_State *thread, const luaL_Buffer *buffer, size_t more) {
    size_t most = state_of(thread)->limits.string, count = luaL_bufflen(buffer);
    if (more > most || count > most - more)
        script_error(thread, "the string would have more than %I bytes", (LUAI_UACINT)most);
}

/// Adds the replacement's text, where `%1` stands for a capture.
static void add_text(lua_State *thread, luaL_Buffer *buffer, const char *subject, const struct script_match *match) {
    size_t count;
    const char *text = lua_tolstring(thread, 3, &count), *end = text + count;
    while (text < end) {
        const char *percent = memchr(text, '%', (size_t)(end - text));
        size_t plain = (size_t)((percent ? percent : end) - text);
        check_length(thread, buffer, plain);
        luaL_addlstring(buffer, text, plain);
        if (!percent) return;
        text = percent + 1;
        char digit = text < end ? *text++ : 0;
        if (digit == '%') {
            luaL_addchar(buffer, '%');
            continue;
        }
        if (digit < '0' || digit > '9') {
            script_error(thread, "invalid use of '%%' in the replacement");
            return;
        }
        int place = digit - '1';
        if (place < 0 || (place == 0 && match->count == 0)) {
            check_length(thread, buffer, (size_t)(match->end - match->start));
            luaL_addlstring(buffer, subject + match->start, (size_t)(match->end - match->start));
            continue;
        }
        if (place >= match->count) {
            script_error(thread, "invalid capture index %%%d in the replacement", place + 1);
            return;
        }
        if (match->captures[place].end < 0) {
            lua_pushinteger(thread, match->captures[place].start + 1);
            luaL_tolstring(thread, -1, NULL);
            lua_remove(thread, -2);
            luaL_addvalue(buffer);
        } else {
            size_t length = (size_t)(match->captures[place].end - match->captures[place].start);
            check_length(thread, buffer, length);
            luaL_addlstring(buffer, subject + match->captures[place].start, length);
        }
    }
}

/// Adds the replacement of one match.
static void add_replacement(
    lua_State *thread, luaL_Buffer *buffer, const char *subject, const struct script_match *match, int type) {
    if (type == LUA_TSTRING || type == LUA_TNUMBER) {
        add_text(thread, buffer, subject, match);
        return;
    }
    if (type == LUA_TTABLE) {
        if (match->count == 0) {
            lua_pushlstring(thread, subject + match->start, (size_t)(match->end - match->start));
        } else {
            push_capture(thread, subject, match, 0);
        }
        lua_gettable(thread, 3);
    } else {
        lua_pushvalue(thread, 3);
        int count = push_captures(thread, subject, match, 1);
        lua_call(thread, count, 1);
    }
    if (!lua_toboolean(thread, -1)) {
        lua_pop(thread, 1);
        check_length(thread, buffer, (size_t)(match->end - match->start));
        luaL_addlstring(buffer, subject + match->start, (size_t)(match->end - match->start));
        return;
    }
    if (!lua_isstring(thread, -1)) {
        script_error(thread, "the replacement is a %s", luaL_typename(thread, -1));
        return;
    }
    size_t count;
    lua_tolstring(thread, -1, &count);
    check_length(thread, buffer, count);
    luaL_addvalue(buffer);
}

static int replace_all(lua_State *thread) {
    size_t subject_count, pattern_count;
    const char *subject = luaL_checklstring(thread, 1, &subject_count);
    const char *pattern = luaL_checklstring(thread, 2, &pattern_count);
    int type = lua_type(thread, 3);
    luaL_argexpected(thread, type == LUA_TSTRING || type == LUA_TNUMBER || type == LUA_TTABLE || type == LUA_TFUNCTION,
        3, "string/function/table");
    if (type == LUA_TNUMBER) luaL_tolstring(thread, 3, NULL), lua_replace(thread, 3);
    lua_Integer most = luaL_optinteger(thread, 4, (lua_Integer)subject_count + 1);
    lua_settop(thread, 4);
    int is_anchored = pattern_count > 0 && pattern[0] == '^';
    lua_Integer count = 0, last = -1;
    size_t from = 0, copied = 0;
    struct script_state *state = state_of(thread);
    luaL_Buffer buffer;
    luaL_buffinit(thread, &buffer);
    while (count < most && from <= subject_count) {
        struct script_match match;
        if (!search(thread, subject, subject_count, pattern, pattern_count, from, 1, &match)) break;
        if (match.end == last) {
            if (is_anchored) break;
            from = (size_t)match.start + 1;
            continue;
        }
        check_length(thread, &buffer, (size_t)match.start - copied);
        luaL_addlstring(&buffer, subject + copied, (size_t)match.start - copied);
        charge(state, thread, (int64_t)((size_t)match.end - copied) / 8);
        add_replacement(thread, &buffer, subject, &match, type);
        count++;
        copied = from = (size_t)match.end;
        last = match.end;
        if (is_anchored) break;
    }
    check_length(thread, &buffer, subject_count - copied);
    luaL_addlstring(&buffer, subject + copied, subject_count - copied);
    luaL_pushresult(&buffer);
    lua_pushinteger(thread, count);
    return 2;
}

static int bytes_of(lua_State *thread) {
    size_t count;
    const char *text = luaL_checklstring(thread, 1, &count);
    lua_Integer first_place = luaL_optinteger(thread, 2, 1);
    size_t first = position(first_place, count);
    lua_Integer end_place = luaL_optinteger(thread, 3, first_place);
    size_t end = end_place > (lua_Integer)count    ? count
                 : end_place >= 0                  ? (size_t)end_place
                 : end_place < -(lua_Integer)count ? 0
                                                   : count + (size_t)end_place + 1;
    if (first > end) return 0;
    if (end - first >= RESULTS_MOST) return script_error(thread, "too many results");
    luaL_checkstack(thread, (int)(end - first + 1), "too many results");
    for (size_t at = first; at <= end; at++) lua_pushinteger(thread, (unsigned char)text[at - 1]);
    return (int)(end - first + 1);
}

/// Calls Lua's own function, the first upvalue, with the same arguments.
static int call_own(lua_State *thread) { return lua_tocfunction(thread, lua_upvalueindex(1))(thread); }

static int repeat(lua_State *thread) {
    size_t count, separator_count;
    luaL_checklstring(thread, 1, &count);
    lua_Integer times = luaL_checkinteger(thread, 2);
    luaL_optlstring(thread, 3, "", &separator_count);
    size_t unit = count + separator_count, most = state_of(thread)->limits.string;
    if (times <= 0 || unit == 0) {
        lua_pushliteral(thread, "");
        return 1;
    }
    if ((lua_Unsigned)times > most / unit + 1 || (size_t)times * unit - separator_count > most)
        return script_error(thread, "the string would have more than %I bytes", (LUAI_UACINT)most);
    charge(state_of(thread), thread, times * 10);
    return call_own(thread);
}

static int pack_format(lua_State *thread) {
    size_t count;
    luaL_checklstring(thread, 1, &count);
    if (count > FORMAT_MOST) return script_error(thread, "the format has more than %d bytes", FORMAT_MOST);
    return call_own(thread);
}

static int codes_of(lua_State *thread) {
    size_t count;
    luaL_checklstring(thread, 1, &count);
    lua_Integer first = luaL_optinteger(thread, 2, 1), end = luaL_optinteger(thread, 3, first);
    if (first < 0) first += (lua_Integer)count + 1;
    if (end < 0) end += (lua_Integer)count + 1;
    if (end > first && (lua_Unsigned)end - (lua_Unsigned)first >= RESULTS_MOST)
        return script_error(thread, "too many results");
    return call_own(thread);
}

/// Replaces a function of the library on top of the stack by a closure over it.
static void wrap(lua_State *thread, const char *name, lua_CFunction function) {
    lua_getfield(thread, -1, name);
    lua_pushcclosure(thread, function, 1);
    lua_setfield(thread, -2, name);
}

void script_open_text(lua_State *thread) {
    static const luaL_Reg functions[] = {
        {"byte", bytes_of},
        {"find", find},
        {"gmatch", match_all},
        {"gsub", replace_all},
        {"match", match_once},
        {NULL, NULL},
    };
    lua_getfield(thread, LUA_REGISTRYINDEX, "script.globals");
    luaL_requiref(thread, "string", luaopen_string, 0);
    luaL_setfuncs(thread, functions, 0);
    wrap(thread, "rep", repeat);
    wrap(thread, "pack", pack_format);
    wrap(thread, "packsize", pack_format);
    wrap(thread, "unpack", pack_format);
    // It makes bytecode.
    lua_pushnil(thread);
    lua_setfield(thread, -2, "dump");
    lua_setfield(thread, 1, "string");
    // The metatable of all strings.
    lua_pushliteral(thread, "");
    lua_getmetatable(thread, -1);
    lua_pushboolean(thread, 0);
    lua_setfield(thread, -2, "__metatable");
    lua_settop(thread, 1);
    luaL_requiref(thread, "utf8", luaopen_utf8, 0);
    wrap(thread, "codepoint", codes_of);
    lua_setfield(thread, 1, "utf8");
    lua_settop(thread, 0);
}

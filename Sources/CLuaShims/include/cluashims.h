// Lua states with limits. Lua reports an error by a jump, which must never cross a frame of Swift. So this module calls all functions
// of Lua that may jump, and Swift calls the functions below, which never do: they answer with a status.
//
// Values travel in both directions as a flat series of tagged bytes, because such a series can be read and written without Lua.
#ifndef CLUASHIMS_H
#define CLUASHIMS_H

#include <features.h>
#include <sys/types.h>
#include <sys/select.h>
#include <stdint.h>
#include <stddef.h>

/// The tags of a series. Numbers are in the machine's own byte order.
enum script_tag {
    SCRIPT_NIL = 0,
    SCRIPT_FALSE = 1,
    SCRIPT_TRUE = 2,
    /// 8 bytes follow.
    SCRIPT_INTEGER = 3,
    /// 8 bytes follow.
    SCRIPT_NUMBER = 4,
    /// 4 bytes of length follow, then the bytes.
    SCRIPT_STRING = 5,
    /// The values of a table follow, for the keys 1, 2 and so on, then the end.
    SCRIPT_LIST = 6,
    /// Keys and values of a table follow in turn, then the end.
    SCRIPT_TABLE = 7,
    SCRIPT_END = 8,
    /// An object of the running call: 4 bytes of its kind follow.
    SCRIPT_OBJECT = 9,
    /// The value that stands for JSON's null.
    SCRIPT_NULL = 10,
    /// From Lua only: a function, or another value that has no series.
    SCRIPT_OTHER = 11,
};

/// The result of a run.
enum script_status {
    SCRIPT_DONE = 0,
    /// A host function waits: continue with script_continue, or give up with script_drop.
    SCRIPT_WAITS = 1,
    /// An error of the script; script_message has its text.
    SCRIPT_FAILED = 2,
    /// The call ran for longer than its time.
    SCRIPT_OVERTIME = 3,
    /// The state needed more memory than its limit. It is dead: only script_free may follow.
    SCRIPT_OVERMEMORY = 4,
};

/// The answer of a host function.
enum script_reply {
    /// The answer's series has the results, one value after the other.
    SCRIPT_REPLIES = 0,
    /// The answer's bytes are the text of an error.
    SCRIPT_REFUSES = 1,
    /// The result comes later, with script_continue.
    SCRIPT_LATER = 2,
};

/// The ways in which a script uses the host.
enum script_use {
    /// A function of a library. The arguments are on the stack from 1.
    SCRIPT_FUNCTION = 0,
    /// A method of an object. The arguments after the object are on the stack from 2.
    SCRIPT_METHOD = 1,
    /// Reads a property of an object.
    SCRIPT_READ = 2,
    /// Assigns the value at 3 to a property of an object.
    SCRIPT_WRITE = 3,
    /// Reads an object under the key at 2.
    SCRIPT_READ_KEY = 4,
    /// Assigns the value at 3 to the key at 2.
    SCRIPT_WRITE_KEY = 5,
};

struct script_range {
    int64_t start, end;
};

/// A match: the range of the whole and of each capture. An end of -1 marks the capture of a position.
struct script_match {
    int64_t start, end;
    int32_t count;
    struct script_range captures[32];
    /// Why there is no result: a text that lives for ever.
    const char *fault;
};

struct script_host {
    void *context;
    /// A use of the host. Writes its result with the functions for the answer. Must not call Lua.
    int (*use)(void *context, int use, int32_t kind, int32_t number);
    /// Searches a string for a pattern from a position on: 1 for a match, 0 for none, -1 if the pattern is malformed or too complex, -2 if
    /// the time has passed. If `may_anchor`, a first `^` means that a match begins at `from`.
    int (*match)(void *context, const uint8_t *subject, size_t subject_count, const uint8_t *pattern,
        size_t pattern_count, size_t from, int may_anchor, struct script_match *match);
};

struct script_limits {
    /// The most bytes of the state.
    size_t memory;
    /// The most bytes of one string.
    size_t string;
    /// The time of running for the main part of a script, and for each call, in nanoseconds.
    int64_t load_time, call_time;
};

struct script_state;

/// A new state without any function; null if memory is missing.
struct script_state *script_make(const struct script_limits *limits, const struct script_host *host);

/// Sets the context that the host's functions get.
void script_set_context(struct script_state *state, void *context);

/// Frees all memory of the state, whatever its condition. No script runs any more, no finalizer exists.
void script_free(struct script_state *state);

/// Adds a host function to a library; with an empty name of the library, it is a global. A negative number adds JSON's null.
int script_add_function(struct script_state *state, const char *library, const char *name, int32_t number);

/// Adds a kind of object. `has_keys` allows all other names as keys, too.
int script_add_kind(struct script_state *state, int32_t kind, const char *name, int has_keys);
int script_add_property(struct script_state *state, int32_t kind, const char *name, int32_t number);

/// Adds a method. If `iterates`, the method's result is a list of names and values in turn, and the script gets an iterator over it.
int script_add_method(struct script_state *state, int32_t kind, const char *name, int32_t number, int iterates);

/// Makes the library read-only, compiles the source and runs its main part. The answer's series then has the returned value. Functions in
/// the returned table with one of the given names can be called by their place in the list.
int script_load(struct script_state *state, const uint8_t *source, size_t count, const char *name,
    const char *const *functions, int32_t function_count);

/// Whether the returned table has the function of this place.
int script_has_function(const struct script_state *state, int32_t function);

/// Takes the value in the answer's series as the options, read-only.
int script_set_options(struct script_state *state);

/// The argument of a call that stands for the options. Other arguments are kinds of objects.
#define SCRIPT_OPTIONS (-1)

/// Begins a call, and gives its number. The call ends with any status except SCRIPT_WAITS. After SCRIPT_DONE the answer's series has the
/// first result.
int script_begin(
    struct script_state *state, int32_t function, const int32_t *arguments, int32_t argument_count, int32_t *call);

/// Continues a call with the answer of the host function that it waits for.
int script_continue(struct script_state *state, int32_t call, int reply);

/// Gives up a call that waits.
void script_drop(struct script_state *state, int32_t call);

/// The text of the last error, and the number of the line in the script, or 0.
const uint8_t *script_message(const struct script_state *state, size_t *count, int32_t *line);

/// The line of the script that uses the host now, or 0.
int32_t script_line(struct script_state *state);

/// The number of the call that runs, or -1 while the main part runs.
int32_t script_current(const struct script_state *state);

/// Whether a host function may wait now.
int script_may_wait(struct script_state *state);

/// Whether the running call's time has passed. Costs one reading of the clock.
int script_is_over(struct script_state *state);

/// The nanoseconds of the last run, counted from its first look at the clock; 0 for a run that ended before one.
int64_t script_elapsed(const struct script_state *state);

/// The bytes that the state occupies.
size_t script_memory(const struct script_state *state);

/// The number of arguments of the host function that is called.
int32_t script_argument_count(const struct script_state *state);

/// The tag of an argument, where lists and tables are SCRIPT_TABLE.
int script_argument_tag(const struct script_state *state, int32_t place);
int script_argument_is_true(const struct script_state *state, int32_t place);
int64_t script_argument_integer(const struct script_state *state, int32_t place);
double script_argument_number(const struct script_state *state, int32_t place);

/// The bytes of a string, valid during the host function; null for any other value.
const uint8_t *script_argument_bytes(const struct script_state *state, int32_t place, size_t *count);

/// Writes an argument as a series, which is valid until the answer begins: 1, or 0 if it is nested too deeply, or has more than 20,000
/// parts or too many bytes.
int script_argument_series(struct script_state *state, int32_t place, const uint8_t **bytes, size_t *count);

/// Empties the answer.
void script_answer_begin(struct script_state *state);

/// Appends bytes to the answer: 1, or 0 if it would have more bytes than the state may.
int script_answer_append(struct script_state *state, const void *bytes, size_t count);

/// Appends a string, or an object of the running call, as a result.
int script_answer_string(struct script_state *state, const void *bytes, size_t count);
int script_answer_object(struct script_state *state, int32_t kind);

/// The answer's bytes.
const uint8_t *script_answer(const struct script_state *state, size_t *count);

#endif

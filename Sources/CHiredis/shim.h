#include <features.h>
#include <sys/types.h>
#include <sys/select.h>
#include <hiredis/hiredis.h>

// What version 1 has and version 0.14 has not. Only values of RESP2 are taken: this program never asks for RESP3.
#if HIREDIS_MAJOR >= 1
typedef size_t redis_member_count;
static void *redis_refuse_double(const redisReadTask *task, double value, char *text, size_t count) { return 0; }
static void *redis_refuse_bool(const redisReadTask *task, int value) { return 0; }
static inline void redis_refuse_resp3(redisReplyObjectFunctions *functions) {
    functions->createDouble = redis_refuse_double;
    functions->createBool = redis_refuse_bool;
}
#else
typedef int redis_member_count;
static inline void redis_refuse_resp3(redisReplyObjectFunctions *functions) {}
#endif

#include <features.h>
#include <sys/types.h>
#include <sys/select.h>
#include <lua.h>
#include <lauxlib.h>
#include <lualib.h>

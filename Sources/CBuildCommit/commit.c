#include "csystem.h"

#define TEXT_OF(token) #token
#define TEXT(macro) TEXT_OF(macro)

// Takes the place of the weak one in CSystemShims. No module imports this target, so a new commit compiles only this file.
const char *csystem_commit(void) { return TEXT(HTTPWARE_COMMIT); }

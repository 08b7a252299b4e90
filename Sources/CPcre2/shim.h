#include <features.h>
#include <sys/types.h>
#include <sys/select.h>
#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

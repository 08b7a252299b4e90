#include <features.h>
#include <sys/types.h>
#include <sys/select.h>
#include <libpsl.h>

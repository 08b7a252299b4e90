#include <features.h>
#include <sys/types.h>
#include <sys/select.h>
#include <nghttp2/nghttp2.h>

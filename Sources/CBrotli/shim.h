#include <features.h>
#include <sys/types.h>
#include <sys/select.h>
#include <brotli/decode.h>
#include <brotli/encode.h>

#include "CAddonHost.h"

// #embed belongs to C23; clang supports it in every C, with a warning.
#pragma clang diagnostic ignored "-Wc23-extensions"

static const uint8_t host[] = {
#embed "Host/addon_host.py"
};

const uint8_t *caddonhost_bytes(void) { return host; }

size_t caddonhost_count(void) { return sizeof host; }

// The Python program that runs addons of mitmproxy, from the folder Host, which the compiler embeds in the program.
#ifndef CADDONHOST_H
#define CADDONHOST_H

#include <stddef.h>
#include <stdint.h>

/// The text of the program, in UTF-8, and its length in bytes.
const uint8_t *caddonhost_bytes(void);
size_t caddonhost_count(void);

#endif

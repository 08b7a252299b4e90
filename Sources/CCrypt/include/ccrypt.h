// A part of libcrypt that Swift cannot import: a structure of 32 KiB that the caller must supply.
#ifndef CCRYPT_H
#define CCRYPT_H

#include <features.h>
#include <sys/types.h>
#include <sys/select.h>
#include <stdint.h>

/// Hashes a phrase, which ends with NUL, with the method, cost and salt of another hash. Writes the hash and a NUL to the
/// buffer. Returns 1 on success, 0 if the setting is invalid or the hash does not fit.
int ccrypt_hash(const uint8_t *phrase, const char *setting, uint8_t *hash, size_t room);

#endif

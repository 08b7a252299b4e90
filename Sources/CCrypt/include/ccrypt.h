// What Swift cannot import from libcrypt: a structure of 32 KiB that the caller has to bring.
#ifndef CCRYPT_H
#define CCRYPT_H

#include <features.h>
#include <sys/types.h>
#include <sys/select.h>
#include <stdint.h>

/// Hashes a phrase, which ends with NUL, with the method, cost and salt of another hash. Puts the hash and a NUL into the
/// buffer. Answers 1 on success, 0 when the setting is none or the hash does not fit.
int ccrypt_hash(const uint8_t *phrase, const char *setting, uint8_t *hash, size_t room);

#endif

#define _GNU_SOURCE
#include "ccrypt.h"

#include <crypt.h>
#include <stdlib.h>
#include <string.h>

int ccrypt_hash(const uint8_t *phrase, const char *setting, uint8_t *hash, size_t room) {
    int isMade = 0;
    struct crypt_data *state = calloc(1, sizeof *state);
    if (state == NULL) return 0;
    const char *made = crypt_r((const char *)phrase, setting, state);
    if (made != NULL && made[0] != '*' && strlen(made) < room) {
        memcpy(hash, made, strlen(made) + 1);
        isMade = 1;
    }
    explicit_bzero(state, sizeof *state);
    free(state);
    return isMade;
}

#define _GNU_SOURCE
#include <dlfcn.h>
#include <gnu/libc-version.h>
#include <link.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "csystem.h"

enum { MOST = 64 };

struct list {
    char *paths[MOST];
    int count;
};

static int add(struct dl_phdr_info *info, size_t size, void *data) {
    struct list *list = data;
    (void)size;
    // The program itself has an empty name, the kernel's part has no folder.
    if (strchr(info->dlpi_name, '/') && list->count < MOST) {
        char *copy = strdup(info->dlpi_name);
        if (copy) list->paths[list->count++] = copy;
    }
    return 0;
}

typedef const char *named(void);
typedef const char *numbered(int *);
typedef const char *kinded(int);
typedef int written(uint32_t, void *);
typedef uint32_t packed(void);
struct information {
    int age, number;
    const char *text;
};
typedef const struct information *informing(int);

// The library's own word for its version, at most `size` bytes with the final zero; empty if it has none.
static void ask(const char *name, void *library, char *text, size_t size) {
    const char *said = NULL;
    void *symbol;
    if (!strncmp(name, "libevent", 8) && (symbol = dlsym(library, "event_get_version"))) {
        said = ((named *)symbol)();
    } else if (!strncmp(name, "libcares.", 9) && (symbol = dlsym(library, "ares_version"))) {
        said = ((numbered *)symbol)(NULL);
    } else if ((!strncmp(name, "libssl.", 7) || !strncmp(name, "libcrypto.", 10))
               && (symbol = dlsym(library, "OpenSSL_version"))) {
        said = ((kinded *)symbol)(0);
    } else if (!strncmp(name, "libpcre2-8.", 11) && (symbol = dlsym(library, "pcre2_config_8"))) {
        char version[64];
        int length = ((written *)symbol)(11, NULL);
        if (length > 0 && length <= (int)sizeof version && ((written *)symbol)(11, version) > 0)
            snprintf(text, size, "%s", version);
    } else if (!strncmp(name, "libnghttp2.", 11) && (symbol = dlsym(library, "nghttp2_version"))) {
        const struct information *information = ((informing *)symbol)(0);
        said = information ? information->text : NULL;
    } else if (!strncmp(name, "libz.", 5) && (symbol = dlsym(library, "zlibVersion"))) {
        said = ((named *)symbol)();
    } else if (!strncmp(name, "libzstd.", 8) && (symbol = dlsym(library, "ZSTD_versionString"))) {
        said = ((named *)symbol)();
    } else if ((!strncmp(name, "libbrotlienc.", 13) && (symbol = dlsym(library, "BrotliEncoderVersion")))
               || (!strncmp(name, "libbrotlidec.", 13) && (symbol = dlsym(library, "BrotliDecoderVersion")))) {
        uint32_t number = ((packed *)symbol)();
        snprintf(text, size, "%u.%u.%u", number >> 24, number >> 12 & 0xFFF, number & 0xFFF);
    } else if (!strncmp(name, "liblmdb.", 8) && (symbol = dlsym(library, "mdb_version"))) {
        said = ((const char *(*)(int *, int *, int *))symbol)(NULL, NULL, NULL);
    } else if (!strncmp(name, "liblua", 6) && (symbol = dlsym(library, "lua_ident"))) {
        said = symbol;
        if ((symbol = strstr(said, "Lua "))) said = symbol;
    } else if (!strncmp(name, "libc.", 5) || !strncmp(name, "libm.", 5) || !strncmp(name, "libpthread.", 11)
               || !strncmp(name, "ld-linux", 8)) {
        said = gnu_get_libc_version();
    }
    if (said) snprintf(text, size, "%s", said);
    // The number alone: without the library's name before it, and what follows behind it.
    const char *number = text + strcspn(text, "0123456789");
    memmove(text, number, strlen(number) + 1);
    text[strcspn(text, " :")] = 0;
}

// The numbers at the end of the file's own name, to which the name that was loaded often is a link.
static void read_name(const char *path, char *text, size_t size) {
    char *real = realpath(path, NULL);
    const char *file = strrchr(real ? real : path, '/');
    const char *number = file ? strstr(file, ".so.") : NULL;
    snprintf(text, size, "%s", number ? number + 4 : "");
    free(real);
}

char *csystem_libraries(void) {
    struct list list = {.count = 0};
    dl_iterate_phdr(add, &list);
    char *text = NULL;
    size_t size = 0;
    FILE *stream = open_memstream(&text, &size);
    for (int index = 0; index < list.count; index++) {
        char *path = list.paths[index], version[64] = "";
        const char *name = strrchr(path, '/') + 1;
        void *library = dlopen(path, RTLD_LAZY | RTLD_NOLOAD);
        if (library) {
            ask(name, library, version, sizeof version);
            dlclose(library);
        }
        if (!*version) read_name(path, version, sizeof version);
        if (stream) fprintf(stream, "%s\t%s\t%s\n", name, version, path);
        free(path);
    }
    if (stream) fclose(stream);
    return text;
}

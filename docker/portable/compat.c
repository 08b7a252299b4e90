// Functions of glibc 2.35 and 2.36 that the C libraries beside the program call, for a system whose glibc lacks them.
// Where glibc has them, its own are used.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

void arc4random_buf(void *buffer, size_t size) {
    for (char *next = buffer; size;) {
        ssize_t count = getrandom(next, size < 256 ? size : 256, 0);
        if (count < 0) {
            if (errno != EINTR) abort();
            continue;
        }
        next += count;
        size -= (size_t)count;
    }
}

uint32_t arc4random(void) {
    uint32_t number;
    arc4random_buf(&number, sizeof number);
    return number;
}

struct search {
    uintptr_t address;
    struct dl_find_object *result;
};

static int is_in(struct dl_phdr_info *info, size_t size, void *data) {
    struct search *search = data;
    uintptr_t first = UINTPTR_MAX, last = 0, frames = 0;
    int is_found = 0;
    (void)size;
    for (int index = 0; index < info->dlpi_phnum; index++) {
        const ElfW(Phdr) *header = &info->dlpi_phdr[index];
        uintptr_t begin = info->dlpi_addr + header->p_vaddr, end = begin + header->p_memsz;
        if (header->p_type == PT_GNU_EH_FRAME) frames = begin;
        if (header->p_type != PT_LOAD) continue;
        if (begin < first) first = begin;
        if (end > last) last = end;
        if (search->address >= begin && search->address < end) is_found = 1;
    }
    if (!is_found) return 0;
    memset(search->result, 0, sizeof *search->result);
    search->result->dlfo_map_start = (void *)first;
    search->result->dlfo_map_end = (void *)last;
    search->result->dlfo_eh_frame = (void *)frames;
    return 1;
}

// For exceptions: the object that has the address, and its table of frames. Returns 0, or -1 if no object has it.
int _dl_find_object(void *address, struct dl_find_object *result) {
    struct search search = {(uintptr_t)address, result};
    return dl_iterate_phdr(is_in, &search) ? 0 : -1;
}

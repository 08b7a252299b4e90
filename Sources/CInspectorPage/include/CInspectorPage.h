// The files of the inspector page, as they are in the folder Page: the compiler puts them into the program.
#ifndef CINSPECTORPAGE_H
#define CINSPECTORPAGE_H

#include <stddef.h>
#include <stdint.h>

/// A file of the page.
struct CInspectorFile {
    /// Such as `main.js`.
    const char *name;
    const uint8_t *bytes;
    size_t count;
};

/// One of the files, from 0; `NULL` behind the last one.
const struct CInspectorFile *cinspector_file(size_t place);

#endif

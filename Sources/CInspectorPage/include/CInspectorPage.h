// The files of the inspector page from the folder Page, which the compiler embeds in the program.
#ifndef CINSPECTORPAGE_H
#define CINSPECTORPAGE_H

#include <stddef.h>
#include <stdint.h>

/// A file of the page.
struct CInspectorFile {
    /// The name, such as `main.js`.
    const char *name;
    const uint8_t *bytes;
    size_t count;
};

/// The file at an index from 0; `NULL` after the last one.
const struct CInspectorFile *cinspector_file(size_t place);

#endif

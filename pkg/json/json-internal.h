/* SPDX-License-Identifier: Apache-2.0 */
/* The node of a document; for the files of pkg/json alone. */
#ifndef WEFT_JSON_JSON_INTERNAL_H
#define WEFT_JSON_JSON_INTERNAL_H

#include "pkg/json/json.h"

struct weft_json {
    enum weft_json_type type;
    unsigned line;
    struct weft_json *parent; /* NULL for a root */
    char *key;                /* in an object, else NULL */
    char *text;               /* scalars */
    char *name;               /* a root's: the file, for errors */
    int64_t number;           /* INT and BOOL */
    struct weft_json **children;
    size_t child_count;
    size_t child_cap;
};

#endif

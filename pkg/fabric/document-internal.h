/* SPDX-License-Identifier: Apache-2.0 */
/* Names in documents: YAML and JSON writers give "1101" as a number as well as as a string. Private
 * to pkg/fabric. */
#ifndef WEFT_FABRIC_DOCUMENT_INTERNAL_H
#define WEFT_FABRIC_DOCUMENT_INTERNAL_H

#include "pkg/base/error.h"
#include "pkg/base/str.h"

struct weft_json;

/* A text of lines (no JSON, whose end shows) that ends in the middle of one may be cut short, and
 * half a name is another node's: 0, or -EINVAL with the line. For after all else was found right.
 */
int weft_doc_check_end(struct weft_str text, const char *source, struct weft_error *err)
    __attribute__((warn_unused_result));

/* A string's text, or a whole number's digits. text points into the document or into digits, so
 * the struct must stay where it is. */
struct weft_doc_text {
    struct weft_str text; /* empty: absent or null */
    char digits[24];
};

/* Errors: -EINVAL for another type, with file, line and field. */
int weft_doc_text_of(const struct weft_json *node, struct weft_doc_text *ret,
                     struct weft_error *err) __attribute__((warn_unused_result));
int weft_doc_get_text(const struct weft_json *object, const char *key, struct weft_doc_text *ret,
                      struct weft_error *err) __attribute__((warn_unused_result));

#endif

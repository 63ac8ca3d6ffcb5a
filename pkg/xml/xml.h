/* SPDX-License-Identifier: Apache-2.0 */
/* XML in, as events (expat): elements with their attributes, the text between them, each with its
 * line. Only the safe part is read: entity declarations are refused (no entity bombs, no external
 * files), nesting and the number of elements are capped. What an element means is the caller's
 * business. One thread at a time. */
#ifndef WEFT_XML_XML_H
#define WEFT_XML_XML_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pkg/base/error.h"
#include "pkg/base/str.h"

/* The place of a parse, handed to each callback. */
struct weft_xml;

enum {
    WEFT_XML_DEPTH_MAX = 128, /* an lstopo object tree is about 30 deep */
    WEFT_XML_ELEMENTS_MAX = 1 << 20,
};

/* What to call; each returns 0, or a negative code with err set (weft_xml_error), which ends the
 * parse. Names and attributes are borrowed for the call. */
struct weft_xml_handler {
    /* attrs: name, value, name, value, …, NULL (weft_xml_attr) */
    int (*start)(void *context, const struct weft_xml *xml, const char *name,
                 const char *const *attrs, struct weft_error *err);
    int (*end)(void *context, const struct weft_xml *xml, const char *name, struct weft_error *err);
    /* May be NULL. A run of text may come in several pieces. */
    int (*text)(void *context, const struct weft_xml *xml, struct weft_str text,
                struct weft_error *err);
};

/* Reads len bytes (the caller caps them); file is the name for messages, borrowed. 0; 1 where the
 * text ends inside an element or a tag, after all that was whole came as events; -EINVAL with
 * "file:line: reason", -EFBIG over a cap, -ENOMEM, or what a callback returned. */
int weft_xml_parse(const char *text, size_t len, const char *file,
                   const struct weft_xml_handler *handler, void *context, struct weft_error *err)
    __attribute__((warn_unused_result));

/* The line of the current event, from 1. */
unsigned weft_xml_line(const struct weft_xml *xml);
/* Sets err to "file:line: <formatted>", domain CONFIG; returns -EINVAL. */
int weft_xml_error(const struct weft_xml *xml, struct weft_error *err, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* An attribute's value, borrowed, or NULL. */
const char *weft_xml_attr(const char *const *attrs, const char *name);
/* An attribute that must be a whole number: 1 and *ret, 0 if absent or empty, -EINVAL with the
 * place, the text found and the range. Decimal; hexadecimal with 0x. */
int weft_xml_attr_u64(const struct weft_xml *xml, const char *const *attrs, const char *name,
                      uint64_t max, uint64_t *ret, struct weft_error *err)
    __attribute__((warn_unused_result));

#endif

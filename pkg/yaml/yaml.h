/* SPDX-License-Identifier: Apache-2.0 */
/* YAML in and out, as the document type of pkg/json. Only the safe part of YAML is read: one
 * document (or a list of them), no anchors, aliases, tags, merge keys or duplicate keys, nesting to
 * 32. Plain scalars are typed by the core of YAML 1.2 that JSON has: null and ~, true/false,
 * decimal integers, JSON numbers; all else is a string ("yes", "0777", "1:20" stay text). */
#ifndef WEFT_YAML_YAML_H
#define WEFT_YAML_YAML_H

#include <stddef.h>

#include "pkg/base/error.h"

struct weft_buf;
struct weft_json;

enum { WEFT_YAML_DEPTH_MAX = 32 };

/* Parses text (JSON is YAML too) of one document; an empty text is an empty object. name is the
 * file name for errors, copied. The caller owns *ret_root (weft_json_free). The caller caps len;
 * libyaml is quadratic in nesting only, which is capped here. Errors: -EINVAL with file:line,
 * -ENOMEM. */
int weft_yaml_parse(const char *text, size_t len, const char *name, struct weft_json **ret_root,
                    struct weft_error *err) __attribute__((warn_unused_result));
/* The same for a stream of documents: an ARRAY of them. */
int weft_yaml_parse_all(const char *text, size_t len, const char *name, struct weft_json **ret_root,
                        struct weft_error *err) __attribute__((warn_unused_result));

/* Appends the node as one block-style YAML document without "---": strings always in double
 * quotes, keys, numbers and booleans plain (libyaml alone would print "no" and "0777" plain and
 * change their type for other readers). Check buf->status. */
void weft_yaml_write(const struct weft_json *node, struct weft_buf *buf);

#endif

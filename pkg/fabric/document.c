/* SPDX-License-Identifier: Apache-2.0 */
/* Values of documents that come as text or as number. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#include "pkg/fabric/document-internal.h"
#include "pkg/json/json.h"

int weft_doc_check_end(struct weft_str text, const char *source, struct weft_error *err)
{
    const struct weft_str content = weft_str_trim(text);
    unsigned lines = 1;
    if (content.len == 0 || content.data[0] == '{' || content.data[0] == '[' ||
        text.data[text.len - 1] == '\n') {
        return 0;
    }
    for (size_t i = 0; i < text.len; i++) {
        lines += text.data[i] == '\n';
    }
    return weft_err_set(err, -EINVAL, WEFT_ERR_CONFIG,
                        "%s:%u: the last line has no line end: the file may be cut short; if it is "
                        "whole, end it with one",
                        source, lines);
}

int weft_doc_text_of(const struct weft_json *node, struct weft_doc_text *ret,
                     struct weft_error *err)
{
    const enum weft_json_type type = weft_json_type(node);
    ret->text = (struct weft_str){"", 0};
    if (type == WEFT_JSON_STRING) {
        ret->text = weft_str(weft_json_string(node));
        return 0;
    }
    if (type == WEFT_JSON_INT) {
        (void)snprintf(ret->digits, sizeof(ret->digits), "%" PRId64, weft_json_int(node, 0));
        ret->text = weft_str(ret->digits);
        return 0;
    }
    return type == WEFT_JSON_NULL ? 0 : weft_json_error(node, err, "must be a string");
}

int weft_doc_get_text(const struct weft_json *object, const char *key, struct weft_doc_text *ret,
                      struct weft_error *err)
{
    if (weft_json_type(object) != WEFT_JSON_OBJECT) {
        return weft_json_error(object, err, "must be an object");
    }
    return weft_doc_text_of(weft_json_get(object, key), ret, err);
}

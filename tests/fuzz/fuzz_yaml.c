/* SPDX-License-Identifier: Apache-2.0 */
/* pkg/yaml: what is parsed can be written as YAML and reads back as the same values. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "pkg/base/buf.h"
#include "pkg/json/json.h"
#include "pkg/yaml/yaml.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void as_json(const struct weft_json *root, struct weft_buf *buf)
{
    struct weft_json_writer w;
    weft_buf_init(buf, 16U << 20);
    weft_json_writer_init(&w, buf, 0);
    weft_json_put_node(&w, root);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    weft_auto(weft_json_free) struct weft_json *first = NULL;
    struct weft_error err = {0};
    if (weft_yaml_parse((const char *)data, size, "fuzz", &first, &err) < 0) {
        if (err.message[0] == '\0') {
            abort();
        }
        return 0;
    }
    weft_auto(weft_buf_done) struct weft_buf yaml;
    weft_buf_init(&yaml, 16U << 20);
    weft_yaml_write(first, &yaml);
    weft_auto(weft_json_free) struct weft_json *second = NULL;
    if (yaml.status != 0 ||
        weft_yaml_parse(weft_buf_text(&yaml), yaml.len, "again", &second, &err) < 0) {
        abort();
    }
    weft_auto(weft_buf_done) struct weft_buf one;
    weft_auto(weft_buf_done) struct weft_buf two;
    as_json(first, &one);
    as_json(second, &two);
    if (one.len != two.len || memcmp(one.data, two.data, one.len) != 0) {
        abort();
    }
    return 0;
}

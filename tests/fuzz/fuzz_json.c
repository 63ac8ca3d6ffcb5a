/* SPDX-License-Identifier: Apache-2.0 */
/* pkg/json: what is parsed can be written, read back, and is written the same again. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "pkg/base/buf.h"
#include "pkg/json/json.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void write_to(const struct weft_json *root, struct weft_buf *buf)
{
    struct weft_json_writer w;
    weft_buf_init(buf, 16U << 20);
    weft_json_writer_init(&w, buf, 2);
    weft_json_put_node(&w, root);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    weft_auto(weft_json_free) struct weft_json *first = NULL;
    struct weft_error err = {0};
    if (weft_json_parse((const char *)data, size, "fuzz", &first, &err) < 0) {
        if (err.message[0] == '\0') {
            abort(); /* every refusal says why */
        }
        return 0;
    }
    weft_auto(weft_buf_done) struct weft_buf once;
    write_to(first, &once);
    weft_auto(weft_json_free) struct weft_json *second = NULL;
    if (weft_json_parse(weft_buf_text(&once), once.len, "again", &second, &err) < 0) {
        abort();
    }
    weft_auto(weft_buf_done) struct weft_buf twice;
    write_to(second, &twice);
    if (once.len != twice.len || memcmp(once.data, twice.data, once.len) != 0) {
        abort();
    }
    return 0;
}

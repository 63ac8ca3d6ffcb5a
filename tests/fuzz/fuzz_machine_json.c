/* SPDX-License-Identifier: Apache-2.0 */
/* weft's machine JSON: what is read can be written, read back as the same machine, and is written
 * the same again. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "pkg/base/buf.h"
#include "pkg/machine/machine-internal.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    weft_auto(weft_machine_free) struct weft_machine *m = NULL;
    weft_auto(weft_machine_free) struct weft_machine *again = NULL;
    weft_auto(weft_buf_done) struct weft_buf once;
    weft_auto(weft_buf_done) struct weft_buf twice;
    struct weft_error err = {0};
    weft_buf_init(&once, 64U << 20);
    weft_buf_init(&twice, 64U << 20);
    if (weft_machine_read_json((const char *)data, size, "fuzz", &m, &err) < 0) {
        if (m != NULL || err.message[0] == '\0') {
            abort();
        }
        return 0;
    }
    if (weft_machine_write_json(m, &once) < 0 ||
        weft_machine_read(once.data, once.len, "again", &again, &err) < 0 ||
        !weft_machine_equal(m, again) || weft_machine_write_json(again, &twice) < 0 ||
        once.len != twice.len || memcmp(once.data, twice.data, once.len) != 0) {
        abort();
    }
    return 0;
}

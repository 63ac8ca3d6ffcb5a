/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/declared_text.h"

#include "pkg/base/buf.h"
#include "pkg/fabric/labels.h"
#include "tests/unit/unit.h"

char *weft_declared_text(const struct weft_declared *declared)
{
    weft_auto(weft_buf_done) struct weft_buf buf;
    weft_buf_init(&buf, 64 << 20);
    for (size_t l = 0; l < declared->levels.count; l++) {
        (void)weft_buf_printf(&buf, "%s%s", l > 0 ? " " : "", declared->levels.items[l].tier);
    }
    (void)weft_buf_puts(&buf, ":");
    for (size_t n = 0; n < declared->node_count; n++) {
        (void)weft_buf_printf(&buf, " %s=", declared->nodes[n]);
        for (size_t l = 0; l < declared->levels.count; l++) {
            const char *value = declared->values[n * declared->levels.count + l];
            (void)weft_buf_printf(&buf, "%s%s", l > 0 ? "/" : "", value != NULL ? value : "-");
        }
    }
    return weft_buf_steal(&buf);
}

void weft_declared_check(struct weft_declared *declared, const char *expected)
{
    weft_autofree char *text = declared != NULL ? weft_declared_text(declared) : NULL;
    CHECK_STR(text != NULL ? text : "nothing", expected != NULL ? expected : "nothing");
    weft_declared_free(declared);
}

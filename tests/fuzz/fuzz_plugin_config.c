/* SPDX-License-Identifier: Apache-2.0 */
/* Any text as the plugin's config file, ours or NVIDIA's: it is refused with a message, or what it
 * comes to, written as our file, comes to the same again. */
#include <stdlib.h>
#include <string.h>

#include "deviceplugin/options.h"
#include "pkg/base/buf.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static char *no_env(const char *name)
{
    (void)name;
    return NULL;
}

static void write_options(const struct weft_options *options, struct weft_buf *buf)
{
    weft_buf_init(buf, 4 << 20);
    if (weft_options_write(options, buf) < 0) {
        abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char program[] = "plugin";
    char *const argv[] = {program, NULL};
    weft_auto(weft_options_done) struct weft_options options = {0};
    weft_auto(weft_options_done) struct weft_options again = {0};
    struct weft_error err = {0};
    if (size > WEFT_CONFIG_MAX || weft_options_read(1, argv, no_env, &options, &err) < 0 ||
        weft_options_read(1, argv, no_env, &again, &err) < 0) {
        return 0;
    }
    if (weft_options_apply_file((const char *)data, size, "file", &options, &err) < 0) {
        if (err.message[0] == '\0') {
            abort();
        }
        return 0;
    }
    weft_auto(weft_buf_done) struct weft_buf first;
    weft_auto(weft_buf_done) struct weft_buf second;
    write_options(&options, &first);
    if (weft_options_apply_file(weft_buf_text(&first), first.len, "again", &again, &err) < 0) {
        abort();
    }
    write_options(&again, &second);
    if (strcmp(weft_buf_text(&first), weft_buf_text(&second)) != 0) {
        abort();
    }
    return 0;
}

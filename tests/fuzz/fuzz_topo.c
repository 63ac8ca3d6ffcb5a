/* SPDX-License-Identifier: Apache-2.0 */
/* The reader of `nvidia-smi topo -m` texts: what it accepts is a sound machine (symmetric, in
 * range, ids unique), which can be written as JSON and read back as the same machine; what it
 * refuses, it refuses with a reason. */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "pkg/base/buf.h"
#include "pkg/machine/machine-internal.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool holds)
{
    if (!holds) {
        abort();
    }
}

static void check_sound(const struct weft_machine *m)
{
    for (size_t i = 0; i < m->device_count; i++) {
        require(weft_machine_find(m, m->devices[i].id) == i);
        for (size_t j = 0; j < m->device_count; j++) {
            require(weft_machine_b(m, i, j) == weft_machine_b(m, j, i));
            require(weft_machine_t(m, i, j) == weft_machine_t(m, j, i));
            require(weft_machine_t(m, i, j) < WEFT_DISTANCE_COUNT);
        }
        for (size_t n = 0; n < m->nic_count; n++) {
            require(weft_machine_n(m, i, n) < WEFT_DISTANCE_COUNT);
        }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    weft_auto(weft_machine_free) struct weft_machine *m = NULL;
    weft_auto(weft_machine_free) struct weft_machine *again = NULL;
    weft_auto(weft_buf_done) struct weft_buf json;
    struct weft_error err = {0};
    weft_buf_init(&json, 64U << 20);
    if (weft_machine_read_smi_topo((const char *)data, size, "fuzz", &m, &err) < 0) {
        require(m == NULL && err.message[0] != '\0');
        return 0;
    }
    check_sound(m);
    require(weft_machine_write_json(m, &json) == 0);
    require(weft_machine_read(json.data, json.len, "again", &again, &err) == 0);
    require(weft_machine_equal(m, again));
    require(m->warning_count == again->warning_count);
    return 0;
}

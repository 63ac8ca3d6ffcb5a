/* SPDX-License-Identifier: Apache-2.0 */
/* What every reader of a recorded machine owes, whatever the bytes: what it accepts is a sound
 * machine (symmetric, in range, ids unique), which can be written as JSON and read back as the same
 * machine; what it refuses, it refuses with a reason. */
#ifndef WEFT_TESTS_FUZZ_MACHINE_SOUND_H
#define WEFT_TESTS_FUZZ_MACHINE_SOUND_H

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

#include "pkg/base/buf.h"
#include "pkg/machine/machine-internal.h"

typedef int machine_reader(const char *text, size_t len, const char *name,
                           struct weft_machine **ret_machine, struct weft_error *err);

static inline void machine_require(bool holds)
{
    if (!holds) {
        abort();
    }
}

static inline void machine_check_values(const struct weft_machine *m)
{
    for (size_t i = 0; i < m->device_count; i++) {
        machine_require(weft_machine_find(m, m->devices[i].id) == i);
        for (size_t j = 0; j < m->device_count; j++) {
            machine_require(weft_machine_b(m, i, j) == weft_machine_b(m, j, i));
            machine_require(weft_machine_b(m, i, j) <= WEFT_MACHINE_BANDWIDTH_MAX);
            machine_require(weft_machine_t(m, i, j) == weft_machine_t(m, j, i));
            machine_require(weft_machine_t(m, i, j) < WEFT_DISTANCE_COUNT);
        }
        for (size_t n = 0; n < m->nic_count; n++) {
            machine_require(weft_machine_n(m, i, n) < WEFT_DISTANCE_COUNT);
        }
    }
}

static inline void machine_sound(machine_reader *read, const uint8_t *data, size_t size)
{
    weft_auto(weft_machine_free) struct weft_machine *m = NULL;
    weft_auto(weft_machine_free) struct weft_machine *again = NULL;
    weft_auto(weft_buf_done) struct weft_buf json;
    struct weft_error err = {0};
    weft_buf_init(&json, 64U << 20);
    if (read((const char *)data, size, "fuzz", &m, &err) < 0) {
        machine_require(m == NULL && err.message[0] != '\0');
        return;
    }
    machine_check_values(m);
    machine_require(weft_machine_write_json(m, &json) == 0);
    machine_require(weft_machine_read(json.data, json.len, "again", &again, &err) == 0);
    machine_require(weft_machine_equal(m, again));
    machine_require(m->warning_count == again->warning_count);
}

#endif

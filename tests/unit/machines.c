/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/machines.h"

#include <stdio.h>
#include <string.h>

#include "pkg/base/mem.h"
#include "pkg/base/str.h"
#include "pkg/machine/machine-internal.h"
#include "tests/unit/unit.h"

static void fill_part(struct weft_machine *m, size_t i)
{
    struct weft_device *d = &m->devices[i];
    const size_t gpu = i / 8;
    (void)snprintf(d->id, sizeof(d->id), "mi300x-%zu-part-%zu", gpu, i % 8);
    (void)snprintf(d->model, sizeof(d->model), "AMD Instinct MI300X");
    (void)snprintf(d->profile, sizeof(d->profile), "CPX");
    d->index = (int)i;
    d->parent = (int)gpu;
    d->partition = (int)(i % 8);
    d->bdf = (struct weft_bdf){.known = true, .bus = (uint8_t)(16 + 16 * gpu)};
    d->socket = (int)(gpu / 4);
    weft_device_set_numa(d, gpu < 4 ? "0" : "1", 1);
}

struct weft_machine *machine_mi300x_cpx(void)
{
    weft_auto(weft_machine_free) struct weft_machine *m = NULL;
    if (weft_machine_new("mi300x-cpx", 64, 8, &m, NULL) < 0) {
        return NULL;
    }
    for (size_t i = 0; i < 64; i++) {
        fill_part(m, i);
    }
    weft_machine_group_numa(m);
    for (size_t n = 0; n < 8; n++) {
        (void)snprintf(m->nics[n].name, sizeof(m->nics[n].name), "bnxt_re%zu", n);
        m->nics[n].numa_node = (int)(n / 4);
    }
    for (size_t i = 0; i < 64; i++) {
        for (size_t j = i + 1; j < 64; j++) {
            const bool inside = i / 8 == j / 8;
            const struct weft_reading r = {inside ? 600000 : 64000, inside ? WEFT_DISTANCE_PSB
                                                                    : i / 32 == j / 32
                                                                        ? WEFT_DISTANCE_NODE
                                                                        : WEFT_DISTANCE_SYS};
            (void)weft_machine_set_pair(m, i, j, r, r);
        }
        for (size_t n = 0; n < 8; n++) {
            weft_machine_set_nic(m, i, n, i / 8 == n ? WEFT_DISTANCE_PIX : WEFT_DISTANCE_UNKNOWN);
        }
    }
    return weft_steal(&m);
}

struct weft_machine *machine_fixture(const char *fixture)
{
    struct weft_machine *m = NULL;
    struct weft_error err = {0};
    char name[128];
    (void)snprintf(name, sizeof(name), "machine/%s", fixture);
    if (weft_machine_load(weft_fixture(name), &m, &err) < 0) {
        (void)fprintf(stderr, "%s\n", err.message);
        CU_FAIL("fixture cannot be read");
    }
    return m;
}

size_t machine_ids(const struct weft_machine *m, const char *text, size_t *ids)
{
    size_t count = 0;
    struct weft_str rest = weft_str(text);
    struct weft_str piece;
    while (rest.len > 0 && weft_str_split(&rest, ',', &piece)) {
        char id[8] = "";
        memcpy(id, piece.data, piece.len < 7 ? piece.len : 7);
        ids[count++] = weft_machine_find(m, id);
    }
    return count;
}

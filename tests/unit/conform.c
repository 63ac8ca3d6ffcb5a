/* SPDX-License-Identifier: Apache-2.0 */
/* The conformance test that every backend passes. */
#include "tests/unit/conform.h"

#include <errno.h>

#include "pkg/base/buf.h"
#include "pkg/base/mem.h"
#include "pkg/machine/machine-internal.h"
#include "tests/unit/unit.h"

enum { ALLOCATIONS_MAX = 20000, JSON_MAX = 8 << 20 };

static void check_device(const struct conform_case *c, const struct weft_device *d)
{
    CHECK(weft_device_id_valid(d->id));
    CHECK(d->numa_node >= -1 && d->numa_group >= -1 && d->socket >= -1 && d->parent >= -1);
    CHECK((d->numa_group >= 0) == (d->numa_label[0] != '\0'));
    CHECK(d->healthy == (d->health_reason[0] == '\0'));
    CHECK(d->links_up <= d->links_total || d->links_total < 0);
    CHECK(d->parent < 0 || d->profile[0] != '\0');
    for (size_t n = 0; n < d->node_count; n++) {
        CHECK(d->nodes[n][0] == '/');
        CHECK(c->options.host_root == NULL || c->options.host_root[0] == '\0' ||
              strncmp(d->nodes[n], c->options.host_root, strlen(c->options.host_root)) != 0);
    }
}

static void check_machine(const struct conform_case *c, const struct weft_machine *m)
{
    CHECK_INT(m->device_count, c->devices);
    CHECK_STR(m->vendor, c->backend->vendor);
    CHECK_INT(weft_machine_finish(m, NULL), 0);
    for (size_t i = 0; i < m->device_count; i++) {
        check_device(c, &m->devices[i]);
        CHECK_INT(weft_machine_b(m, i, i), 0);
        CHECK_INT(weft_machine_t(m, i, i), WEFT_DISTANCE_PSB);
        for (size_t j = 0; j < i; j++) {
            CHECK_INT(weft_machine_b(m, i, j), weft_machine_b(m, j, i));
            CHECK_INT(weft_machine_t(m, i, j), weft_machine_t(m, j, i));
            CHECK(weft_machine_b(m, i, j) <= WEFT_MACHINE_BANDWIDTH_MAX);
        }
        for (size_t n = 0; n < m->nic_count; n++) {
            CHECK(weft_machine_n(m, i, n) < WEFT_DISTANCE_COUNT);
        }
    }
}

static void check_round_trip(const struct weft_machine *m)
{
    weft_auto(weft_buf_done) struct weft_buf text;
    weft_buf_init(&text, JSON_MAX);
    CHECK_INT(weft_machine_write_json(m, &text), 0);
    weft_auto(weft_machine_free) struct weft_machine *again = NULL;
    struct weft_error err = {0};
    if (weft_machine_read(weft_buf_text(&text), text.len, "again", &again, &err) < 0) {
        CHECK_STR(err.message, "");
        return;
    }
    CHECK(weft_machine_equal(m, again));
}

static int look(const struct conform_case *c, struct weft_machine **ret_first,
                struct weft_machine **ret_second)
{
    struct weft_backend_watch watch = {0};
    struct weft_backend_options options = c->options;
    options.watch = &watch;
    void *state = NULL;
    struct weft_error err = {0};
    int rc = c->backend->open(&options, &state, &err);
    if (rc == 0) {
        rc = c->backend->enumerate(state, ret_first, &err);
        rc = rc == 0 ? c->backend->enumerate(state, ret_second, &err) : rc;
        c->backend->close(state);
    }
    const char *call = NULL;
    CHECK(weft_backend_late(&watch, 0, 0, &call) == INT64_MIN);
    CHECK(rc == 0 || err.message[0] != '\0');
    return rc;
}

static void survives_failing_allocations(const struct conform_case *c)
{
    uint64_t count = 1;
    for (int rc = -ENOMEM; rc < 0 && count < ALLOCATIONS_MAX; count++) {
        weft_auto(weft_machine_free) struct weft_machine *first = NULL;
        weft_auto(weft_machine_free) struct weft_machine *second = NULL;
        (void)weft_mem_fail_after(count);
        rc = look(c, &first, &second);
        (void)weft_mem_fail_after(0);
        CHECK(rc == 0 || rc == -ENOMEM);
    }
    CHECK(count > 1 && count < ALLOCATIONS_MAX);
}

void conform(const struct conform_case *c)
{
    CHECK(c->backend->probe(&c->options));
    weft_auto(weft_machine_free) struct weft_machine *first = NULL;
    weft_auto(weft_machine_free) struct weft_machine *second = NULL;
    if (!CHECK_INT(look(c, &first, &second), 0)) {
        return;
    }
    CHECK(weft_machine_equal(first, second));
    check_machine(c, first);
    check_round_trip(first);
    c->backend->close(NULL);
    survives_failing_allocations(c);
}

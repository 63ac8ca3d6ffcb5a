/* SPDX-License-Identifier: Apache-2.0 */
/* Recorded KFD topologies: archives as they are, and, where the input is none, as the properties of
 * a GPU and of a link. What is accepted is a sound machine that its JSON form keeps; what is
 * refused has a reason. */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "pkg/base/buf.h"
#include "pkg/machine/host.h"
#include "pkg/machine/kfd.h"
#include "pkg/machine/machine.h"
#include "pkg/machine/read-kfd.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { ENTRIES = 6 };

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
    }
}

static void check_result(int rc, const struct weft_machine *m, const struct weft_error *err)
{
    weft_auto(weft_machine_free) struct weft_machine *again = NULL;
    weft_auto(weft_buf_done) struct weft_buf json;
    weft_buf_init(&json, 64U << 20);
    if (m == NULL) {
        require(rc < 0 && err->message[0] != '\0');
        return;
    }
    require(rc == 0);
    check_sound(m);
    require(weft_machine_write_json(m, &json) == 0);
    require(weft_machine_read(json.data, json.len, "again", &again, NULL) == 0);
    require(weft_machine_equal(m, again));
}

/* The input, cut into as many pieces, as the files of a topology with two nodes. */
static void as_properties(const char *data, size_t size)
{
    static const char *const paths[ENTRIES] = {
        WEFT_KFD_ROOT "/nodes/1/properties",
        WEFT_KFD_ROOT "/nodes/2/properties",
        WEFT_KFD_ROOT "/nodes/1/io_links/0/properties",
        WEFT_KFD_ROOT "/nodes/2/io_links/0/properties",
        WEFT_KFD_ROOT "/nodes/1/name",
        WEFT_KFD_ROOT "/nodes/1/mem_banks/0/properties",
    };
    weft_auto(weft_host_free) struct weft_host *host = NULL;
    weft_auto(weft_kfd_done) struct weft_kfd kfd = {0};
    weft_auto(weft_machine_free) struct weft_machine *m = NULL;
    struct weft_error err = {0};
    require(weft_host_new_recorded(&host) == 0);
    for (size_t i = 0; i < ENTRIES; i++) {
        const char *end = memchr(data, '\f', size);
        const size_t len = end == NULL ? size : (size_t)(end - data);
        require(weft_host_add_file(host, paths[i], data, len) == 0);
        data += end == NULL ? len : len + 1;
        size -= end == NULL ? len : len + 1;
    }
    weft_host_seal(host);
    int rc = weft_kfd_read(host, WEFT_KFD_ROOT, "fuzz", false, &kfd, &err);
    rc = rc < 0 ? rc : weft_kfd_machine(host, &kfd, "fuzz", &m, &err);
    check_result(rc, m, &err);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    weft_auto(weft_machine_free) struct weft_machine *m = NULL;
    struct weft_error err = {0};
    const char *bytes = (const char *)data;
    if (!weft_kfd_is_archive(bytes, size)) {
        as_properties(bytes, size);
        return 0;
    }
    const int rc = weft_kfd_read_archive(bytes, size, "fuzz", NULL, &m, &err);
    check_result(rc, m, &err);
    return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/machine_util.h"

#include <errno.h>
#include <stdio.h>

#include "pkg/base/buf.h"
#include "pkg/base/mem.h"
#include "tests/unit/unit.h"

static void check_round_trip(const struct weft_machine *m)
{
    weft_auto(weft_buf_done) struct weft_buf json;
    weft_auto(weft_machine_free) struct weft_machine *again = NULL;
    struct weft_error err = {0};
    weft_buf_init(&json, 64U << 20);
    CHECK_INT(weft_machine_write_json(m, &json), 0);
    CHECK_INT(weft_machine_read(json.data, json.len, "again", &again, &err), 0);
    CHECK_STR(err.message, "");
    CHECK(again != NULL && weft_machine_equal(m, again));
}

struct weft_machine *machine_read(const char *text)
{
    struct weft_machine *m = NULL;
    struct weft_error err = {0};
    const int rc = weft_machine_read(text, strlen(text), "t", &m, &err);
    CHECK_STR(err.message, "");
    CHECK((rc == 0) == (m != NULL));
    if (m != NULL) {
        check_round_trip(m);
    }
    return m;
}

void machine_refused(const char *text, const char *message_part)
{
    weft_auto(weft_machine_free) struct weft_machine *m = NULL;
    struct weft_error err = {0};
    const int rc = weft_machine_read(text, strlen(text), "t", &m, &err);
    CHECK(rc < 0 && m == NULL);
    CHECK_CONTAINS(err.message, message_part);
}

void machine_warned(const struct weft_machine *m, const char *part)
{
    bool found = false;
    for (size_t i = 0; i < m->warning_count; i++) {
        found = found || strstr(m->warnings[i], part) != NULL;
    }
    CHECK(found);
    if (!found) {
        (void)fprintf(stderr, "no warning says '%s'; there are %zu%s%s\n", part, m->warning_count,
                      m->warning_count > 0 ? ", the first: " : "",
                      m->warning_count > 0 ? m->warnings[0] : "");
    }
}

void machine_read_out_of_memory(const char *text)
{
    bool done = false;
    for (uint64_t nth = 1; !done && nth < 2000; nth++) {
        weft_auto(weft_machine_free) struct weft_machine *m = NULL;
        struct weft_error err = {0};
        (void)weft_mem_fail_after(nth);
        const int rc = weft_machine_read(text, strlen(text), "t", &m, &err);
        (void)weft_mem_fail_after(0);
        done = rc == 0;
        CHECK(done || rc == -ENOMEM);
    }
    CHECK(done);
}

static bool check_cut(const struct weft_machine *whole, const struct weft_machine *cut)
{
    bool good = cut->device_count <= whole->device_count;
    for (size_t i = 0; i < cut->device_count; i++) {
        const struct weft_device *d = &cut->devices[i];
        const size_t at = weft_machine_find(whole, d->id);
        good = good && at != SIZE_MAX;
        good = good && (strcmp(whole->devices[at].numa_label, d->numa_label) == 0 ||
                        (d->numa_label[0] == '\0' && cut->warning_count > 0));
    }
    return good &&
           (cut->device_count == whole->device_count || (cut->partial && cut->warning_count > 0));
}

void machine_read_cut(const char *text)
{
    weft_auto(weft_machine_free) struct weft_machine *whole = machine_read(text);
    for (size_t len = 1; whole != NULL && len < strlen(text); len++) {
        weft_auto(weft_machine_free) struct weft_machine *m = NULL;
        struct weft_error err = {0};
        const int rc = weft_machine_read(text, len, "t", &m, &err);
        const bool good = rc < 0 ? err.message[0] != '\0' : check_cut(whole, m);
        CHECK(good);
        if (!good) {
            (void)fprintf(stderr, "cut after %zu bytes of '%.40s…'\n", len, text);
        }
    }
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Every recorded machine at hand can be shown in each form, written and read back, and answers
 * every request within its bounds, the same with and without tables. (What must be read from each
 * file stands in the suites of its format.) */
#include <dirent.h>
#include <stdio.h>

#include "ctl/machine-view.h"
#include "pkg/allocator/allocator.h"
#include "pkg/base/buf.h"
#include "pkg/machine/machine.h"
#include "tests/unit/unit.h"

enum { OUTPUT_MAX = 16 << 20 };

static size_t longest_line(const char *text)
{
    size_t longest = 0;
    for (const char *at = text; *at != '\0';) {
        const size_t len = strcspn(at, "\n");
        longest = len > longest ? len : longest;
        at += len + (at[len] == '\n');
    }
    return longest;
}

static void check_outputs(const struct weft_machine *m)
{
    const struct weft_view_style style = {.width = 100};
    weft_auto(weft_view_free) struct weft_view *view = NULL;
    weft_auto(weft_machine_free) struct weft_machine *again = NULL;
    weft_auto(weft_buf_done) struct weft_buf table;
    weft_auto(weft_buf_done) struct weft_buf other;
    weft_buf_init(&table, OUTPUT_MAX);
    weft_buf_init(&other, OUTPUT_MAX);
    if (weft_view_new(m, &view, NULL) < 0) {
        CU_FAIL("no view");
        return;
    }
    weft_view_put_table(view, &style, &table);
    CHECK_INT(table.status, 0);
    CHECK(longest_line(weft_buf_text(&table)) <= 100);
    weft_view_put_dot(view, &other);
    weft_view_put_svg(view, &other);
    CHECK_INT(other.status, 0);
    weft_buf_reset(&other);
    CHECK_INT(weft_machine_write_json(m, &other), 0);
    CHECK_INT(weft_machine_read(other.data, other.len, "again", &again, NULL), 0);
    CHECK(again != NULL && weft_machine_equal(m, again));
}

static size_t count_healthy(const struct weft_machine *m)
{
    size_t count = 0;
    for (size_t i = 0; i < m->device_count; i++) {
        count += m->devices[i].healthy;
    }
    return count;
}

static void check_size(const struct weft_machine *m, const struct weft_allocator *a,
                       const struct weft_allocator *direct, const size_t *all, size_t size)
{
    weft_auto(weft_choice_done) struct weft_choice x = {0};
    weft_auto(weft_choice_done) struct weft_choice y = {0};
    const struct weft_request r = {
        .available = all, .available_count = m->device_count, .size = (int64_t)size};
    const size_t healthy = count_healthy(m);
    CHECK_INT(weft_allocator_pick(a, &r, &x, NULL), 0);
    CHECK_INT(weft_allocator_pick(direct, &r, &y, NULL), 0);
    CHECK_INT(x.count, size < healthy ? size : healthy);
    CHECK_INT(y.count, x.count);
    for (size_t i = 0; i < x.count && i < y.count; i++) {
        CHECK_INT(x.devices[i], y.devices[i]);
    }
}

static void check_picks(const struct weft_machine *m)
{
    weft_auto(weft_allocator_free) struct weft_allocator *a = NULL;
    weft_auto(weft_allocator_free) struct weft_allocator *direct = NULL;
    weft_autofree size_t *all = weft_calloc(m->device_count + 1, sizeof(*all));
    CHECK_INT(weft_allocator_new(m, &a, NULL), 0);
    CHECK_INT(weft_allocator_new_direct(m, &direct, NULL), 0);
    for (size_t i = 0; all != NULL && i < m->device_count; i++) {
        all[i] = i;
    }
    for (size_t size = 0; all != NULL && size <= m->device_count; size++) {
        check_size(m, a, direct, all, size);
    }
}

/* Returns how many files of a folder were read. */
static size_t check_folder(const char *path)
{
    size_t count = 0;
    DIR *dir = path != NULL ? opendir(path) : NULL;
    for (const struct dirent *e = dir != NULL ? readdir(dir) : NULL; e != NULL; e = readdir(dir)) {
        char name[1024];
        weft_auto(weft_machine_free) struct weft_machine *m = NULL;
        (void)snprintf(name, sizeof(name), "%s/%s", path, e->d_name);
        if (e->d_type != DT_REG || weft_machine_load(name, &m, NULL) < 0) {
            continue;
        }
        count++;
        check_outputs(m);
        check_picks(m);
    }
    if (dir != NULL) {
        (void)closedir(dir);
    }
    return count;
}

static void our_fixtures(void)
{
    CHECK(check_folder("tests/fixtures/machine") >= 18);
}

static void public_recordings(void)
{
    static const char *const folders[] = {"smi-topo", "nccl-topo", "amd-rccl-topo",
                                          "hwloc",    "amd-smi",   "amd-kfd"};
    size_t count = 0;
    for (size_t i = 0; i < WEFT_ARRAY_LEN(folders); i++) {
        count += check_folder(weft_shared(folders[i]));
    }
    if (weft_shared("smi-topo") == NULL) {
        (void)printf("SKIP: no public recordings here\n");
        return;
    }
    CHECK(count >= 60);
}

WEFT_SUITE(machine_corpus, {"our fixtures", our_fixtures}, {"public recordings", public_recordings})

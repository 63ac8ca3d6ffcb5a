/* SPDX-License-Identifier: Apache-2.0 */
/* Moore Threads machines: through a mock of the vendor's library (tests/fakes/mtml) and from sysfs
 * without it. Expected values by hand from the JSON below and tests/fixtures/sysfs/mthreads.txt. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "pkg/base/file.h"
#include "pkg/machine/discover-mthreads-internal.h"
#include "pkg/machine/host.h"
#include "pkg/machine/machine.h"
#include "tests/unit/conform.h"
#include "tests/unit/fake_host.h"
#include "tests/unit/proc.h"
#include "tests/unit/unit.h"

/* Links of 320 Gb/s = 40,000 MB/s. 0-1: two up; 0-2: one up; 1-3: one up, one of 3's ends
 * downgraded; 2-3: two, one of them down at 2's end; 0's last link leads to nobody we know. */
#define FOUR                                                                                       \
    "{\"driver\": \"2.7.0-server\", \"gpus\": ["                                                   \
    "{\"uuid\": \"11111111-aaaa\", \"name\": \"MTT S4000\", \"bdf\": \"00000000:3b:00.0\","        \
    " \"memory_mib\": 49152, \"gpu\": \"/dev/mtgpu.0\", \"card\": \"/dev/dri/card1\","             \
    " \"render\": \"/dev/dri/renderD128\", \"pcie\": [4, 8, 5, 16], \"gbps\": 320,"                \
    " \"links\": [[1, \"up\"], [1, \"up\"], [2, \"up\"], [null, \"up\"]]},"                        \
    "{\"uuid\": \"22222222-bbbb\", \"name\": \"MTT S4000\", \"bdf\": \"00000000:3c:00.0\","        \
    " \"gpu\": \"/dev/mtgpu.1\", \"gbps\": 320,"                                                   \
    " \"links\": [[0, \"up\"], [0, \"up\"], [3, \"up\"]]},"                                        \
    "{\"uuid\": \"33333333-cccc\", \"name\": \"MTT S4000\", \"bdf\": \"00000000:af:00.0\","        \
    " \"gpu\": \"/dev/mtgpu.2\", \"gbps\": 320,"                                                   \
    " \"links\": [[0, \"up\"], [3, \"up\"], [3, \"down\"]]},"                                      \
    "{\"uuid\": \"44444444-dddd\", \"name\": \"MTT S4000\", \"bdf\": \"00000000:b0:00.0\","        \
    " \"gpu\": \"/dev/mtgpu.3\", \"gbps\": 320,"                                                   \
    " \"links\": [[1, \"downgrade\"], [2, \"up\"], [2, \"up\"]]}"
#define END "]}"

static struct {
    char root[512], file[600], library[256];
} place;

/* Sets up the host, and the machine that the mock plays. */
static struct weft_backend_options use(const char *name, const char *json)
{
    weft_auto(weft_host_free) struct weft_host *host = fake_host("sysfs/mthreads.txt");
    (void)snprintf(place.root, sizeof(place.root), "%s/mthreads-%s", weft_test_dir(), name);
    (void)snprintf(place.file, sizeof(place.file), "%s/mock.json", place.root);
    (void)snprintf(place.library, sizeof(place.library), "%s", proc_path("fakes/libmtml.so"));
    if (host == NULL || mkdir(place.root, 0755) < 0 || !fake_host_write(host, place.root) ||
        weft_file_replace(place.file, json, strlen(json), 0644, NULL) < 0 ||
        setenv("WEFT_MOCK_MTML", place.file, 1) < 0) {
        CU_FAIL("set-up");
    }
    return (struct weft_backend_options){.host_root = place.root, .library = place.library};
}

static struct weft_machine *look(void *state)
{
    struct weft_machine *m = NULL;
    struct weft_error err = {0};
    if (weft_backend_mthreads.enumerate(state, &m, &err) < 0) {
        CHECK_STR(err.message, "");
    }
    return m;
}

static void conforms(void)
{
    const struct conform_case c = {
        .backend = &weft_backend_mthreads, .options = use("conform", FOUR END), .devices = 4};
    conform(&c);
}

static void check_four(const struct weft_machine *m)
{
    /* in MB/s; a pair counts by its weaker direction */
    static const uint64_t b[4][4] = {
        {0, 80000, 40000, 0}, {80000, 0, 0, 20000}, {40000, 0, 0, 40000}, {0, 20000, 40000, 0}};
    for (size_t i = 0; i < 4; i++) {
        for (size_t j = 0; j < 4; j++) {
            CHECK_INT(weft_machine_b(m, i, j), b[i][j]);
        }
    }
    const struct weft_device *d = &m->devices[0];
    CHECK_STR(d->id, "11111111-aaaa");
    CHECK_STR(d->model, "MTT S4000");
    CHECK_INT(d->memory_mib, 49152);
    CHECK_INT(d->numa_node, 0);
    CHECK_INT(d->pcie.generation, 4);
    CHECK_INT(d->pcie.max_width, 16);
    CHECK_INT(d->links_up, 4);
    CHECK_INT(d->links_total, 4);
    CHECK_INT(m->devices[2].links_up, 2);
    CHECK_INT(m->devices[2].links_total, 3);
    if (CHECK_INT(d->node_count, 3)) {
        CHECK_STR(d->nodes[0], "/dev/mtgpu.0");
        CHECK_STR(d->nodes[2], "/dev/dri/renderD128");
    }
    CHECK_STR(m->driver_version, "2.7.0-server");
    CHECK_INT(weft_machine_t(m, 0, 1), WEFT_DISTANCE_PIX);
    CHECK_INT(weft_machine_t(m, 1, 2), WEFT_DISTANCE_SYS);
    if (CHECK_INT(m->warning_count, 1)) {
        CHECK_CONTAINS(m->warnings[0], "1 ends of MTLinks run slower");
    }
}

static void links_and_their_states(void)
{
    const struct weft_backend_options options = use("links", FOUR END);
    void *state = NULL;
    if (!CHECK_INT(weft_backend_mthreads.open(&options, &state, NULL), 0)) {
        return;
    }
    weft_auto(weft_machine_free) struct weft_machine *m = look(state);
    if (m != NULL && CHECK_INT(m->device_count, 4)) {
        check_four(m);
    }
    weft_backend_mthreads.close(state);
}

static void partitions(void)
{
    const struct weft_backend_options options =
        use("mpc",
            FOUR ", {\"uuid\": \"parent\", \"bdf\": \"00000000:5b:00.0\", \"name\": \"MTT\","
                 " \"gpu\": \"/dev/mtgpu.4\", \"instances\": ["
                 "{\"uuid\": \"mpc-0\", \"profile\": \"1c.12gb\", \"memory_mib\": 12288,"
                 " \"gpu\": \"/dev/mtgpu.5\"},"
                 "{\"uuid\": \"mpc-1\", \"memory_mib\": 24576, \"gpu\": \"/dev/mtgpu.6\"}]}" END);
    void *state = NULL;
    if (!CHECK_INT(weft_backend_mthreads.open(&options, &state, NULL), 0)) {
        return;
    }
    weft_auto(weft_machine_free) struct weft_machine *m = look(state);
    if (m != NULL && CHECK_INT(m->device_count, 6)) {
        const struct weft_device *d = &m->devices[4];
        CHECK_STR(d->id, "mpc-0");
        CHECK_INT(d->parent, 4);
        CHECK_INT(d->partition, 0);
        CHECK_STR(d->profile, "1c.12gb");
        CHECK_INT(d->memory_mib, 12288);
        CHECK_INT(d->bdf.bus, 0x5b);
        CHECK_STR(d->nodes[0], "/dev/mtgpu.5");
        CHECK_INT(m->devices[5].partition, 1);
        CHECK_STR(m->devices[5].profile, "mpc");
        CHECK_INT(weft_machine_t(m, 4, 5), WEFT_DISTANCE_PSB);
        CHECK_INT(weft_machine_b(m, 4, 5), 0);
        CHECK_INT(weft_machine_b(m, 0, 1), 80000);
    }
    weft_backend_mthreads.close(state);
}

static void a_lost_gpu_stays(void)
{
    const struct weft_backend_options options = use("lost", FOUR END);
    static const char without[] = "{\"gpus\": [{\"uuid\": \"11111111-aaaa\", \"lost\": true},"
                                  "{\"uuid\": \"22222222-bbbb\", \"bdf\": \"00000000:3c:00.0\"}]}";
    void *state = NULL;
    if (!CHECK_INT(weft_backend_mthreads.open(&options, &state, NULL), 0)) {
        return;
    }
    weft_auto(weft_machine_free) struct weft_machine *first = look(state);
    CHECK_INT(weft_file_replace(place.file, without, strlen(without), 0644, NULL), 0);
    weft_auto(weft_machine_free) struct weft_machine *m = look(state);
    if (first != NULL && m != NULL && CHECK_INT(m->device_count, 4)) {
        CHECK_STR(m->devices[0].id, "22222222-bbbb");
        CHECK(m->devices[0].healthy);
        CHECK_STR(m->devices[1].id, "11111111-aaaa");
        CHECK(!m->devices[1].healthy);
        CHECK_INT(weft_machine_b(m, 0, 1), 80000); /* as it was */
        CHECK_INT(m->devices[1].index, 2);
    }
    weft_backend_mthreads.close(state);
}

static void check_sysfs(const struct weft_machine *m)
{
    CHECK_STR(m->devices[0].id, "0000:3b:00.0");
    if (CHECK_INT(m->devices[0].node_count, 3)) {
        CHECK_STR(m->devices[0].nodes[0], "/dev/mtgpu.0");
        CHECK_STR(m->devices[0].nodes[1], "/dev/dri/card1");
    }
    CHECK_STR(m->devices[2].id, "0000:5b:00.0");
    CHECK(!m->devices[2].healthy);
    CHECK_CONTAINS(m->devices[2].health_reason, "no driver");
    CHECK_INT(m->devices[3].node_count, 2); /* there is no /dev/mtgpu.3 */
    CHECK_INT(weft_machine_t(m, 0, 1), WEFT_DISTANCE_PIX);
    CHECK_INT(weft_machine_b(m, 0, 1), 0);
    CHECK_INT(m->devices[0].links_up, -1);
}

static void without_the_library(void)
{
    static const struct {
        const char *name, *json, *library, *why;
    } rows[] = {
        {"none", "{}", "/nonexistent/libmtml.so", "libmtml.so was not found"},
        {"driver", "{\"init\": 1}", NULL, "libmtml.so does not start: the driver is not loaded"},
        {"other", "{}", "libm.so.6", "libmtml.so has no mtmlLibraryInit"},
    };
    for (size_t i = 0; i < WEFT_ARRAY_LEN(rows); i++) {
        struct weft_backend_options options = use(rows[i].name, rows[i].json);
        options.library = rows[i].library != NULL ? rows[i].library : options.library;
        void *state = NULL;
        if (!CHECK_INT(weft_backend_mthreads.open(&options, &state, NULL), 0)) {
            return;
        }
        weft_auto(weft_machine_free) struct weft_machine *m = look(state);
        if (m != NULL && CHECK_INT(m->device_count, 5)) {
            check_sysfs(m);
            if (CHECK_INT(m->warning_count, 1)) {
                CHECK_CONTAINS(m->warnings[0], rows[i].why);
            }
        }
        weft_backend_mthreads.close(state);
    }
}

static void a_library_that_fails(void)
{
    const struct weft_backend_options options = use("fails", "{\"count\": 2}");
    void *state = NULL;
    struct weft_machine *m = NULL;
    struct weft_error err = {0};
    if (CHECK_INT(weft_backend_mthreads.open(&options, &state, NULL), 0)) {
        CHECK_INT(weft_backend_mthreads.enumerate(state, &m, &err), -EIO);
        CHECK_CONTAINS(err.message, "error 2 instead of the number of GPUs");
        CHECK(m == NULL);
    }
    weft_backend_mthreads.close(state);
}

WEFT_SUITE(mthreads, {"conforms", conforms}, {"links and their states", links_and_their_states},
           {"partitions", partitions}, {"a lost GPU stays", a_lost_gpu_stays},
           {"without the library", without_the_library},
           {"a library that fails", a_library_that_fails})
